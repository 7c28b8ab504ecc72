"""Sums up the kernels that Nsight Compute lists, for bench/profile_cuda.sh: profile_table.py TITLE N_STEPS < CSV

Prints the time of each kernel in one step, the slowest first: all grids of a kernel together, then the products by grid.
"""
import collections, csv, re, sys

N_ROWS = 45


def short(name):
    """Returns the name of a kernel without its template arguments, if it has a long list of them."""
    name = re.sub(r"\(.*$", "", name).removeprefix("void ")
    return name if len(name) <= 78 else f"{name[:50]}…{name[-27:]}"


def table(title, kernels, n_steps):
    whole = sum(sum(times) for times in kernels.values())
    n_calls = sum(map(len, kernels.values()))
    print(f"\n{title}: {whole / n_steps:.0f} µs and {n_calls / n_steps:.0f} kernels in a step\n")
    print("| µs in a step | share | calls in a step | µs, shortest | longest | kernel |\n|---|---|---|---|---|---|")
    for name, times in sorted(kernels.items(), key=lambda pair: -sum(pair[1]))[:N_ROWS]:
        print(f"| {sum(times) / n_steps:.1f} | {sum(times) / whole:.1%} | {len(times) / n_steps:.1f} | "
              f"{min(times):.1f} | {max(times):.1f} | {name} |")


def main():
    title, n_steps = sys.argv[1], int(sys.argv[2])
    text = sys.stdin.read()
    lines = [line for line in text.splitlines() if line.startswith('"')]  # the rest was printed by the program
    by_name, by_grid = collections.defaultdict(list), collections.defaultdict(list)
    for row in csv.DictReader(lines):
        if not row["ID"]:  # the row of units
            continue
        microseconds = float(row["gpu__time_duration.sum"].replace(",", "")) / 1e3
        name = short(row["Kernel Name"])
        by_name[name].append(microseconds)
        if len(name) > 30:  # kernels of cuBLASLt; ours have short names
            by_grid[f"{row['Grid Size']} x {row['Block Size']} {name}"].append(microseconds)
    if not by_name:
        sys.exit(f"Nsight Compute listed no kernel. It printed:\n{text[-2000:]}")
    table(title, by_name, n_steps)
    table(f"{title}, products", by_grid, n_steps)


if __name__ == "__main__":
    main()
