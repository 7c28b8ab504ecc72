#!/usr/bin/env python3
"""Write examples/politics/text.conll: the sentences of train.conll and dev.conll that train-100 and dev-100 do not have.

    python3 tools/make_example_text.py [--check]

The tags are removed, so the file has one column, the tokens. Sentences that are in test.conll too are left out. --check
writes nothing. It exits with 1 if the file is not as this script writes it.

The file is CoNLL and not plain text because plain text would not keep all tokens: of the 540 sentences, written with
spaces between tokens, `melm` splits 11 into other tokens ("non-", "'Reilly") and 7 into two sentences, and leaves out 3
with Chinese characters.
"""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent.parent / "examples/politics"
TEXT = FOLDER / "text.conll"


def sentences(name):
    """Return the tokens of each sentence of a CoNLL file."""
    blocks = (FOLDER / name).read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [tuple(row.split("\t")[0] for row in block.split("\n")) for block in blocks]


def drawn(name):
    """Return the numbers, from 1, of the sentences that `melm sample` has drawn for a file."""
    lines = (FOLDER / f"{name}.ids").read_text(encoding="utf-8").splitlines()
    return {int(line.split()[0]) for line in lines if not line.startswith("#")}


def unused(source, sample):
    """Return the sentences of `source` that are not in `sample`."""
    numbers = drawn(sample)
    return [sentence for number, sentence in enumerate(sentences(source), 1) if number not in numbers]


def check(text):
    """Compare sentences without white space: none is known from the files of the quick start or from test."""
    join = "".join
    source = {join(one) for name in ("train.conll", "dev.conll") for one in sentences(name)}
    known = {join(one) for name in ("train-100.conll", "dev-100.conll", "test.conll") for one in sentences(name)}
    assert all(join(one) in source for one in text), "a sentence is neither in train.conll nor in dev.conll"
    assert not any(join(one) in known for one in text), "a sentence is in train-100, dev-100 or test"


def main():
    others = unused("train.conll", "train-100.conll") + unused("dev.conll", "dev-100.conll")
    test = {"".join(one) for one in sentences("test.conll")}
    text = [one for one in others if "".join(one) not in test]
    check(text)
    content = "".join("\n".join(one) + "\n\n" for one in text)
    if "--check" not in sys.argv[1:]:
        TEXT.write_text(content, encoding="utf-8")
    elif not TEXT.exists() or TEXT.read_text(encoding="utf-8") != content:
        sys.exit(f"{TEXT} is not as this script writes it: run it without --check")
    print(f"{len(text)} of {len(others)} sentences, {len(others) - len(text)} left out because test.conll has them too")


if __name__ == "__main__":
    main()
