"""The command line, from the extension module. `python -m melm` is the same as `melm`."""

from __future__ import annotations

import os
import signal
import sys

from . import _melm
from ._settings import find_mini


def main() -> int:
    """Run the command with the arguments of the program. Return the exit code."""
    # The command handles Ctrl-C itself: it saves the state of a run first.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    mini = find_mini()
    if mini is not None:
        os.environ.setdefault("MELM_MINI", mini)
    return _melm.run_command(["melm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
