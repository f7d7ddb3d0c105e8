"""Results as tables and data frames."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_digests import drawn

import plait
from plait.cluster import dataset

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=1%", "lte:rate=8mbit,rtt=60ms"]
SETTINGS: dict[str, Any] = {"workload": "download:64kB", "schedulers": "minrtt,ecf", "runs": 3, "seed": 2**64 - 1}


@pytest.fixture(scope="module")
def result() -> plait.Result:
    return plait.compare(PATHS, vary={"lte.rtt": ["60ms", "90ms"]}, **SETTINGS)


def test_the_table_has_the_numbers_of_the_rows(result: plait.Result) -> None:
    table = result.table
    assert len(table) == len(result.rows) == 8
    for line, row in zip(table, result.rows, strict=True):
        summary = row["measures"]["completion_ms"]
        assert (line["scheduler"], line["cc"], line["lte.rtt"]) == (row["scheduler"], row["cc"], row["vary"]["lte.rtt"])
        assert line["completion_ms"] == summary["median"]
        assert [line[f"completion_ms.{name}"] for name in ("mean", "p95", "min", "max")] == [
            summary[name] for name in ("mean", "p95", "min", "max")
        ]
        assert line["path_share.wifi"] == row["path_share"]["wifi"]
        assert line["group"] == row.get("group")
        assert (line["runs"], line["incomplete"]) == (3, 0)


def test_the_runs_are_those_of_the_iterator(result: plait.Result) -> None:
    lines = list(result.runs)
    made = list(plait.runs(PATHS, vary={"lte.rtt": ["60ms", "90ms"]}, **SETTINGS))
    key = lambda line: (line["lte.rtt"], line["scheduler"], line["run"])  # noqa: E731
    assert sorted(made, key=key) == sorted(lines, key=key)
    # Seed by seed: every row meets the same network before the next seed.
    assert [line["run"] for line in made[:12]] == [0] * 4 + [1] * 4 + [2] * 4
    assert made[0]["seed"] == 2**64 - 1


def test_each_run_of_the_iterator_has_the_keys_of_all() -> None:
    for settings in ({}, {"workload": "download:2kB"}):
        made = list(plait.runs(PATHS, **{**SETTINGS, **settings}))
        columns = set(plait.compare(PATHS, **{**SETTINGS, **settings}).runs.columns)
        assert all(set(line) == columns for line in made)
        alone = next(line for line in made if line["scheduler"] == "tcp:wifi")
        assert alone["rtt_ms.lte"] is None and alone["rtt_ms.wifi"] > 0


def test_the_iterator_makes_only_the_runs_that_are_taken() -> None:
    endless = plait.runs(PATHS, workload="download:64kB", schedulers="ecf", runs=1_000_000)
    assert [line["run"] for line in itertools.islice(endless, 6)] == [0, 0, 0, 1, 1, 1]


def test_the_jobs_change_nothing() -> None:
    one, many = (plait.compare(PATHS, jobs=jobs, **SETTINGS) for jobs in (1, 4))
    assert one.digest == many.digest


def test_polars_takes_every_column(result: plait.Result) -> None:
    polars = pytest.importorskip("polars")
    frame = result.to_polars()
    assert frame.columns == result.table.columns
    assert frame.to_dict(as_series=False) == result.table.to_dict()
    assert polars.DataFrame(result).equals(frame)
    runs = result.runs.to_polars()
    assert runs.schema["seed"] == polars.UInt64 and runs["seed"][0] == 2**64 - 1
    assert runs.schema["completed"] == polars.Boolean
    assert runs.schema["run"] == polars.Int64
    # The frame keeps its memory when the table is gone.
    frame = plait.compare(PATHS, **SETTINGS).to_polars()
    assert frame["scheduler"].to_list() == ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]


def test_pandas_takes_every_column(result: plait.Result) -> None:
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert list(frame.columns) == result.table.columns
    assert frame["completion_ms"].tolist() == result.table["completion_ms"]
    assert int(result.runs.to_pandas()["seed"][0]) == 2**64 - 1


def test_a_stream_that_nobody_reads_is_released(result: plait.Result) -> None:
    for _ in range(1000):
        assert "arrow_array_stream" in repr(result.__arrow_c_stream__())


def test_the_report_is_that_of_the_terminal(result: plait.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    single = plait.compare(PATHS, **SETTINGS)
    monkeypatch.setenv("COLUMNS", "100")
    text = repr(single)
    assert "minrtt" in text and single.verdict.split()[0] in text
    assert max(map(len, text.splitlines())) <= 100
    assert "<pre" in single._repr_html_() and "tcp:wifi" in single._repr_html_()
    assert [line.split(":")[0] for line in result.verdict.splitlines()] == ["lte.rtt=60ms", "lte.rtt=90ms"]


def test_the_events_of_a_run() -> None:
    run = plait.run(PATHS, workload="download:64kB", scheduler="ecf", events=True)
    assert run.digest == plait.run(PATHS, workload="download:64kB", scheduler="ecf").digest
    times, events = run.events["t_ns"], run.events["event"]
    assert times == sorted(times) and len(events) == len(run.events) > 300
    decisions = [line for line in run.events if line["event"] == "decision"]
    assert {"id", "path"} & set(json.loads(decisions[0]["subflows"])[0]) or decisions[0]["reason"]
    assert run.complete and run.measures["completion_ms"] > 0
    assert "wifi" in repr(run)


def test_an_explained_comparison_has_reasons() -> None:
    result = plait.compare(PATHS, explain=True, **SETTINGS)
    assert all(row["why"] for row in result.rows if not row["scheduler"].startswith("tcp:"))
    assert result.command.endswith(" --explain")
    assert result.digest == plait.compare(PATHS, **SETTINGS).digest


def test_the_lists_have_the_names() -> None:
    for entries, name in [
        (plait.list_schedulers(), "minrtt"),
        (plait.list_controllers(), "cubic"),
        (plait.list_workloads(), "download"),
        (plait.list_paths(), "wifi-home"),
        (plait.list_measures(), "completion_ms"),
    ]:
        assert name in [entry["name"] for entry in entries]
    assert "formula" in plait.list_schedulers("ecf")[0]["page"] or plait.list_schedulers("ecf")[0]["params"]


def again(value: Any) -> Any:
    """Returns what another process would get."""
    return pickle.loads(pickle.dumps(value))


def test_a_result_can_be_pickled(result: plait.Result) -> None:
    for copied in (again(result), copy.deepcopy(result), again(again(result))):
        assert copied == result and hash(copied) == hash(result)
        assert copied.to_dict() == result.to_dict() and (copied.digest, copied.command) == (result.digest, result.command)
        for mine, theirs in ((copied.table, result.table), (copied.runs, result.runs)):
            assert mine.columns == theirs.columns and mine.to_dict() == theirs.to_dict()
        assert (repr(copied), copied._repr_html_(), copied.verdict) == (repr(result), result._repr_html_(), result.verdict)
        assert (copied.to_csv(), copied.to_csv(per_run=True)) == (result.to_csv(), result.to_csv(per_run=True))
        assert copied.to_markdown() == result.to_markdown() and copied.holds
    other = plait.compare(PATHS, **{**SETTINGS, "seed": 1})
    assert other != result and again(other) == other and other != "a result"


def test_a_pickled_result_has_its_frames_and_drawings(result: plait.Result) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    copied = again(result)
    assert copied.to_polars().equals(result.to_polars()) and copied.runs.to_polars().equals(result.runs.to_polars())
    assert copied.runs.to_polars().schema == result.runs.to_polars().schema
    assert len(copied.plot().axes) == len(result.plot().axes) > 0


@pytest.mark.parametrize("seed", range(24))
def test_a_random_result_can_be_pickled(seed: int) -> None:
    paths, settings = drawn(seed)
    made = plait.compare(paths, **settings)  # type: ignore[arg-type]
    copied = again(made)
    assert copied == made
    assert copied.to_dict() == made.to_dict() and copied.runs.to_dict() == made.runs.to_dict()


class PyPickled:
    """The usable subflow with the lowest RTT."""

    def schedule(self, view: plait.View) -> plait.Decision:
        return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


def test_a_scenario_that_lacks_something_has_a_text() -> None:
    text = repr(plait.Scenario(PATHS))
    assert text.startswith("<plait.Scenario, incomplete: --workload") and "\n" not in text


def test_a_run_can_be_pickled() -> None:
    for scheduler in ("ecf", PyPickled):
        run = plait.run(PATHS, workload="download:64kB", scheduler=scheduler, seed=2**64 - 1, events=True)
        for copied in (again(run), again(again(run)), copy.deepcopy(run)):
            assert (copied.digest, copied.measures, copied.complete) == (run.digest, run.measures, run.complete)
            assert copied.command == run.command and copied.to_dict() == run.to_dict()
            # So far, nothing has run again.
            assert "_inner" not in vars(copied)
            assert repr(copied) == repr(run) and copied._repr_html_() == run._repr_html_()
            assert copied.events.to_dict() == run.events.to_dict()
    copied._document["segment_hash"] = "0"
    assert "does not repeat the run with the digest 0" in repr(again(copied))
    with pytest.raises(plait.Error, match="does not repeat the run with the digest 0"):
        again(copied).events


def compared(scenario: plait.Scenario) -> plait.Result:
    return plait.compare(scenario=scenario, progress=False)


def test_a_result_comes_from_another_process() -> None:
    import multiprocessing

    scenario = plait.Scenario(PATHS, workload="download:64kB", schedulers=["minrtt", PyPickled], runs=2)
    # A process that does not know the class from its parent.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        made = pool.submit(compared, scenario).result()
    assert made == compared(scenario)
    assert [row["scheduler"] for row in made.rows][:2] == ["minrtt", "py-pickled"]


def test_what_is_public_can_be_pickled_or_says_why_not(tmp_path: Path) -> None:
    explanation = plait.explain(PATHS, workload="download:64kB", slowest=2)
    copied = again(explanation)
    assert (copied.to_dict(), repr(copied), copied.command) == (explanation.to_dict(), repr(explanation), explanation.command)
    scenario = plait.Scenario(PATHS, **SETTINGS)
    path = plait.Path("wifi", rtt="22ms")
    checked = plait.check(PyPickled, connections=2)
    swept = dataset.Sweep(tmp_path, {"runs": 3, "scenarios": []}, {})
    assert (again(scenario), again(path), again(checked), again(swept).rows) == (scenario, path, checked, 3)
    table = again(plait.compare(PATHS, **SETTINGS).table)
    assert isinstance(table, plait.Table) and len(table) == 4
    with pytest.raises(plait.Error, match="no unit"):
        raise again(plait.Error("no unit"))
    experiment = plait.experiment("ton-fig8", quick=True, cache=False)
    with pytest.raises(TypeError, match="cannot pickle plait.ExperimentResult: .* to_dict"):
        pickle.dumps(experiment)
    assert again(experiment.runs).to_dict() == experiment.runs.to_dict() and again(experiment.figures) == experiment.figures
    for transient in (plait.Send(0), plait.Wait(), plait.runs(PATHS, **SETTINGS)):
        with pytest.raises(TypeError, match=f"cannot pickle '.*{type(transient).__name__}' object"):
            pickle.dumps(transient)


def test_a_scenario_of_a_local_class_says_that_it_cannot_be_pickled() -> None:
    class PyLocal(PyPickled):
        pass

    scenario = plait.Scenario(PATHS, workload="download:64kB", schedulers=[PyLocal])
    assert copy.deepcopy(scenario) == scenario
    with pytest.raises((AttributeError, pickle.PicklingError), match="PyLocal"):
        pickle.dumps(scenario)
