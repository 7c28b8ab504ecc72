"""The model `mini` of melm."""

import pathlib

__version__ = "0.1.0"


def path() -> pathlib.Path:
    """Return the folder of the model."""
    return pathlib.Path(__file__).parent / "model"
