"""Compares the speed of tagging: python bench/tagging.py [mini] [base] [--sentences N] [--rounds N] [--device cuda] [--only NAMES]

Tags the same sentences (the test set of examples/politics, repeated) with melm in f32 and with 8-bit weights, with
transformers, and with ONNX Runtime in f32 and with dynamic 8-bit weights, in turns, each in its own process with two
threads. All models are XLM-R taggers of the same shape; those of `base` have random weights and the vocabulary of mini.

The Python programs tokenize, sort by length, run trimmed batches of 16 and take the best tag of each token. Their time
excludes imports, loading and a warm-up batch. The time of melm is that of the whole command, with reading, decoding with
a CRF and writing, minus the time of the same command for one sentence. CPU seconds are those of all threads; a busy machine
disturbs them less, but idle threads of ONNX Runtime and torch spin, and that counts. PYTHON names a Python with torch,
transformers, onnx and onnxruntime. MODELS names a folder with the models of each shape, made by `--models SHAPE FOLDER
DEVICE`, if they exist already. The program is `target/release/melm`, or the one that MELM names.

With `--device cuda`, melm tags on the GPU in bf16, and transformers runs a bf16 model in batches of 32 and of 128, without
waiting for the GPU between batches. It needs torch and transformers only. The ratio is to the faster of the two. Its time
is also printed without tokenizing, and without the loop that takes the tags of first pieces.
"""
import argparse, json, os, pathlib, resource, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).parent
MELM = os.environ.get("MELM", HERE.parent / "target/release/melm")
PYTHON = os.environ.get("PYTHON", sys.executable)
TEST = HERE.parent / "examples/politics/test.conll"
THREADS = 2
BATCH = 16
GPU = os.environ.get("TORCH_DEVICE", "cuda")  # `cpu` for a smoke test
# What is compared on each device. The first is compared with the others.
NAMES = {"cpu": ["melm int8", "onnx-int8", "melm f32", "onnx-f32", "transformers"],
         "cuda": ["melm bf16", "transformers-32", "transformers-128"]}


def make_model(shape, folder):
    """Writes a tagger with a random head as a Hugging Face folder."""
    import torch
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
    return model


def export_onnx(model, folder):
    """Writes both ONNX files of a model."""
    import onnx, torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    # The exporter of TorchScript: ONNX Runtime fuses the whole attention of its graphs, which makes them faster than those
    # of the newer exporter. The example has padding, so that nothing is specialised for batches without it.
    model.set_attn_implementation("eager")
    ids, mask = torch.full((2, 9), 7), torch.ones(2, 9, dtype=torch.long)
    ids[1, 5:], mask[1, 5:] = model.config.pad_token_id, 0
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(model, (ids, mask), folder / "f32.onnx", input_names=["input_ids", "attention_mask"],
                      output_names=["logits"], dynamo=False, opset_version=17,
                      dynamic_axes={"input_ids": axes, "attention_mask": axes, "logits": axes})
    fused = optimizer.optimize_model(str(folder / "f32.onnx"), model_type="bert", num_heads=model.config.num_attention_heads,
                                     hidden_size=model.config.hidden_size)
    fused.save_model_to_file(str(folder / "f32.onnx"))
    quantize_dynamic(folder / "f32.onnx", folder / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True,
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    assert fused.get_fused_operator_statistics()["Attention"] == model.config.num_hidden_layers, "attention is not fused"
    check_models(model, folder)


def check_models(model, folder):
    """Fails if an ONNX file does not compute what the model computes, for a batch of another size and with padding."""
    import numpy as np, onnxruntime, torch

    ids = np.random.default_rng(1).integers(5, 5000, (3, 14))
    mask = np.ones_like(ids)
    ids[1, 6:], mask[1, 6:] = model.config.pad_token_id, 0
    with torch.inference_mode():
        wanted = model(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    for name, limit in (("f32", 1e-4), ("int8", 0.5)):
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        found = session.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0]
        deviation = np.abs(found - wanted)[mask > 0].max() / np.abs(wanted).max()
        assert deviation < limit, f"{name}.onnx deviates by {deviation}"


def read(conll):
    """Returns the tokens of the sentences of a file."""
    text = conll.read_text().strip().split("\n\n")
    return [[line.split()[0] for line in block.splitlines()] for block in text]


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

    sentences = read(conll)
    tag(sentences[:BATCH])
    start, cpu_start = time.perf_counter(), time.process_time()
    tag(sentences)
    print(json.dumps([time.perf_counter() - start, time.process_time() - cpu_start, len(sentences)]))


def tag_on_gpu(batch_size, folder, conll):
    """Tags a file with transformers on a GPU. Prints the seconds, the number of sentences, and the seconds of the GPU."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "tagger")
    model = AutoModelForTokenClassification.from_pretrained(folder / "tagger", attn_implementation="sdpa",
                                                            dtype=torch.bfloat16).eval().to(GPU)
    is_cuda = GPU == "cuda"

    @torch.inference_mode()
    def best_tags(pieces, order):
        found = []
        for start in range(0, len(order), batch_size):
            at = order[start:start + batch_size]
            width = len(pieces[at[-1]])
            ids = torch.ones(len(at), width, dtype=torch.long, pin_memory=is_cuda)
            mask = torch.zeros(len(at), width, dtype=torch.long, pin_memory=is_cuda)
            for row, i in enumerate(at):
                ids[row, :len(pieces[i])] = torch.tensor(pieces[i])
                mask[row, :len(pieces[i])] = 1
            logits = model(input_ids=ids.to(GPU, non_blocking=True), attention_mask=mask.to(GPU, non_blocking=True)).logits
            found.append(logits.argmax(-1))
        return [best.cpu().numpy() for best in found]

    def tag(sentences):
        """Returns the tags of first pieces, and the seconds without tokenizing and taking the tags."""
        encoded = tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=256)
        pieces = encoded["input_ids"]
        order = sorted(range(len(sentences)), key=lambda i: len(pieces[i]))
        start = time.perf_counter()
        best = best_tags(pieces, order)
        seconds = time.perf_counter() - start
        found = [None] * len(sentences)
        for place, i in enumerate(order):
            tags, before, found[i] = best[place // batch_size][place % batch_size], None, []
            for position, word in enumerate(encoded.encodings[i].word_ids):
                if word is not None and word != before:
                    found[i].append(tags[position])
                before = word
        return found, seconds

    sentences = read(conll)
    tag(sentences[:16 * batch_size])
    start, cpu_start = time.perf_counter(), time.process_time()
    found, on_gpu = tag(sentences)
    print(json.dumps([time.perf_counter() - start, time.process_time() - cpu_start, len(found), on_gpu]))


def ours(precision, folder, conll):
    """Returns the seconds of wall time and of CPU time of a whole command."""
    where = ["--device", "cuda"] if precision == "bf16" else ["--device", "cpu", "--threads", str(THREADS)]
    start, cpu_start = time.perf_counter(), cpu_of_children()
    subprocess.run([str(MELM), "tag", folder / "tagger", conll, "-o", folder / "out.conll", "--force", "-q", *where,
                    "--precision", precision], check=True)
    return time.perf_counter() - start, cpu_of_children() - cpu_start


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(name, folder, many, one, n):
    """Returns sentences per second of wall time and of CPU time."""
    if name.startswith("melm"):
        precision = name.split()[1]
        (wall, cpu), (wall_of_one, cpu_of_one) = ours(precision, folder, many), ours(precision, folder, one)
        return n / (wall - wall_of_one), n / (cpu - cpu_of_one)
    command = [PYTHON, __file__, "--worker", name, str(folder), str(many)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds, cpu_seconds, n_read, *on_gpu = json.loads(done.stdout.splitlines()[-1])
    assert n_read == n
    for part in on_gpu:
        print(f"{name}: {n / part:.0f} sentences/s without tokenizing and taking the tags of first pieces")
    return n / seconds, n / cpu_seconds


def compare(shape, n, rounds, names, device):
    rates = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        blocks = TEST.read_text().strip().split("\n\n")
        many, one = folder / "many.conll", folder / "one.conll"
        many.write_text("\n\n".join(blocks[i % len(blocks)] for i in range(n)) + "\n")
        one.write_text(blocks[0] + "\n")
        given = os.environ.get("MODELS")
        if given:
            for entry in pathlib.Path(given, shape).iterdir():
                (folder / entry.name).symlink_to(entry)
        else:
            subprocess.run([PYTHON, __file__, "--models", shape, str(folder), device], check=True, stdout=subprocess.DEVNULL)
        for _ in range(rounds):
            for name in names:
                rates[name].append(measure(name, folder, many, one, n))
                wall, cpu = rates[name][-1]
                print(f"{shape} {name}: {wall:.1f} sentences/s, {cpu:.1f} in a second of CPU time", flush=True)
    for name in names:
        wall, cpu = (statistics.median(found[which] for found in rates[name]) for which in (0, 1))
        ratio, cpu_ratio = (statistics.median(own[which] / other[which] for own, other in zip(rates[names[0]], rates[name]))
                            for which in (0, 1))
        print(f"{shape:<5} {name:<16} median {wall:7.1f} sentences/s, {cpu:7.1f} in a second of CPU time; "
              f"{names[0]} is {ratio:.2f} x as fast, and {cpu_ratio:.2f} x in CPU time")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=["mini", "base"])
    parser.add_argument("--sentences", type=int, help="default: 1,000, with `--device cuda` 40,000")
    parser.add_argument("--rounds", type=int, help="default: 5, with `--device cuda` 2")
    parser.add_argument("--device", choices=list(NAMES), default="cpu")
    parser.add_argument("--only", help="comma-separated names of programs, such as `melm int8,onnx-int8`; default: all")
    arguments = parser.parse_args()
    n, rounds = (1000, 5) if arguments.device == "cpu" else (40_000, 2)
    names = NAMES[arguments.device]
    if arguments.only:
        only = arguments.only.split(",")
        if unknown := [name for name in only if name not in names]:
            parser.error(f"--only: no program `{unknown[0]}`: there are {', '.join(names)}")
        names = [name for name in names if name in only]
    for shape in arguments.shapes:
        compare(shape, arguments.sentences or n, arguments.rounds or rounds, names, arguments.device)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--models"]:
        model = make_model(sys.argv[2], pathlib.Path(sys.argv[3]))
        if sys.argv[4] == "cpu":
            export_onnx(model, pathlib.Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--worker"]:
        kind, folder, conll = sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
        if kind.startswith("transformers-"):
            tag_on_gpu(int(kind.removeprefix("transformers-")), folder, conll)
        else:
            tag_in_python(kind, folder, conll)
    else:
        main()
