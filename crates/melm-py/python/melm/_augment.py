"""`melm.augment`."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from . import _melm
from ._data import Labelled, NamesInput, SilverInput, Unlabelled, extend, log_notes, log_warnings, read_corpus, read_data
from ._progress import Progress
from ._records import Records
from ._settings import Path, fetch_models, make_settings


class Drafts(Records):
    """Every draft and every labelled sentence of unlabelled text, kept or not: the lines of `drafts.jsonl`.

    Each has tokens, tags, verdict, the replaced mentions and more.
    """


class RunFolder:
    """The files of a finished run."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)

    @property
    def drafts(self) -> Drafts:
        """Every draft and every labelled sentence of unlabelled text, kept or not."""
        with open(self._path("drafts.jsonl"), encoding="utf-8") as lines:
            return Drafts(lines)

    @property
    def summary(self) -> dict[str, Any]:
        """The content of `run.json`: data, models, counts of drafts by verdict, seconds."""
        with open(self._path("run.json"), encoding="utf-8") as file:
            summary: dict[str, Any] = json.load(file)
        return summary

    @property
    def folder(self) -> str:
        """The folder of the run. Without `folder=`, it is temporary and removed together with this object."""
        return self._folder

    def report(self, path: Path) -> None:
        """Write an HTML page with numbers and all drafts."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_melm.report_html(self.folder))

    def save(self, folder: Path) -> None:
        """Write the files of `melm augment -o FOLDER`: the augmented data, all drafts, the plan and a card."""
        if os.path.isdir(folder) and os.listdir(folder):
            raise _melm.ConfigError(f"`{os.fspath(folder)}` has other files; choose another folder")
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)

    def __repr__(self) -> str:
        counts = self.summary["drafts"]
        return f"{type(self).__name__}({counts['kept']} of {counts['drafts']} drafts kept)"

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)


class Augmented(RunFolder):
    """The result of `melm.augment`."""

    def __init__(self, data: Labelled, result: _melm.AugmentResult, temporary: Optional[Any]) -> None:
        super().__init__(result.folder)
        self._data = data
        self._result = result
        # Keeps the folder of a run without `folder=` until this object is gone.
        self._temporary = temporary
        self._dataset: Any = None

    @property
    def dataset(self) -> Any:
        """The data that went in, with the kept sentences after it. It has the same type; a path becomes a `melm.Corpus`."""
        if self._dataset is None:
            self._dataset = extend(self._data, self._result)
        return self._dataset


def augment(
    train: Labelled,
    *,
    dev: Optional[Labelled] = None,
    unlabelled: Optional[Unlabelled] = None,
    held_out: Optional[Unlabelled] = None,
    names: Optional[Mapping[str, Union[Path, Iterable[str]]]] = None,
    silver: Optional[Mapping[str, Labelled]] = None,
    silver_drop_types: bool = False,
    seed: int = 1,
    device: str = "auto",
    progress: bool = True,
    folder: Optional[Path] = None,
    threads: Optional[int] = None,
    precision: str = "auto",
    preset: str = "best",
    config: Optional[Path] = None,
    model: Optional[Path] = None,
    tagger_model: Optional[Path] = None,
    **settings: Any,
) -> Augmented:
    """Make more labelled sentences.

    `train` and `dev` are labelled data, `unlabelled` is text that a panel of taggers labels, and `held_out` has sentences
    that must not be used, such as a test set. `names` maps entity types to lists of names, or to files with a name on each
    line. `silver` maps the name of a source, such as `"llm"`, to data that it has labelled and that the panel checks. With
    `silver_drop_types`, its mentions of types that `train` does not have are dropped instead of refused.

    `**settings` are keys of the plan with `__` for a dot, such as `generate__rounds=5`. With `folder`, an interrupted run
    can be resumed with the same call.

    Raises DataError, ConfigError or ModelError with the messages of the command.
    """
    chosen = make_settings(
        seed=seed, device=device, threads=threads, precision=precision, preset=preset, config=config,
        model=model, tagger_model=tagger_model, keys=settings,
    )  # fmt: skip
    if silver is not None and not isinstance(silver, Mapping):
        raise _melm.ConfigError('`silver` maps names of sources to their data, such as `{"llm": "labelled.jsonl"}`')
    fetch_models(chosen, "augment", unlabelled is not None or bool(silver))
    data = read_data(train, dev, unlabelled, held_out)
    if names is not None:
        data.names = [_names_of(entity_type, source) for entity_type, source in names.items()]
    for name, labelled in (silver or {}).items():
        data.silver.append(SilverInput(name, read_corpus(labelled, f"silver {name}"), silver_drop_types))
    temporary = tempfile.TemporaryDirectory(prefix="melm-") if folder is None else None
    path = os.fspath(folder) if folder is not None else os.path.join(str(temporary and temporary.name), "run")
    with Progress(progress) as shown:
        result = _melm.augment(data, chosen, path, shown)
    if temporary is not None:
        # Saved models of the stages are large, and only a run in a folder of the user can use them again.
        shutil.rmtree(os.path.join(path, ".stages"), ignore_errors=True)
    log_notes(result.notes)
    log_warnings(result.warnings)
    augmented = Augmented(train, result, temporary)
    left_out = augmented.summary.get("text", {}).get("left_out", {})
    counts = [f"{reason} {n}" for reason, n in left_out.items() if n]
    if counts:
        log_notes([f"sentences left out of the text: {', '.join(counts)}"])
    return augmented


def _names_of(entity_type: str, source: Union[Path, Iterable[str]]) -> NamesInput:
    """Return the names of one entity type: a file, or a list."""
    if isinstance(source, (str, os.PathLike)):
        return NamesInput(entity_type, path=os.fspath(source))
    return NamesInput(entity_type, names=list(source))
