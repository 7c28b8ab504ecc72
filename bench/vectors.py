"""Times melm codemix with the word vectors of four languages: 200,000 words per language, 300 numbers per word.

    cargo build --release && python3 bench/vectors.py [--words N] [--dimension D] [--folder DIR]

Needs numpy. Writes random vectors in the text format of MUSE, both plain and compressed with gzip, and four corpora
whose mentions consist of 10,000 of the words. Times the whole command from start to exit: it reads the vectors, finds
the most similar mention for every mention, and writes the result. If DIR is given, the files are kept there and reused
by later runs.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent
MELM = ROOT / "target" / "release" / "melm"
LANGUAGES = ["en", "de", "es", "nl"]
N_NEEDED, N_TYPES, CHUNK = 10_000, 8, 1_000


def write_vectors(path, n_words, dimension, seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    # Every number takes nine bytes including a space, so that rows can be written without formatting.
    pool = np.array([f"{x:.6f} "[:9] if x >= 0 else f"{x:.5f} " for x in rng.uniform(-1, 1, 50_000)], dtype="S9")
    with path.open("wb") as out:
        out.write(f"{n_words} {dimension}\n".encode())
        for start in range(0, n_words, CHUNK):
            rows = pool[rng.integers(0, len(pool), (CHUNK, dimension))]
            for at, row in enumerate(rows, start):
                if at < n_words:
                    out.write(f"w{at} ".encode() + row.tobytes()[:-1] + b"\n")


def write_corpus(path, n_words):
    """Writes a corpus with one mention of two words in each sentence. The words occur all over the vector file."""
    words = [f"w{at * n_words // N_NEEDED}" for at in range(N_NEEDED)]
    with path.open("w") as out:
        for at in range(0, N_NEEDED, 2):
            name = f"TYPE{at // 2 % N_TYPES}"
            out.write(f"so\tO\n{words[at]}\tB-{name}\n{words[at + 1]}\tI-{name}\n.\tO\n\n")


def timed(folder, ending):
    command = [MELM, "codemix", *(f"{code}={folder / code}.conll" for code in LANGUAGES)]
    for code in LANGUAGES:
        command += ["--vectors", f"{code}={folder / code}{ending}"]
    start = time.perf_counter()
    process = subprocess.Popen([*map(str, command), "-o", str(folder / "mixed.conll"), "--force"],
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    # Uses a folder in memory if possible, so that the speed of the disk is not measured.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for seed, code in enumerate(LANGUAGES):
            if not (folder / f"{code}.vec.gz").exists():
                write_vectors(folder / f"{code}.vec", options.words, options.dimension, seed)
                subprocess.run(["gzip", "-k", "-1", "-f", str(folder / f"{code}.vec")], check=True)
            write_corpus(folder / f"{code}.conll", options.words)
        for ending in (".vec", ".vec.gz"):
            size = sum((folder / f"{code}{ending}").stat().st_size for code in LANGUAGES)
            runs = [timed(folder, ending) for _ in range(3)]
            seconds, cpu, memory = sorted(runs)[1]
            print(f"{ending:8} {size / 1e9:.2f} GB: {seconds:.2f} s (runs: "
                  f"{', '.join(f'{run[0]:.2f}' for run in runs)}), {cpu:.2f} s of CPU time, peak {memory:.3f} GiB")


main()
