"""`melm.read`, `melm.score`, `melm.check`, `melm.convert` and `melm.trial`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _melm
from ._data import Labelled, Unlabelled, log_notes, read_corpus, read_data, read_source
from ._files import write_files
from ._progress import Progress
from ._settings import Path, fetch_models, make_settings


def read(data: Labelled, **options: Any) -> _melm.Corpus:
    """Read labelled data with options of the command, such as `encoding="latin1"`, `scheme="iob1"` or `tag_column=4`."""
    return read_corpus(data, "data", options)


def score(gold: Labelled, predicted: Labelled, *, strict: bool = False) -> dict[str, Any]:
    """Score predicted tags as conlleval and seqeval do. Return the content of `melm score --json`; rates are fractions."""
    sources = (read_source(gold, "gold"), read_source(predicted, "predicted"))
    scores: dict[str, Any] = json.loads(_melm.score(*sources, strict))
    return scores


def check(*data: Labelled) -> dict[str, Any]:
    """Count sentences and mentions, and list problems. Return the content of `melm check --json`.

    Pass train, dev and test together to find sentences that occur in several of them.
    """
    sources = [read_source(one, f"data {at}") for at, one in enumerate(data, 1)]
    report: dict[str, Any] = json.loads(_melm.check(sources))
    return report


def convert(
    data: Labelled,
    path: Optional[Path] = None,
    *,
    to: Optional[str] = None,
    scheme: Optional[str] = None,
    repair: bool = False,
    force: bool = False,
) -> Optional[Union[str, bytes]]:
    """Convert data to a file format of the command, such as `conll`, `spacy` or `parquet`, or to another tag scheme.

    With `path`, write the file; without `to`, its ending chooses the format. The two files of `brat` get the endings `.ann`
    and `.txt`. An existing file is replaced only with `force`. Without `path`, return the content: bytes for binary formats.
    """
    target = None if path is None else os.fspath(path)
    files, notes = _melm.convert(read_source(data, "data"), target, to, scheme, repair)
    log_notes(notes)
    if target is None:
        if len(files) > 1:
            raise _melm.ConfigError("this format has several files; pass `path`")
        extension, content = files[0]
        return content if extension in ("spacy", "parquet") else content.decode()
    write_files(target, files, force)
    return None


def trial(
    train: Labelled,
    *,
    dev: Optional[Labelled] = None,
    unlabelled: Optional[Unlabelled] = None,
    held_out: Optional[Unlabelled] = None,
    folds: int = 5,
    seeds: Optional[int] = None,
    updates: Optional[int] = None,
    methods: Optional[Sequence[str]] = None,
    device: str = "auto",
    progress: bool = True,
    folder: Optional[Path] = None,
    threads: Optional[int] = None,
    precision: str = "auto",
    preset: str = "best",
    model: Optional[Path] = None,
    tagger_model: Optional[Path] = None,
    **settings: Any,
) -> dict[str, Any]:
    """Measure by cross-validation whether augmentation helps. Return the content of `melm trial --json`, and `table`.

    Sentences of `held_out`, such as a test set, are left out of `unlabelled`. The default size depends on the device: a CPU
    gets a smaller trial. With `folder`, finished taggers are recorded there,
    and the same call resumes.
    """
    chosen = make_settings(
        device=device, threads=threads, precision=precision, preset=preset, model=model, tagger_model=tagger_model,
        keys=settings,
    )  # fmt: skip
    fetch_models(chosen, "augment", unlabelled is not None)
    data = read_data(train, dev, unlabelled, held_out)
    size = {"folds": folds, "seeds": seeds, "updates": updates, "methods": None if methods is None else list(methods)}
    with Progress(progress) as shown:
        path = None if folder is None else os.fspath(folder)
        result, table = _melm.trial(data, size, chosen, path, shown)
    found: dict[str, Any] = json.loads(result)
    return {**found, "table": table}
