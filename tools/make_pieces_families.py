"""Make testdata/pieces/families: tokenizers of each model family, and the pieces that Hugging Face computes with them.

usage: make_pieces_families.py REPOSITORY       (needs transformers and tokenizers)

The published vocabularies are too large for this repository. Each tokenizer is trained here through the pipeline of its
family (normalizer, pre-tokenizer, model, template) and saved by transformers.

NAME/                   bert_cased, bert_uncased (as BERT and DistilBERT), camembert, modernbert, gemma (as mmBERT)
vocab_txt/              only the vocab.txt of bert_cased and a tokenizer_config.json, as old BERT models have
NAME.txt                one hash for each sentence of examples/politics/{train,dev,test,text}.conll and written.txt
NAME_traps.json         tokens, ids and ranges of difficult texts
"""
import hashlib, json, pathlib, sys
import tokenizers, transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, BertTokenizer, CamembertTokenizer, PreTrainedTokenizerFast
from make_pieces_golden import TRAPS, dump
from reference_pieces import fingerprint, read_conll, reference

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
BERT_NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT))


def bert(out, text, lowercase):
    rules = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = BERT[:1] + [f"[unused{n}]" for n in range(1, 6)] + BERT[1:]
    rules.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=1500, special_tokens=specials, limit_alphabet=400, show_progress=False))
    vocab = json.loads(rules.to_str())["model"]["vocab"]
    BertTokenizer(vocab=vocab, do_lower_case=lowercase).save_pretrained(out)
    return AutoTokenizer.from_pretrained(out)


def vocab_txt(out, cased):
    out.mkdir(exist_ok=True)
    vocab = json.loads((cased / "tokenizer.json").read_text())["model"]["vocab"]
    (out / "vocab.txt").write_text("".join(piece + "\n" for piece in sorted(vocab, key=vocab.get)), encoding="utf-8")
    (out / "tokenizer_config.json").write_text('{"do_lower_case": false}\n')


def camembert(out, text):
    rules = tokenizers.Tokenizer(models.Unigram())
    rules.pre_tokenizer = pre_tokenizers.Metaspace()
    rules.train_from_iterator(text, trainers.UnigramTrainer(vocab_size=900, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False))
    trained = [tuple(entry) for entry in json.loads(rules.to_str())["model"]["vocab"] if entry[0] != "<unk>"]
    head = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0), ("<s>", 0.0), ("</s>", 0.0)]
    # Without the normalization table, which has 300 kB. The tests of mini cover it.
    CamembertTokenizer(vocab=head + trained + [("<mask>", 0.0)]).save_pretrained(out)
    return AutoTokenizer.from_pretrained(out)


def modernbert(out, text):
    rules = tokenizers.Tokenizer(models.BPE())
    rules.normalizer = normalizers.NFC()
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    rules.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    # Its special pieces, and runs of spaces, are added after the vocabulary.
    rules.add_tokens(["  ", "   "])
    rules.add_special_tokens(["|||IP_ADDRESS|||", *BERT, "[unused0]"])
    ends = [(name, rules.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    rules.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends)
    PreTrainedTokenizerFast(tokenizer_object=rules, **BERT_NAMES).save_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    # Without this, Python would encode the tokens of a sentence as one word. For this class, transformers ignores the
    # argument add_prefix_space.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def gemma(out, text):
    rules = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    rules.normalizer = normalizers.Replace(" ", "▁")
    rules.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    rules.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    # Trained on single words, because the rules do not split at spaces.
    words = [f" {word}" for line in text for word in line.split(" ")]
    specials = GEMMA + [f"<0x{byte:02X}>" for byte in range(256)]
    rules.train_from_iterator(words, trainers.BpeTrainer(vocab_size=1000, special_tokens=specials, limit_alphabet=120, show_progress=False))
    saved = json.loads(rules.to_str())
    saved["added_tokens"] = [entry for entry in saved["added_tokens"] if entry["content"] in GEMMA]
    rules = tokenizers.Tokenizer.from_str(json.dumps(saved))
    ends = [(name, rules.token_to_id(name)) for name in ("<bos>", "<eos>")]
    rules.post_processor = processors.TemplateProcessing(single="<bos> $A <eos>", pair="<bos> $A <eos> $B <eos>", special_tokens=ends)
    PreTrainedTokenizerFast(tokenizer_object=rules, bos_token="<bos>", eos_token="<eos>", cls_token="<bos>", sep_token="<eos>",
                            pad_token="<pad>", unk_token="<unk>", mask_token="<mask>").save_pretrained(out)
    spaced = AutoTokenizer.from_pretrained(out)
    # Gemma's rules insert no space before a word, so that the tokens get one here.
    return lambda tokens: reference(spaced, [f" {token}" for token in tokens])


def is_plain(token):
    """Return whether no special piece is in the text. Hugging Face would find it there, and we do not."""
    return not any(name in token for name in (*BERT, "<mask>", "<s>", "</s>", "<pad>", "<unk>", "  "))


def main(root):
    out = root / "testdata/pieces/families"
    out.mkdir(exist_ok=True)
    written = [line.split(" ") for line in (root / "testdata/pieces/written.txt").read_text(encoding="utf-8").splitlines()]
    politics = [s for split in ("train", "dev", "test", "text") for s in read_conll(root / f"examples/politics/{split}.conll")]
    traps = [[token for token in tokens if is_plain(token)] for tokens in TRAPS.values()]
    # Not trained on the long tokens: a unigram model would have pieces such as aaaa whose sums of scores are equal up to
    # the last bit, which depends on the parser of the numbers.
    trained_on = written * 4 + politics[:900] + [tokens for tokens in traps if max(map(len, tokens)) < 100]
    text = [" ".join(tokens) for tokens in trained_on]

    families = {
        "bert_cased": bert(out / "bert_cased", text, False),
        "bert_uncased": bert(out / "bert_uncased", text, True),
        "camembert": camembert(out / "camembert", text),
        "modernbert": modernbert(out / "modernbert", text),
        "gemma": gemma(out / "gemma", text),
    }
    vocab_txt(out / "vocab_txt", out / "bert_cased")
    for name, tokenizer in families.items():
        encode = tokenizer if name == "gemma" else lambda tokens: reference(tokenizer, tokens)
        (out / f"{name}.txt").write_text("\n".join(fingerprint(encode(s)) for s in politics + written) + "\n")
        dump(out / f"{name}_traps.json", [{"tokens": tokens, **encode(tokens)} for tokens in traps])

    here = pathlib.Path(__file__).parent
    scripts = {name: hashlib.sha256((here / name).read_bytes()).hexdigest()
               for name in ("make_pieces_families.py", "make_pieces_golden.py", "reference_pieces.py")}
    (out / "provenance.json").write_text(json.dumps(dict(
        scripts=scripts, transformers=transformers.__version__, tokenizers=tokenizers.__version__), indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
