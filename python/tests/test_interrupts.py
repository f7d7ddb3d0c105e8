"""Ctrl-C, threads and progress."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import plait
from plait import _plait
from plait.scenario import draft_of

PATHS = ["wifi:rate=50mbit,rtt=22ms", "lte:rate=50mbit,rtt=60ms"]

LONG = {
    "compare": "plait.compare(PATHS, workload='bulk:60s', runs=1000)",
    "run": "plait.run(PATHS, workload='bulk:30min')",
    "runs": "list(plait.runs(PATHS, workload='bulk:60s', runs=1000))",
    "explain": "plait.explain(PATHS, workload='bulk:20min')",
    "sweep": "plait.sweep(plait.Scenario(PATHS, workload='bulk:60s', runs=1000), out=OUT)",
}


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
@pytest.mark.parametrize("call", LONG)
def test_ctrl_c_ends_a_call_at_once(call: str, tmp_path: Path) -> None:
    if call == "sweep":
        pytest.importorskip("pyarrow")
    program = f"""
import time, plait
PATHS = {PATHS!r}
OUT = {str(tmp_path)!r}
print("begun", flush=True)
try:
    {LONG[call]}
    print("finished")
except KeyboardInterrupt:
    print("interrupted", time.time())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.4)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        output = process.stdout.read().split()
        process.wait(10)
    assert output[0] == "interrupted"
    # Signals are looked for every 50 ms. The rest is for a machine that has other work.
    assert float(output[1]) - sent < 1.0


def test_an_exception_of_progress_ends_the_call() -> None:
    def refuse(done: int, total: int) -> None:
        raise RuntimeError(f"{total} runs")

    draft = draft_of(None, PATHS, {"workload": "bulk:5s", "schedulers": "ecf", "runs": 1000})
    with pytest.raises(RuntimeError, match="3000 runs"):
        _plait.compare(draft, False, refuse)


class PyCounted:
    """The usable subflow with the lowest RTT. It counts its objects: a run makes one for each end."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.number = self.made

    def schedule(self, view: plait.View) -> plait.Decision:
        return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


class PyFails(PyCounted):
    """Its first object fails. The others take time, in which other threads run."""

    def schedule(self, view: plait.View) -> plait.Decision:
        if self.number == 1:
            raise LookupError("mine")
        time.sleep(0.002)
        return super().schedule(view)


class PyFailsLater(PyCounted):
    """It fails after the first run of an explanation, which makes two objects."""

    def schedule(self, view: plait.View) -> plait.Decision:
        if self.number > 2:
            raise LookupError("mine")
        return super().schedule(view)


def threads() -> list[str]:
    """Returns the names of the threads of this process."""
    return [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads as Linux shows them")
def test_an_explanation_that_has_ended_makes_no_further_replays() -> None:
    ended = (0, 0)

    def refuse(done: int, total: int) -> None:
        nonlocal ended
        ended = (done, total)
        raise RuntimeError("enough")

    draft = draft_of(None, PATHS, {"workload": "bulk:10s", "scheduler": PyCounted, "jobs": 1})
    PyCounted.made = 0
    with pytest.raises(RuntimeError, match="enough"):
        _plait.explain(draft, 20, None, None, 80, refuse)
    while "plait" in threads():
        time.sleep(0.01)
    done, total = ended
    # Two more replays may have begun before the flag was set.
    assert PyCounted.made <= 2 * (1 + done + 2) < 2 * (1 + total)


CALLS: dict[str, Any] = {
    "decide": lambda own, _: plait.decide(scheduler=own, subflows=[{"id": 0, "srtt_ms": 9}, {"id": 1, "srtt_ms": 60}]),
    "check": lambda own, _: plait.check(own, connections=1),
    "explain": lambda own, workload: plait.explain(PATHS, workload=workload, scheduler=own, slowest=20, progress=False),
}
"""Calls on a class, with a workload."""


@pytest.mark.parametrize("name", CALLS)
def test_an_exception_of_a_class_belongs_to_its_call(name: str) -> None:
    failing = PyFailsLater if name == "explain" else PyFails
    failures: list[BaseException] = []
    ended = threading.Event()

    # Many short calls begin and end while a long one goes on.
    def go_well() -> None:
        try:
            while not ended.is_set():
                CALLS[name](PyCounted, "burst:11seg")
        except Exception as error:
            failures.append(error)

    beside = threading.Thread(target=go_well)
    beside.start()
    try:
        for _ in range(20):
            failing.made = 0
            # The exception of `check` has another type.
            with pytest.raises(Exception, match="mine"):
                CALLS[name](failing, "download:2MB")
            assert failing.made < 20, "no further replay begins after an exception"
    finally:
        ended.set()
        beside.join()
    assert failures == []


def test_calls_in_two_threads_run_in_parallel() -> None:
    times: dict[int, list[float]] = {0: [], 1: []}

    def work(number: int) -> None:
        draft = draft_of(None, PATHS, {"workload": "bulk:2s", "schedulers": "ecf", "runs": 30, "jobs": 1})
        _plait.compare(draft, False, lambda done, total: times[number].append(time.monotonic()))

    threads = [threading.Thread(target=work, args=(number,)) for number in times]
    for thread in threads:
        thread.start()
    looks = 0
    while any(thread.is_alive() for thread in threads):
        looks += 1
        time.sleep(0.001)
    # The interpreter was free meanwhile, and each thread made runs while the other did.
    assert looks > 20
    assert max(times[0][0], times[1][0]) < min(times[0][-1], times[1][-1])


def test_progress_uses_tqdm_if_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    tqdm = pytest.importorskip("tqdm.auto")
    bars: list[Any] = []

    class Bar(tqdm.tqdm):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            bars.append(self)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    settings: dict[str, Any] = {"workload": "bulk:2s", "schedulers": "ecf", "runs": 20}
    silent = plait.compare(PATHS, progress=False, **settings)
    assert bars == []
    assert plait.compare(PATHS, progress=True, **settings).digest == silent.digest
    assert bars[0].total == 60 and 0 < bars[0].n <= 60


BUSY = """
class Busy:
    def schedule(self, view):
        for _ in range(200_000):
            pass
        return view.usable[0]
"""
"""A class that is nearly always inside the interpreter."""

LINGERS = """
class Lingers:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

sys.modules["lingers"] = Lingers()
"""
"""Lets the end of the interpreter take some time, in which other threads want its lock."""

WITH_A_CLASS = {
    "compare": "plait.compare(PATHS, workload='bulk:300s', runs=200, schedulers=[Busy])",
    "run": "plait.run(PATHS, workload='bulk:300s', scheduler=Busy)",
    "runs": "list(plait.runs(PATHS, workload='bulk:300s', runs=200, schedulers=[Busy]))",
    "explain": "plait.explain(PATHS, workload='bulk:300s', scheduler=Busy)",
}

IN_A_DAEMON = {
    "minrtt": "plait.compare(PATHS, workload='bulk:300s', runs=200, schedulers='minrtt')",
    "a class": WITH_A_CLASS["compare"],
    "progress": "_plait.compare(DRAFT, False, lambda *_: [None for _ in range(200_000)])",
}


def ended(program: str, interrupted: bool) -> tuple[list[int], str]:
    """Runs a program in three processes at a time. Returns their codes, and what they wrote to stderr."""
    program = f"""
import sys, threading, time, plait
from plait import _plait
from plait.scenario import draft_of
PATHS = {PATHS!r}
DRAFT = draft_of(None, PATHS, {{"workload": "bulk:100ms", "schedulers": "ecf", "runs": 100_000}})
{BUSY}{LINGERS}
print("begun", flush=True)
{program}
"""
    begin: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", program], **begin) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        if interrupted:
            for process in processes:
                process.send_signal(signal.SIGINT)
        errors = "".join(process.communicate(timeout=20)[1] for process in processes)
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], errors


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
@pytest.mark.parametrize("call", WITH_A_CLASS)
def test_ctrl_c_in_a_call_with_a_class_ends_the_interpreter_well(call: str) -> None:
    codes, errors = ended(WITH_A_CLASS[call], interrupted=True)
    # The interpreter ends itself with the signal.
    assert codes == [-signal.SIGINT] * 3, errors
    assert errors.count("\nKeyboardInterrupt\n") == 3


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
def test_a_class_that_never_answers_does_not_keep_the_interpreter() -> None:
    endless = "Busy.schedule = lambda self, view: [None for _ in iter(int, 1)]\n"
    codes, errors = ended(endless + WITH_A_CLASS["compare"], interrupted=True)
    assert codes == [-signal.SIGINT] * 3, errors


@pytest.mark.parametrize("call", IN_A_DAEMON)
def test_the_interpreter_ends_well_while_a_daemon_is_in_a_call(call: str) -> None:
    program = f"threading.Thread(target=lambda: {IN_A_DAEMON[call]}, daemon=True).start()\ntime.sleep(0.4)"
    codes, errors = ended(program, interrupted=False)
    assert codes == [0] * 3, errors
    assert errors == ""


def test_a_call_after_the_end_of_calls_is_refused() -> None:
    # Functions run at the end in the reverse order, so this one runs after that of plait.
    program = f"""
import atexit
def late():
    subflows = [{{"id": 0, "srtt_ms": 9}}]
    for call in (lambda: plait.run(PATHS, workload="bulk:1s"), lambda: plait.decide(scheduler="minrtt", subflows=subflows)):
        try:
            call()
        except RuntimeError as error:
            print(error)
atexit.register(late)
import plait
PATHS = {PATHS!r}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["plait: the interpreter ends"] * 2, done.stderr
