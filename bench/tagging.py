"""Compares the speed of tagging on the CPU: python bench/tagging.py [mini] [base] [--sentences N] [--rounds N]

Tags the same sentences (the test set of examples/politics, repeated) with melm in f32 and with 8-bit weights, with
transformers, and with ONNX Runtime in f32 and with dynamic 8-bit weights, in turns, each in its own process with two
threads. All models are XLM-R taggers of the same shape; those of `base` have random weights and the vocabulary of mini.

The Python programs tokenize, sort by length, run trimmed batches of 16 and take the best tag of each token. Their time
excludes imports, loading and a warm-up batch. The time of melm is that of the whole command, with reading, decoding with
a CRF and writing, minus the time of the same command for one sentence. PYTHON names a Python with torch, transformers,
onnx, onnxscript and onnxruntime. The program is `target/release/melm`, or the one that MELM names.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).parent
MELM = os.environ.get("MELM", HERE.parent / "target/release/melm")
PYTHON = os.environ.get("PYTHON", sys.executable)
TEST = HERE.parent / "examples/politics/test.conll"
THREADS = 2
BATCH = 16


def make_models(shape, folder):
    """Writes a tagger with a random head as a Hugging Face folder, and both ONNX files."""
    import onnx, torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    torch.manual_seed(1)
    names = ["O"] + [f"{kind}-{name}" for name in ("A", "B", "C", "D") for kind in "BI"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    mini = folder / "mini"
    subprocess.run([sys.executable, HERE.parent / "crates/melm-mini/model/dequantize.py", mini], check=True)
    if shape == "mini":
        model = AutoModelForTokenClassification.from_pretrained(mini, num_labels=len(names), **labels)
    else:
        config = AutoConfig.from_pretrained(mini, num_labels=len(names), **labels)
        config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.intermediate_size = 768, 12, 12, 3072
        model = AutoModelForTokenClassification.from_config(config)
    tagger = folder / "tagger"
    model.eval().save_pretrained(tagger)
    AutoTokenizer.from_pretrained(mini).save_pretrained(tagger)
    (tagger / "tokenizer.json").write_bytes((mini / "tokenizer.json").read_bytes())
    ids = torch.ones(2, 9, dtype=torch.long)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    torch.onnx.export(model, (ids, ids), folder / "f32.onnx", input_names=["input_ids", "attention_mask"],
                      output_names=["logits"], dynamic_shapes=(axes, axes), dynamo=True)
    fused = optimizer.optimize_model(str(folder / "f32.onnx"), model_type="bert", num_heads=model.config.num_attention_heads,
                                     hidden_size=model.config.hidden_size)
    fused.save_model_to_file(str(folder / "f32.onnx"))
    quantize_dynamic(folder / "f32.onnx", folder / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
    print(json.dumps({"attention": fused.get_fused_operator_statistics(), "onnx": onnx.__version__}), file=sys.stderr)


def tag_in_python(kind, folder, conll):
    """Tags a file with transformers or ONNX Runtime, and prints the seconds and the number of sentences."""
    import numpy as np
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "tagger")
    if kind == "transformers":
        import torch
        from transformers import AutoModelForTokenClassification
        torch.set_num_threads(THREADS)
        model = AutoModelForTokenClassification.from_pretrained(folder / "tagger", attn_implementation="sdpa").eval()

        def logits(ids, mask):
            with torch.inference_mode():
                return model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    else:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(folder / f"{kind.removeprefix('onnx-')}.onnx", options,
                                               providers=["CPUExecutionProvider"])

        def logits(ids, mask):
            return session.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0]

    def tag(sentences):
        pieces = tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=256)
        order = sorted(range(len(sentences)), key=lambda i: len(pieces["input_ids"][i]))
        found = [None] * len(sentences)
        for start in range(0, len(order), BATCH):
            at = order[start:start + BATCH]
            width = max(len(pieces["input_ids"][i]) for i in at)
            ids, mask = np.ones((len(at), width), np.int64), np.zeros((len(at), width), np.int64)
            for row, i in enumerate(at):
                own = pieces["input_ids"][i]
                ids[row, :len(own)], mask[row, :len(own)] = own, 1
            best = logits(ids, mask).argmax(-1)
            for row, i in enumerate(at):
                words, before, found[i] = pieces.word_ids(i), None, []
                for position, word in enumerate(words):
                    if word is not None and word != before:
                        found[i].append(best[row, position])
                    before = word
        return found

    text = conll.read_text().strip().split("\n\n")
    sentences = [[line.split()[0] for line in block.splitlines()] for block in text]
    tag(sentences[:BATCH])
    start = time.perf_counter()
    tag(sentences)
    print(json.dumps([time.perf_counter() - start, len(sentences)]))


def ours(precision, folder, conll):
    start = time.perf_counter()
    subprocess.run([str(MELM), "tag", folder / "tagger", conll, "-o", folder / "out.conll", "--force", "-q", "--device", "cpu",
                    "--threads", str(THREADS), "--precision", precision], check=True)
    return time.perf_counter() - start


def measure(name, folder, many, one, n):
    """Returns sentences per second."""
    if name.startswith("melm"):
        precision = name.split()[1]
        return n / (ours(precision, folder, many) - ours(precision, folder, one))
    command = [PYTHON, __file__, "--worker", name, str(folder), str(many)]
    seconds, n_read = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    assert n_read == n
    return n / seconds


def compare(shape, n, rounds):
    names = ["melm int8", "onnx-int8", "melm f32", "onnx-f32", "transformers"]
    rates = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        blocks = TEST.read_text().strip().split("\n\n")
        many, one = folder / "many.conll", folder / "one.conll"
        many.write_text("\n\n".join(blocks[i % len(blocks)] for i in range(n)) + "\n")
        one.write_text(blocks[0] + "\n")
        subprocess.run([PYTHON, __file__, "--models", shape, str(folder)], check=True, stdout=subprocess.DEVNULL)
        for _ in range(rounds):
            for name in names:
                rates[name].append(measure(name, folder, many, one, n))
                print(f"{shape} {name}: {rates[name][-1]:.0f} sentences/s", flush=True)
    best = {name: statistics.median(found) for name, found in rates.items()}
    for name in names:
        ratio = statistics.median(a / b for a, b in zip(rates["melm int8"], rates[name]))
        print(f"{shape:<5} {name:<13} median {best[name]:7.1f} sentences/s; melm int8 is {ratio:.2f} x as fast")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=["mini", "base"])
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for shape in arguments.shapes:
        compare(shape, arguments.sentences, arguments.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--models"]:
        make_models(sys.argv[2], pathlib.Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--worker"]:
        tag_in_python(sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
    else:
        main()
