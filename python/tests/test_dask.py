"""Sweeps over Dask: the same bytes after lost workers, and the command line on a cluster."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Plait
from test_digests import drawn
from test_sweep import EXPERIMENT, contents, lines, scenario, traced

import plait
from plait.cluster import __main__ as command, executors, sweeping
from plait.cluster.worker import Batch, Part, compact

pytest.importorskip("pyarrow")


def test_a_killed_worker_of_dask_changes_no_byte(client: Any, tmp_path: Path) -> None:
    # `make soak` takes 2,000 cells: five rows at each point.
    lte, wifi, cells = (20, 20, 2000) if "PLAIT_SOAK" in os.environ else (10, 4, 200)
    many = scenario(runs=10, schedulers="minrtt,ecf,blest", vary={"lte.rtt": f"20ms..200ms:{lte}", "wifi.rtt": f"10ms..40ms:{wifi}"})
    plait.sweep(many, out=tmp_path / "here", progress=False)
    out = tmp_path / "dask"
    killed: list[tuple[int, int]] = []
    processes = list(client.run(os.getpid).values())
    assert len(processes) == 2

    def kill() -> None:
        while not killed:
            time.sleep(0.005)
            if lines(out) >= 4 * cells:
                killed.append((processes[0], lines(out)))
                os.kill(processes[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    swept = plait.sweep(many, out=out, executor=client, progress=False)
    killer.join()
    assert swept.manifest["cells"] == cells
    assert killed[0][1] < swept.rows == 10 * cells
    assert contents(out) == contents(tmp_path / "here")
    assert sum(swept.workers.values()) == 10 * cells


def test_lost_texts_of_dask_are_sent_again(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "TASK_SECONDS", 0.05)
    large = traced(tmp_path, runs=16, vary={"path1.rtt": "10ms..100ms:10"})
    plait.sweep(large, out=tmp_path / "here", progress=False)
    sizes: list[tuple[str, int]] = []

    class Watched:
        """The client. It notes the bytes of each task."""

        def nthreads(self) -> Any:
            return client.nthreads()

        def submit(self, function: Any, first: Any, *more: Any, **named: Any) -> Any:
            sizes.append((function.__name__, len(pickle.dumps(first))))
            return client.submit(function, first, *more, **named)

    out = tmp_path / "dask"
    killed: list[int] = []

    def kill() -> None:
        while lines(out) < 100:
            time.sleep(0.005)
        killed.extend(client.run(os.getpid).values())
        for process in killed:
            os.kill(process, signal.SIGKILL)

    # All workers are killed at once, so no other worker has the texts.
    killer = threading.Thread(target=kill)
    killer.start()
    swept = plait.sweep(large, out=out, executor=Watched(), progress=False)
    killer.join()
    assert len(killed) == 2
    assert sum(swept.workers[name] for name in swept.workers if int(name.rpartition(":")[2]) not in killed) > 0
    assert contents(out) == contents(tmp_path / "here")
    assert max(size for name, size in sizes if name == "work_with") < 4_000
    texts = [size for name, size in sizes if name == "the_same"]
    assert len(texts) == 3 and min(texts) > 90_000


def test_a_cluster_keeps_the_texts_of_the_latest_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "KEPT_TEXTS", 2)
    sent: list[str] = []

    class Client:
        """Its tasks are their texts."""

        def submit(self, function: Any, text: str, **named: Any) -> str:
            sent.append(text)
            return text

    workers = executors.OfClient(Client())
    texts = {name: name.upper() for name in "abcd"}
    for needed in ("ab", "ca", "ba", "abcd", ""):
        assert workers.tasks_of(list(needed), lambda: texts) == list(needed.upper())
    assert sent == list("ABCBCD")
    assert list(workers.texts) == ["c", "d"]


def test_random_scenarios_have_the_digests_of_plait_run(client: Any, tmp_path: Path) -> None:
    # A comparison without chance has host jitter, and a single run has none.
    # 200 of them take 10 s: PLAIT_SCENARIOS=200.
    count = int(os.environ.get("PLAIT_SCENARIOS", "24"))
    given = [(paths, {**settings, "host_jitter": "50us"}) for paths, settings in map(drawn, range(count))]
    scenarios = [plait.Scenario(paths, **settings) for paths, settings in given]
    swept = plait.sweep(scenarios, out=tmp_path / "dask", executor=client, progress=False)
    plait.sweep(scenarios, out=tmp_path / "here", progress=False)
    assert contents(tmp_path / "dask") == contents(tmp_path / "here")
    first = swept.to_polars().unique("scenario", keep="first", maintain_order=True)
    assert first.height == count
    alike = 0
    for row, (paths, settings) in zip(first.to_dicts(), given, strict=True):
        if len(paths) == 1 or "vary" in settings:
            continue
        one = {"cc": row["cc"], "seed": str(row["seed"]), "runs": "1", "schedulers": row["scheduler"]}
        run = plait.run(paths, **{**settings, **one})
        assert run.digest == row["segment_hash"]
        alike += 1
    assert alike >= count / 4


def test_a_worker_of_another_version_is_an_error(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = sweeping.plans_of(scenario())[0]
    other = Batch("0.0.1 (of old)", (Part(0, compact(plan.source)[0], ((0, 0, 1),), "the first"),))
    with pytest.raises(plait.Error, match=r"worker .*: it has plait .*, and this sweep plait 0\.0\.1"):
        executors.OfClient(client).submit(other, "old", dict).result()


def test_the_command_line_runs_an_experiment_on_a_cluster(
    client: Any, plait_binary: Plait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache = tmp_path / "own.toml", tmp_path / "cache"
    file.write_text(EXPERIMENT)
    words = ["experiment", "run", str(file), "--json", "--seed", "5"]
    alone = plait_binary(*words, "--no-cache")
    here = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")

    def steps() -> int:
        counted: int = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        return counted

    before = steps()
    ran = plait_binary(*words, "--cache", str(cache), "--cluster", client.scheduler.address)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == alone.stdout
    assert steps() > before and lines(tmp_path) == 12

    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    without = plait_binary(*words, "--cache", str(cache), "--cluster", client.scheduler.address)
    assert without.returncode == 2
    assert "--cluster: `python3`: " in without.stderr and "pip install 'plait[cluster]'" in without.stderr
    (empty / "python3").write_text("#!/bin/sh\nexit 1\n")
    (empty / "python3").chmod(0o755)
    without = plait_binary(*words, "--cache", str(cache), "--cluster", client.scheduler.address)
    assert without.returncode == 2 and "it has no package plait.cluster" in without.stderr


def test_the_module_is_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = tmp_path / "home.toml", tmp_path / "out"
    file.write_text(scenario().to_toml())
    assert command.main([str(file), "--out", str(out)]) == 0
    swept = plait.Sweep.open(out)
    assert capsys.readouterr().out == f"120 runs in {out}\ndigest {swept.digest}\n"
    monkeypatch.setattr(command, "CONNECT_SECONDS", 0.2)
    for words, code, text in [
        ([str(file)], 2, "--out is missing"),
        (["--runs-only", str(file)], 2, "--cache is missing"),
        ([str(tmp_path / "none.toml"), "--out", str(out)], 2, "none.toml"),
        (["--experiment", "ton-fig", "--out", str(out)], 2, "unknown experiment `ton-fig`"),
        (["--seed", "-1", "--experiment", "ton-fig8", "--out", str(out)], 2, "--seed: `-1`"),
        (["--program", "0.0.1", str(file), "--out", str(out)], 2, "the command is plait 0.0.1"),
        ([str(file), "--out", str(out), "--cluster", "tcp://127.0.0.1:1"], 4, "no Dask scheduler answers"),
        ([str(file), "--out", str(out), "--cluster", "tls://127.0.0.1:1"], 2, "no keys for TLS\n  allowed: tcp://HOST:PORT, or"),
        ([str(file), "--out", str(out), "--cluster", "foo://127.0.0.1:1"], 2, "allowed: tcp://HOST:PORT"),
    ]:
        assert command.main(words) == code
        assert text in capsys.readouterr().err

    def lose(given: object) -> None:
        raise executors.lost(OSError("the scheduler is gone"))

    monkeypatch.setattr(command, "perform", lose)
    assert command.main([str(file), "--out", str(out)]) == 4
    assert "lost a worker: the scheduler is gone" in capsys.readouterr().err
