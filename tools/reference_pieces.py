"""Compute pieces and alignment with Hugging Face, in the format of our tests. Imported by two other scripts."""


def reference(tokenizer, tokens):
    """Return piece ids, the range of pieces of each token, and the number of tokens without a piece in Hugging Face.

    A token without a piece gets one <unk>. This is a documented difference from Hugging Face, inserted here.
    """
    encoding = tokenizer(list(tokens), is_split_into_words=True, truncation=False)
    ids, word_ids = encoding["input_ids"], encoding.word_ids()
    assert word_ids[0] is None and word_ids[-1] is None and None not in word_ids[1:-1]
    pieces, words, n_invisible, at = [ids[0]], [], 0, 1
    for token in range(len(tokens)):
        start = len(pieces)
        while word_ids[at] == token:
            pieces.append(ids[at])
            at += 1
        if len(pieces) == start:
            pieces.append(tokenizer.unk_token_id)
            n_invisible += 1
        words.append([start, len(pieces)])
    assert at == len(ids) - 1, "word_ids() are in order"
    pieces.append(ids[-1])
    return {"pieces": pieces, "words": words, "n_invisible": n_invisible}


def fingerprint(encoded):
    """Return the 64-bit FNV-1a hash of the counts, ids and range ends, as little-endian u32 numbers."""
    numbers = [len(encoded["pieces"]), *encoded["pieces"], *(end for _, end in encoded["words"])]
    value = 0xCBF29CE484222325
    for byte in b"".join(number.to_bytes(4, "little") for number in numbers):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def read_conll(path):
    """Read a CoNLL file with a minimal reader. Return the tokens (first column) of each sentence."""
    sentence = []
    for line in open(path, encoding="utf-8", newline="\n"):
        line = line.rstrip("\n")
        if line.strip():
            sentence.append(line.split("\t")[0] if "\t" in line else line.split()[0])
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence
