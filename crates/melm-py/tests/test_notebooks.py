"""Runs the code of the notebooks and of the READMEs, from top to bottom. Needs the package `melm-mini`."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
from conftest import ROOT

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.parametrize("name", ["augment_and_train", "unlabelled_text"])
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("melm_mini")
    pytest.importorskip("datasets")
    monkeypatch.chdir(NOTEBOOKS)
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())["cells"]
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), names)
    assert len(names["out"].dataset) >= len(names["train"])  # type: ignore[attr-defined, arg-type]


@pytest.mark.parametrize("page", ["README.md", "crates/melm-py/README.md", "docs/guides/python.md"])
def test_the_first_example_of_a_page_runs(page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("melm_mini")
    code = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    # The same calls with less data and little training.
    rows = (ROOT / "examples/politics/train-100.conll").read_text().split("\n\n")[:8]
    for name in ("train.conll", "dev.conll", "examples/politics/train-100.conll", "examples/politics/dev-100.conll"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    short = 'finetune__budget="2 updates", tagger__budget="2 updates", progress=False'
    code = code.replace('dev-100.conll")', f'dev-100.conll", {short})').replace('dev="dev.conll")', f'dev="dev.conll", {short})')
    names: dict[str, object] = {}
    exec(compile(code, page, "exec"), names)
    assert "out" in names
