"""Make testdata/pieces: the pieces and alignment that Hugging Face computes for real sentences and difficult Unicode.

usage: make_pieces_golden.py REPOSITORY       (needs transformers and tokenizers)

mini.txt                one hash for each sentence of examples/politics/{train,dev,test}.conll and written.txt, in this
                        order
mini_traps.json         tokens, ids and ranges of each difficult text, for the tokenizer of mini
byte_level/, unigram/   tiny tokenizers of the kinds used by RoBERTa and XLM-R, saved by transformers
*_golden.json           like mini_traps.json, but for the tiny tokenizers and with some real sentences
"""
import hashlib, json, pathlib, random, sys
import tokenizers, transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, RobertaTokenizerFast, XLMRobertaTokenizer
from reference_pieces import fingerprint, read_conll, reference

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TRAPS = {
    "zero width and invisible": ["a", "\u200b", "b", "\u200d", "\u200c", "\u2060", "\ufeff", "\u00ad", "\u180e", "co\u00adop", "zero\u200bwidth", "\ufeffBOM"],
    "direction marks": ["\u200e", "\u200f", "\u202a", "\u2066x\u2069", "\u061c", "עברית\u200f"],
    "nothing at all": ["", "x", "", ""],
    "spaces of all kinds": [" ", "\u00a0", "\u3000", "\u2003", "\u2028", "\u2029", "\u0085", "\t", "\n", "\r\n"],
    "spaces inside tokens": ["New York", "New\u00a0York", " lead", "trail ", "two  spaces", "tab\there", "line\nbreak", "\u3000全角\u3000"],
    "control characters": ["\x00", "\x07", "\x1b[0m", "\x7f", "a\x00b", "\x85"],
    "the space mark itself": ["▁", "▁▁", "a▁b", "▁word", "word▁", "\u0120", "Ġword"],
    "decomposed accents": ["e\u0301", "cafe\u0301", "café", "A\u030a", "Å", "\u212b", "n\u0303", "o\u0308\u0304", "\u0301", "\u0301\u0301x"],
    "compatibility forms": ["ﬁ", "ﬃ", "½", "①", "ⅷ", "ℌ", "℡", "㎏", "ＡＢＣ", "１２３", "…", "™", "ª", "²", "ﬆ", "㍿", "ﷺ", "Ⅻ"],
    "case oddities": ["İstanbul", "ıIiİ", "ẞ", "ß", "ŉ", "ǆ", "Ǆ", "Ω", "ς", "Σ"],
    "quotes and dashes": ["“", "”", "„", "‚", "’", "ʼ", "`", "``", "''", "«", "»", "–", "—", "‑", "−", "‐", "l’homme", "O'Neil", "--", "-LRB-"],
    "scripts": ["Москва", "Αθήνα", "القاهرة", "ירושלים", "दिल्ली", "กรุงเทพฯ", "서울", "서울", "東京", "とうきょう", "ｶﾞｷﾞ", "ཧྲཱི", "ကမ္ဘာ", "ሰላም"],
    "unknown characters": ["𓀀", "𒀀𒀁", "龘", "㐀", "\U00020000", "a𓀀b", "𓀀𓀁𓀂", "\ue000", "\uf8ff"],
    "noncharacters": ["\ufffd", "\uffff", "\ufffe", "\U0010ffff", "\U0001ffff", "x\uffffy"],
    "emoji": ["😀", "👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "❤️", "☎︎", "1️⃣", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"],
    "markup": ["<", ">", "<s", "s>", "< s >", "&amp;", "<b>", "</p>", "<unk", "[MASK]", "##ing", "<pad", "<|endoftext|>"],
    "numbers": ["1,234.56", "1.234,56", "12:30", "1996-08-22", "+49", "3-1", "50%", "€5", "$1", "1/2", "0x1F", "１．５"],
    "long tokens": ["a" * 3000, "Donaudampfschifffahrtsgesellschaftskapitän" * 20, "=" * 200, "𓀀" * 50, "é" * 100, "e\u0301" * 100],
    "one letter": list("aÄñ.,!?()\"'0"),
}


def golden(tokenizer, sentences):
    return [{"tokens": tokens, **reference(tokenizer, tokens)} for tokens in sentences]


def dump(path, rows):
    path.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")


def byte_level(out, text):
    rules = tokenizers.Tokenizer(models.BPE())
    # add_prefix_space is false, as in RoBERTa's tokenizer.json. For text that is already split into tokens, Python adds
    # the space before each token, and so do we.
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    rules.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    rules.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    RobertaTokenizerFast(tokenizer_object=rules, **named()).save_pretrained(out)
    return AutoTokenizer.from_pretrained(out, add_prefix_space=True)


def unigram(out, text):
    rules = tokenizers.Tokenizer(models.Unigram())
    rules.pre_tokenizer = pre_tokenizers.Metaspace()
    rules.train_from_iterator(text, trainers.UnigramTrainer(
        vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    vocab = [tuple(entry) for entry in json.loads(rules.to_str())["model"]["vocab"]]
    XLMRobertaTokenizer(vocab=vocab).save_pretrained(out)
    return AutoTokenizer.from_pretrained(out)


def named():
    return dict(bos_token="<s>", cls_token="<s>", eos_token="</s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>")


def main(root):
    out = root / "testdata/pieces"
    politics = [s for split in ("train", "dev", "test") for s in read_conll(root / f"examples/politics/{split}.conll")]
    written = [line.split(" ") for line in (out / "written.txt").read_text(encoding="utf-8").splitlines()]
    traps = list(TRAPS.values())

    mini = AutoTokenizer.from_pretrained(root / "crates/melm-mini/model")
    prints = [fingerprint(reference(mini, s)) for s in politics + written]
    (out / "mini.txt").write_text("\n".join(prints) + "\n")
    dump(out / "mini_traps.json", golden(mini, traps))

    some = random.Random(1).sample(politics, 40) + written[::4] + traps
    text = [" ".join(s) for s in politics[:300] + written]
    dump(out / "byte_level_golden.json", golden(byte_level(out / "byte_level", text), some))
    dump(out / "unigram_golden.json", golden(unigram(out / "unigram", text), some))

    here = pathlib.Path(__file__).parent
    scripts = {name: hashlib.sha256((here / name).read_bytes()).hexdigest() for name in ("make_pieces_golden.py", "reference_pieces.py")}
    (out / "provenance.json").write_text(json.dumps(dict(
        scripts=scripts, transformers=transformers.__version__, tokenizers=tokenizers.__version__), indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
