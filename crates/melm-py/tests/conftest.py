"""A tiny model and a tiny corpus, so that no test needs a network or more than seconds."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

TRAIN = """\
Ada B-PER
Lovelace I-PER
wrote O
in O
London B-LOC
. O

Bonn B-LOC
is O
not O
Berlin B-LOC
. O

Konrad B-PER
Zuse I-PER
lived O
in O
Berlin B-LOC
. O

Grace B-PER
Hopper I-PER
spoke O
. O

"""

FAST = dict(
    generate__rounds=2, finetune__budget="2 epochs", tagger__budget="4 epochs", filter__mode="off", device="cpu", progress=False
)
"""Settings of a run that takes a second."""

Pair = tuple[list[str], list[str]]


def parse(text: str) -> list[Pair]:
    """Return CoNLL rows as a list of `(tokens, tags)`."""
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return [([row.split()[0] for row in block], [row.split()[1] for row in block]) for block in blocks]


def shapes(n_pieces: int, hidden: int = 16, inner: int = 24, positions: int = 66) -> dict[str, tuple[int, ...]]:
    """Return the tensors of an XLM-R with one layer and a masked-LM head."""
    found: dict[str, tuple[int, ...]] = {
        "roberta.embeddings.word_embeddings.weight": (n_pieces, hidden),
        "roberta.embeddings.position_embeddings.weight": (positions, hidden),
        "roberta.embeddings.token_type_embeddings.weight": (1, hidden),
        "lm_head.bias": (n_pieces,),
    }

    def norm(name: str) -> None:
        found.update({f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)})

    def linear(name: str, out: int, into: int) -> None:
        found.update({f"{name}.weight": (out, into), f"{name}.bias": (out,)})

    norm("roberta.embeddings.LayerNorm")
    layer = "roberta.encoder.layer.0"
    for part in ("query", "key", "value"):
        linear(f"{layer}.attention.self.{part}", hidden, hidden)
    linear(f"{layer}.attention.output.dense", hidden, hidden)
    norm(f"{layer}.attention.output.LayerNorm")
    linear(f"{layer}.intermediate.dense", inner, hidden)
    linear(f"{layer}.output.dense", hidden, inner)
    norm(f"{layer}.output.LayerNorm")
    linear("lm_head.dense", hidden, hidden)
    norm("lm_head.layer_norm")
    return found


def write_model(folder: pathlib.Path) -> pathlib.Path:
    """Write an XLM-R with random weights and a tokenizer of a few hundred pieces."""
    shutil.copytree(ROOT / "testdata/pieces/unigram", folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    n_pieces = max(len(tokenizer["model"]["vocab"]), 1 + max(piece["id"] for piece in tokenizer["added_tokens"]))
    config = {
        "model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"], "vocab_size": n_pieces, "hidden_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 66,
        "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5,
        "hidden_act": "gelu", "initializer_range": 0.2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    chance = random.Random(1)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, shape in shapes(n_pieces).items():
        size = 1
        for n in shape:
            size *= n
        is_norm = "orm.weight" in name
        values = [1.0 if is_norm else chance.gauss(0, 0.2) for _ in range(size)]
        packed = struct.pack(f"<{size}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(content), len(content) + len(packed)]}
        content += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + content)
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny model."""
    return str(write_model(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture()
def corpus(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A folder with `train.conll`, which is the current folder."""
    (tmp_path / "train.conll").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command: the program in `MELM_BINARY`, or else the one in the package."""
    binary = os.environ.get("MELM_BINARY")
    program = [binary] if binary else [sys.executable, "-m", "melm"]
    return subprocess.run([*program, *words], capture_output=True, text=True)


def results(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the contents of all result files but `run.json` and `README.md`, which have the time and the command."""
    others = ("run.json", "README.md")
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in others]
    return {path.name: path.read_bytes() for path in paths}
