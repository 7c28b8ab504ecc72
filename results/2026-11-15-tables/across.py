"""Compute differences between grids that no single table shows, from the ledgers in this folder: python3 across.py"""
import gzip, json, math, pathlib
from statistics import mean, stdev

HERE = pathlib.Path(__file__).parent
# Student's t at 97.5 %, by degrees of freedom.
T = {2: 4.3027, 4: 2.7764, 5: 2.5706, 8: 2.3060, 9: 2.2622, 14: 2.1448, 17: 2.1098, 19: 2.0930}


def lines(grid):
    with gzip.open(HERE / f"{grid}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def f1(score):
    gold, predicted, correct = (sum(counts[i] for counts in score["by_type"].values()) for i in range(3))
    return 200 * correct / (gold + predicted)


def scores(ledger, method, budget=None, tests=None):
    """Return the mean F1 of the test sets (by default the cell's own) by language, size and draw."""
    of = [line for line in ledger if line["method"] == method and line["budget"] == (budget or line["budget"])]
    place = lambda line: (line["language"], line["size"], line["draw"])
    return {place(line): mean(f1(line["test"][name]) for name in tests or [line["language"]]) for line in of}


def show(what, differences):
    n, centre = len(differences), mean(differences)
    margin = T[n - 1] * stdev(differences) / math.sqrt(n)
    print(f"{what}: {centre:+.1f} [{centre - margin:+.1f}, {centre + margin:+.1f}], {n} pairs")


def paired(a, b, keep):
    return [a[place] - b[place] for place in a if place in b and keep(place)]


mono, large, control, defaults = map(lines, ["mono", "large", "control", "defaults"])
cross, cross_large, two, longer = map(lines, ["cross", "cross-large", "cross-two", "longer"])
updates = "300 updates"
both = scores(mono, "melm-both", updates)
for size in (100, 200):
    here = lambda place: place[1] == size
    for method in ("melm", "label-wise"):
        twelve, six = scores(control, method), scores(mono, method, updates)
        show(f"{size}, melm-both to {method} of twelve rounds", paired(both, twelve, here))
        show(f"{size}, {method}, twelve rounds to six", paired(twelve, six, here))
    show(f"{size}, melm to mlm-entity", paired(scores(mono, "melm", updates), scores(mono, "mlm-entity", updates), here))
for ledger, sizes, budget in ((mono, (100, 200), updates), (large, (400, 800), None)):
    method, gold = scores(ledger, "melm-both", budget), scores(ledger, "gold", budget)
    for size in sizes:
        for language in ("de", "en", "es", "nl"):
            own = paired(method, gold, lambda place: place[0] == language and place[1] == size)
            show(f"{size}, melm-both to gold, {language}", own)
for ledger, sizes, first in ((cross, (100, 200), 5), (cross_large, (400, 800), 3)):
    for size in sizes:
        english = scores(ledger, "melm-both"), scores(ledger, "gold")
        every = paired(*english, lambda place: place[1] == size)
        show(f"{size}, English, melm-both to gold, new draws", paired(*english, lambda p: p[1] == size and p[2] > first))
        if size >= 400:
            show(f"{size}, English, melm-both to gold, all draws", every)
            others = paired(scores(large, "melm-both"), scores(large, "gold"), lambda p: p[1] == size and p[0] != "en")
            show(f"{size}, all languages with these draws", others + every)
abroad = ["de", "es", "nl"]
for size in (100, 200):
    rounds = scores(two, "melm-both", tests=abroad), scores(cross, "melm-both", tests=abroad)
    show(f"{size}, across languages, melm-both, two rounds to six", paired(*rounds, lambda place: place[1] == size))
four = scores(longer, "melm-both", tests=["en"] + abroad), scores(longer, "gold", tests=["en"] + abroad)
for draws in ((1, 2, 3), (4, 5, 6)):
    print(f"four languages, 1,800 updates, draws {draws}: {mean(paired(*four, lambda p: p[2] in draws)):+.1f}")
plan = scores(defaults, "melm-both")
draws = {(language, draw) for language, _, draw in both}
show("tables' settings to the plan's, melm-both", [mean(paired(both, plan, lambda p: (p[0], p[2]) == d)) for d in draws])
rates = lines("dev-6")
for method in ("gold", "melm-both"):
    fast, slow = ([line for line in rates if line["variant"] == variant] for variant in ("three", "one-and-a-half"))
    show(f"15 epochs, dev, {method}, 3e-4 to 1.5e-4", paired(scores(fast, method), scores(slow, method), lambda place: True))
cell = lambda line: tuple(line[key] for key in ("language", "size", "draw", "seed", "method", "budget"))
known = {cell(line): line["test"] for line in mono + large}
for name, ledger in (("control, gold", [line for line in control if line["method"] == "gold"]), ("cross", cross + cross_large)):
    again = [(known[cell(line)], line["test"]) for line in ledger if cell(line) in known]
    same = sum(all(first[test] == score for test, score in second.items()) for first, second in again)
    print(f"{name}: {same} of {len(again)} taggers trained again have the same counts")
