"""Sweeps: the same bytes from any workers, continued after a loss, with the runs of the command line. test_dask has those over Dask."""

from __future__ import annotations

import doctest
import json
import os
import pickle
import re
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Plait

import plait
from plait import _plait
from plait.cluster import sweeping, worker
from plait.cluster.worker import compact

pytest.importorskip("pyarrow")

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=0.5%", "lte:rate=8mbit,rtt=60ms"]


def scenario(**settings: Any) -> plait.Scenario:
    given = {"workload": "download:64kB", "schedulers": "minrtt,ecf", "runs": 3, "vary": {"lte.rtt": "20ms..200ms:10"}}
    return plait.Scenario(PATHS, **{**given, **settings})


def contents(out: Path) -> dict[str, bytes]:
    """Returns the bytes of a data set, without its cache."""
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and "cache" not in path.parts]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def lines(out: Path) -> int:
    """Returns the number of finished runs in the cache."""
    return sum(path.read_bytes().count(b"\n") for path in (out / "cache").glob("runs-*.txt"))


def test_the_example_runs() -> None:
    pytest.importorskip("polars")
    for module in (sweeping, worker):
        failed, tried = doctest.testmod(module)
        assert failed == 0 < tried


def test_the_guide_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("distributed")
    guide = ROOT / "docs" / "guides" / "cluster.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    # The second one is for a program of its own: it starts workers if it is the main module.
    assert len(blocks) == 3 and "__main__" in blocks[1]
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(guide), "exec"), scope)


def test_each_run_is_that_of_plait_run(tmp_path: Path) -> None:
    swept = plait.sweep(scenario(runs=2), out=tmp_path, progress=False)
    assert swept.rows == 10 * 4 * 2
    rows = swept.to_polars().filter(scheduler="ecf", run=1).to_dicts()
    assert len(rows) == 10
    for row in rows[::4]:
        run = plait.run([PATHS[0], f"lte:rate=8mbit,rtt={row['lte.rtt']}"], workload="download:64kB", scheduler="ecf", seed=row["seed"])
        assert row["segment_hash"] == run.digest
        assert row["completion_ms"] == run.measures["completion_ms"]
    assert plait.Sweep.open(tmp_path).digest == swept.digest


def test_the_bytes_do_not_depend_on_the_executor(tmp_path: Path) -> None:
    scenarios = [scenario(), scenario(workload="burst:15seg", vary=None), scenario(cc="lia,cubic", vary={"seed": "2,3"})]
    plait.sweep(scenarios, out=tmp_path / "here", progress=False)
    expected = contents(tmp_path / "here")
    assert sorted(expected) == ["manifest.json", "runs/part-00000.parquet"]
    for name, executor in [("threads", ThreadPoolExecutor(3)), ("processes", ProcessPoolExecutor(1))]:
        with executor:
            plait.sweep(scenarios, out=tmp_path / name, executor=executor, progress=False)
        assert contents(tmp_path / name) == expected


class Backwards(Executor):
    """Ends the tasks that are under way in the opposite order."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Any]] = []
        self.most = 0

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: function(*arguments, **named)))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == 1:
            threading.Thread(target=self.end_all).start()
        return future

    def end_all(self) -> None:
        time.sleep(0.05)
        while self.waiting:
            future, call = self.waiting.pop()
            future.set_result(call())


def test_the_order_of_completion_changes_nothing_and_few_tasks_wait(tmp_path: Path) -> None:
    plait.sweep(scenario(), out=tmp_path / "here", progress=False)
    backwards = Backwards()
    plait.sweep(scenario(), out=tmp_path / "backwards", executor=backwards, progress=False)
    assert contents(tmp_path / "backwards") == contents(tmp_path / "here")
    assert 2 <= backwards.most <= sweeping.AHEAD * (os.cpu_count() or 1)


class Growing(Executor):
    """Does each task at once. It has one worker at first, and then four."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.under_way = 0
        self.most = 0

    @property
    def _max_workers(self) -> int:
        return 1 if len(self.runs) < 4 else 4

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        (batch,) = arguments
        self.runs.append(sum(end - first for part in batch.parts for _, first, end in part.units))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        threading.Thread(target=self.end, args=(future, lambda: function(*arguments, **named))).start()
        return future

    def end(self, future: Future[Any], call: Any) -> None:
        answer = call()
        time.sleep(0.02)
        self.under_way -= 1
        future.set_result(answer)


def test_a_cluster_that_grows_gets_more_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "COUNT_SECONDS", 0.01)
    monkeypatch.setattr(sweeping, "TASK_SECONDS", 0.002)
    plait.sweep(scenario(), out=tmp_path / "here", progress=False)
    growing = Growing()
    plait.sweep(scenario(), out=tmp_path / "growing", executor=growing, progress=False)
    assert contents(tmp_path / "growing") == contents(tmp_path / "here")
    assert growing.most > sweeping.AHEAD
    # Units are divided until the time of a run is known, and later if runs take long.
    assert growing.runs[:3] == [1, 1, 1] and sum(growing.runs) == 120


class Failing(Executor):
    """Does three tasks or more, and then breaks."""

    def __init__(self, most: int = 3) -> None:
        self.tasks = 0
        self.most = most

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks += 1
        if self.tasks > self.most:
            future.set_exception(RuntimeError("out of order"))
        else:
            future.set_result(function(*arguments, **named))
        return future


def test_a_sweep_continues_with_the_runs_that_are_missing(tmp_path: Path) -> None:
    plait.sweep(scenario(), out=tmp_path / "whole", progress=False)
    out = tmp_path / "broken"
    with pytest.raises(RuntimeError, match="out of order"):
        plait.sweep(scenario(), out=out, executor=Failing(), progress=False)
    kept = lines(out)
    assert 0 < kept < 120 and not (out / "manifest.json").exists()
    # A killed process leaves a part of a line, and another line has a value that somebody has changed.
    (file,) = (out / "cache").iterdir()
    text = file.read_text()[:-40]
    file.write_text(re.sub("completion_ms=[0-9]+", "completion_ms=1", text, count=1))
    swept = plait.sweep(scenario(), out=out, progress=False)
    assert contents(out) == contents(tmp_path / "whole")
    assert sum(swept.workers.values()) == 120 - (kept - 2)
    assert plait.sweep(scenario(), out=out, progress=False).workers == {}


def test_a_lost_process_of_a_pool_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1) as pool:
        process = pool.submit(os.getpid).result()
        os.kill(process, signal.SIGKILL)
        with pytest.raises(plait.Error, match="lost a worker.*\n.*new executor"):
            plait.sweep(scenario(), out=tmp_path, executor=pool, progress=False)


def test_a_task_that_kills_its_workers_is_an_error(tmp_path: Path) -> None:
    class KilledWorker(Exception):
        """The exception of Dask."""

    class Deadly(Executor):
        def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(KilledWorker("four workers died"))
            return future

    with pytest.raises(plait.Error, match="lost a worker: four workers died"):
        plait.sweep(scenario(), out=tmp_path, executor=Deadly(), progress=False)


def test_a_wrong_scenario_is_found_before_the_first_run(tmp_path: Path) -> None:
    good, bad, swept = (tmp_path / f"{name}.toml" for name in ("good", "bad", "swept"))
    good.write_text(scenario().to_toml())
    bad.write_text(scenario().to_toml().replace('rate = "8mbit"', 'rate = "8"'))
    swept.write_text(scenario().to_toml().replace("20ms..200ms", "20..200"))
    out = tmp_path / "out"
    with pytest.raises(plait.Error, match=r"bad.toml:\d+:\d+:.*`8` has no unit"):
        plait.sweep([good, bad], out=out, progress=False)
    with pytest.raises(plait.Error, match=r"swept.toml:\d+:\d+:.*`20` has no unit"):
        plait.sweep([good, swept], out=out, progress=False)
    with pytest.raises(plait.Error, match=r"^scenarios\[1\]: .*unknown scheduler"):
        plait.sweep([scenario(), scenario(schedulers="eff")], out=out, progress=False)
    with pytest.raises(plait.Error, match=r"`ci=` has no fixed number of runs"):
        plait.sweep(scenario(until="ci=1%", vary=None), out=out, progress=False)
    with pytest.raises(plait.Error, match="executor: `int`"):
        plait.sweep(scenario(), out=out, executor=2, progress=False)
    with pytest.raises(plait.Error, match="there are none"):
        plait.sweep(out=out, progress=False)
    assert not out.exists()


def test_sweeps_at_once_leave_a_whole_data_set(tmp_path: Path) -> None:
    sizes = [1, 4, 1, 4]

    def sweep(runs: int) -> None:
        for _ in range(5):
            plait.sweep(scenario(runs=runs), out=tmp_path, progress=False)

    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "part-00000.1.partial").write_text("what a killed process has left")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sweep, sizes))
    last = plait.Sweep.open(tmp_path)
    assert last.to_pandas().shape[0] == last.rows in (40, 160)
    assert not list(tmp_path.rglob("*.partial"))


def test_a_file_of_another_sweep_is_an_error(tmp_path: Path) -> None:
    earlier = plait.sweep(scenario(runs=1), out=tmp_path, progress=False)
    plait.sweep(scenario(runs=2), out=tmp_path, progress=False)
    with pytest.raises(plait.Error, match=r"part-00000.parquet: it is not the file that this sweep has written\n  allowed: "):
        earlier.to_pandas()
    with pytest.raises(plait.Error, match="out: the name is empty"):
        plait.sweep(scenario(), out="")
    (tmp_path / "manifest.json").write_text('{"name": "another program"}')
    with pytest.raises(plait.Error, match=r"manifest.json` is no manifest of a sweep .*\n  allowed: another directory"):
        plait.sweep(scenario(), out=tmp_path)


def test_a_python_class_is_refused(tmp_path: Path) -> None:
    @plait.register
    class OfSweep:
        """The first subflow."""

        def schedule(self, view: plait.View) -> plait.Decision:
            return view.usable[0]

    with pytest.raises(plait.Error, match="`of-sweep` is a Python class"):
        plait.sweep(scenario(schedulers="minrtt,of-sweep"), out=tmp_path / "out", progress=False)


def test_a_worker_gets_the_files_that_a_scenario_names(tmp_path: Path) -> None:
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{time_ms}\n" for time_ms in range(1, 2000)))
    named = plait.Scenario([f"wifi:trace={trace},rtt=22ms", PATHS[1]], workload="download:64kB", schedulers="ecf", runs=2)
    plait.sweep(named, out=tmp_path / "here", progress=False)

    class Elsewhere(Failing):
        def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            trace.unlink(missing_ok=True)
            return super().submit(function, *arguments, **named)

    plait.sweep(named, out=tmp_path / "there", executor=Elsewhere(100), progress=False)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def traced(directory: Path, **settings: Any) -> plait.Scenario:
    """Returns a scenario of three paths with a trace each, of 100 kB to 300 kB."""
    paths = []
    for number in (1, 2, 3):
        trace = directory / f"link{number}.trace"
        trace.write_text("".join(f"{time_ms}\n" for time_ms in range(number, number * 20_000)))
        assert trace.stat().st_size > 90_000
        paths.append(f"path{number}:trace={trace},rtt={number}0ms")
    given = {"workload": "download:64kB", "schedulers": "minrtt,ecf", "runs": 4, "vary": {"path1.rtt": "10ms,20ms,30ms"}}
    return plait.Scenario(paths, **{**given, **settings})


class Pickling(Executor):
    """One worker, which gets each task in its pickled form."""

    _max_workers = 1

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        pickled = pickle.dumps((function, arguments, named))
        self.sizes.append(len(pickled))
        function, arguments, named = pickle.loads(pickled)
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future


def test_a_task_names_large_texts_and_a_worker_gets_them_if_it_lacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "TASK_SECONDS", 0.0)
    large = traced(tmp_path)
    plait.sweep(large, out=tmp_path / "here", progress=False)
    monkeypatch.setattr(worker, "_CELLS", worker._Cells())
    there = Pickling()
    plait.sweep(large, out=tmp_path / "there", executor=there, progress=False)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    with_texts = [size for size in there.sizes if size > 100_000]
    without = [size for size in there.sizes if size <= 100_000]
    # Only the tasks that were handed out before the first answer are repeated with the texts. Each run is a task here.
    assert len(with_texts) == sweeping.AHEAD
    assert len(without) == 3 * 5 * 4 and max(without) < 2_000


def test_a_worker_makes_the_cells_of_a_source_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[worker.Source] = []

    class Slow:
        def __init__(self, source: worker.Source) -> None:
            made.append(source)
            time.sleep(0.05)

    monkeypatch.setattr(_plait, "Work", Slow)
    source = sweeping.plans_of(scenario())[0].source
    small, texts = compact(source)
    assert texts == {}
    cells = worker._Cells()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: cells.of(small, {}), range(8)))
    assert made == [source] and set(found) == {found[0]}
    # The same text as an experiment is another source.
    other, _ = compact({**source, "experiment": True})
    assert cells.of(other, {}) is not found[0]
    assert [it["experiment"] for it in made] == [False, True]
    # The oldest ones go.
    for seed in range(worker.KEPT):
        cells.of(compact({**source, "seed": 100 + seed})[0], {})
    assert cells.of(small, {}) is not found[0]


EXPERIMENT = """
title = "Two schedulers over a slow path"
workload = "download:64kB"
runs = 3

[[path]]
name = "wifi"
rate = "20mbit"
rtt = "22ms"
loss = "0.5%"

[[path]]
name = "lte"
rate = "8mbit"
rtt = "{rtt}"

[sweep]
rtt = ["40ms", "80ms"]

[row.minrtt]
scheduler = "minrtt"

[row.ecf]
scheduler = "ecf"
"""


def test_the_command_line_uses_the_runs_of_a_sweep(plait_binary: Plait, tmp_path: Path) -> None:
    file, out = tmp_path / "own.toml", tmp_path / "out"
    file.write_text(EXPERIMENT)
    swept = plait.sweep(out=out, experiment=file, progress=False)
    assert swept.rows == 12
    before = lines(out)
    document = tmp_path / "document"
    ran = plait_binary("experiment", "run", str(file), "--cache", str(out / "cache"), "--output", str(document))
    assert ran.returncode == 0, ran.stderr
    programs = {path.name for path in (out / "cache").iterdir()}
    assert len(programs) == 1, "the binary and the module are builds of different sources"
    assert lines(out) == before == 12
    theirs = [json.loads(line) for line in (document / "own.jsonl").read_text().splitlines()]
    ours = swept.to_polars().to_dicts()
    assert [run["completion_ms"] for run in ours] == [run["measures"]["completion_ms"] for run in theirs]
    assert {run["rtt"] for run in ours} == {"40ms", "80ms"} and ours[0]["row"] == "minrtt"
