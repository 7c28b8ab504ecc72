"""Write the symbols of spaCy with their ids: the strings whose ids are not hashes.

usage: make_spacy_symbols.py     (needs spacy; run in the repository)
"""
from spacy.symbols import IDS

with open("crates/melm-text/src/spacy/symbols.tsv", "w", encoding="utf-8", newline="\n") as file:
    for name, number in sorted(IDS.items(), key=lambda item: (item[1], item[0])):
        file.write(f"{number}\t{name}\n")
