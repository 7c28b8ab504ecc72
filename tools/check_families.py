"""Compare our pieces and alignment with those of Hugging Face for each model family, on any CoNLL files.

usage: check_families.py FOLDER --train FILE... --check FILE...     (needs transformers; run in the repository)

Trains a tokenizer of each family on the sentences of --train, through the same functions as testdata/pieces but with a
larger vocabulary, and saves it in FOLDER. Then runs check_tokenizer.py on --check. Exits with 1 if there is any
difference.
"""
import argparse, json, pathlib, shutil, subprocess, sys
from tokenizers import trainers

VOCABULARY = 16_000
HERE = pathlib.Path(__file__).parent


def with_larger_vocabulary(trainer):
    return lambda vocab_size, **options: trainer(vocab_size=VOCABULARY, **options)


for name in ("WordPieceTrainer", "UnigramTrainer", "BpeTrainer"):
    setattr(trainers, name, with_larger_vocabulary(getattr(trainers, name)))

from make_pieces_families import bert, camembert, gemma, modernbert
from make_pieces_golden import byte_level, unigram
from reference_pieces import read_conll


def edit(path, change):
    """Change the JSON of a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def distilbert(out, text):
    bert(out, text, lowercase=False)
    edit(out / "tokenizer_config.json", lambda config: config.update(tokenizer_class="DistilBertTokenizer"))


def with_normalizer(train):
    """Return a function that trains a unigram tokenizer, and gives it the normalization table of XLM-R and CamemBERT."""
    normalizer = json.loads((HERE / "../crates/melm-mini/model/tokenizer.json").read_text(encoding="utf-8"))["normalizer"]

    def trained(out, text):
        train(out, text)
        edit(out / "tokenizer.json", lambda rules: rules.update(normalizer=normalizer))
    return trained


def vocab_txt(out, source, lowercase):
    """Save only the vocab.txt and the settings of a BERT tokenizer, as old models have them."""
    out.mkdir()
    vocab = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (out / "vocab.txt").write_text("".join(piece + "\n" for piece in sorted(vocab, key=vocab.get)), encoding="utf-8")
    (out / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"}))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--train", nargs="+", required=True)
    arguments.add_argument("--check", nargs="+", required=True)
    arguments = arguments.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    texts = [[" ".join(tokens) for tokens in read_conll(path)] for path in arguments.train]
    first, every = texts[0], [line for text in texts for line in text]
    families = {
        "bert-cased": lambda out: bert(out, first, lowercase=False),
        "bert-uncased": lambda out: bert(out, first, lowercase=True),
        "bert-multilingual-cased": lambda out: bert(out, every, lowercase=False),
        "bert-multilingual-uncased": lambda out: bert(out, every, lowercase=True),
        "distilbert": lambda out: distilbert(out, first),
        "camembert": lambda out: with_normalizer(camembert)(out, every),
        "roberta": lambda out: byte_level(out, first),
        "xlm-roberta": lambda out: with_normalizer(unigram)(out, every),
        "modernbert": lambda out: modernbert(out, first),
        "gemma": lambda out: gemma(out, every),
        "vocab-txt-cased": lambda out: vocab_txt(out, arguments.folder / "bert-cased", False),
        "vocab-txt-uncased": lambda out: vocab_txt(out, arguments.folder / "bert-multilingual-uncased", True),
    }
    failed = []
    for name, train in families.items():
        train(arguments.folder / name)
        check = [sys.executable, HERE / "check_tokenizer.py", arguments.folder / name, *arguments.check]
        if subprocess.run(check).returncode != 0:
            failed.append(name)
    print(f"differences: {', '.join(failed)}" if failed else "no differences")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
