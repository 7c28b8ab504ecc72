"""Make testdata/seq2seq: reference values by transformers for tiny random mBART models.

usage: make_golden_seq2seq.py OUT_FOLDER      (needs torch, transformers, safetensors)

Everything is computed in float64 from weights that float32 represents exactly. There is one model like mBART and one
like mBART-50 (with scaled embeddings). The output contains for each model: the checkpoint; the logits of the first
batch, its loss (mean over target pieces) and all gradients; the parameters after four steps of torch's Adam with
clip_grad_norm_; the output and scores of `generate` with several settings of beam search; and targets sampled from
transformers' logits with given random numbers.
"""
import hashlib, importlib.metadata, json, pathlib, sys
import torch, transformers
from safetensors.torch import save_file

SIZES = dict(vocab_size=41, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
             decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20, max_position_embeddings=24,
             dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, pad_token_id=1, bos_token_id=0, eos_token_id=2)
# For each batch, the numbers of pieces of every source and its target.
LENGTHS = [[(5, 7), (1, 3), (12, 2)], [(4, 9), (9, 4)], [(7, 6)], [(3, 3), (8, 11)]]
ADAM = dict(lr=5e-3, eps=1e-3)
MAX_NORM = 13.0
LANGUAGE, LONGEST = 37, 14
# num_beams, length_penalty, early_stopping, forced_bos, forced_eos
SEARCHES = [(1, 1.0, False, None, None), (4, 1.0, False, None, None), (4, 1.0, True, LANGUAGE, 2),
            (3, 0.0, "never", None, 2), (5, 2.0, "never", LANGUAGE, None), (3, -0.5, False, None, 2)]
TEMPERATURES = [1.0, 0.6]


def logits_of(model, source, target):
    return model(input_ids=source[None], labels=target[None]).logits[0]


def run(model, batch):
    logits = torch.cat([logits_of(model, *pair) for pair in batch])
    return logits, torch.nn.functional.cross_entropy(logits, torch.cat([target for _, target in batch]))


def gradients(tensors, kind, model, batches):
    named = dict(model.named_parameters())
    before = {name: parameter.detach().clone() for name, parameter in named.items()}
    logits, loss = run(model, batches[0])
    loss.backward()
    tensors |= {f"{kind}.loss": loss[None], f"{kind}.logits": logits}
    tensors |= {f"{kind}.gradient.{name}": parameter.grad.clone() for name, parameter in named.items()}
    optimiser = torch.optim.Adam(named.values(), **ADAM)
    norms = []
    for batch in batches:
        optimiser.zero_grad()
        run(model, batch)[1].backward()
        norms.append(torch.nn.utils.clip_grad_norm_(named.values(), MAX_NORM).detach())
        optimiser.step()
    assert min(norms) < MAX_NORM < max(norms), f"{kind}: norms {norms}"
    tensors |= {f"{kind}.adam.{name}": parameter.detach().clone() for name, parameter in named.items()}
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(before[name])


@torch.no_grad()
def searches(tensors, kind, model, sources):
    for index, (n_beams, penalty, stopping, first, last) in enumerate(SEARCHES):
        for at, source in enumerate(sources):
            found = model.generate(
                source[None], num_beams=n_beams, num_return_sequences=1, max_length=LONGEST, length_penalty=penalty,
                early_stopping=stopping, forced_bos_token_id=first, forced_eos_token_id=last, do_sample=False,
                decoder_start_token_id=2, return_dict_in_generate=True, output_scores=True)
            pieces = found.sequences[0, 1:]
            tensors[f"{kind}.search{index}.{at}.pieces"] = pieces.int()
            if n_beams > 1:
                tensors[f"{kind}.search{index}.{at}.score"] = found.sequences_scores


@torch.no_grad()
def draws(tensors, kind, model, sources, generator):
    for index, temperature in enumerate(TEMPERATURES):
        for at, source in enumerate(sources):
            shares, written = torch.rand(LONGEST, generator=generator), [2]
            while len(written) < LONGEST and (len(written) == 1 or written[-1] != 2):
                inputs = torch.tensor([written])
                logits = model(input_ids=source[None], decoder_input_ids=inputs).logits[0, -1]
                passed = torch.softmax(logits / temperature, -1).cumsum(-1) > shares[len(written) - 1].double()
                written.append(int(passed.int().argmax()))
            tensors[f"{kind}.draw{index}.{at}.shares"] = shares
            tensors[f"{kind}.draw{index}.{at}.pieces"] = torch.tensor(written[1:]).int()


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(32)
    draw = lambda n: torch.randint(3, SIZES["vocab_size"], (n,), generator=generator)
    batches = [[(draw(n), draw(m)) for n, m in lengths] for lengths in LENGTHS]
    sources = [draw(n) for n in [6, 2, 11]]
    tensors = {"language": torch.tensor([LANGUAGE]).int()}
    for index, batch in enumerate(batches):
        for name, side in [("sources", 0), ("targets", 1)]:
            tensors[f"batch{index}.{name}"] = torch.cat([pair[side] for pair in batch]).int()
            tensors[f"batch{index}.{name}.lengths"] = torch.tensor([len(pair[side]) for pair in batch]).int()
    for at, source in enumerate(sources):
        tensors[f"source{at}"] = source.int()
    for kind, is_scaled in [("mbart", False), ("mbart50", True)]:
        torch.manual_seed(31)
        config = transformers.MBartConfig(**SIZES, scale_embedding=is_scaled)
        model = transformers.MBartForConditionalGeneration(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(1.0 if "norm" in name and name.endswith("weight") else 0.0, 0.5)
            model.final_logits_bias.normal_(0.0, 0.3)
            model.final_logits_bias[0, 2] += 4.0  # makes the end piece likely, so that generated targets end
        model.save_pretrained(out / kind)
        (out / kind / "generation_config.json").unlink(missing_ok=True)
        model = model.double().eval()
        gradients(tensors, kind, model, batches)
        searches(tensors, kind, model, sources)
        draws(tensors, kind, model, sources, generator)
    single = lambda t: t if t.dtype == torch.int32 else t.detach().float()
    save_file({name: single(t).contiguous().clone() for name, t in tensors.items()}, out / "golden.safetensors")
    script = pathlib.Path(__file__)
    versions = {name: importlib.metadata.version(name) for name in ["torch", "transformers", "safetensors"]}
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(), **versions,
                      python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
