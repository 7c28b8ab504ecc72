"""Benchmarks the engine on the CPU: python bench/engine.py [base-train] [base-generate] [mini-train]

Compares the authors' code, the best PyTorch code (once with default settings, once with glibc set to keep freed memory)
and ours on the same batch (16 sentences, 672 pieces, 101 masked). The variants run in turns, each in its own process.
The environment variable PYTHON names a Python with torch and transformers. Prints median and best times, pieces per
second, ratios, peak memory and the floor as a fraction of the time. The floor is a lower bound of the step time: the
time of the step's matrix products, each at the faster of torch's and our speed for its shape, plus the time of the
optimiser's memory traffic at the measured bandwidth.
"""
import os, pathlib, re, statistics, subprocess, sys, time

HERE = pathlib.Path(__file__).parent
PYTHON = os.environ.get("PYTHON", sys.executable)
OURS = HERE.parent / "target/release/examples/bench_step"
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}
LENGTHS = [64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 22]
N_PIECES, N_MASKED = sum(LENGTHS), 101
SIZES = {"base": (12, 768, 3072, 250015, 514), "mini": (6, 512, 2048, 50960, 258)}


def run(command, environment=None):
    done = subprocess.run([str(part) for part in command], env={**os.environ, **(environment or {})},
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def ours(shape, what, n):
    return run([OURS, shape, what, n])


def theirs(shape, what, n, tuned=False):
    return run([PYTHON, HERE / "torch_step.py", shape, what, n], TUNED if tuned else None)


def variants(shape, what, n):
    """Returns for each variant its name, how to run it, and True if it runs in every round. The authors' code does not,
    because it takes a minute per step."""
    return [
        ("ours", lambda: ours(shape, what, 2 * n), True),
        ("torch best", lambda: theirs(shape, f"{what}-best", n), True),
        ("torch best, tuned", lambda: theirs(shape, f"{what}-best", n, tuned=True), True),
        ("authors' recipe", lambda: theirs(shape, f"{what}-authors", 1), False),
    ]


def speeds(outputs):
    """Returns for every product shape the speed of the faster side: (median, best) of all runs."""
    found = {}
    for source, output in enumerate(outputs):
        for what, product, speed in re.findall(r"gflops (\S+) (\S+) (\S+)", output):
            found.setdefault((what, product), {}).setdefault(source, []).append(float(speed))
    return {key: tuple(max(f(v) for v in by.values()) for f in (statistics.median, max)) for key, by in found.items()}


def floor(shape, outputs):
    """Returns the floor in seconds of a training step and of its forward pass: (median, best) for each."""
    n_layers, hidden, inner, vocab, n_positions = SIZES[shape]
    gflops = speeds(outputs)
    bytes_found = [float(x) for x in re.findall(r"gbytes (\S+)", "".join(outputs))]
    bandwidth = (statistics.median(bytes_found), max(bytes_found))
    table = vocab * hidden
    layer = 4 * hidden * hidden + 2 * hidden * inner + 9 * hidden + inner
    rest = n_layers * layer + (n_positions + 3) * hidden + hidden * hidden + 3 * hidden + vocab
    work = [("qkv", n_layers * 3 * hidden * hidden * N_PIECES), ("output", n_layers * hidden * hidden * N_PIECES),
            ("up", n_layers * hidden * inner * N_PIECES), ("down", n_layers * inner * hidden * N_PIECES),
            ("output", n_layers * 2 * sum(n * n for n in LENGTHS) * hidden), ("output", hidden * hidden * N_MASKED),
            ("head", table * N_MASKED)]
    result = {}
    for name, products in (("train", ("Forward", "Backward", "Weights")), ("generate", ("Forward",))):
        seconds = [sum(2 * n / gflops[what, p][i] / 1e9 for what, n in work for p in products) for i in (0, 1)]
        if name == "train":  # values and two moments read and written; no gradient of the table
            seconds = [s + (28 * rest + 24 * table) / bandwidth[i] / 1e9 for i, s in enumerate(seconds)]
        result[name] = seconds
    print(f"ceilings at {shape}, median (best): " + ", ".join(
        f"{what} {p.lower()} {m:.0f} ({b:.0f})" for (what, p), (m, b) in gflops.items())
        + f" GFLOP/s; optimiser's bandwidth {bandwidth[0]:.1f} ({bandwidth[1]:.1f}) GB/s")
    return result


def bench(shape, what, ceilings):
    n, n_rounds = {"base-train": (2, 2), "base-generate": (4, 1), "mini-train": (4, 2)}[f"{shape}-{what}"]
    times, peaks = {}, {}
    for index in range(n_rounds):
        if len(ceilings) < 2 * n_rounds:
            ceilings += [ours(shape, "ceiling", 3), theirs(shape, "ceiling", 3)]
        for name, start, is_quick in variants(shape, what, n):
            if index and not is_quick:
                continue
            output = start()
            times.setdefault(name, []).extend(float(s) for s in re.findall(r"seconds (\S+)", output))
            peaks[name] = max(peaks.get(name, 0), int(re.search(r"peak_kib (\d+)", output)[1]))
            print(f"  {shape} {what} {name}: {times[name]}", file=sys.stderr, flush=True)
    # The outputs alternate between ours and torch. Joins the rounds of each.
    floors = floor(shape, ["".join(ceilings[0::2]), "".join(ceilings[1::2])])[what]
    reference = statistics.median(times["ours"])
    print(f"\n| {shape}, {what} | s, median | best | runs | pieces/s | ours is faster by | peak GiB | of the floor |")
    print("|---|---|---|---|---|---|---|---|")
    for name, seconds in times.items():
        median, best = statistics.median(seconds), min(seconds)
        share = f"{floors[0] / median:.0%} (best on best {floors[1] / best:.0%})"
        print(f"| {name} | {median:.3f} | {best:.3f} | {len(seconds)} | {N_PIECES / median:.0f} | {median / reference:.2f} x"
              f" | {peaks[name] / 2**20:.2f} | {share} |")
    print(flush=True)


def main(arguments):
    run(["cargo", "build", "--release", "-q", "-p", "melm-nn", "--example", "bench_step"])
    ceilings = {}
    for part in arguments or ["base-train", "base-generate", "mini-train"]:
        shape, what = part.split("-")
        bench(shape, what, ceilings.setdefault(shape, []))


if __name__ == "__main__":
    main(sys.argv[1:])
