"""Tag and generate on a Ray cluster. Needs `pip install "ray[data]"`.

    import melm.ray

    melm.ray.tag("texts/*.jsonl", "tagger", out="tagged", actors=8, cpus=4)

Every row has an id. When a worker dies, Ray starts another one and repeats its batches. `tag` compares the ids of its output
with those of its input, so a row that is lost or doubled is an error.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data

from . import _melm
from ._settings import Path, find_mini
from ._tagger import Tagger

Input = Union[Path, Sequence[Path], ray.data.Dataset]
"""A dataset whose rows have ids, or files of JSON lines or parquet."""

TOKENS = ["tokens", "words"]
"""The columns of tokens, in the order in which they are looked for."""

SPANS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("label", pa.string()), ("score", pa.float64())]))
READ_ROWS = 4096
"""The number of rows that are read at a time."""


def tag(
    dataset: Input,
    model: Path,
    *,
    out: Optional[Path] = None,
    actors: int = 1,
    cpus: int = 1,
    gpus: float = 0,
    batch_size: int = 512,
    id_column: str = "id",
    retries: int = 10,
) -> ray.data.Dataset:
    """Tag the rows of a dataset on `actors` workers, each of which loads the tagger once.

    A row has a column `tokens` (or `words`) and gets a column `tags`, or it has a column `text` and gets a column `spans` with
    start, end, label and score. Each worker has `cpus` cores and `gpus` GPUs. A batch whose worker dies is repeated, at most
    `retries` times. `dataset` needs the column `id_column` with a different value in each row; rows that `read` has read from
    files have it.

    With `out`, the rows are written to this folder as parquet, their ids are compared with those of the input, and the dataset
    of the written files is returned. Without `out`, the dataset is computed when it is used: write it, then call `verify`.
    """
    rows = read(dataset, id_column=id_column)
    tagged = rows.map_batches(
        _Worker,
        fn_constructor_kwargs={"model": os.path.abspath(model), "cpus": cpus, "gpus": gpus, "id_column": id_column},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=cpus,
        num_gpus=gpus,
        max_restarts=retries,
        max_task_retries=retries,
    )
    if out is None:
        return tagged
    folder = os.path.abspath(out)
    if os.path.isdir(folder) and os.listdir(folder):
        raise _melm.ConfigError(f"`{folder}` is not empty; delete it, or pass another folder")
    tagged.write_parquet(folder, ray_remote_args={"num_cpus": 0})
    written = ray.data.read_parquet(folder)
    verify(rows, written, id_column=id_column)
    return written


def read(dataset: Input, *, id_column: str = "id") -> ray.data.Dataset:
    """Return the rows of files of JSON lines or parquet (`.parquet`), each with the id `file:row`, counted from 1.

    A path may contain `*`. If rows have the column `id_column` already, it is kept. A dataset is returned as it is.
    """
    if isinstance(dataset, ray.data.Dataset):
        return dataset
    paths = _expand([dataset] if isinstance(dataset, (str, os.PathLike)) else dataset)
    files = ray.data.from_items([{"path": path} for path in paths], override_num_blocks=len(paths))
    # Reading needs little time and reserves no core. Otherwise actors that reserve all cores would wait for rows forever.
    keys = {"id_column": id_column}
    return files.map_batches(_read_files, fn_kwargs=keys, batch_format="pyarrow", batch_size=1, num_cpus=0)


def verify(source: ray.data.Dataset, output: ray.data.Dataset, *, id_column: str = "id") -> int:
    """Check that `output` has exactly the ids of `source`. Return their number; raise `melm.DataError` if one is lost or doubled.

    Pass an output that is written or materialized: another one would be computed again.
    """
    expected, found = _fold_ids(source, id_column), _fold_ids(output, id_column)
    if expected != found:
        raise _melm.DataError(
            f"the output has {found[0]} rows and the input {expected[0]}, or their ids differ; tag the input again"
        )
    return expected[0]


def generate(
    model: Path,
    train: Union[str, Sequence[str]],
    out: Path,
    *,
    shards: int,
    cpus: int = 1,
    gpus: float = 0,
    retries: int = 10,
    arguments: Sequence[str] = (),
) -> str:
    """Run `melm generate` in shards as Ray tasks, and merge the drafts into the file `out`, whose path is returned.

    All paths must be on a file system that all nodes share. `train` is a file, or a list of `LANG=FILE`. `arguments` are further
    options of the command, such as `["--rounds", "5"]`. The result has the bytes of `melm generate` in one process.
    """
    target = os.path.abspath(out)
    inputs = [_absolute(one) for one in ([train] if isinstance(train, str) else train)]
    command = ["generate", os.path.abspath(model), *inputs, "-o", target, "--force", *arguments]
    _run_shards(command, shards, cpus=cpus, gpus=gpus, retries=retries)
    parts = [f"{target}.shard-{number}-of-{shards}" for number in range(1, shards + 1)]
    _run_process(["merge", *parts, "-o", target, "--force", "--quiet"])
    return target


def reproduce(
    table: str,
    out: Path,
    *,
    shards: int,
    cpus: int = 1,
    gpus: float = 0,
    retries: int = 10,
    arguments: Sequence[str] = (),
) -> str:
    """Run the grid of `melm reproduce` in shards as Ray tasks. Return the folder `out`, with the ledgers and the table.

    All paths must be on a file system that all nodes share. `arguments` are further options of the command, such as
    `["--data", "conll"]`. Cells that are in a ledger of `out` are not computed again.
    """
    folder = os.path.abspath(out)
    command = ["reproduce", table, "-o", folder, *arguments]
    _run_shards(command, shards, cpus=cpus, gpus=gpus, retries=retries)
    _run_process([*command, "--table-only"])
    return folder


def _absolute(file: str) -> str:
    """Return `FILE` or `LANG=FILE` with an absolute path, because workers have other folders."""
    if os.path.exists(file) or "=" not in file:
        return os.path.abspath(file)
    language, path = file.split("=", 1)
    return f"{language}={os.path.abspath(path)}"


class _Worker:
    """An actor with a tagger."""

    def __init__(self, model: str, cpus: int, gpus: float, id_column: str) -> None:
        device = "cuda" if gpus > 0 else "cpu"
        self.tagger = Tagger.from_pretrained(model, device=device, threads=cpus)
        self.id_column = id_column

    def __call__(self, batch: pa.Table) -> pa.Table:
        names = batch.column_names
        if self.id_column not in names:
            raise _melm.DataError(f"the rows have no column `{self.id_column}`; read files with `melm.ray.read`, which adds ids")
        tokens = next((name for name in TOKENS if name in names), None)
        if tokens is not None:
            tags = [tags for _, tags in self.tagger.predict(batch[tokens].to_pylist())]
            return _with_column(batch, "tags", pa.array(tags, pa.list_(pa.string())))
        if "text" not in names:
            raise _melm.DataError(f"the rows have neither `tokens` nor `text`: they have {', '.join(names)}")
        found = self.tagger.predict(batch["text"].to_pylist())
        return _with_column(batch, "spans", pa.array([row["spans"] for row in found], SPANS))


def _with_column(batch: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Add a column, or replace one of the same name."""
    if name in batch.column_names:
        return batch.set_column(batch.column_names.index(name), name, values)
    return batch.append_column(name, values)


def _expand(paths: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for given in paths:
        path = os.fspath(given)
        files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not files or not all(map(os.path.isfile, files)):
            raise _melm.DataError(f"there is no file `{path}`")
        found.extend(map(os.path.abspath, files))
    return found


def _read_files(files: pa.Table, id_column: str) -> Iterator[pa.Table]:
    for path in files["path"].to_pylist():
        row = 1
        for table in _read_parquet(path) if path.endswith(".parquet") else _read_json(path):
            if id_column not in table.column_names:
                ids = [f"{path}:{row + at}" for at in range(table.num_rows)]
                table = table.append_column(id_column, pa.array(ids, pa.string()))
            row += table.num_rows
            yield table


def _read_parquet(path: str) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(batch_size=READ_ROWS):
        yield pa.Table.from_batches([batch])


def _read_json(path: str) -> Iterator[pa.Table]:
    rows: list[Any] = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise _melm.DataError(f"{path}:{number}: {error}") from error
            if not isinstance(row, dict):
                raise _melm.DataError(f"{path}:{number}: expected a JSON object")
            rows.append(row)
            if len(rows) == READ_ROWS:
                yield _to_table(rows)
                rows = []
    if rows:
        yield _to_table(rows)


def _to_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table with the keys of all rows. `from_pylist` alone takes those of the first row."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return pa.Table.from_pylist([{key: row.get(key) for key in keys} for row in rows])


def _fold_ids(dataset: ray.data.Dataset, id_column: str) -> tuple[int, int]:
    """Return the number of ids, and the sum of their hashes, which does not depend on their order."""

    def fold(batch: pa.Table) -> pa.Table:
        hashes = [hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in batch[id_column].to_pylist()]
        total = sum(int.from_bytes(one, "big") for one in hashes)
        return pa.table({"n": [len(hashes)], "total": [str(total)]})

    parts = dataset.map_batches(fold, batch_format="pyarrow", batch_size=None).take_all()
    return sum(part["n"] for part in parts), sum(int(part["total"]) for part in parts)


def _run_shards(command: Sequence[str], shards: int, *, cpus: int, gpus: float, retries: int) -> None:
    run = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(_run_command)
    threads = ["--threads", str(cpus), "--device", "cuda" if gpus > 0 else "cpu"]
    numbers = range(1, shards + 1)
    ray.get([run.remote([*command, *threads, "--shard", f"{number}/{shards}"]) for number in numbers])


def _run_process(arguments: Sequence[str]) -> None:
    """Run the command in a process of its own, because it replaces the handlers of signals."""
    code = subprocess.run([sys.executable, "-m", "melm", *arguments], check=False).returncode
    if code != 0:
        raise _melm.Error(f"`melm {' '.join(arguments)}` ended with exit code {code}")


def _run_command(arguments: Sequence[str]) -> None:
    """Run the command in this process, so that it ends when the worker dies."""
    mini = find_mini()
    if mini is not None:
        os.environ.setdefault("MELM_MINI", mini)
    code = _melm.run_command(["melm", *arguments])
    if code != 0:
        raise _melm.Error(f"`melm {' '.join(arguments)}` ended with exit code {code}; its messages are in the log of the worker")
