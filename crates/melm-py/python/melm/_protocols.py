"""Types that the extension module expects of Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional, Protocol

if TYPE_CHECKING:
    from . import _melm


class OnMessage(Protocol):
    """Receives the progress of a stage, or a note without numbers."""

    def __call__(self, message: str, done: Optional[int], total: Optional[int], /) -> None: ...


class Names(Protocol):
    """Names of one entity type: a file, or a list."""

    @property
    def entity_type(self) -> str: ...
    @property
    def path(self) -> Optional[str]: ...
    @property
    def names(self) -> list[str]: ...


class Silver(Protocol):
    """Sentences that somebody else labelled."""

    @property
    def name(self) -> str: ...
    @property
    def corpus(self) -> _melm.Corpus: ...
    @property
    def drops_types(self) -> bool: ...


class RunData(Protocol):
    """The data of a run."""

    @property
    def train(self) -> _melm.Corpus: ...
    @property
    def dev(self) -> Optional[_melm.Corpus]: ...
    @property
    def text(self) -> Optional[_melm.Text]: ...
    @property
    def held_out(self) -> list[_melm.Text]: ...
    @property
    def names(self) -> Sequence[Names]: ...
    @property
    def silver(self) -> Sequence[Silver]: ...
