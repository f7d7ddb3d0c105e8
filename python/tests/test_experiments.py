"""Experiments give what `plait experiment` gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Plait

import plait
from plait import _plait

SMALL = """
title = "Two schedulers over an RTT"
workload = "download:64kB"
schedulers = ["minrtt", "ecf"]
runs = 2

[[path]]
name = "wifi"
rate = "20mbit"
rtt = "22ms"
loss = "1%"

[[path]]
name = "lte"
rate = "8mbit"
rtt = "60ms"
"""


def test_the_list_is_that_of_the_command_line(plait_binary: Plait) -> None:
    listed = json.loads(plait_binary("experiment", "list", "--json").stdout)
    assert plait.experiments() == listed["experiments"]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> plait.ExperimentResult:
    return plait.experiment("ton-fig8", quick=True, cache=tmp_path_factory.mktemp("cache"))


def test_an_experiment_gives_the_document_of_the_command_line(result: plait.ExperimentResult, plait_binary: Plait) -> None:
    ended = plait_binary("experiment", "run", "ton-fig8", "--quick", "--no-cache", "--json")
    # The binary may be of an earlier commit.
    assert {**result.to_dict(), "version": ""} == {**json.loads(ended.stdout), "version": ""}
    assert result.holds == (ended.returncode == 0)
    assert result.command == "plait experiment run ton-fig8 --quick"
    text = plait_binary("experiment", "run", "ton-fig8", "--quick", "--no-cache", "--format", "csv").stdout
    assert result.to_csv() == text


def test_tables_have_the_cells_and_the_runs(result: plait.ExperimentResult) -> None:
    cells = result.to_dict()["cells"]
    assert len(result.table) == len(cells)
    assert len(result.runs) == sum(cell["runs"] for cell in cells)
    for line, cell in zip(result.table, cells, strict=True):
        assert line["row"] == cell["row"]
        assert {name: line[name] for name in cell["point"]} == cell["point"]
        assert line["message_delay_ms"] == pytest.approx(cell["measures"]["message_delay_ms"]["median"])
    assert {claim["id"] for claim in result.claims} <= {
        claim for entry in plait.experiments() if entry["id"] == "ton-fig8" for claim in entry["claims"]
    }
    assert "ton-fig8" in repr(result) and "<pre" in result._repr_html_() and "ton-fig8" in result.to_markdown()


def test_figures_are_drawings(result: plait.ExperimentResult, tmp_path: Path) -> None:
    assert result.figures
    first = result.figures[0]
    assert first.name == "ton-fig8-1-1" and first.title and first.note
    assert first._repr_svg_().startswith("<svg")
    first.save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text() == first.svg


def test_finished_runs_are_not_made_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"quick": True, "seed": 1, "more": None, "again": 0, "jobs": 1, "cache": str(tmp_path)}
    told: list[int] = []

    def made() -> str:
        return _plait.experiment("ton-fig8", settings, lambda done, total: told.append(total)).json()

    first = made()
    assert told
    told.clear()
    assert made() == first
    assert not told


def test_an_interrupted_experiment_continues(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"quick": False, "seed": 1, "more": 1, "again": 0, "jobs": 1, "cache": str(tmp_path)}

    class Enough(Exception):
        pass

    totals = []

    def stop(done: int, total: int) -> None:
        totals.append((done, total))
        raise Enough

    for _ in range(2):
        with pytest.raises(Enough):
            _plait.experiment("ton-fig8", settings, stop)
    # The second call has only the rest to make.
    assert totals[1][1] <= totals[0][1] - totals[0][0]


def test_a_file_is_an_experiment(tmp_path: Path, plait_binary: Plait) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SMALL)
    ended = plait_binary("experiment", "run", str(file), "--no-cache", "--json")
    assert ended.returncode == 0, ended.stderr
    document = plait.experiment(file, cache=False).to_dict()
    assert {**document, "version": ""} == {**json.loads(ended.stdout), "version": ""}


@pytest.mark.parametrize("name", ["ton-fig99", "nowhere.toml", "wifi:rtt=9ms"])
def test_a_bad_name_has_the_text_of_the_command_line(name: str, plait_binary: Plait) -> None:
    with pytest.raises(plait.Error) as refused:
        plait.experiment(name, cache=False)
    text = plait_binary("experiment", "run", name).stderr
    assert text.removeprefix("plait: ").rstrip() == str(refused.value).rstrip()


def test_a_class_is_a_row(tmp_path: Path) -> None:
    @plait.register
    class PyRow:
        def schedule(self, view: plait.View) -> plait.Decision:
            return min(view.usable, key=lambda it: (it.srtt_ms, it.id))

    file = tmp_path / "mine.toml"
    file.write_text(SMALL.replace('"ecf"', '"py-row"'))
    result = plait.experiment(file, cache=False)
    values = {(line["row"], line["run"]): line["completion_ms"] for line in result.runs}
    assert all(values["py-row", run] == values["minrtt", run] for run in range(2))
