"""Benchmarks training and generation on one NVIDIA GPU: python3 bench/cuda.py --ours PATH [--only base-train,…] [--json FILE]

Run this on the machine with the GPU. It measures training steps and generation for models of the sizes of XLM-R-base,
XLM-R-large and mini, with four kinds of batches: 16 or 32 sentences whose lengths change from step to step, `full`
(16 sentences of 128 pieces, with the head applied to every piece), and `long` (16 sentences of 512 pieces, or of 256 for
mini, with the head applied to the masked pieces). `--batches` selects some of them.

These implementations (called sides) are compared:
- the authors' code,
- the best eager PyTorch,
- the best eager PyTorch with torch.compile, where all batches of a kind are padded to one shape,
- torch.compile with dynamic shapes (compile-dynamic; only if `--sides` names it),
- ours (a built bench_step).
The PyTorch sides are in bench/cuda_torch.py. Prints Markdown tables, which show only the faster of bf16 and tf32 and
the faster of the two variants of torch.compile. All results are written to FILE, which is updated during the run.

Each side runs in its own process, so that it starts with free GPU memory. The torch.compile processes start and compile
at the same time, then measure one after another. Then the other sides measure, ours last. If `--only` selects a single
part, fewer processes compile at the same time, and their first step is faster. `--device cpu --tiny` is a smoke test
for machines without a GPU.
"""
import argparse, functools, json, os, pathlib, platform, queue, re, signal, statistics, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).parent
PARTS = [f"{shape}-{what}" for shape in ("base", "large", "mini") for what in ("train", "generate")]
BATCHES = {"16": 16, "32": 32, "full": 16, "long": 16}
TORCH_SIDES = ["compile-dynamic", "compile", "authors", "eager-bf16", "eager-tf32"]  # in measuring order
ROWS = {"ours": ["ours"], "authors": ["authors"], "eager": ["eager-bf16", "eager-tf32"],
        "compile": ["compile", "compile-dynamic"]}
LABELS = {"compile": "compile, padded to one shape"}
N_OURS, BLOCK = 40, 10  # our side synchronizes every ten steps; the first ten steps are the warm-up
TURN_S = 75
NOTES = """
ms: time of a step (ours: mean of all but the first; PyTorch: median of three runs). best: the fastest run. first s: for
the first kind of batch (16) the time from the model in CPU memory to the end of the first step; for later kinds the time
of their first step, with compiling. GiB: peak memory. of floor: the floor divided by ms. Padded to one shape: 16 and 32
are padded to the longest sentence and the most masked rows of all their batches, so that each kind compiles once; full
always has one shape."""
STARTED = time.monotonic()


def log(text):
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", file=sys.stderr, flush=True)


class Process:
    """A PyTorch process. It starts at once, prints `ready`, and waits until it is told to measure."""

    def __init__(self, side, shape, what, options, n_compiling):
        self.side, self.shape, self.what, self.batches = side, shape, what, options.batches
        self.name = f"{shape} {what} {side}"
        self.folder = tempfile.TemporaryDirectory(prefix="melm-bench-", ignore_cleanup_errors=True)
        folder = pathlib.Path(self.folder.name)
        # The compiler caches are empty, so that the first step is as slow as a user's first step.
        threads = max(4, (os.cpu_count() or 4) // max(1, n_compiling))
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
                       "TRITON_CACHE_DIR": str(folder / "triton"), "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
        command = [sys.executable, HERE / "cuda_torch.py", side, shape, what, "--device", options.device,
                   "--limit", options.compile_limit, "--batches", ",".join(options.batches), *(["--tiny"] if options.tiny else [])]
        self.errors = open(folder / "stderr", "w+")
        self.process = subprocess.Popen([str(word) for word in command], env=environment, text=True, process_group=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, until):
        """Returns the next line of output; None at the end of the output or after the time limit."""
        try:
            return self.lines.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            log(f"{self.name}: out of time")
            self.stop()
            return None

    def turn(self):
        """Tells the process to measure. Returns one result for each kind of batch."""
        found = []
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            until = time.monotonic() + TURN_S
            while (line := self.line(until)) not in (None, "end\n"):
                if line.startswith("{"):
                    found.append(json.loads(line))
        except (OSError, ValueError) as error:
            log(f"{self.name}: {error}")
        missing = set(self.batches) - {one["batch"] for one in found}
        found += [{"batch": batch, "error": "no result"} for batch in sorted(missing)]
        self.stop()
        return found

    def stop(self):
        """Kills the process and the compiler processes that it started."""
        if self.process.returncode is not None:
            return
        self.errors.seek(0)
        if words := self.errors.read().strip():
            log(f"{self.name} printed: …{words[-600:]}")
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.errors.close()
        self.folder.cleanup()


def ours(options, shape, what, batch):
    """Runs bench_step. In training it synchronizes and takes the time only after each block of steps."""
    where, n = ("cpu", 1) if options.tiny else ("cuda", N_OURS)
    environment = {**os.environ}
    environment.setdefault("MELM_CUDA_ROOT", sys.prefix)  # use the CUDA libraries of PyTorch
    done = subprocess.run([options.ours, "mini" if options.tiny else shape, what, str(n), where, batch],
                          env=environment, capture_output=True, text=True, timeout=TURN_S)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["failed without a message"])[-1])
    seconds = [float(s) for s in re.findall(r"^seconds (\S+)", done.stdout, re.M)]
    if not seconds:
        raise RuntimeError(f"no line starts with `seconds` in: {done.stdout[-200:]}")
    warm = seconds[BLOCK:] or seconds
    blocks = [statistics.mean(warm[i:i + BLOCK]) for i in range(0, len(warm), BLOCK)]
    found = {"ms": 1e3 * statistics.median(blocks), "best_ms": 1e3 * min(blocks), "mean_ms": 1e3 * statistics.mean(warm),
             "n_steps": len(warm)}
    if first := re.search(r"^first (\S+)", done.stdout, re.M):
        found["first_s"] = float(first[1])
        found["five_s"] = found["first_s"] + sum(seconds[:4])
    if opened := re.search(r"^opened (\S+)", done.stdout, re.M):
        found["opened_s"] = float(opened[1])
    if memory := re.search(r"allocated_mib (\d+)", done.stdout):
        found["allocated_mib"] = int(memory[1])
    return found


class Results:
    """All results by model shape, task (train or generate), side and batch. The file is updated after every process."""

    def __init__(self, path):
        self.path, self.steps, self.floors = path, {}, {}

    def add(self, shape, what, side, found):
        for one in found:
            self.steps[shape, what, side, one["batch"]] = one
            text = one.get("error") or f"{one['ms']:.2f} ms"
            log(f"{shape} {what} {side} {one['batch']}: {text}")
        self.save()

    def add_floors(self, found):
        self.floors.update({(one["shape"], one["batch"]): one for one in found if "train" in one})
        for one in found:
            if "error" in one:
                log(f"ceiling: {one}")
        self.save()

    def save(self):
        if self.path:
            names = ("shape", "what", "side", "batch")
            steps = [{**dict(zip(names, key)), **found} for key, found in self.steps.items()]
            text = json.dumps({"machine": machine(), "steps": steps, "floors": list(self.floors.values())}, indent=1)
            pathlib.Path(self.path).write_text(text)

    def better(self, shape, what, row, batch):
        """Returns the name and result of the fastest side in a table row; a result with an error if all failed."""
        found = [(side, self.steps[shape, what, side, batch]) for side in ROWS[row]
                 if (shape, what, side, batch) in self.steps]
        return min(found, key=lambda pair: pair[1].get("ms", float("inf")), default=(row, None))

    def table(self, shape, what):
        print(f"\n{shape}, {'training' if what == 'train' else 'generation'}:\n")
        print("| batch | side | ms | best | sent/s | first s | first 5 s | GiB (reserved) | ours x | of floor |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for batch, n_sentences in BATCHES.items():
            if not any(key[0] == shape and key[3] == batch for key in self.steps):
                continue
            floor = self.floors.get((shape, batch), {}).get(what, {}).get("all")
            own = self.better(shape, what, "ours", batch)[1] or {}
            for row in ROWS:
                side, one = self.better(shape, what, row, batch)
                if one is None:
                    continue
                side = LABELS.get(side, side)
                if "ms" not in one:
                    print(f"| {batch} | {side} | {one['error'][:60]} | | | | | | | |")
                    continue
                ms = one["ms"]
                cells = [batch, side, f"{ms:.2f}", f"{one['best_ms']:.2f}", f"{1e3 * n_sentences / ms:.0f}",
                         number(one.get("first_s")), number(one.get("five_s")), memory(one),
                         f"{ms / own['ms']:.2f}" if "ms" in own else "-", f"{floor / ms:.0%}" if floor else "-"]
                print(f"| {' | '.join(cells)} |")

    def ceilings(self):
        """Prints the floors (lower bounds of the step time) and the measured speeds from which they are computed."""
        if not self.floors:
            return
        speed = next(iter(self.floors.values()))["terabytes_a_second"]
        print(f"\nBandwidth of a copy (reads plus writes; the faster of memcpy and a kernel): {speed:.2f} TB/s. Floors, ms:\n")
        print("| shape | batch | rows | masked | step | all | layers | attention | head | scores | optimiser |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for (shape, batch), one in self.floors.items():
            for what in ("train", "generate"):
                parts = [f"{one[what].get(name, 0):.2f}" for name in
                         ("all", "layers", "attention", "head", "scores", "optimiser")]
                print(f"| {shape} | {batch} | {one['rows']} | {one['masked']} | {what} | {' | '.join(parts)} |")
        print("\nbf16 products, TFLOP/s: forward / gradient of inputs / gradient of weights:\n")
        print("| shape | batch | qkv | output | up | down | dense | head |\n|---|---|---|---|---|---|---|---|")
        for (shape, batch), one in self.floors.items():
            speeds = [" / ".join(f"{speed:.0f}" for speed in three) for three in one["teraflops"].values()]
            print(f"| {shape} | {batch} | {' | '.join(speeds)} |")


def number(value):
    return "-" if value is None else f"{value:.2f}"


def memory(one):
    if "allocated_mib" not in one:
        return "-"
    reserved = f" ({one['reserved_mib'] / 1024:.1f})" if "reserved_mib" in one else ""
    return f"{one['allocated_mib'] / 1024:.1f}{reserved}"


@functools.cache
def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        gpu = ""
    return gpu or platform.processor() or platform.machine()


def take_turns(processes, options, results):
    """Waits until all processes have started, then lets them measure one after another."""
    try:
        until = time.monotonic() + options.compile_limit + 60
        for process in processes:
            if process.line(until) is None:
                log(f"{process.name} did not start")
        log(f"{len(processes)} processes are ready; now one at a time")
        for process in processes:
            found = process.turn()
            if process.side == "ceiling":
                results.add_floors(found)
            else:
                results.add(process.shape, process.what, process.side, found)
    finally:
        for process in processes:
            process.stop()


def bench(options, results):
    parts = [part.split("-") for part in options.only]
    sides = [side for side in TORCH_SIDES if side in options.sides]
    jobs = [(side, *part) for side in sides for part in parts]
    n_compiling = sum(side.startswith("compile") for side, *_ in jobs)
    log(f"{machine()}: {n_compiling} processes compile")
    take_turns([Process(*job, options, n_compiling) for job in jobs if job[0].startswith("compile")], options, results)
    others = [job for job in jobs if not job[0].startswith("compile")]
    if "ceiling" in options.sides:
        others.append(("ceiling", ",".join(dict.fromkeys(shape for shape, _ in parts)), "all"))
    take_turns([Process(*job, options, 0) for job in others], options, results)
    for shape, what in parts if "ours" in options.sides else []:
        for batch in options.batches:
            try:
                found = ours(options, shape, what, batch)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            results.add(shape, what, "ours", [{"batch": batch, **found}])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    sides = ["ours", *TORCH_SIDES, "ceiling"]
    parser.add_argument("--ours", required=True, help="a built crates/melm-nn/examples/bench_step")
    parser.add_argument("--only", type=words, default=PARTS, help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument("--sides", type=words, default=[side for side in sides if side != "compile-dynamic"],
                        help=f"sides to run, of {','.join(sides)}; default: all but compile-dynamic")
    parser.add_argument("--batches", type=words, default=list(BATCHES), help=f"kinds of batches, of {','.join(BATCHES)}")
    parser.add_argument("--json", help="the file for all results")
    parser.add_argument("--compile-limit", type=int, default=90, help="seconds that torch.compile may take for its first steps")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, one step (ours: mini on the CPU)")
    options = parser.parse_args()
    if unknown := {*options.only, *options.sides, *options.batches} - {*PARTS, *sides, *BATCHES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    results = Results(options.json)
    try:
        bench(options, results)
    finally:
        print(f"{machine()}, {time.strftime('%Y-%m-%d %H:%M')}, {time.monotonic() - STARTED:.0f} s in total")
        for part in options.only:
            results.table(*part.split("-"))
        results.ceilings()
        print(NOTES)


if __name__ == "__main__":
    main()
