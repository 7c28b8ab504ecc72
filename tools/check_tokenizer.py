"""Compare our pieces and alignment with those of Hugging Face, on any CoNLL files.

usage: check_tokenizer.py MODEL_FOLDER FILE...     (needs transformers; run in the repository)

Prints the number of sentences, tokens and differences. Exits with 1 if there is any difference. The environment variable
ENCODE_LINES may name a built example `encode_lines`; without it, the example is built.

The reference is the library `tokenizers`, which reads tokenizer.json itself. The classes for XLM-R and CamemBERT of
transformers 5 read the file with Python's JSON parser instead, which rounds the last bit of some scores differently. If
two ways to split a token have the same score, they can then choose the other one. Such ties are counted separately.
"""
import json, os, pathlib, subprocess, sys
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer
from reference_pieces import read_conll, reference

BUILD = ["cargo", "run", "-q", "--release", "-p", "melm", "--example", "encode_lines", "--"]


def ours(folder, sentences):
    program = os.environ.get("ENCODE_LINES")
    run = subprocess.run([*([program] if program else BUILD), folder],
                         input="".join(json.dumps(s) + "\n" for s in sentences), text=True, encoding="utf-8",
                         stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def open_reference(folder, reads_itself):
    """Return Hugging Face's tokenizer, and a function that encodes a sentence with a space before every token."""
    tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    file = pathlib.Path(folder) / "tokenizer.json"
    if reads_itself and file.exists():
        tokenizer._tokenizer = Tokenizer.from_file(str(file))
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    if (rules["pre_tokenizer"] or {}).get("type") == "ByteLevel":
        # For ModernBERT's class, transformers ignores the argument add_prefix_space.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    elif rules["model"].get("byte_fallback"):
        # The rules of Gemma insert no space.
        return tokenizer, lambda tokens: reference(tokenizer, [f" {token}" for token in tokens])
    return tokenizer, lambda tokens: reference(tokenizer, tokens)


def main(folder, paths):
    tokenizer, encode = open_reference(folder, reads_itself=True)
    _, encode_by_class = open_reference(folder, reads_itself=False)
    # If a text looks like an added piece, Hugging Face reads it as that piece, but we read it as text. This difference is
    # documented, so such sentences are counted separately.
    added = [piece.content for piece in tokenizer.added_tokens_decoder.values()]
    sentences = [sentence for path in paths for sentence in read_conll(path)]
    plain = [s for s in sentences if not any(piece in token for token in s for piece in added)]
    expected, found = [encode(s) for s in plain], ours(folder, plain)
    assert len(expected) == len(found)
    wrong = [(s, e, f) for s, e, f in zip(plain, expected, found) if e != f]
    n_ties = sum(e != encode_by_class(s) for s, e in zip(plain, expected))
    n_unknown = sum(e["pieces"].count(tokenizer.unk_token_id) for e in expected)
    print(f"{pathlib.Path(folder).name}: {len(plain)} sentences, {sum(map(len, plain))} tokens, "
          f"{sum(len(e['pieces']) for e in expected)} pieces, {n_unknown} of them unknown, "
          f"{sum(e['n_invisible'] for e in expected)} tokens without a piece, {len(wrong)} differences, {n_ties} ties that transformers breaks otherwise, "
          f"{len(sentences) - len(plain)} sentences skipped for the text of an added piece", flush=True)
    for sentence, e, f in wrong[:3]:
        print(f"  {sentence}\n    expected {e}\n    found    {f}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
