"""Sentences in the one form that all adapters share."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A sentence: tokens, a tag for each, and the text before each token. `gaps` is empty if only tokens are known."""

    tokens: list[str]
    tags: list[str]
    gaps: list[str]


class TokenSpan(NamedTuple):
    """A mention: tokens `start` to `end` (exclusive) and the entity type."""

    start: int
    end: int
    label: str


def find_mentions(tags: list[str]) -> list[TokenSpan]:
    """Return the mentions of tags that are valid in a scheme: IO, IOB1, IOB2, IOBES or BILOU."""
    found: list[TokenSpan] = []
    start, label = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        starts = prefix in ("B", "S", "U") or name != label
        if label and (prefix == "O" or starts):
            found.append(TokenSpan(start, at, label))
            label = ""
        if prefix != "O" and not label:
            start, label = at, name
        if label and prefix in ("E", "L", "S", "U"):
            found.append(TokenSpan(start, at + 1, label))
            label = ""
    return found


def join_tokens(row: Row) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a sentence and the start and end of each token. Tokens without known gaps are separated by spaces."""
    text, offsets = "", []
    for at, token in enumerate(row.tokens):
        if at > 0:
            text += row.gaps[at] if row.gaps else " "
        offsets.append((len(text), len(text) + len(token)))
        text += token
    return text, offsets
