#!/usr/bin/env python3
"""Print figures about the readability of the code, for each crate and in total.

    python3 tools/code_figures.py [--list] [--check]

Counts functions, functions with arguments packed into tuples, public items, functions over 40 lines, uses of `unsafe`,
and lines of Rust. Test code is included. --list also prints the functions that pack arguments into tuples. --check prints
them too and exits with 1 if there are any, or if a crate has more uses of `unsafe` than MAX_UNSAFE allows.
"""
import pathlib
import re
import sys

FUNCTION = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)")
PACK = re.compile(r"[(,]\s*(?:mut )?\((?:(?:mut )?\w+, ?)+(?:mut )?\w+,?\)\s*:\s*\(")
PUBLIC = re.compile(r"^\s*pub (?:const )?(?:unsafe )?(?:fn|struct|enum|trait|type|const|static|mod) ")
# A block, a function, an implementation or an attribute that is unsafe, such as `#[ctor(unsafe)]`. Comments and the names of
# lints are not counted.
UNSAFE = re.compile(r"^(?!\s*//).*(?:\bunsafe (?:\{|fn|impl|extern)|\(unsafe\))")
# The most uses of `unsafe` of each crate; 0 for the others. Lower a number when uses are removed. A higher one needs a
# reason in the commit.
MAX_UNSAFE = {"melm-nn": 137, "melm-cli": 1}


def signature(lines, start):
    """Return the signature of a function, up to its body."""
    text = ""
    for line in lines[start : start + 40]:
        text += line.strip() + " "
        if line.rstrip().endswith(("{", ";")) or "{ " in line:
            break
    return text


def body_length(lines, start, indent):
    """Return the number of lines from `fn` to the closing brace. Works only on code indented by rustfmt."""
    if lines[start].rstrip().endswith(("}", ";")):
        return 1
    for offset, line in enumerate(lines[start:]):
        is_declaration = line.startswith(indent + ")") and line.rstrip().endswith(";")
        if offset and (is_declaration or line.rstrip() in (indent + "}", indent + ";")):
            return offset + 1
    return 1


def figures(crate):
    n = dict(functions=0, packed=0, public=0, long=0, unsafe=0, lines=0)
    packed = []
    for path in sorted(crate.rglob("*.rs")):
        if "target" in path.parts:
            continue
        lines = path.read_text().split("\n")
        n["lines"] += len(lines) - 1
        for at, line in enumerate(lines):
            if "src" in path.parts and PUBLIC.match(line):
                n["public"] += 1
            n["unsafe"] += bool(UNSAFE.match(line))
            head = FUNCTION.match(line)
            if not head:
                continue
            n["functions"] += 1
            if PACK.search(signature(lines, at)):
                n["packed"] += 1
                packed.append(f"{path}:{at + 1}: {head[2]}")
            n["long"] += body_length(lines, at, head[1]) > 40
    return n, packed


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "crates"
    total, all_packed, unsafe = dict(), [], []
    print(f"{'crate':<12}{'functions':>10}{'packed':>8}{'public':>8}{'over 40':>9}{'unsafe':>8}{'lines':>8}")
    for crate in sorted(root.iterdir()):
        n, packed = figures(crate)
        all_packed += packed
        most = MAX_UNSAFE.get(crate.name, 0)
        if n["unsafe"] > most:
            unsafe.append(f"{crate.name} has {n['unsafe']} uses of `unsafe`, more than {most}")
        total = {key: total.get(key, 0) + value for key, value in n.items()}
        print(f"{crate.name:<12}" + "".join(f"{n[k]:>{w}}" for k, w in WIDTHS))
    print(f"{'all':<12}" + "".join(f"{total[k]:>{w}}" for k, w in WIDTHS))
    if "--list" in sys.argv or "--check" in sys.argv:
        print("\n".join(all_packed))
    if "--check" in sys.argv and all_packed:
        sys.exit("functions above pack their arguments into tuples: name each argument")
    if "--check" in sys.argv and unsafe:
        sys.exit("; ".join(unsafe) + ": see MAX_UNSAFE")


WIDTHS = [("functions", 10), ("packed", 8), ("public", 8), ("long", 9), ("unsafe", 8), ("lines", 8)]

if __name__ == "__main__":
    main()
