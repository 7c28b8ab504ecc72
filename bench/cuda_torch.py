"""The PyTorch side of bench/cuda.py, which starts it: cuda_torch.py SIDE SHAPE WHAT [--batches 16,long] [--tiny]

SIDE is one of
  authors           the authors' public code: f32, padded to 128 (or to the longest sentence, if it is longer), head and
                    loss at every position, clipping, Adam
  eager-bf16        the best that a user could write: padded to the longest sentence only, SDPA, masks and row indices
                    computed in advance, head at the masked rows only, clipping, fused AdamW; with bf16 autocast
                    (generation: a bf16 model)
  eager-tf32        as eager-bf16, but in tf32
  compile           eager-bf16 with torch.compile; all batches of a kind padded to one shape, so that each kind is
                    compiled once
  compile-dynamic   eager-bf16 with torch.compile and dynamic shapes; padded to the longest sentence of the batch
  ceiling           measures the speeds of the GPU and computes the floor (lower bound) of the step time, for every
                    SHAPE in a comma-separated list
WHAT is `train` or `generate`.

The program imports torch (and compiles for at most S seconds), prints `ready` and waits for a line of input. Then it
measures and prints one JSON line for each kind of batch, and finally `end`. All batches are on the device before a
measurement starts. The program synchronizes after a run of several steps, not after each step.
"""
import argparse, gc, itertools, json, os, signal, statistics, sys, time
import torch, transformers
from torch_step import LENGTHS, SHAPES, finish

BATCHES = ["16", "32", "full", "long"]
SAME_LENGTH = ["full", "long"]  # kinds whose sentences all have the same length, at every step
TINY = dict(vocab_size=500, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
N_WARM, N_RUNS, RUN_STEPS, RUN_SECONDS, N_DISTINCT = 5, 3, 10, 0.6, 31
WIDTH, LONG, PAD = 128, 512, 1


def lengths(shape, batch, step):
    """Returns the sentence lengths of a batch, the same as `Sentences::lengths` in bench_step.rs."""
    if batch == "full":
        return [WIDTH] * 16
    if batch == "long":  # a position table has two rows more than positions
        return [min(LONG, SHAPES[shape]["max_position_embeddings"] - 2)] * 16
    cycled = zip(range(int(batch)), itertools.cycle(LENGTHS))
    return [length + (step * 7 + i * 5 + step * i % 3) % 9 - 4 for i, length in cycled]


def masked_rows(batch, n_rows):
    return [row for row in range(n_rows) if batch == "full" or row % 20 in (3, 9, 16)]


def common_shape(shape, batch):
    """Returns the largest sentence length and the largest number of masked rows of all batches of a kind."""
    steps = [lengths(shape, batch, step) for step in range(N_DISTINCT)]
    return max(map(max, steps)), max(len(masked_rows(batch, sum(sizes))) for sizes in steps)


def tensors(n_pieces, shape, batch, step, side, device):
    """Returns the sentences of bench_step.rs as a user would pass them to transformers."""
    sizes = lengths(shape, batch, step)
    masked = masked_rows(batch, sum(sizes))
    width, n_places = common_shape(shape, batch) if side == "compile" else (max(sizes), len(masked))
    if side == "authors":
        width = max(WIDTH, max(sizes))
    rows = [[5 + (key * 7919 + i * 104729) % (n_pieces - 5) for i in range(n)] for key, n in enumerate(sizes)]
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    real = ids != PAD
    if side == "authors":
        return ids.to(device), real.long().to(device)
    places = real.flatten().nonzero().squeeze(1)[masked]  # indices of the masked rows in the padded batch
    originals = ids.flatten()[places]
    fill = lambda values, extra: torch.nn.functional.pad(values, (0, n_places - len(masked)), value=extra)
    square = real[:, None, None, :].expand(-1, -1, width, -1).contiguous()
    found = ids, square, real.cumsum(1) * real + PAD, fill(places, 0), fill(originals, -100)  # label -100: no loss
    found = [tensor.to(device) for tensor in found]
    if batch in SAME_LENGTH:  # SDPA can choose the flash kernel only without a mask
        found[1] = None
    return found


class Side:
    """One side for one model shape: the model, and a step for every kind of batch."""

    def __init__(self, name, shape, what, device, is_tiny):
        self.name, self.shape, self.what, self.device, self.is_tiny = name, shape, what, device, is_tiny
        self.is_training = what == "train"
        config = dict(SHAPES[shape], **(TINY if is_tiny else {}))
        with device:
            config = transformers.XLMRobertaConfig(**config, attn_implementation="sdpa")
            self.model = transformers.XLMRobertaForMaskedLM(config)
        # The model stays in CPU memory until the first step. The time of the first step includes the copy to the GPU,
        # as ours does.
        self.model = self.model.cpu().train(self.is_training)
        self.is_bf16 = "tf32" not in name and name != "authors"
        if "tf32" in name:
            torch.set_float32_matmul_precision("high")
        self.work = self.authors if name == "authors" else self.best
        if name.startswith("compile"):
            backend = "inductor" if device.type == "cuda" else "aot_eager"  # compiling C++ takes too long for a smoke test
            self.work = torch.compile(self.best, dynamic=name == "compile-dynamic", backend=backend)
        self.optimiser, self.is_moved, self.n_steps, self.batches = None, False, 0, {}

    def authors(self, ids, mask):
        if self.is_training:
            return self.model(ids, mask, labels=ids, output_hidden_states=True).loss
        top = self.model(ids, mask, labels=ids).logits.topk(5, dim=-1).indices
        chosen = torch.randint(1, 5, (*top.shape[:2], 1)).to(self.device)
        return torch.gather(top, -1, chosen).squeeze(-1)

    def best(self, ids, mask, positions, places, originals):
        # A bf16 model needs no autocast.
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.is_bf16 and self.is_training):
            hidden = self.model.roberta(input_ids=ids, attention_mask=mask, position_ids=positions).last_hidden_state
            logits = self.model.lm_head(hidden.flatten(0, 1)[places])
        if self.is_training:
            return torch.nn.functional.cross_entropy(logits.float(), originals)
        return logits.float().log_softmax(-1).topk(5)

    def move(self):
        self.is_moved = True
        dtype = torch.bfloat16 if self.is_bf16 and not self.is_training else None
        self.model = self.model.to(self.device, dtype)
        if self.is_training:
            adam = torch.optim.Adam if self.name == "authors" else torch.optim.AdamW
            extra = {} if self.name == "authors" else {"fused": True}
            self.optimiser = adam(self.model.parameters(), lr=1e-5, **extra)

    def step(self, batch):
        b = self.batches[batch][self.n_steps % len(self.batches[batch])]
        self.n_steps += 1
        if self.is_training:
            finish(self.model, self.optimiser, self.work(*b))
            return
        with torch.inference_mode():
            found = self.work(*b)
        if self.name != "authors":  # results are copied to the CPU, as ours are; the authors' code does not
            [part.cpu() for part in found]

    def seconds(self, batch, n):
        synchronize(self.device)
        start = time.perf_counter()
        for _ in range(n):
            self.step(batch)
        synchronize(self.device)
        return time.perf_counter() - start

    def first(self, batch):
        """Runs five warm-up steps. Returns the seconds of the first step and of all five."""
        n_distinct = 1 if batch in SAME_LENGTH else N_DISTINCT
        self.batches[batch] = [tensors(self.model.config.vocab_size, self.shape, batch, step, self.name, self.device)
                               for step in range(n_distinct)]
        self.n_steps = 0
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        if not self.is_moved:
            self.move()
        self.seconds(batch, 1)
        first = time.perf_counter() - start
        self.seconds(batch, 1 if self.is_tiny else N_WARM - 1)
        return {"first_s": first, "five_s": time.perf_counter() - start}

    def measure(self, batch):
        if self.device.type == "cuda" and self.name.startswith("compile"):
            torch.cuda.reset_peak_memory_stats()  # peaks during compilation do not count
        one = self.seconds(batch, 1)
        n = 1 if self.is_tiny else max(2, min(RUN_STEPS, int(RUN_SECONDS / one)))
        runs = [1e3 * self.seconds(batch, n) / n for _ in range(1 if self.is_tiny else N_RUNS)]
        found = {"ms": statistics.median(runs), "best_ms": min(runs), "mean_ms": statistics.mean(runs),
                 "n_steps": n * len(runs)}
        if self.device.type == "cuda":
            found["allocated_mib"] = torch.cuda.max_memory_allocated() >> 20
            found["reserved_mib"] = torch.cuda.max_memory_reserved() >> 20
        return found


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_of(run, n, device):
    """Returns the best of five measurements of `n` runs each. On a GPU the runs are replayed as a CUDA graph, because
    launching a small product takes longer than computing it."""
    for _ in range(3):
        run()
    replay, each = run, 1
    if device.type == "cuda":
        synchronize(device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(n):
                run()
        replay, each = graph.replay, n
    found = []
    for _ in range(5):
        synchronize(device)
        start = time.perf_counter()
        replay()
        synchronize(device)
        found.append(time.perf_counter() - start)
    return min(found) / each


def products(m, inputs, outputs, device):
    """Returns the seconds of the three products of a linear layer, in bf16 with f32 sums: forward pass, gradient of the
    inputs, gradient of the weights."""
    make = lambda *size: torch.randn(*size, device=device, dtype=torch.bfloat16)
    x, w, y = make(m, inputs), make(outputs, inputs), make(m, outputs)
    out_x, out_w = torch.empty_like(x), torch.empty_like(w)
    n = max(5, min(500, int(2e12 / (2 * m * inputs * outputs))))
    return [seconds_of(run, n, device) for run in (lambda: torch.mm(x, w.T, out=y), lambda: torch.mm(y, w, out=out_x),
                                                   lambda: torch.mm(y.T, x, out=out_w))]


@torch.inference_mode()
def bandwidth(device, is_tiny):
    """Returns the bytes that a copy reads and writes per second: by memcpy or a kernel, whichever is faster."""
    source = torch.ones(1 << (20 if is_tiny else 29), device=device)
    target = torch.empty_like(source)
    ways = (lambda: target.copy_(source)), (lambda: torch.mul(source, 1.0, out=target))
    return 2 * 4 * source.numel() / min(seconds_of(way, 10, device) for way in ways)


@torch.inference_mode()
def floor(shape, batch, bytes_a_second, device, is_tiny):
    """Returns the speeds for a model shape and batch, and the floor of each part of a step in milliseconds."""
    sizes = dict(SHAPES[shape], **(TINY if is_tiny else {}))
    hidden, inner, n_layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    vocab = -(-sizes["vocab_size"] // 8) * 8  # products are slower if the size is odd
    steps = [lengths(shape, batch, step) for step in range(N_DISTINCT)]
    rows = round(statistics.mean(sum(step) for step in steps))
    masked = round(statistics.mean(len(masked_rows(batch, sum(step))) for step in steps))
    pairs = statistics.mean(sum(n * n for n in step) for step in steps)
    shapes = {"qkv": (rows, hidden, 3 * hidden), "output": (rows, hidden, hidden), "up": (rows, hidden, inner),
              "down": (rows, inner, hidden), "dense": (masked, hidden, hidden), "head": (masked, hidden, vocab)}
    times = {name: products(*shape, device) for name, shape in shapes.items()}
    layer = 4 * hidden * hidden + 2 * hidden * inner + 9 * hidden + inner
    rest = n_layers * layer + (sizes["max_position_embeddings"] + 3) * hidden + hidden * hidden + 3 * hidden + vocab
    result = {"kind": "floor", "shape": shape, "batch": batch, "rows": rows, "masked": masked,
              "terabytes_a_second": bytes_a_second / 1e12,
              "teraflops": {name: [2 * m * k * n / t / 1e12 for t in times[name]] for name, (m, k, n) in shapes.items()}}
    for what, n_products in (("train", 3), ("generate", 1)):
        # Attention has two products forward and four backward. They are assumed to run at the speed of its output
        # product.
        attention = n_layers * 4 * pairs * hidden * n_products / (2 * rows * hidden**2 / times["output"][0])
        in_layers = sum(sum(times[name][:n_products]) for name in ("qkv", "output", "up", "down"))
        parts = {
            "layers": n_layers * in_layers,
            "attention": attention,
            "head": sum(sum(times[name][:n_products]) for name in ("dense", "head")),
            # Besides the products, the bf16 scores are read and, in training, their gradients are written.
            "scores": masked * vocab * (4 if what == "train" else 2) / bytes_a_second,
        }
        if what == "train":  # f32 gradient read; f32 value and two moments read and written; bf16 copy written
            parts["optimiser"] = (28 + 2) * (vocab * hidden + rest) / bytes_a_second
        result[what] = {name: 1e3 * seconds for name, seconds in parts.items()}
        result[what]["all"] = 1e3 * sum(parts.values())
    return result


def report(found):
    print(json.dumps(found), flush=True)


class OutOfTime(BaseException):
    """The time limit was reached. Not a subclass of `Exception`, because the compiler would catch that."""


def give_up(*_):
    raise OutOfTime("gave up compiling")


def guarded(kind, run):
    """Returns the result of `run`, or its error, so that an error does not stop the other batches."""
    try:
        return run()
    except (Exception, OutOfTime) as error:
        gc.collect()
        lines = str(error).strip().splitlines() or [""]
        print(f"{kind}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return {"error": f"{type(error).__name__}: {lines[0][:200]}"}


def wait():
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit("bench/cuda.py has ended")


def ceilings(shapes, batches, device, is_tiny):
    wait()
    speed = bandwidth(device, is_tiny)
    for shape in shapes.split(","):
        for batch in batches:
            report({"shape": shape, "batch": batch,
                 **guarded(f"{shape} {batch}", lambda: floor(shape, batch, speed, device, is_tiny))})


def bench(arguments, device):
    make = lambda: Side(arguments.side, arguments.shape, arguments.what, device, arguments.tiny)
    firsts, batches = {}, arguments.batches
    is_compiled = arguments.side.startswith("compile")
    if arguments.side == "compile":  # most important first, because the time limit may cut off later ones
        batches = [batch for batch in ("16", "full", "32", "long") if batch in batches]
    if is_compiled:
        side = make()
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(arguments.limit)
        start = time.perf_counter()
        for batch in batches:
            is_late = time.perf_counter() - start > arguments.limit
            firsts[batch] = guarded(batch, give_up if is_late else lambda: side.first(batch))
        signal.alarm(0)
    wait()
    if not is_compiled:
        side = make()
    for batch in batches:
        first = firsts[batch] if is_compiled else guarded(batch, lambda: side.first(batch))
        found = first if "error" in first else {**first, **guarded(batch, lambda: side.measure(batch))}
        report({"batch": batch, **found})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("side", "shape", "what"):
        parser.add_argument(name)
    parser.add_argument("--batches", type=lambda text: text.split(","), default=BATCHES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--limit", type=int, default=90)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device(arguments.device)
    if arguments.side == "ceiling":
        ceilings(arguments.shape, arguments.batches, device, arguments.tiny)
    else:
        bench(arguments, device)
    print("end", flush=True)
    os._exit(0)  # skips the slow clean-up; cuda.py kills the compiler processes


if __name__ == "__main__":
    main()
