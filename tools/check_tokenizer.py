"""Compare our pieces and alignment with those of Hugging Face, on any CoNLL files.

usage: check_tokenizer.py MODEL_FOLDER FILE...     (needs transformers; run in the repository)

Prints the number of sentences, tokens and differences for each file. Exits with 1 if there is any difference.
"""
import json, subprocess, sys
from transformers import AutoTokenizer
from reference_pieces import read_conll, reference

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")


def ours(folder, sentences):
    run = subprocess.run(["cargo", "run", "-q", "--release", "-p", "melm", "--example", "encode_lines", "--", folder],
                         input="".join(json.dumps(s) + "\n" for s in sentences), text=True, encoding="utf-8",
                         stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def main(folder, paths):
    tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    failed = False
    for path in paths:
        sentences = list(read_conll(path))
        # If a text looks like a special piece, Hugging Face reads it as the special piece, but we read it as text. This
        # difference is documented, so such sentences are counted separately.
        plain = [s for s in sentences if not any(special in token for token in s for special in SPECIAL)]
        expected, found = [reference(tokenizer, s) for s in plain], ours(folder, plain)
        assert len(expected) == len(found)
        wrong = [(s, e, f) for s, e, f in zip(plain, expected, found) if e != f]
        failed |= bool(wrong)
        print(f"{path}: {len(plain)} sentences, {sum(map(len, plain))} tokens, {sum(len(e['pieces']) for e in expected)} pieces, "
              f"{sum(e['n_invisible'] for e in expected)} tokens without a piece, {len(wrong)} differences, "
              f"{len(sentences) - len(plain)} sentences skipped for the text of a special piece")
        for sentence, e, f in wrong[:3]:
            print(f"  {sentence}\n    expected {e}\n    found    {f}")
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
