"""Make testdata/nn: reference values by transformers for tiny random XLM-R models and for mini.

usage: make_golden_nn.py OUT_FOLDER MINI_FOLDER      (needs torch, transformers, safetensors)

MINI_FOLDER is the output of crates/melm-mini/model/dequantize.py. Everything is computed in float64 from weights that
float32 represents exactly, so that all differences are rounding errors of our engine. For each tiny model there is a
folder NAME and a file NAME.safetensors. The file contains inputs, hidden states, logits at the masked positions, loss,
all gradients, and the parameters after ten steps of torch's Adam and of AdamW, both with clip_grad_norm_.

NAME.added.safetensors contains the same for the model with N_ADDED more pieces, whose pretrained rows are frozen: the
table is the concatenation of a constant and of a parameter with the added rows.
"""
import hashlib, json, pathlib, sys
import safetensors, torch, transformers
from safetensors.torch import save_file

MODELS = {
    "odd": dict(vocab_size=97, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37,
                max_position_embeddings=19, type_vocab_size=1, layer_norm_eps=1e-5),
    "deep": dict(vocab_size=61, hidden_size=20, num_hidden_layers=3, num_attention_heads=2, intermediate_size=50,
                 max_position_embeddings=15, type_vocab_size=2, layer_norm_eps=1e-6),
}
LENGTHS = [[7, 1, 12, 3], [5, 9], [2, 2, 2, 11, 4], [12], [6, 8, 3], [1, 4], [10, 10, 2], [3], [9, 5, 7], [4, 12]]
# Adam uses torch's default eps. AdamW uses a larger eps, so that rounding errors do not change parameters whose exact
# gradient is zero (the biases of the keys).
OPTIMISERS = {
    "adam": (lambda p: torch.optim.Adam(p, lr=1e-3), 10.0),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=2e-3, eps=1e-3, weight_decay=0.1), 8.0),
}
N_ADDED = 5
TABLE, BIAS = "roberta.embeddings.word_embeddings.weight", "lm_head.bias"
# The tensors whose pretrained rows are frozen while each optimiser runs.
FROZEN = {"adam": [TABLE], "adamw": [TABLE, BIAS]}
MINI_SENTENCES = {
    "de": "Bundeskanzler Helmut <mask> sprach in Bonn .",
    "en": "Clinton aide resigns , <mask> says in New <mask> .",
    "es": "El presidente José María <mask> viajó a Madrid con su <mask> .",
    "nl": "Premier Wim <mask> sprak gisteren in Den Haag .",
}


def tiny(sizes, seed):
    torch.manual_seed(seed)
    config = transformers.XLMRobertaConfig(**sizes, pad_token_id=1)
    model = transformers.XLMRobertaForMaskedLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # initial values of 0 and 1 would hide errors
            parameter.normal_(1.0 if name.endswith("orm.weight") else 0.0, 0.3)
    return model.eval()


def named(model):
    """Return the parameters by their names in the saved file. The shared table has the embedding's name."""
    assert model.lm_head.decoder.weight is model.roberta.embeddings.word_embeddings.weight
    for name, parameter in model.named_parameters():
        yield name.replace("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"), parameter


def batch_of(lengths, vocab_size, generator):
    """Return sentences of pieces, the masked rows of the concatenated sentences, and the original pieces."""
    draw = lambda n: torch.randint(2, vocab_size, (n,), generator=generator)
    sentences = [draw(n) for n in lengths]
    n_rows = sum(lengths)
    masked = torch.randperm(n_rows, generator=generator)[: max(1, n_rows // 3)].sort().values
    return sentences, masked, draw(len(masked))


def run(model, sentences, masked, originals, replaced={}):
    """Return the loss of transformers on the padded batch, and the hidden states of all pieces except padding.

    The parameters in `replaced`, by name, are used in place of those of the model."""
    padded = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=1)
    real = padded != 1
    labels = torch.full_like(padded, -100)
    rows = torch.full((int(real.sum()),), -100)
    rows[masked] = originals
    labels[real] = rows
    inputs = dict(input_ids=padded, attention_mask=real.long(), labels=labels, output_hidden_states=True)
    out = torch.func.functional_call(model, replaced, kwargs=inputs, tie_weights=True)
    return out.loss, [h[real] for h in out.hidden_states], out.logits[real][masked]


def describe(tensors, prefix, sentences, masked, originals):
    tensors[f"{prefix}.pieces"] = torch.cat(sentences).int()
    tensors[f"{prefix}.lengths"] = torch.tensor([len(s) for s in sentences]).int()
    tensors[f"{prefix}.masked"] = masked.int()
    tensors[f"{prefix}.originals"] = originals.int()


def single(tensors):
    return {n: (t if t.dtype == torch.int32 else t.detach().float()).contiguous().clone() for n, t in tensors.items()}


def make_tiny(out, name, sizes, seed):
    model = tiny(sizes, seed)
    model.save_pretrained(out / name)
    state = {n: p.detach().double() for n, p in model.named_parameters()}
    model = model.double()
    generator = torch.Generator().manual_seed(seed)
    batches = [batch_of(lengths, sizes["vocab_size"], generator) for lengths in LENGTHS]
    tensors = {}
    for index, batch in enumerate(batches):
        describe(tensors, f"batch{index}", *batch)
    loss, hidden, logits = run(model, *batches[0])
    loss.backward()
    tensors["loss"], tensors["logits"] = loss[None], logits
    for index, rows in enumerate(hidden):
        tensors[f"hidden{index}"] = rows
    for parameter_name, parameter in named(model):
        tensors[f"gradient.{parameter_name}"] = parameter.grad.clone()
    for optimiser_name, (make, max_norm) in OPTIMISERS.items():
        model.load_state_dict(state, strict=False)
        optimiser = make(model.parameters())
        norms, losses = [], []
        for batch in batches:
            optimiser.zero_grad()
            loss, _, _ = run(model, *batch)
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm).detach())
            losses.append(loss.detach())
            optimiser.step()
        tensors[f"{optimiser_name}.norms"] = torch.stack(norms)
        tensors[f"{optimiser_name}.losses"] = torch.stack(losses)
        n_clipped = sum(norm > max_norm for norm in norms)
        assert 0 < n_clipped < len(norms), f"{name} {optimiser_name}: {n_clipped} of 10 clipped, {norms}"
        for parameter_name, parameter in named(model):
            tensors[f"{optimiser_name}.{parameter_name}"] = parameter.detach().clone()
    save_file(single(tensors), out / f"{name}.safetensors")


def added_batches(batches, n_pieces, generator):
    """Replace a third of the pieces and of the originals by added pieces, so that added rows are read and predicted."""
    def replace(pieces):
        added = torch.randint(n_pieces, n_pieces + N_ADDED, pieces.shape, generator=generator)
        return torch.where(torch.rand(pieces.shape, generator=generator) < 1 / 3, added, pieces)
    return [([replace(s) for s in sentences], masked, replace(originals)) for sentences, masked, originals in batches]


def make_added(out, name, sizes, seed):
    """Freeze the pretrained rows of a model with added pieces. Only the added rows are parameters of the optimiser."""
    n_pieces = sizes["vocab_size"]
    model = tiny(sizes, seed)
    generator = torch.Generator().manual_seed(seed)
    batches = [batch_of(lengths, n_pieces, generator) for lengths in LENGTHS]
    batches = added_batches(batches, n_pieces, generator)
    model.resize_token_embeddings(n_pieces + N_ADDED, mean_resizing=False)
    by_name = dict(named(model))
    with torch.no_grad():
        for rows in [by_name[TABLE][n_pieces:], by_name[BIAS][n_pieces:]]:
            rows.copy_(torch.randn(rows.shape, generator=generator) * 0.3)
    model = model.double().eval()
    state = {n: p.detach().clone() for n, p in named(model)}
    tensors = {"start.table": state[TABLE][n_pieces:], "start.bias": state[BIAS][n_pieces:]}
    for index, batch in enumerate(batches):
        describe(tensors, f"batch{index}", *batch)
    for optimiser_name, (make, max_norm) in OPTIMISERS.items():
        frozen = FROZEN[optimiser_name]
        added = {n: state[n][n_pieces:].clone().requires_grad_() for n in frozen}
        trained = {n: added[n] if n in frozen else p.clone().requires_grad_() for n, p in state.items()}
        optimiser = make(trained.values())
        norms, losses = [], []
        for index, batch in enumerate(batches):
            optimiser.zero_grad()
            whole = {n: torch.cat([state[n][:n_pieces], p]) if n in frozen else p for n, p in trained.items()}
            loss, _, _ = run(model, *batch, whole)
            loss.backward()
            if index == 0:
                for n, p in added.items():
                    tensors[f"{optimiser_name}.gradient.{n}"] = p.grad.clone()
            norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), max_norm).detach())
            losses.append(loss.detach())
            optimiser.step()
        n_clipped = sum(norm > max_norm for norm in norms)
        assert 0 < n_clipped < len(norms), f"{name} {optimiser_name}: {n_clipped} of 10 clipped, {norms}"
        tensors[f"{optimiser_name}.norms"] = torch.stack(norms)
        tensors[f"{optimiser_name}.losses"] = torch.stack(losses)
        # The added rows and a few other tensors; all would take 200 kB.
        kept = [TABLE, BIAS, "roberta.embeddings.LayerNorm.weight", "lm_head.dense.bias"]
        for n in kept:
            tensors[f"{optimiser_name}.{n}"] = trained[n].detach().clone()
    save_file(single(tensors), out / f"{name}.added.safetensors")


def make_mini(out, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    tensors = {}
    for language, text in MINI_SENTENCES.items():
        pieces = tokenizer(text, return_tensors="pt").input_ids
        masked = (pieces[0] == tokenizer.mask_token_id).nonzero()[:, 0]
        with torch.no_grad():
            logits = model(pieces).logits[0, masked]
        best = logits.log_softmax(-1).topk(5)
        tensors[f"{language}.pieces"], tensors[f"{language}.masked"] = pieces[0].int(), masked.int()
        tensors[f"{language}.best"], tensors[f"{language}.log_probabilities"] = best.indices.int(), best.values
        tensors[f"{language}.logits"] = logits[:, ::37]  # every 37th logit, because all would take 200 kB per row
        print(language, tokenizer.convert_ids_to_tokens(best.indices[0].tolist()))
    save_file(single(tensors), out / "mini.safetensors")


def main(out, mini):
    out.mkdir(parents=True, exist_ok=True)
    for seed, (name, sizes) in enumerate(MODELS.items()):
        make_tiny(out, name, sizes, 7 + seed)
        make_added(out, name, sizes, 7 + seed)
    make_mini(out, mini)
    script = pathlib.Path(__file__)
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(),
                      torch=torch.__version__, transformers=transformers.__version__,
                      safetensors=safetensors.__version__, python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
