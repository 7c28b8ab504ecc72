"""Make testdata/family_steps: ten optimiser steps by torch for tiny models of testdata/families.

usage: make_golden_family_steps.py OUT_FOLDER FAMILIES_FOLDER      (needs torch, transformers, safetensors)

FAMILIES_FOLDER is the output of make_golden_families.py. Everything is computed in float64. For each family, the file
NAME.safetensors contains ten batches, and the norms of the gradients, the losses and the final parameters of ten steps
of torch's Adam and of AdamW, both with clip_grad_norm_. Dropout is off. The settings are those of make_golden_nn.py.
"""
import hashlib, json, pathlib, sys
import safetensors, torch, transformers
from safetensors.torch import save_file

# The families, with the id of padding.
FAMILIES = {"bert": 0, "modernbert": 0}
LENGTHS = [[7, 1, 12, 3], [5, 9], [2, 2, 2, 11, 4], [12], [6, 8, 3], [1, 4], [10, 10, 2], [3], [9, 5, 7], [4, 12]]
OPTIMISERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3, eps=1e-3, weight_decay=0.1),
}


def batch_of(lengths, vocab_size, generator):
    """Return sentences of pieces, the masked rows of the concatenated sentences, and the original pieces."""
    draw = lambda n: torch.randint(2, vocab_size, (n,), generator=generator)
    sentences = [draw(n) for n in lengths]
    n_rows = sum(lengths)
    masked = torch.randperm(n_rows, generator=generator)[: max(1, n_rows // 3)].sort().values
    return sentences, masked, draw(len(masked))


def loss_of(model, pad, sentences, masked, originals):
    """Return the loss of transformers on the padded batch."""
    padded = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=pad)
    real = padded != pad
    rows = torch.full((int(real.sum()),), -100)
    rows[masked] = originals
    labels = torch.full_like(padded, -100)
    labels[real] = rows
    return model(input_ids=padded, attention_mask=real.long(), labels=labels).loss


def train(folder, pad, batches, make, max_norm):
    """Return the norms before clipping, the losses and the final parameters by their names in the saved file."""
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    optimiser = make(model.parameters())
    norms, losses = [], []
    for batch in batches:
        optimiser.zero_grad()
        loss = loss_of(model, pad, *batch)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm).detach())
        losses.append(loss.detach())
        optimiser.step()
    stored = safetensors.safe_open(folder / "model.safetensors", "pt").keys()
    state = model.state_dict()
    return torch.stack(norms), torch.stack(losses), {name: state[name] for name in stored}


def make(out, folder, name, seed):
    pad = FAMILIES[name]
    vocab_size = json.loads((folder / "config.json").read_text())["vocab_size"]
    generator = torch.Generator().manual_seed(seed)
    batches = [batch_of(lengths, vocab_size, generator) for lengths in LENGTHS]
    tensors = {}
    for index, (sentences, masked, originals) in enumerate(batches):
        tensors |= {f"batch{index}.pieces": torch.cat(sentences).int(),
                    f"batch{index}.lengths": torch.tensor([len(s) for s in sentences]).int(),
                    f"batch{index}.masked": masked.int(), f"batch{index}.originals": originals.int()}
    # Clipping starts at the median norm of steps without clipping, so that some steps are clipped and others are not.
    unclipped, _, _ = train(folder, pad, batches, OPTIMISERS["adam"], float("inf"))
    max_norm = round(float(unclipped.median()), 1)
    tensors["max_norm"] = torch.tensor([max_norm])
    for optimiser, create in OPTIMISERS.items():
        norms, losses, state = train(folder, pad, batches, create, max_norm)
        assert 0 < sum(norm > max_norm for norm in norms) < len(norms), f"{name} {optimiser}: {norms}"
        tensors |= {f"{optimiser}.norms": norms, f"{optimiser}.losses": losses}
        tensors |= {f"{optimiser}.{n}": t for n, t in state.items()}
    single = {n: (t if t.dtype == torch.int32 else t.detach().float()).contiguous().clone() for n, t in tensors.items()}
    save_file(single, out / f"{name}.safetensors")


def main(out, families):
    out.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(FAMILIES):
        make(out, families / f"{name}.lm", name, 71 + seed)
    script = pathlib.Path(__file__)
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(),
                      torch=torch.__version__, transformers=transformers.__version__,
                      safetensors=safetensors.__version__, python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
