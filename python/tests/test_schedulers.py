"""Schedulers that are Python classes."""

from __future__ import annotations

import gc
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import plait

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=0.5%", "lte:rate=8mbit,rtt=60ms,jitter=2ms"]


class PyMinRtt:
    """The usable subflow with the lowest RTT."""

    def schedule(self, view: plait.View) -> plait.Decision:
        return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


class PyMinRttRun:
    """The same, with all the room of the subflow at once."""

    name = "py-run"

    def schedule(self, view: plait.View) -> plait.Decision:
        best = min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))
        return plait.Send(best, room=True)


class PyPatient:
    """Waits for the subflow with the lowest RTT."""

    def schedule(self, view: plait.View) -> plait.Decision:
        best = min(view.candidates, key=lambda subflow: (subflow.srtt_ms, subflow.id))
        return best if best.id in [subflow.id for subflow in view.usable] else plait.Wait(best)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("workload", ["download:256kB", "upload:128kB", "stream:4kB@50ms,for=1s"])
def test_a_python_minrtt_has_the_digest_of_minrtt(workload: str, seed: int) -> None:
    settings: dict[str, Any] = {"workload": workload, "seed": seed}
    expected = plait.run(PATHS, scheduler="minrtt", **settings)
    for scheduler in (PyMinRtt, PyMinRttRun):
        mine = plait.run(PATHS, scheduler=scheduler, **settings)
        assert mine.digest == expected.digest
        assert mine.measures == expected.measures


def test_classes_stand_beside_names_in_a_comparison() -> None:
    result = plait.compare(PATHS, workload="download:128kB", schedulers=["minrtt", PyMinRtt, PyPatient], runs=4)
    rows = {row["scheduler"]: row for row in result.rows}
    assert list(rows) == ["minrtt", "py-min-rtt", "py-patient", "tcp:wifi", "tcp:lte"]
    assert rows["py-min-rtt"]["measures"] == rows["minrtt"]["measures"]
    assert rows["py-patient"]["path_share"]["wifi"] > rows["minrtt"]["path_share"]["wifi"]
    assert "py-min-rtt" in [entry["name"] for entry in plait.list_schedulers()]
    assert plait.list_schedulers("py-patient")[0]["summary"] == "Waits for the subflow with the lowest RTT."
    again = plait.compare(PATHS, workload="download:128kB", schedulers="py-min-rtt+copy", runs=1)
    assert again.rows[0]["scheduler"] == "py-min-rtt+copy"


def test_a_later_class_takes_the_place_of_its_name() -> None:
    shares = []
    for wanted in (0, 1):

        class PyFixed:
            def schedule(self, view: plait.View, wanted: int = wanted) -> plait.Decision:
                return wanted if wanted in [subflow.id for subflow in view.usable] else plait.Wait()

        run = plait.run(PATHS, workload="download:64kB", scheduler=PyFixed)
        shares.append(run.to_dict()["per_path"][1]["sent_bytes"])
    assert shares[0] < shares[1]


def test_a_decision_is_asked_of_a_class() -> None:
    plait.register(PyPatient)
    question = {
        "scheduler": "py-patient",
        "connection": {"unsent": 1},
        "subflows": [{"id": 0, "srtt_ms": 10, "cwnd": 10, "inflight": 10}, {"id": 1, "srtt_ms": 100, "cwnd": 10}],
    }
    answer = plait.decide(question)
    assert (answer["decision"], answer["subflow"], answer["reason"]) == ("wait", 0, "chosen")


def test_a_class_with_a_wrong_method_is_refused() -> None:
    class PyHook(PyMinRtt):
        on_data_ack = 3

    with pytest.raises(plait.Error, match="PyHook.on_data_ack is no method\n  allowed: a class as in"):
        plait.register(PyHook)


def failing(answer: object) -> type:
    class PyWrong:
        def schedule(self, view: plait.View) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    return PyWrong


@pytest.mark.parametrize("call", [plait.compare, plait.run, lambda *a, **k: list(plait.runs(*a, **k)), plait.explain])
def test_an_exception_of_a_class_ends_the_call(call: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="mine"):
        call(PATHS, workload="download:64kB", scheduler=failing(ZeroDivisionError("mine")))
    # The next call is not affected.
    assert plait.run(PATHS, workload="download:64kB", scheduler=PyMinRtt).complete


@pytest.mark.parametrize(
    ("answer", "text"),
    [("wifi", "it returned `wifi`\n  allowed: a subflow"), (7, "there is no subflow 7\n  allowed: 0, 1"), (-1, "it returned `-1`")],
)
def test_a_decision_that_is_none_is_refused(answer: object, text: str) -> None:
    with pytest.raises(plait.Error, match=f"py-wrong.schedule: .*{text}"):
        plait.run(PATHS, workload="download:64kB", scheduler=failing(answer))


def test_a_decision_prints_as_its_call() -> None:
    printed: set[str] = set()

    class PyPrints(PyMinRtt):
        def schedule(self, view: plait.View) -> plait.Decision:
            printed.update(f"{plait.Send(it)} {plait.Wait(it)} {it.id}" for it in view.usable)
            return super().schedule(view)

    plait.run(PATHS, workload="download:512kB", scheduler=PyPrints)
    assert printed == {"plait.Send(0) plait.Wait(0) 0", "plait.Send(1) plait.Wait(1) 1"}
    for text in ("plait.Send(3)", "plait.Send(3, room=True)", "plait.Wait(3)", "plait.Wait()"):
        assert repr(eval(text)) == text
    assert repr(plait.Send(3, room=False)) == "plait.Send(3)"


def test_a_class_may_inherit_from_the_protocol() -> None:
    class PyInherits(plait.Scheduler):
        def schedule(self, view: plait.View) -> plait.Decision:
            return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))

    run = plait.run(PATHS, workload="download:64kB", scheduler=PyInherits)
    assert run.digest == plait.run(PATHS, workload="download:64kB", scheduler=PyMinRtt).digest


def test_a_full_subflow_is_refused() -> None:
    class PyBlind:
        def schedule(self, view: plait.View) -> plait.Decision:
            return plait.Send(0)

    with pytest.raises(plait.Error, match="subflow 0 cannot take the segment"):
        plait.run(PATHS, workload="download:256kB", scheduler=PyBlind)


def test_a_name_must_be_free() -> None:
    class Minrtt:
        def schedule(self, view: plait.View) -> plait.Decision:
            return None

    with pytest.raises(plait.Error, match="`minrtt` is taken"):
        plait.register(Minrtt)
    with pytest.raises(plait.Error, match="no method schedule"):
        plait.register(str)  # type: ignore[type-var]


def test_a_class_joins_no_comparison_that_does_not_name_it() -> None:
    settings: dict[str, Any] = {"workload": "download:64kB", "runs": 2}
    before = plait.compare(PATHS, **settings)

    class PyApart(PyMinRtt):
        pass

    plait.register(PyApart)
    after = plait.compare(PATHS, **settings)
    assert (before.command, before.digest) == (after.command, after.digest)
    assert "py-apart" in [entry["name"] for entry in plait.list_schedulers()]
    assert plait.compare(PATHS, schedulers="all", **settings).digest == before.digest


def test_the_newest_class_is_shown_and_runs() -> None:
    pages, digests = [], []
    for wanted, idea in ((0, "The first."), (1, "The second."), (1, "The third.")):

        class PyNewest:
            __doc__ = idea

            def schedule(self, view: plait.View, wanted: int = wanted) -> plait.Decision:
                return wanted if wanted in [subflow.id for subflow in view.usable] else plait.Wait()

        plait.register(PyNewest)
        (entry,) = plait.list_schedulers("py-newest")
        pages.append((entry["summary"], entry["page"].splitlines()[0]))
        digests.append(plait.run(PATHS, workload="download:64kB", scheduler="py-newest").digest)
    assert pages == [("The first.",) * 2, ("The second.",) * 2, ("The third.",) * 2]
    assert digests[0] != digests[1] == digests[2]


def test_an_experiment_does_not_take_the_runs_of_an_older_class(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    paths = '[[path]]\nname = "wifi"\nrate = "20mbit"\nrtt = "22ms"\n[[path]]\nname = "lte"\nrate = "8mbit"\nrtt = "60ms"\n'
    file.write_text(f'title = "A class"\nworkload = "download:512kB"\nruns = 2\n{paths}[row.mine]\nscheduler = "py-stored"\n')
    medians = []
    for wanted in (0, 1):

        class PyStored:
            def schedule(self, view: plait.View, wanted: int = wanted) -> plait.Decision:
                return wanted if wanted in [subflow.id for subflow in view.usable] else plait.Wait()

        plait.register(PyStored)
        medians.append(plait.experiment(file, cache=tmp_path / "cache").table["completion_ms"][0])
    assert medians[0] < medians[1]
    with pytest.raises(plait.Error, match="`py-stored` is a Python class"):
        plait.sweep(out=tmp_path / "out", experiment=file, progress=False)


def memory() -> int:
    """Returns the memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory as Linux tells it")
def test_a_class_that_is_registered_a_thousand_times_takes_little_memory() -> None:
    def register(times: int) -> None:
        for _ in range(times):

            class PyAgain(PyMinRtt):
                """The usable subflow with the lowest RTT, again and again."""

                def __init__(self, share: float = 0.2, turns: int = 3) -> None:
                    pass

            plait.register(PyAgain)

    register(100)
    gc.collect()
    before = memory()
    register(3000)
    gc.collect()
    # A list of schedulers takes 4 kB.
    assert memory() - before < 2_000_000


def test_a_command_names_a_class_as_python_does() -> None:
    scenario = plait.Scenario(PATHS, workload="download:64kB", schedulers=["minrtt", PyMinRtt])
    assert f"--schedulers minrtt,{__name__}:PyMinRtt " in scenario.command
    assert "__main__" not in repr(plait.compare(scenario=scenario, runs=1))
    again = plait.Scenario.from_toml(scenario.to_toml())
    assert again == scenario and f'"minrtt,{__name__}:PyMinRtt"' in again.to_toml()
    explained = plait.explain(PATHS, workload="download:64kB", scheduler=PyMinRtt, compare_with=[PyPatient, "ecf"])
    assert explained.command.endswith(f"--compare-with {__name__}:PyPatient,ecf")


@pytest.mark.parametrize("module", ["__main__", "here"])
def test_a_class_of_the_program_is_called_one(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class PyHere(PyMinRtt):
        pass

    PyHere.__module__ = module
    if module == "__main__":
        PyHere.__qualname__ = "PyHere"
        monkeypatch.setattr(sys.modules["__main__"], "PyHere", PyHere, raising=False)
    name = f"{module}:{PyHere.__qualname__}"
    result = plait.compare(PATHS, workload="download:64kB", schedulers=["minrtt", PyHere], runs=1)
    assert result.rows[1]["scheduler"] == "py-here" and name in result.command
    assert f"runs only in the program that has the class `{name}`" in " ".join(repr(result).split())
    plain = plait.compare(PATHS, workload="download:64kB", schedulers="minrtt,py-here", runs=1)
    assert (plain.digest, plain.command) == (result.digest, result.command)


def test_a_text_takes_the_newest_class_of_an_imported_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("newest")
    scenario = f'path = {json.dumps(PATHS)}\nworkload = "download:512kB"\nschedulers = ["newest:PyLatest"]\n'
    with pytest.raises(plait.Error, match="`newest:PyLatest`: the module `newest` is not imported"):
        plait.Scenario.from_toml(scenario).to_toml()
    monkeypatch.setitem(sys.modules, "newest", module)
    shares = []
    for wanted in (0, 1):

        class PyLatest:
            def schedule(self, view: plait.View, wanted: int = wanted) -> plait.Decision:
                return wanted if wanted in [subflow.id for subflow in view.usable] else plait.Wait()

        module.PyLatest = PyLatest  # type: ignore[attr-defined]
        run = plait.run(scenario=plait.Scenario.from_toml(scenario))
        assert plait.run(PATHS, workload="download:64kB", scheduler="newest:PyLatest").command.count("newest:PyLatest") == 1
        shares.append(run.to_dict()["per_path"][1]["sent_bytes"])
    assert shares[0] < shares[1]
    assert plait.list_schedulers("newest:PyLatest")[0]["name"] == "py-latest"
    with pytest.raises(plait.Error, match="the module `newest` has no class `Nobody`"):
        plait.compare(PATHS, workload="download:64kB", schedulers="newest:Nobody")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_is_no_fault_of_a_class_is_passed_on(error: BaseException) -> None:
    class PyLeaves(PyMinRtt):
        def schedule(self, view: plait.View) -> plait.Decision:
            raise error

    for call in (lambda: plait.check(PyLeaves), lambda: plait.run(PATHS, workload="download:64kB", scheduler=PyLeaves)):
        with pytest.raises(type(error)):
            call()
