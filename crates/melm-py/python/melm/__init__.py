"""More labelled sentences for named-entity recognition from few.

    import melm

    out = melm.augment("train.conll", dev="dev.conll")
    tagger = melm.Tagger.train(out.dataset, dev="dev.conll")
    tagger.predict(["Angela Merkel visited Paris."])

Data may be a path, a list of `(tokens, tags)`, a `datasets.Dataset`, a pandas or Arrow table, spaCy `Doc`s or a `DocBin`, or
dicts with `text` and `spans`. Results have the type that went in.
"""

import importlib
from typing import Any

from ._augment import Augmented, Drafts, augment
from ._melm import ConfigError, Corpus, DataError, Error, ModelError, __version__
from ._pick import Picked, pick
from ._tagger import Tagger
from ._tools import check, convert, read, score, trial

__all__ = [
    "Augmented",
    "ConfigError",
    "Corpus",
    "DataError",
    "Drafts",
    "Error",
    "ModelError",
    "Picked",
    "Tagger",
    "__version__",
    "augment",
    "check",
    "convert",
    "pick",
    "read",
    "score",
    "trial",
]

_SUBMODULES = ("ray", "spacy", "transformers")
"""Modules that need another library. They are imported when they are used: `melm.spacy.augmenter`."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
