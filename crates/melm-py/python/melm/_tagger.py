"""`melm.Tagger`."""

from __future__ import annotations

import os
from typing import Any, Optional

from . import _melm
from ._data import Labelled, log_notes, read_data
from ._progress import Progress
from ._settings import Path, fetch_models, make_settings
from .adapters import find_adapter
from .adapters._base import Span


class Tagger:
    """A tagger for named entities. `Tagger.train` and `Tagger.from_pretrained` make one."""

    def __init__(self, tagger: _melm.Tagger) -> None:
        self._tagger = tagger

    @classmethod
    def train(
        cls,
        train: Labelled,
        *,
        dev: Optional[Labelled] = None,
        seed: int = 1,
        device: str = "auto",
        progress: bool = True,
        folder: Optional[Path] = None,
        threads: Optional[int] = None,
        precision: str = "auto",
        preset: str = "best",
        config: Optional[Path] = None,
        model: Optional[Path] = None,
        **settings: Any,
    ) -> Tagger:
        """Train a tagger. With `folder`, the tagger is saved there, and the same call resumes an interrupted training.

        `**settings` are keys of the plan with `__` for a dot, such as `tagger__budget="300 updates"`.
        """
        chosen = make_settings(
            seed=seed, device=device, threads=threads, precision=precision, preset=preset, config=config, model=model,
            keys=settings,
        )  # fmt: skip
        fetch_models(chosen, "train", False)
        data = read_data(train, dev, None, None)
        with Progress(progress) as shown:
            path = None if folder is None else os.fspath(folder)
            tagger = _melm.Tagger.train(data, chosen, path, shown)
        log_notes(tagger.notes)
        return cls(tagger)

    @classmethod
    def from_pretrained(
        cls, folder: Path, *, device: str = "auto", threads: Optional[int] = None, precision: str = "auto"
    ) -> Tagger:
        """Open a tagger that `save`, `melm train` or `transformers` has written."""
        settings = make_settings(device=device, threads=threads, precision=precision)
        return cls(_melm.Tagger.open(os.fspath(folder), settings))

    def save(self, folder: Path) -> None:
        """Write a folder that `from_pretrained`, the command and `transformers` open."""
        self._tagger.save(os.fspath(folder))

    @property
    def tags(self) -> list[str]:
        """The tags, in the order of their ids."""
        return self._tagger.tags

    @property
    def dev_f1(self) -> Optional[float]:
        """Micro-F1 on the dev set of the training, from 0 to 1; None without a dev set or for an opened tagger."""
        return self._tagger.dev_f1

    def predict(self, data: Any, *, progress: bool = False) -> Any:
        """Return `data` with predicted tags. It has the type that went in.

        A list of strings becomes a list of dicts with `text` and `spans`, each with start, end, label and score. A list of
        token lists becomes a list of `(tokens, tags)`.
        """
        with Progress(progress) as shown:

            def tag_tokens(sentences: list[list[str]]) -> list[list[str]]:
                tags, notes = self._tagger.tag_tokens(sentences, shown)
                log_notes(notes)
                return tags

            def tag_texts(texts: list[str]) -> list[list[Span]]:
                spans, notes = self._tagger.tag_texts(texts, shown)
                log_notes(notes)
                return spans

            if isinstance(data, str) and not os.path.exists(data):
                return find_adapter([data]).predict([data], tag_tokens, tag_texts)[0]
            return find_adapter(data).predict(data, tag_tokens, tag_texts)

    def __repr__(self) -> str:
        return f"Tagger({len(self.tags)} tags)"
