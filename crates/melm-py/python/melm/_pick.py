"""`melm.pick`."""

from __future__ import annotations

import json
import os
from typing import Any, Optional

from . import _melm
from ._data import Labelled, Unlabelled, log_notes, read_data
from ._files import write_files
from ._progress import Progress
from ._records import Records
from ._settings import Path, fetch_models, make_settings


class Picked(Records):
    """The sentences to label next, the most useful one first. The result of `melm.pick`.

    Each is a dict with `tokens`, suggested `tags`, `rank`, `score`, `file`, `line`, `mentions` with their votes, and more.
    """

    def __init__(self, result: _melm.PickResult) -> None:
        # `splitlines` would also cut at U+2028 within a token.
        super().__init__(line for line in result.lines().split("\n") if line)
        self._result = result

    def __repr__(self) -> str:
        return f"Picked({len(self)} of {self.summary['sentences']} sentences)"

    @property
    def summary(self) -> dict[str, int]:
        """The numbers of sentences of the text by what became of them."""
        summary: dict[str, int] = json.loads(self._result.summary())
        return summary

    def save(self, path: Path, *, to: Optional[str] = None, force: bool = False) -> None:
        """Write the sentences with their suggested tags, and the scores and votes to `PATH.pick.jsonl`.

        The format is `to`, such as `label-studio`, or that of the ending of `path`. An existing file is replaced only with
        `force`.
        """
        target = os.fspath(path)
        files, notes = self._result.files(target, to)
        lines = os.fspath(self._result.lines_path(target))
        write_files(target, files, force, also={lines: self._result.lines().encode()})
        log_notes(notes)


def pick(
    text: Unlabelled,
    *,
    train: Labelled,
    dev: Optional[Labelled] = None,
    held_out: Optional[Unlabelled] = None,
    n: int = 50,
    seed: int = 1,
    device: str = "auto",
    progress: bool = True,
    folder: Optional[Path] = None,
    threads: Optional[int] = None,
    precision: str = "auto",
    preset: str = "best",
    config: Optional[Path] = None,
    tagger_model: Optional[Path] = None,
    **settings: Any,
) -> Picked:
    """Pick the sentences of `text` that a person should label next, with suggested tags.

    A panel of taggers is trained on `train`, and the sentences on which it disagrees most are picked. Sentences of `train`,
    `dev` and `held_out` are left out. `**settings` are keys of the plan with `__` for a dot, such as `pick__diversity=0.0`.
    With `folder`, the votes of the panel are stored there: the same call resumes after an interruption, and a call with
    another `n` uses them again.
    """
    if n < 1:
        raise _melm.ConfigError("`n` must be at least 1")
    chosen = make_settings(
        seed=seed, device=device, threads=threads, precision=precision, preset=preset, config=config,
        tagger_model=tagger_model, keys=settings,
    )  # fmt: skip
    fetch_models(chosen, "train", True)
    data = read_data(train, dev, text, held_out)
    path = None if folder is None else os.fspath(folder)
    with Progress(progress) as shown:
        return Picked(_melm.pick(data, n, chosen, path, shown))
