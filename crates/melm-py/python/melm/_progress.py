"""Shows the progress of long work, with tqdm if it is installed."""

from __future__ import annotations

import logging
from typing import Any, Optional

logger = logging.getLogger("melm")


class Progress:
    """Receives the messages of a run: one bar for each stage, and notes for the log. Use it as a context manager."""

    def __init__(self, enabled: bool) -> None:
        self._bar: Any = None
        self._stage = ""
        self._tqdm: Any = None
        if enabled:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                logger.debug("no progress bar: install tqdm to see one")
            else:
                self._tqdm = tqdm

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def __call__(self, message: str, done: Optional[int], total: Optional[int]) -> None:
        """Show that `done` of `total` steps of the stage `message` are done. Without numbers, log `message`."""
        if done is None or total is None:
            logger.info(message)
            return
        if message != self._stage:
            self._close()
            self._stage = message
            logger.debug("%s: %d steps", message, total)
            if self._tqdm is not None:
                # The bar of a finished stage stays.
                self._bar = self._tqdm(total=total, desc=message, leave=True)
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
