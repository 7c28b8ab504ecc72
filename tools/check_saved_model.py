"""Open a model saved by melm in transformers. Check its tensors and logits, and that each marker is one piece.

usage: check_saved_model.py MODEL_FOLDER      (needs torch and transformers; run in the repository)

MODEL_FOLDER contains an XLM-R with masked-LM head, in the format of transformers or in our int8 format.
"""
import pathlib, subprocess, sys, tempfile
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer
import shutil

MARKERS = ["<B-PER>", "<I-PER>", "<B-LOC>"]
SENTENCES = ["EU rejects German call to boycott British lamb .", "Der Bundeskanzler sprach in Köln .",
             "La Unión Deportiva venció al Cádiz .", "De burgemeester van 's-Hertogenbosch ."]


def plain_folder(model, out):
    """Return a folder that transformers can open: `model` itself, or a converted copy if it is in our int8 format."""
    stored = load_file(model / "model.safetensors") if (model / "model.safetensors").exists() else {}
    if not any(name.endswith(".scale") for name in stored):
        return model
    out.mkdir()
    weights = {name: (value.float() * stored[name + ".scale"][:, None] if name + ".scale" in stored else value.float())
               for name, value in stored.items() if not name.endswith(".scale")}
    save_file({name: value.contiguous() for name, value in weights.items()}, out / "model.safetensors", {"format": "pt"})
    for path in model.glob("*.json"):
        shutil.copy(path, out)
    return out


def main(model):
    with tempfile.TemporaryDirectory() as scratch:
        ours = pathlib.Path(scratch) / "ours"
        subprocess.run(["cargo", "run", "-q", "--release", "-p", "melm", "--example", "resave_model", "--",
                        str(model), str(ours), *MARKERS], check=True)
        plain = plain_folder(model, pathlib.Path(scratch) / "plain")
        before = AutoModelForMaskedLM.from_pretrained(plain, dtype=torch.float32).eval()
        after, report = AutoModelForMaskedLM.from_pretrained(ours, output_loading_info=True)
        after = after.eval()
        assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"], report
        assert all(p.dtype == torch.float32 for p in after.parameters())
        n_old, n_new = before.config.vocab_size, after.config.vocab_size
        old_words, new_words = AutoTokenizer.from_pretrained(plain), AutoTokenizer.from_pretrained(ours)
        assert n_new == max(n_old, len(old_words) + len(MARKERS)), (n_old, n_new)

        n_tensors = 0
        for (name, old), (other, new) in zip(before.state_dict().items(), after.state_dict().items(), strict=True):
            assert name == other
            new = new[: len(old)] if new.shape != old.shape else new
            assert torch.equal(old, new), name
            n_tensors += 1
        assert after.lm_head.decoder.weight is after.roberta.embeddings.word_embeddings.weight, "tied"

        worst = 0.0
        for text in SENTENCES:
            ids = old_words(text, return_tensors="pt")
            assert ids["input_ids"].tolist() == new_words(text, return_tensors="pt")["input_ids"].tolist()
            with torch.no_grad():
                difference = before(**ids).logits - after(**ids).logits[..., :n_old]
            worst = max(worst, difference.abs().max().item())
        # The table is longer with markers. Its product is then split into different blocks, so the last bits may
        # differ.
        assert worst < 1e-4, worst

        expected = list(range(len(old_words), len(old_words) + len(MARKERS)))
        found = new_words(" ".join(MARKERS), add_special_tokens=False)["input_ids"]
        assert new_words.convert_tokens_to_ids(MARKERS) == expected, "ids of markers"
        assert [i for i in found if i in expected] == expected, found
        split = new_words(["Kohl", MARKERS[0], "sprach"], is_split_into_words=True)
        assert split["input_ids"].count(expected[0]) == 1
        print(f"{model}: {n_tensors} tensors equal bit for bit, logits within {worst:.1e}, "
              f"{len(MARKERS)} markers single pieces at {expected}, tokenizer {type(new_words).__name__}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
