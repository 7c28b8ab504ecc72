"""Make testdata/tagger: reference values by transformers and pytorch-crf for a tiny random tagger.

usage: make_golden_tagger.py OUT_FOLDER      (needs torch, transformers, safetensors, pytorch-crf)

Everything is computed in float64 from weights that float32 represents exactly. OUT_FOLDER/model contains an
XLMRobertaForTokenClassification and, as additional tensors, the scores of the CRF. golden.safetensors contains the
batches. For the linear head (loss by transformers) and for the CRF (mean loss over sentences) it contains emissions,
loss, all gradients, best tags, and the parameters after four steps of torch's AdamW with clip_grad_norm_.
"""
import hashlib, importlib.metadata, json, pathlib, sys
import torch, transformers
from safetensors.torch import load_file, save_file
from torchcrf import CRF

N_TAGS = 5
SIZES = dict(vocab_size=43, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
             max_position_embeddings=17, type_vocab_size=1, layer_norm_eps=1e-5, num_labels=N_TAGS)
# The number of pieces of each sentence. One sentence has a single piece.
LENGTHS = [[7, 1, 12, 3], [5, 9, 14], [2, 11], [8, 6, 4]]
# eps is so large that rounding errors do not change the biases of the keys, whose exact gradient is zero.
ADAMW = dict(lr=2e-3, eps=1e-3, weight_decay=0.1)
# For each head, lies between the smallest and the largest gradient norm, so that some steps are clipped and others are
# not.
MAX_NORM = {"linear": 3.8, "crf": 19.0}


def batch_of(lengths, generator):
    """Return sentences of pieces without padding, the index of the first piece of each token, and the tags."""
    draw = lambda low, high, n: torch.randint(low, high, (n,), generator=generator)
    sentences = [draw(2, SIZES["vocab_size"], n) for n in lengths]
    firsts = [torch.randperm(n, generator=generator)[: (2 * n + 2) // 3].sort().values for n in lengths]
    return sentences, firsts, [draw(0, N_TAGS, len(first)) for first in firsts]


def emissions_and_loss(model, sentences, firsts, tags):
    padded = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=1)
    labels = torch.full_like(padded, -100)
    for row, first, tag in zip(labels, firsts, tags):
        row[first] = tag
    out = model(input_ids=padded, attention_mask=(padded != 1).long(), labels=labels)
    return [logits[first] for logits, first in zip(out.logits, firsts)], out.loss


def run(kind, model, crf, batch):
    """Return the emissions at the first piece of each token, the loss and the best tags."""
    emissions, loss = emissions_and_loss(model, *batch)
    if kind == "linear":
        return torch.cat(emissions), loss, torch.cat(emissions).argmax(-1)
    pad = lambda rows: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = pad([torch.ones(len(tags), dtype=torch.bool) for tags in batch[2]])
    loss = -crf(pad(emissions), pad(batch[2]), mask=mask, reduction="mean")
    return torch.cat(emissions), loss, torch.tensor(sum(crf.decode(pad(emissions), mask), []))


def parameters_of(kind, model, crf):
    yield from model.named_parameters()
    if kind == "crf":
        yield from ((f"crf.{name}", parameter) for name, parameter in crf.named_parameters())


def golden(tensors, kind, model, crf, batches):
    named = dict(parameters_of(kind, model, crf))
    before = {name: parameter.detach().clone() for name, parameter in named.items()}
    model.zero_grad(), crf.zero_grad()
    emissions, loss, best = run(kind, model, crf, batches[0])
    loss.backward()
    tensors |= {f"{kind}.loss": loss[None], f"{kind}.emissions": emissions, f"{kind}.best": best.int()}
    tensors |= {f"{kind}.gradient.{name}": parameter.grad.clone() for name, parameter in named.items()}
    optimiser = torch.optim.AdamW(named.values(), **ADAMW)
    norms, losses = [], []
    for batch in batches:
        optimiser.zero_grad()
        _, loss, _ = run(kind, model, crf, batch)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(named.values(), MAX_NORM[kind]).detach())
        losses.append(loss.detach())
        optimiser.step()
    assert min(norms) < MAX_NORM[kind] < max(norms), f"{kind}: norms {norms}"
    tensors |= {f"{kind}.norms": torch.stack(norms), f"{kind}.losses": torch.stack(losses)}
    tensors |= {f"{kind}.adamw.{name}": parameter.detach().clone() for name, parameter in named.items()}
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(before[name])


def main(out):
    torch.manual_seed(11)
    model = transformers.XLMRobertaForTokenClassification(transformers.XLMRobertaConfig(**SIZES, pad_token_id=1))
    crf = CRF(N_TAGS, batch_first=True)
    with torch.no_grad():
        for name, parameter in parameters_of("crf", model, crf):  # initial values of 0 and 1 would hide errors
            spread = 1.0 if name.startswith("crf.") else 0.3
            parameter.normal_(1.0 if name.endswith("orm.weight") else 0.0, spread)
    model.save_pretrained(out / "model")
    weights = load_file(out / "model/model.safetensors")
    weights |= {f"crf.{name}": parameter.detach().clone() for name, parameter in crf.named_parameters()}
    save_file(weights, out / "model/model.safetensors", metadata={"format": "pt"})
    model, crf = model.double().eval(), crf.double().eval()
    generator = torch.Generator().manual_seed(12)
    batches = [batch_of(lengths, generator) for lengths in LENGTHS]
    tensors = {}
    for index, (sentences, firsts, tags) in enumerate(batches):
        for name, parts in dict(pieces=sentences, firsts=firsts, tags=tags).items():
            tensors[f"batch{index}.{name}"] = torch.cat(parts).int()
        tensors[f"batch{index}.n_pieces"] = torch.tensor([len(s) for s in sentences]).int()
        tensors[f"batch{index}.n_tokens"] = torch.tensor([len(f) for f in firsts]).int()
    for kind in ["linear", "crf"]:
        golden(tensors, kind, model, crf, batches)
    single = lambda t: t if t.dtype == torch.int32 else t.detach().float()
    save_file({name: single(t).contiguous().clone() for name, t in tensors.items()}, out / "golden.safetensors")
    script = pathlib.Path(__file__)
    versions = {name: importlib.metadata.version(name) for name in ["torch", "transformers", "safetensors", "pytorch-crf"]}
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(), **versions,
                      python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
