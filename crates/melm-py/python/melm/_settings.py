"""Settings of runs, and the models that they need."""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Optional, Union

from . import _melm

logger = logging.getLogger("melm")

Path = Union[str, "os.PathLike[str]"]

MODEL_FILES = ["*.json", "*.safetensors", "*.txt"]
"""The files of a model on the hub that are downloaded."""


def find_mini() -> Optional[str]:
    """Return the folder of the model `mini`, or None if the package `melm-mini` is not installed."""
    try:
        module = importlib.import_module("melm_mini")
    except ImportError:
        return None
    return str(module.path())


def make_settings(
    *,
    seed: Optional[int] = None,
    device: str = "auto",
    threads: Optional[int] = None,
    precision: str = "auto",
    preset: str = "best",
    config: Optional[Path] = None,
    model: Optional[Path] = None,
    tagger_model: Optional[Path] = None,
    keys: Optional[dict[str, Any]] = None,
) -> _melm.Settings:
    """Collect settings, in the order of the command: preset, file, keys, seed, models."""
    pairs: list[tuple[str, Any]] = list((keys or {}).items())
    if seed is not None:
        pairs.append(("seed", seed))
    if model is not None:
        pairs.append(("model__masked_lm", os.fspath(model)))
    tagger_model = model if tagger_model is None else tagger_model
    if tagger_model is not None:
        pairs.append(("model__tagger", os.fspath(tagger_model)))
    path = None if config is None else os.fspath(config)
    return _melm.Settings(preset, path, pairs, device, threads, precision, find_mini())


def fetch_models(settings: _melm.Settings, task: str, has_text: bool) -> None:
    """Download missing models into the cache of Hugging Face with `huggingface_hub`. Without it, the run downloads them."""
    names = _melm.needed_models(settings, task, has_text)
    if not names:
        return
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        logger.debug("huggingface_hub is not installed; melm downloads the model itself")
        return
    for name in names:
        try:
            snapshot_download(name, allow_patterns=MODEL_FILES, cache_dir=_melm.hub_cache())
        except (OSError, ValueError) as error:
            # Errors of the hub are OSErrors. A text that cannot be a name is a ValueError.
            if isinstance(error, ValueError):
                logger.debug("`%s` is not a name on the hub", name)
                continue
            raise _melm.ModelError(f"cannot download the model `{name}`: {error}") from error
