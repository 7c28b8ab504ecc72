"""More labelled sentences for named-entity recognition from few.

    import melm

    out = melm.augment("train.conll", dev="dev.conll")
    tagger = melm.Tagger.train(out.dataset, dev="dev.conll")
    tagger.predict(["Angela Merkel visited Paris."])

Data may be a path, a list of `(tokens, tags)`, a `datasets.Dataset`, a pandas or Arrow table, spaCy `Doc`s or a `DocBin`, or
dicts with `text` and `spans`. Results have the type that went in.
"""

from ._augment import Augmented, Drafts, augment
from ._melm import ConfigError, Corpus, DataError, Error, ModelError, __version__
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
    "Tagger",
    "__version__",
    "augment",
    "check",
    "convert",
    "read",
    "score",
    "trial",
]
