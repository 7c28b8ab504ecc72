"""Compares F1 of taggers in f32 and with 8-bit integers: python bench/int8_f1.py CONLL [--size 400] [--seeds 1,2] [-o FOLDER]

CONLL is a folder of LANG/train.conll, dev.conll and test.conll, for en, de, es and nl. For each language and seed, trains
mini as a tagger on a random part of the training file, and tags the whole dev and test files with the CPU in f32 and with
8-bit integers. Prints F1 of both, the difference, and how many tags differ. Taggers in FOLDER are used again. The program
is `target/release/melm`, or the one that MELM names.
"""
import argparse, json, os, pathlib, subprocess, tempfile

HERE = pathlib.Path(__file__).parent
MELM = os.environ.get("MELM", HERE.parent / "target/release/melm")
LANGUAGES = ["en", "de", "es", "nl"]
PRECISIONS = ["f32", "int8"]


def melm(*arguments):
    command = [str(one) for one in (MELM, *arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def train(data, size, seed, folder):
    """Trains a tagger on a random part of a training file, unless it exists, and returns its folder."""
    part, tagger = folder / f"train-{size}-{seed}.conll", folder / f"tagger-{size}-{seed}"
    if not (tagger / "run.json").exists():
        melm("sample", data / "train.conll", "-n", size, "--seed", seed, "-o", part, "-q", "--force")
        dev = folder / f"dev-{size}-{seed}.conll"
        melm("sample", data / "dev.conll", "-n", size, "--seed", seed, "-o", dev, "-q", "--force")
        melm("train", part, "--dev", dev, "-o", tagger, "--updates", 300, "--seed", seed, "--device", "cpu", "-q")
    return tagger


def compare(tagger, gold, folder):
    """Returns F1 in percent of each precision, the number of tags, and of tags that differ."""
    tags, f1 = [], []
    for precision in PRECISIONS:
        out = folder / f"{precision}.conll"
        melm("tag", tagger, gold, "-o", out, "--precision", precision, "--device", "cpu", "-q", "--force")
        f1.append(100 * json.loads(melm("score", gold, out, "--json"))["f1"])
        tags.append([line.split()[-1] for line in open(out, encoding="utf-8") if line.strip()])
    return f1, len(tags[0]), sum(a != b for a, b in zip(*tags, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("conll", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("-o", "--out", type=pathlib.Path)
    options = parser.parse_args()
    out = options.out or pathlib.Path(tempfile.mkdtemp())
    differences = {"dev": [], "test": []}
    print("| language | seed | set | f32 | int8 | difference | tags that differ |\n|---|---|---|---|---|---|---|")
    for language in LANGUAGES:
        folder = out / language
        folder.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds.split(","):
            tagger = train(options.conll / language, options.size, seed, folder)
            for split, found in differences.items():
                f1, n, n_other = compare(tagger, options.conll / language / f"{split}.conll", folder)
                found.append((language, f1[1] - f1[0]))
                print(f"| {language} | {seed} | {split} | {f1[0]:.2f} | {f1[1]:.2f} | {f1[1] - f1[0]:+.2f} | {n_other} of {n} |", flush=True)
    for split, found in differences.items():
        means = {one: [d for language, d in found if language == one] for one in LANGUAGES}
        print(f"{split}, mean difference: " + ", ".join(f"{one} {sum(d) / len(d):+.3f}" for one, d in means.items()))


if __name__ == "__main__":
    main()
