"""Make testdata/lstm: reference values by torch for tiny random LSTM language models.

usage: make_golden_lstm.py OUT_FOLDER      (needs torch, safetensors)

Everything is computed in float64 from weights that float32 represents exactly. The output contains the batches. For
models with one and with two layers it contains the initial parameters, all scores of the first batch, its loss (mean
over tokens), all gradients, and the parameters after four steps of torch's Adam with clip_grad_norm_.
"""
import hashlib, importlib.metadata, json, pathlib, sys
import torch
from safetensors.torch import save_file

VOCAB, EMBEDDING, HIDDEN = 23, 6, 9
# The number of tokens of each sequence, including its start and end.
LENGTHS = [[7, 2, 12, 3], [5, 9, 5], [2, 11], [8, 6, 4]]
# eps is so large that Adam does not amplify rounding errors of tiny gradients.
ADAM = dict(lr=5e-3, eps=1e-3)
# Lies between the smallest and the largest gradient norm, so that some steps are clipped and others are not.
MAX_NORM = 0.33


class Model(torch.nn.Module):
    def __init__(self, n_layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCAB, EMBEDDING)
        self.lstm = torch.nn.LSTM(EMBEDDING, HIDDEN, n_layers)
        self.output = torch.nn.Linear(HIDDEN, VOCAB, bias=False)

    def scores(self, tokens):
        return self.output(self.lstm(self.embedding(tokens[:-1, None]))[0])[:, 0]


def run(model, batch):
    """Return the concatenated scores of all sequences and the mean loss."""
    scores = torch.cat([model.scores(tokens) for tokens in batch])
    return scores, torch.nn.functional.cross_entropy(scores, torch.cat([tokens[1:] for tokens in batch]))


def golden(tensors, n_layers, batches):
    model, prefix = Model(n_layers), f"layers{n_layers}"
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.6)
    model = model.double()
    named = dict(model.named_parameters())
    tensors |= {f"{prefix}.start.{name}": parameter.detach().clone() for name, parameter in named.items()}
    scores, loss = run(model, batches[0])
    loss.backward()
    tensors |= {f"{prefix}.loss": loss[None], f"{prefix}.scores": scores}
    tensors |= {f"{prefix}.gradient.{name}": parameter.grad.clone() for name, parameter in named.items()}
    optimiser = torch.optim.Adam(named.values(), **ADAM)
    norms = []
    for batch in batches:
        optimiser.zero_grad()
        run(model, batch)[1].backward()
        norms.append(torch.nn.utils.clip_grad_norm_(named.values(), MAX_NORM).detach())
        optimiser.step()
    assert min(norms) < MAX_NORM < max(norms), f"{prefix}: norms {norms}"
    tensors |= {f"{prefix}.adam.{name}": parameter.detach().clone() for name, parameter in named.items()}


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(21)
    batches = [[torch.randint(0, VOCAB, (n,)) for n in lengths] for lengths in LENGTHS]
    tensors = {}
    for index, batch in enumerate(batches):
        tensors[f"batch{index}.tokens"] = torch.cat(batch).int()
        tensors[f"batch{index}.lengths"] = torch.tensor([len(tokens) for tokens in batch]).int()
    for n_layers in [1, 2]:
        golden(tensors, n_layers, batches)
    single = lambda t: t if t.dtype == torch.int32 else t.detach().float()
    save_file({name: single(t).contiguous().clone() for name, t in tensors.items()}, out / "golden.safetensors")
    script = pathlib.Path(__file__)
    versions = {name: importlib.metadata.version(name) for name in ["torch", "safetensors"]}
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(), **versions,
                      python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
