"""The extension module, written in Rust."""

import pathlib
from collections.abc import Iterator
from typing import Any, Optional, final

from ._protocols import OnMessage, RunData

__all__ = [
    "AugmentResult",
    "ConfigError",
    "Corpus",
    "DataError",
    "Error",
    "ModelError",
    "PickResult",
    "Settings",
    "Source",
    "Tagger",
    "Text",
    "__version__",
    "allowed_transitions",
    "augment",
    "check",
    "convert",
    "hub_cache",
    "needed_models",
    "pick",
    "report_html",
    "run_command",
    "score",
    "trial",
]

__version__: str

class Error(Exception):
    """Base class of the exceptions of melm."""

class DataError(Error):
    """Data cannot be read or used."""

class ConfigError(Error):
    """A setting, an option or an output folder is wrong."""

class ModelError(Error):
    """A model cannot be opened or used."""

@final
class Source:
    """The content of a file, and how to read it."""

    @staticmethod
    def open(path: str, options: dict[str, Any]) -> Source: ...
    @staticmethod
    def from_bytes(name: str, content: bytes, options: dict[str, Any]) -> Source: ...

@final
class Corpus:
    """Labelled sentences: a sequence of `(tokens, tags)`. It is immutable."""

    @staticmethod
    def read(source: Source, allows_untagged: bool = False) -> Corpus: ...
    @staticmethod
    def from_languages(parts: list[tuple[str, Corpus]]) -> Corpus: ...
    def split_languages(self) -> list[tuple[str, Corpus]]: ...
    @property
    def notes(self) -> list[str]: ...
    def dev_warnings(self, dev: Corpus) -> list[str]: ...
    @property
    def scheme(self) -> str: ...
    @property
    def types(self) -> list[str]: ...
    @property
    def languages(self) -> list[str]: ...
    @property
    def has_mentions(self) -> bool: ...
    def rows(self) -> list[tuple[list[str], list[str], list[str]]]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> tuple[list[str], list[str]]: ...
    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]: ...

@final
class Text:
    """Sentences without tags."""

    @staticmethod
    def open(path: str, train: Corpus, language: Optional[str]) -> Text: ...
    @staticmethod
    def from_bytes(name: str, content: bytes, train: Corpus, language: Optional[str]) -> Text: ...
    @staticmethod
    def join(parts: list[Text]) -> Text: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def held_out_warnings(self) -> list[str]: ...
    def __len__(self) -> int: ...

@final
class Settings:
    """The settings of a run."""

    def __new__(
        cls,
        preset: str,
        config: Optional[str],
        keys: list[tuple[str, Any]],
        device: str,
        threads: Optional[int],
        precision: str,
        mini: Optional[str],
    ) -> Settings: ...

@final
class AugmentResult:
    """The result of a run in a folder."""

    def kept(self) -> list[tuple[Optional[str], tuple[list[str], list[str], list[str]]]]: ...
    def corpus(self) -> Corpus: ...
    @property
    def has_gold(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def folder(self) -> str: ...

@final
class PickResult:
    """The sentences that were picked, the most useful one first."""

    def lines(self) -> str: ...
    def summary(self) -> str: ...
    def files(self, path: Optional[str], to: Optional[str]) -> tuple[list[tuple[str, bytes]], list[str]]: ...
    @staticmethod
    def lines_path(path: str) -> pathlib.Path: ...

@final
class Tagger:
    """A tagger and its device."""

    @staticmethod
    def open(folder: str, settings: Settings) -> Tagger: ...
    @staticmethod
    def train(data: RunData, settings: Settings, folder: Optional[str], on_message: OnMessage) -> Tagger: ...
    def save(self, folder: str) -> None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def dev_f1(self) -> Optional[float]: ...
    def tag_tokens(
        self, sentences: list[list[str]], on_message: OnMessage
    ) -> tuple[list[list[str]], list[str]]: ...
    def tag_texts(
        self, texts: list[str], on_message: OnMessage
    ) -> tuple[list[list[tuple[int, int, str, float]]], list[str]]: ...

def augment(data: RunData, settings: Settings, folder: str, on_message: OnMessage) -> AugmentResult: ...
def pick(
    data: RunData, n: int, settings: Settings, folder: Optional[str], on_message: OnMessage
) -> PickResult: ...
def trial(
    data: RunData, size: dict[str, Any], settings: Settings, folder: Optional[str], on_message: OnMessage
) -> tuple[str, str]: ...
def hub_cache() -> pathlib.Path: ...
def needed_models(settings: Settings, task: str, has_text: bool) -> list[str]: ...
def score(gold: Source, predicted: Source, strict: bool) -> str: ...
def check(sources: list[Source]) -> str: ...
def convert(
    source: Source, path: Optional[str], to: Optional[str], scheme: Optional[str], repair: bool
) -> tuple[list[tuple[str, bytes]], list[str]]: ...
def report_html(folder: str) -> str: ...
def run_command(words: list[str]) -> int: ...
def allowed_transitions(names: list[str], scheme: str) -> list[list[bool]]: ...
