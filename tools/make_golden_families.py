"""Make testdata/families: reference values by transformers for tiny random models of the BERT and RoBERTa families.

usage: make_golden_families.py OUT_FOLDER      (needs torch, transformers, safetensors)

Everything is computed in float64 from weights that float32 represents exactly. For each family there is a folder
NAME.lm with a masked language model (except for ELECTRA, whose discriminator has none), a folder NAME.tagger with a
token classifier, and a file NAME.safetensors with inputs, hidden states, logits, losses and all gradients of both.
"""
import hashlib, json, pathlib, sys
import safetensors, torch, transformers
from safetensors.torch import save_file

SIZES = dict(vocab_size=53, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=22,
             max_position_embeddings=16)
DISTIL = dict(vocab_size=47, dim=12, n_layers=2, n_heads=3, hidden_dim=18, max_position_embeddings=15)
# Sentences are longer than the window of local attention: three pieces on each side. Small bases of the rotary
# positions make all angles differ.
MODERN = dict(SIZES, num_hidden_layers=4, intermediate_size=14, local_attention=6, bos_token_id=1,
              cls_token_id=1, eos_token_id=2, sep_token_id=2,
              rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                               "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})
# The classes, the settings of the configuration, and the id of padding.
FAMILIES = {
    "bert": ("Bert", dict(SIZES, type_vocab_size=2, layer_norm_eps=1e-12), 0),
    "distilbert": ("DistilBert", DISTIL, 0),
    "camembert": ("Camembert", dict(SIZES, type_vocab_size=1, layer_norm_eps=1e-5), 1),
    "electra": ("Electra", dict(SIZES, embedding_size=12, type_vocab_size=2), 0),
    "modernbert": ("ModernBert", MODERN, 0),
}
LENGTHS = [7, 1, 12, 3]
N_TAGS = 5


def tiny(kind, config, seed):
    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # initial values of 0 and 1 would hide errors
            parameter.normal_(1.0 if name.endswith("orm.weight") else 0.0, 0.3)
    return model.eval()


def run(model, sentences, labels, pad):
    """Return the output of transformers on the padded batch, and which positions are pieces."""
    padded = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=pad)
    real = padded != pad
    spread = torch.full_like(padded, -100)
    spread[real] = labels
    out = model(input_ids=padded, attention_mask=real.long(), labels=spread, output_hidden_states=True)
    out.loss.backward()
    return out, real


def gradients(model, prefix):
    """Return the gradients by the names of the parameters. The shared table has the embedding's name."""
    table = model.get_input_embeddings().weight
    own = "tok_embeddings" if model.config.model_type == "modernbert" else "word_embeddings"
    name = lambda n, p: f"{model.base_model_prefix}.embeddings.{own}.weight" if p is table else n
    return {f"{prefix}gradient.{name(n, p)}": p.grad for n, p in model.named_parameters()}


def hidden_rows(model, states):
    """Return what each layer reads, and the last hidden states. ModernBERT normalises the states before it reads them."""
    layers = model.model.layers if model.config.model_type == "modernbert" else []
    return [layer.attn_norm(rows) for layer, rows in zip(layers, states)] + list(states[len(layers):])


def make(out, name, seed):
    classes, settings, pad = FAMILIES[name]
    config = getattr(transformers, f"{classes}Config")(**settings, pad_token_id=pad, num_labels=N_TAGS)
    generator = torch.Generator().manual_seed(seed)
    draw = lambda most, n: torch.randint(2, most, (n,), generator=generator)
    sentences = [draw(settings["vocab_size"], n) for n in LENGTHS]
    n_rows = sum(LENGTHS)
    masked = torch.randperm(n_rows, generator=generator)[: n_rows // 3].sort().values
    originals = draw(settings["vocab_size"], len(masked))
    tags = torch.randint(0, N_TAGS, (n_rows,), generator=generator)
    tensors = {"batch0.pieces": torch.cat(sentences).int(), "batch0.lengths": torch.tensor(LENGTHS).int(),
               "batch0.masked": masked.int(), "batch0.originals": originals.int(), "tags": tags.int()}
    if hasattr(transformers, f"{classes}ForMaskedLM") and name != "electra":
        model = tiny(getattr(transformers, f"{classes}ForMaskedLM"), config, seed)
        model.save_pretrained(out / f"{name}.lm")
        labels = torch.full((n_rows,), -100)
        labels[masked] = originals
        result, real = run(model.double(), sentences, labels, pad)
        tensors |= {"loss": result.loss[None], "logits": result.logits[real][masked], **gradients(model, "")}
        tensors |= {f"hidden{i}": rows[real] for i, rows in enumerate(hidden_rows(model, result.hidden_states))}
    model = tiny(getattr(transformers, f"{classes}ForTokenClassification"), config, seed + 100)
    model.save_pretrained(out / f"{name}.tagger")
    result, real = run(model.double(), sentences, tags, pad)
    tensors |= {"tagger.loss": result.loss[None], "tagger.emissions": result.logits[real],
                **gradients(model, "tagger.")}
    single = {n: (t if t.dtype == torch.int32 else t.detach().float()).contiguous().clone() for n, t in tensors.items()}
    save_file(single, out / f"{name}.safetensors")


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(FAMILIES):
        make(out, name, 31 + seed)
    script = pathlib.Path(__file__)
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(),
                      torch=torch.__version__, transformers=transformers.__version__,
                      safetensors=safetensors.__version__, python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
