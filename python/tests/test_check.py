"""The contract of schedulers, notices and parameters."""

from __future__ import annotations

import inspect
import itertools
import random
import time
from typing import Any

import pytest

import plait

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=0.5%,down=150ms..400ms", "lte:rate=8mbit,rtt=60ms,jitter=2ms"]


def fastest(view: plait.View) -> plait.Subflow:
    return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


class PyGood:
    def schedule(self, view: plait.View) -> plait.Decision:
        return fastest(view)


class PyGoodRun:
    def schedule(self, view: plait.View) -> plait.Decision:
        return plait.Send(fastest(view), room=True)


class PyTurns:
    """It has a state of its own, which is allowed."""

    def __init__(self) -> None:
        self.last = -1

    def schedule(self, view: plait.View) -> plait.Decision:
        ids = [subflow.id for subflow in view.usable]
        self.last = min(ids, key=lambda number: ((number - self.last - 1) % 8, number))
        return self.last


@pytest.mark.parametrize("scheduler", [PyGood, PyGoodRun, PyTurns])
def test_a_correct_class_keeps_the_contract(scheduler: type) -> None:
    checked = plait.check(scheduler, connections=40, seed=7)
    assert checked.connections == 40
    # Most steps have a decision, and most decisions send a segment.
    assert checked.decisions > 40 * 60
    assert "keeps the contract" in str(checked)


class PyBackup:
    def schedule(self, view: plait.View) -> plait.Decision:
        return next((it for it in view.subflows if it.backup and it.room_bytes > view.segment_bytes), fastest(view))


class PyShared:
    count = itertools.count()

    def schedule(self, view: plait.View) -> plait.Decision:
        usable = view.usable
        return usable[next(self.count) % len(usable)]


class PyRandom:
    def schedule(self, view: plait.View) -> plait.Decision:
        return random.choice(view.usable)


class PyLazy:
    def schedule(self, view: plait.View) -> plait.Decision:
        return plait.Wait(view.candidates[0]) if len(view.usable) > 1 else view.usable[0]


class PyNever:
    def schedule(self, view: plait.View) -> plait.Decision:
        return None


class PyDead:
    def schedule(self, view: plait.View) -> plait.Decision:
        return plait.Wait(view.subflows[0]) if len(view.candidates) < len(view.subflows) else fastest(view)


class PyFickle:
    """It grants all the room, but would take another subflow for the next segment."""

    def schedule(self, view: plait.View) -> plait.Decision:
        most = max(view.usable, key=lambda subflow: (subflow.room_bytes, subflow.id))
        return plait.Send(most, room=True)


class PyDivides:
    def schedule(self, view: plait.View) -> plait.Decision:
        return max(view.usable, key=lambda subflow: view.segment_bytes / subflow.inflight_bytes)


class PyInteger:
    """It forgets that an RTT may be infinite."""

    def schedule(self, view: plait.View) -> plait.Decision:
        return min(view.usable, key=lambda subflow: int(subflow.srtt_ms))


@pytest.mark.parametrize(
    ("scheduler", "text"),
    [
        (PyBackup, "cannot take the segment"),
        (PyShared, "two objects that got the same views decide differently"),
        (PyRandom, "two objects that got the same views decide differently"),
        (PyLazy, "bytes are never sent"),
        (PyNever, "bytes are never sent"),
        (PyDead, "which is dead"),
        (PyFickle, "after `room=True`"),
        (PyDivides, "ZeroDivisionError"),
        (PyInteger, "OverflowError"),
    ],
)
def test_a_broken_rule_names_the_decision_and_its_view(scheduler: type, text: str) -> None:
    with pytest.raises(plait.Error) as broken:
        plait.check(scheduler)
    lines = str(broken.value).splitlines()
    name = plait.schedulers.name_of(scheduler)
    assert lines[0].startswith(f"{name}: decision ") and "of connection " in lines[0] and "(seed 1)" in lines[0]
    assert text in lines[0]
    assert lines[1].startswith("  view: now_ms=")
    assert lines[2].startswith("    subflow 0: srtt_ms=")
    if text.endswith("Error"):
        assert type(broken.value.__cause__).__name__ == text
        # The traceback leads into the class.
        assert broken.value.__cause__.__traceback__ is not None  # type: ignore[union-attr]
    # The same seed finds the same decision.
    if scheduler is not PyRandom and scheduler is not PyShared:
        with pytest.raises(plait.Error) as again:
            plait.check(scheduler)
        assert str(again.value) == str(broken.value)


def test_the_check_is_quick() -> None:
    began = time.process_time()
    plait.check(PyGood)
    assert time.process_time() - began < 5


class PyListener(PyGood):
    """It takes notice of everything."""

    heard: list[tuple[Any, ...]] = []

    def on_data_ack(self, view: plait.View, old: int, new: int) -> None:
        self.heard.append(("ack", old, new, id(self)))

    def on_subflows_changed(self, view: plait.View, live: list[int], began: int | None) -> None:
        self.heard.append(("subflows", live, began))

    def on_window_limited(self, view: plait.View) -> None:
        self.heard.append(("window",))


def test_notices_reach_the_class() -> None:
    PyListener.heard.clear()
    run = plait.run(PATHS, workload="download:512kB", scheduler=PyListener, rcvbuf="40kB")
    acks = [note for note in PyListener.heard if note[0] == "ack"]
    # Each end has an object of its own. The server sends the data, and it has the last word.
    acks = [note for note in acks if note[3] == acks[-1][3]]
    # The edges follow one another, up to the end of the data.
    assert acks[0][1] == 0 and acks[-1][2] == 512_000
    assert all(before[2] == after[1] for before, after in itertools.pairwise(acks))
    began = {note[2] for note in PyListener.heard if note[0] == "subflows"}
    assert {0, 1} & began
    assert ("window",) in PyListener.heard
    assert any(note[1] != [0, 1] for note in PyListener.heard if note[0] == "subflows")
    # Notices change nothing by themselves.
    assert run.digest == plait.run(PATHS, workload="download:512kB", scheduler="minrtt", rcvbuf="40kB").digest
    assert plait.check(PyListener, connections=5).decisions > 0


def test_an_exception_of_a_notice_ends_the_call() -> None:
    class PyDeaf(PyGood):
        def on_data_ack(self, view: plait.View, old: int, new: int) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        plait.run(PATHS, workload="download:128kB", scheduler=PyDeaf)
    with pytest.raises(plait.Error, match=r"KeyError: 'mine' \(when a notice came\)"):
        plait.check(PyDeaf)


class PySpare:
    """Keeps a share of each window free."""

    def __init__(self, share: float = 0.1234567890123, segments: int = 2, strict: bool = False) -> None:
        self.given = (share, segments, strict)
        seen.append(self.given)

    def schedule(self, view: plait.View) -> plait.Decision:
        return fastest(view)


seen: list[tuple[float, int, bool]] = []


def test_arguments_are_parameters() -> None:
    plait.register(PySpare)
    for text, given in [
        ("py-spare", (0.1234567890123, 2, False)),
        ("py-spare:share=0.5,strict=on", (0.5, 2, True)),
        ("py-spare:segments=7+copy", (0.1234567890123, 7, False)),
    ]:
        seen.clear()
        plait.run(PATHS, workload="download:64kB", scheduler=text)
        assert set(seen) == {given}
    names = [param["name"] for param in plait.list_schedulers("py-spare")[0]["params"]]
    assert names == ["share", "segments", "strict"]
    seen.clear()
    plait.check(PySpare, connections=2)
    assert {given[2] for given in seen} == {False, True}
    with pytest.raises(plait.Error, match="no parameter `shares`"):
        plait.run(PATHS, workload="download:64kB", scheduler="py-spare:shares=1")
    with pytest.raises(plait.Error, match="cannot be `-1`"):
        plait.run(PATHS, workload="download:64kB", scheduler="py-spare:share=-1")


def test_parameters_need_defaults_that_are_numbers() -> None:
    class PyNeedy(PyGood):
        def __init__(self, share: float) -> None:
            pass

    class PyWordy(PyGood):
        def __init__(self, mode: str = "fast") -> None:
            pass

    class PyNegative(PyGood):
        def __init__(self, share: float = -1.0) -> None:
            pass

    with pytest.raises(plait.Error, match="share needs a default"):
        plait.register(PyNeedy)
    for scheduler in (PyWordy, PyNegative):
        with pytest.raises(plait.Error, match="allowed: True, False, or a number"):
            plait.register(scheduler)


def test_a_later_class_may_have_other_parameters() -> None:
    def made(default: int, name: str = "segments") -> type:
        def begin(self: Any, **given: int) -> None:
            seen.append((0.0, given.get(name, default), False))

        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        begin.__signature__ = inspect.Signature([own, parameter])  # type: ignore[attr-defined]
        return type("PyChanging", (PyGood,), {"__init__": begin})

    for default, name in [(1, "segments"), (2, "segments"), (5, "most")]:
        seen.clear()
        plait.run(PATHS, workload="download:64kB", scheduler=made(default, name))
        assert {given[1] for given in seen} == {default}
        seen.clear()
        plait.run(PATHS, workload="download:64kB", scheduler=f"py-changing:{name}=7")
        assert {given[1] for given in seen} == {7}
    assert [param["name"] for param in plait.list_schedulers("py-changing")[0]["params"]] == ["most"]
