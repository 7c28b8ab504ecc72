"""A tiny model, corpora and settings, with which the commands of `melm` run in a fraction of a second."""

import json
import math
import random
import shutil
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
TEXT = "Ada\nlived\nin\nBonn\n.\n\nGrace\nwrote\nin\nBerlin\n.\n\nKonrad\nspoke\n.\n\nLondon\nis\nnot\nBonn\n.\n\n"
# Few updates, so that a run has few and short stages. Every stage writes its files.
PLAN = """\
[finetune]
budget = '2 updates'
batch_size = 2
learning_rate = 0.01
[tagger]
budget = '2 updates'
batch_size = 4
learning_rate = 0.02
evaluate_every = '1 updates'
[generate]
rounds = 2
[self_training]
panel = 2
passes = 2
budget = '1 updates'
"""
GRID = """\
files = "{language}/{split}.conll"
[plan]
tagger.budget = "4 updates"
tagger.learning_rate = 0.01
finetune.budget = "1 epoch"
generate.rounds = 1
filter.mode = "off"
[[grid]]
languages = ["en"]
sizes = [3]
draws = [1]
seeds = [1]
methods = ["gold", "label-wise", "melm"]
budgets = ["4 updates"]
"""
HIDDEN, INNER, POSITIONS, HEADS = 16, 24, 66, 2


def write_folder(folder: Path) -> None:
    """Writes `model`, `train.conll`, `text.conll`, `plan.toml`, and `grid.toml` with its `data`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder / "model")
    (folder / "train.conll").write_text(TRAIN)
    (folder / "text.conll").write_text(TEXT)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "grid.toml").write_text(GRID)
    (folder / "data/en").mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"data/en/{split}.conll").write_text(TRAIN)


def write_model(folder: Path) -> None:
    """Writes an XLM-R model of one layer with random weights and a tokenizer of 300 pieces."""
    folder.mkdir(parents=True)
    pieces = ROOT / "testdata/pieces/unigram"
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pieces / name, folder / name)
    n_pieces = len(json.loads((pieces / "tokenizer.json").read_text())["model"]["vocab"])
    config = {
        "architectures": ["XLMRobertaForMaskedLM"],
        "model_type": "xlm-roberta",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": 1,
        "max_position_embeddings": POSITIONS,
        "vocab_size": n_pieces,
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "layer_norm_eps": 1e-5,
        "attention_probs_dropout_prob": 0.1,
        "hidden_dropout_prob": 0.1,
        "initializer_range": 0.2,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    write_tensors(folder / "model.safetensors", shapes(n_pieces))


def shapes(n_pieces: int) -> dict[str, list[int]]:
    """Returns the tensors of the model and their shapes."""
    layer = "roberta.encoder.layer.0."
    dense = {
        layer + "attention.self.query": [HIDDEN, HIDDEN],
        layer + "attention.self.key": [HIDDEN, HIDDEN],
        layer + "attention.self.value": [HIDDEN, HIDDEN],
        layer + "attention.output.dense": [HIDDEN, HIDDEN],
        layer + "intermediate.dense": [INNER, HIDDEN],
        layer + "output.dense": [HIDDEN, INNER],
        "lm_head.dense": [HIDDEN, HIDDEN],
    }
    norms = ["roberta.embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm",
             "lm_head.layer_norm"]
    found = {
        "roberta.embeddings.word_embeddings.weight": [n_pieces, HIDDEN],
        "roberta.embeddings.position_embeddings.weight": [POSITIONS, HIDDEN],
        "roberta.embeddings.token_type_embeddings.weight": [1, HIDDEN],
        "lm_head.bias": [n_pieces],
    }
    for name, shape in dense.items():
        found |= {name + ".weight": shape, name + ".bias": shape[:1]}
    for name in norms:
        found |= {name + ".weight": [HIDDEN], name + ".bias": [HIDDEN]}
    return found


def write_tensors(path: Path, wanted: dict[str, list[int]]) -> None:
    """Writes tensors with random values; weights of norms are 1."""
    generator = random.Random(1)
    header, data = {}, bytearray()
    for name, shape in sorted(wanted.items()):
        n = math.prod(shape)
        is_norm = "ayer" in name and "orm.weight" in name
        values = [1.0] * n if is_norm else [generator.gauss(0, 0.2) for _ in range(n)]
        start = len(data)
        data += struct.pack(f"<{n}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_results(folder: Path) -> dict[str, bytes]:
    """Returns the content of every file below a folder. Times in `run.json` and in ledgers are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if path.name == "run.json":
            content = without_times(content)
        elif path.name.startswith("ledger"):
            content = b"\n".join(without_times(line) for line in content.splitlines())
        found[name] = content
    return found


def without_times(record: bytes) -> bytes:
    """Removes the seconds from a JSON object."""
    values = json.loads(record)
    values.pop("seconds", None)
    return json.dumps(values, sort_keys=True).encode()


def differences(wanted: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Describes how the files of two folders differ."""
    lines = [f"`{name}` is missing" for name in wanted.keys() - found.keys()]
    lines += [f"`{name}` is additional" for name in found.keys() - wanted.keys()]
    lines += [f"`{name}` differs" for name in wanted.keys() & found.keys() if wanted[name] != found[name]]
    return sorted(lines)
