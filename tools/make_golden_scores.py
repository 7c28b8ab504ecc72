"""Write testdata/scores.jsonl: random pairs of tag sequences with their scores by seqeval.

    pip install seqeval && python tools/make_golden_scores.py

Each line contains the scheme, the gold sentences and the predicted sentences. For the default and the strict mode it
contains [precision, recall, f1, support] of the micro, macro and weighted averages and of every entity type.

The default mode of seqeval does not know the letters L and U. It joins `U-X U-X` into one mention, and it misses a
mention whose last tag `L-X` is directly followed by `B-X`. We read L as E and U as S. For BILOU pairs, the stored
default scores are therefore those of seqeval for the same tags in IOBES.
"""
import hashlib
import json
import math
import pathlib
import random
import warnings
from importlib.metadata import version

from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_scores
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, IOE1, IOE2

warnings.filterwarnings("ignore")
SCHEMES = {"iob1": (IOB1, "IB"), "iob2": (IOB2, "IB"), "ioe1": (IOE1, "IE"), "ioe2": (IOE2, "IE"),
           "iobes": (IOBES, "IBES"), "bilou": (BILOU, "IBLU")}
TYPES = [["PER"], ["PER", "LOC"], ["PER", "LOC", "a-b"], [""]]
PAIRS_A_SCHEME = 350
TO_IOBES = str.maketrans("LU", "ES")


def sentence(rng, length, letters, types):
    """Return random tags. Neighbouring tags are often related, so that valid and invalid mentions are both common."""
    tags = []
    for _ in range(length):
        again = tags and tags[-1] != "O" and rng.random() < 0.5
        kind = tags[-1][2:] if again else rng.choice(types)
        if rng.random() < 0.3:
            tags.append("O")
        else:
            letter = rng.choice(letters)
            tags.append(f"{letter}-{kind}" if kind else letter)
    return tags


def disturb(rng, tags, letters, types):
    """Return predicted tags, most of which are the gold tags."""
    other = sentence(rng, len(tags), letters, types)
    return [tag if rng.random() < 0.7 else noise for tag, noise in zip(tags, other)]


def row(*values):
    """Round to nine digits. Replace nan by 0: seqeval returns nan for the weighted average without support."""
    rates = [0 if math.isnan(value) else round(float(value), 9) for value in values[:3]]
    return [int(rate) if rate in (0, 1) else rate for rate in rates] + [int(values[3])]


def scores(function, gold, predicted, **options):
    result = {}
    for average in ("micro", "macro", "weighted"):
        p, r, f, s = function(gold, predicted, average=average, **options)
        result[average] = row(p, r, f, s)
    by_type = function(gold, predicted, average=None, **options)
    result["types"] = [row(*values) for values in zip(*by_type)]
    return result


def as_iobes(sentences):
    return [[tag[0].translate(TO_IOBES) + tag[1:] for tag in tags] for tags in sentences]


def has_mention(sentences):
    return any(tag != "O" for tags in sentences for tag in tags)


def main():
    rng = random.Random(2022)
    out = pathlib.Path(__file__).parent.parent / "testdata" / "scores.jsonl"
    with out.open("w") as file:
        digest = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:16]
        file.write(json.dumps({"script": digest, "seqeval": version("seqeval")}) + "\n")
        for name, (scheme, letters) in SCHEMES.items():
            written = 0
            while written < PAIRS_A_SCHEME:
                types = rng.choice(TYPES)
                lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 2))]
                gold = [sentence(rng, n, letters, types) for n in lengths]
                predicted = [disturb(rng, tags, letters, types) for tags in gold]
                if not has_mention(gold) and not has_mention(predicted):
                    continue  # seqeval would divide by the number of types, which is 0
                try:
                    strict = scores(strict_scores, gold, predicted, scheme=scheme)
                except (ValueError, ZeroDivisionError):
                    continue  # seqeval divided by 0: neither side has a valid mention
                lenient = (gold, predicted) if name != "bilou" else (as_iobes(gold), as_iobes(predicted))
                default = scores(precision_recall_fscore_support, *lenient)
                pair = {"scheme": name, "gold": [" ".join(t) for t in gold],
                        "predicted": [" ".join(t) for t in predicted],
                        "default": default, "strict": strict}
                file.write(json.dumps(pair, separators=(",", ":")) + "\n")
                written += 1


main()
