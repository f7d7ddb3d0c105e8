"""The notebooks of the documentation run from top to bottom."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_is_a_notebook() -> None:
    assert [notebook.name for notebook in NOTEBOOKS] == ["first-steps.ipynb"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_in_a_minute(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    # Results would differ from those of the present version.
    stored = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in stored)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(file, 4)
    began = time.monotonic()
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert time.monotonic() - began < 60
    cells: list[dict[str, Any]] = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) == len(stored) > 5
    shown = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
    assert sum("image/png" in data for data in shown) == 3
    tables = [data["text/html"] for data in shown if "text/html" in data]
    assert len(tables) == 2 and all("minrtt" in table and "<pre" in table for table in tables)
    printed = "".join(output.get("text", "") for cell in cells for output in cell["outputs"])
    assert "plait compare --path wifi:" in printed and "keeps the contract" in printed
