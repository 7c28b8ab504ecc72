"""Writes the files of a result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Optional

from . import _melm


def write_files(
    path: str, files: list[tuple[str, bytes]], force: bool, also: Optional[Mapping[str, bytes]] = None
) -> None:
    """Write files, given as endings and contents. A single file gets the name `path`, several get its stem.

    `also` has the paths and contents of more files. Raise ConfigError before writing anything if a file exists, unless
    `force` is true.
    """
    stem = os.path.splitext(path)[0]
    contents = {path if len(files) == 1 else f"{stem}.{ending}": content for ending, content in files}
    contents.update(also or {})
    for one in contents:
        if os.path.exists(one) and not force:
            raise _melm.ConfigError(f"`{one}` exists already; pass `force=True` to replace it")
    for one, content in contents.items():
        with open(one, "wb") as file:
            file.write(content)
