"""Trains the same tagger in PyTorch and in melm, in turns: python bench/tagger.py [SEEDS]

Trains mini with a linear head on examples/politics (100 training sentences, 100 dev sentences, the whole test set) with
the same settings on both sides: AdamW, batches of 16, warm-up and linear decay, clipping, frozen piece embeddings, and
the epoch with the best dev F1. Our tagger is also trained with a CRF. Both sides use two threads. Prints test micro-F1
and the seconds of training. F1 is computed by seqeval for PyTorch and by melm for ours; the two agree. The time is that
of the whole command for ours, and without imports and loading for PyTorch. The environment variable PYTHON names a
Python with torch, transformers and seqeval.
"""
import json, os, pathlib, statistics, subprocess, sys, tempfile, time, tomllib

HERE = pathlib.Path(__file__).parent
MELM = HERE.parent / "target/release/melm"
DATA = HERE.parent / "examples/politics"
PYTHON = os.environ.get("PYTHON", sys.executable)
TRAIN, DEV, TEST = (DATA / name for name in ("train-100.conll", "dev-100.conll", "test.conll"))


def ours(seed, head, folder):
    out = folder / f"{head}-{seed}"
    linear = ["--set", "tagger.head=linear", "--set", "tagger.constrained=false"] if head == "linear" else []
    start = time.perf_counter()
    melm("train", TRAIN, "--dev", DEV, "-o", out, "--seed", seed, "-q", *linear)
    seconds = time.perf_counter() - start
    melm("tag", out, TEST, "-o", out / "test.conll", "-q")
    return 100 * json.loads(melm("score", TEST, out / "test.conll", "--json"))["f1"], seconds


def melm(*arguments):
    return subprocess.run([str(a) for a in (MELM, *arguments)], check=True, capture_output=True, text=True).stdout


def theirs(seed, folder, settings):
    command = [PYTHON, __file__, "--torch", str(seed), str(folder / "mini"), json.dumps(settings)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def read(path):
    sentences = [[]]
    for line in path.read_text().splitlines():
        if line.strip():
            sentences[-1].append(line.split())
        elif sentences[-1]:
            sentences.append([])
    return [list(zip(*sentence)) for sentence in sentences if sentence]


def train_in_torch(seed, model_folder, settings):
    import torch
    from seqeval.metrics import f1_score
    from transformers import AutoModelForTokenClassification, AutoTokenizer, get_linear_schedule_with_warmup

    torch.set_num_threads(2)
    torch.manual_seed(seed)
    splits = [read(path) for path in (TRAIN, DEV, TEST)]
    names = sorted({tag for _, tags in splits[0] for tag in tags} | {"O"})
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModelForTokenClassification.from_pretrained(model_folder, num_labels=len(names),
                                                            attn_implementation="sdpa")
    model.roberta.embeddings.word_embeddings.weight.requires_grad_(False)

    def encode(split):
        encoded = []
        for tokens, tags in split:
            pieces = tokenizer(list(tokens), is_split_into_words=True, truncation=True, max_length=256)
            words, before, first = pieces.word_ids(), None, []
            for position, word in enumerate(words):
                if word is not None and word != before:
                    first.append(position)
                before = word
            labels = [-100] * len(words)
            for position, tag in zip(first, tags):
                labels[position] = names.index(tag) if tag in names else 0
            encoded.append((pieces["input_ids"], labels, first))
        return encoded

    def padded(batch):
        width = max(len(ids) for ids, *_ in batch)
        pad = lambda rows, value: torch.tensor([row + [value] * (width - len(row)) for row in rows])
        return pad([ids for ids, *_ in batch], 1), pad([[1] * len(ids) for ids, *_ in batch], 0), \
            pad([labels for _, labels, _ in batch], -100)

    def score(split, encoded):
        model.eval()
        found = [None] * len(encoded)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        with torch.inference_mode():
            for start in range(0, len(order), 16):
                at = order[start:start + 16]
                ids, mask, _ = padded([encoded[i] for i in at])
                best = model(input_ids=ids, attention_mask=mask).logits.argmax(-1)
                for row, i in enumerate(at):
                    tags = [names[best[row, p]] for p in encoded[i][2]]
                    found[i] = tags + ["O"] * (len(split[i][0]) - len(tags))
        return 100 * f1_score([list(tags) for _, tags in split], found)

    train, dev, test = (encode(split) for split in splits)
    steps = -(-len(train) // settings["batch_size"]) * settings["epochs"]
    trained = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.AdamW(trained, lr=settings["learning_rate"], weight_decay=settings["weight_decay"], fused=True)
    schedule = get_linear_schedule_with_warmup(adam, round(settings["warmup"] * steps), steps)
    best, best_state, start = -1.0, None, time.perf_counter()
    for epoch in range(settings["epochs"]):
        model.train()
        order = torch.randperm(len(train)).tolist()
        for at in range(0, len(order), settings["batch_size"]):
            ids, mask, labels = padded([train[i] for i in order[at:at + settings["batch_size"]]])
            model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, settings["clip"])
            adam.step(), schedule.step(), adam.zero_grad()
        if (epoch + 1) % settings["evaluate_every"] == 0 or epoch + 1 == settings["epochs"]:
            found = score(splits[1], dev)
            if found > best:
                best, best_state = found, {k: v.clone() for k, v in model.state_dict().items()}
    seconds = time.perf_counter() - start
    model.load_state_dict(best_state)
    print(json.dumps([score(splits[2], test), seconds]))


def main():
    seeds = range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 3))
    plan = tomllib.loads(melm("config", "show"))["tagger"]
    settings = {key: plan[key] for key in ("batch_size", "learning_rate", "warmup", "weight_decay", "clip", "evaluate_every")}
    settings["epochs"] = int(plan["budget"].split()[0])
    results = {"PyTorch, linear": [], "melm, linear": [], "melm, CRF": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        dequantize = HERE.parent / "crates/melm-mini/model/dequantize.py"
        subprocess.run([PYTHON, dequantize, folder / "mini"], check=True, capture_output=True)
        for seed in seeds:
            for name, run in (("PyTorch, linear", lambda: theirs(seed, folder, settings)),
                              ("melm, linear", lambda: ours(seed, "linear", folder)),
                              ("melm, CRF", lambda: ours(seed, "crf", folder))):
                results[name].append(run())
                print(f"seed {seed} {name}: F1 {results[name][-1][0]:.2f}, {results[name][-1][1]:.1f} s", flush=True)
    print(settings)
    baseline = statistics.median(seconds for _, seconds in results["PyTorch, linear"])
    for name, runs in results.items():
        scores, seconds = [f1 for f1, _ in runs], statistics.median(s for _, s in runs)
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        print(f"{name:<16} F1 {statistics.mean(scores):.2f} +- {spread:.2f}, {seconds:.1f} s, "
              f"{baseline / seconds:.2f} x as fast as PyTorch")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        train_in_torch(int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
    else:
        main()
