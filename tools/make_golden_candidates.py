"""Make testdata/candidates: by transformers, the five most likely pieces at masked positions of linearized sentences.

usage: make_golden_candidates.py OUT_FOLDER UNIGRAM_FOLDER MINI_FOLDER      (needs torch, transformers)

OUT_FOLDER contains sentences.conll. UNIGRAM_FOLDER is testdata/pieces/unigram. MINI_FOLDER is the output of
crates/melm-mini/model/dequantize.py. Markers are added tokens. The embedding and bias of a marker are initialised with
the mean over the pieces of a word (section 2.1 of the paper). The tokenizer gets sentences in which markers are words.
All pieces are candidates, as in the authors' code. Everything is computed in float64.

tiny/                    a tiny random XLM-R without markers, with the tokenizer of UNIGRAM_FOLDER
tiny.json, mini.json     for each sentence with mentions: ids including markers, masked positions, and the five best ids
                         with their log-probabilities at each masked position
"""
import hashlib, json, pathlib, random, shutil, sys
import torch, transformers
from tokenizers import AddedToken

WORDS = {"PER": "person", "ORG": "organization", "LOC": "location"}
RATE = 0.6  # the fraction of entity pieces that are masked; at least one piece is masked
N_BEST = 5
# Ranks are compared exactly, so neighbouring scores must differ by more than the engine's rounding errors.
LEAST_GAP = 1e-4


def read(path):
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return [[row.split(" ") for row in block.split("\n")] for block in blocks if block.strip()]


def make_tiny(folder, unigram):
    torch.manual_seed(11)
    tokenizer = transformers.AutoTokenizer.from_pretrained(unigram)
    config = transformers.XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=130, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
    model = transformers.XLMRobertaForMaskedLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # initial values of 0 and 1 would hide errors
            parameter.normal_(1.0 if name.endswith("orm.weight") else 0.0, 0.6)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(unigram / name, folder / name)


def with_markers(folder, sentences):
    """Open the model and tokenizer of a folder and add a marker for every tag."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    tags = sorted({tag for sentence in sentences for _, tag in sentence if tag != "O"})
    markers = [f"<{tag}>" for tag in tags]
    n_old = model.config.vocab_size
    tokenizer.add_tokens([AddedToken(marker, special=True, normalized=False) for marker in markers])
    model.resize_token_embeddings(max(n_old, len(tokenizer)), mean_resizing=False)
    table, bias = model.get_input_embeddings().weight.data, model.lm_head.bias.data
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert len(bias) == len(table) and model.get_output_embeddings().bias is model.lm_head.bias
    for tag, marker in zip(tags, markers):
        pieces = tokenizer(WORDS[tag[2:]], add_special_tokens=False)["input_ids"]
        row = tokenizer.convert_tokens_to_ids(marker)
        table[row], bias[row] = table[pieces].mean(0), bias[pieces].mean()
    return model, tokenizer


def cases(folder, sentences):
    model, tokenizer = with_markers(folder, sentences)
    generator = random.Random(5)
    for number, sentence in enumerate(sentences):
        if all(tag == "O" for _, tag in sentence):
            continue
        words, inside = [], []
        for token, tag in sentence:
            around = [] if tag == "O" else [f"<{tag}>"]
            words += around + [token] + around
            inside += [False] * len(around) + [tag != "O"] + [False] * len(around)
        encoding = tokenizer(words, is_split_into_words=True)
        pieces = encoding["input_ids"]
        entity = [at for at, word in enumerate(encoding.word_ids()) if word is not None and inside[word]]
        masked = [at for at in entity if generator.random() < RATE] or entity[:1]
        given = torch.tensor([pieces])
        given[0, masked] = tokenizer.mask_token_id
        with torch.no_grad():
            found = model(given).logits[0, masked].log_softmax(-1).topk(N_BEST + 1)
        gaps = found.values[:, :-1] - found.values[:, 1:]
        assert gaps.min() > LEAST_GAP, f"{folder} {number}: ranks are {gaps.min():.1e} apart"
        best = tokenizer.convert_ids_to_tokens(found.indices[0, :N_BEST].tolist())
        print(folder.name, number, tokenizer.convert_ids_to_tokens(pieces[masked[0]]), best)
        yield dict(sentence=number, pieces=pieces, masked=masked, best=found.indices[:, :N_BEST].tolist(),
                   log_probabilities=[[round(x, 6) for x in row[:N_BEST]] for row in found.values.tolist()])


def main(out, unigram, mini):
    sentences = read(out / "sentences.conll")
    make_tiny(out / "tiny", unigram)
    for name, folder in (("tiny", out / "tiny"), ("mini", mini)):
        lines = ",\n".join(json.dumps(case) for case in cases(folder, sentences))
        (out / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    script = pathlib.Path(__file__)
    provenance = dict(script=script.name, sha256=hashlib.sha256(script.read_bytes()).hexdigest(),
                      torch=torch.__version__, transformers=transformers.__version__, python=sys.version.split()[0])
    (out / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:4]))
