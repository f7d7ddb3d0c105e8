"""Errors have the texts of the command line: the place, the reason and a proposal."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Plait

import plait

PATHS = ["wifi-home", "lte-att"]

WRONG: list[tuple[str, list[str], dict[str, Any]]] = [
    ("compare", ["wifi:rtt=22"], {"workload": "download:1MB"}),
    ("compare", ["wifi:rat=20mbit"], {"workload": "download:1MB"}),
    ("compare", [], {"workload": "download:1MB"}),
    ("compare", PATHS, {"workload": "downlod:1MB"}),
    ("compare", PATHS, {"workload": "download:1MB", "schedulers": "minrtt,eff"}),
    ("compare", PATHS, {"workload": "download:1MB", "runs": "none"}),
    ("compare", PATHS, {"workload": "download:1MB", "vary": "lte-at.rtt=20ms,40ms"}),
    ("compare", PATHS, {"workload": "download:1MB", "expect": "ecf.completion_ms.medan < 3"}),
    ("compare", ["wifi:trace=/none.csv,rtt=9ms"], {"workload": "download:1MB"}),
    ("run", PATHS, {"workload": "download:1MB", "scheduler": "eff"}),
    ("run", PATHS, {"workload": "download:1MB", "cc": "lia,olia"}),
    ("run", PATHS, {"workload": "download:1MB", "vary": "lte-att.rtt=20ms,40ms"}),
    ("explain", PATHS, {"workload": "download:64kB", "at": "9s"}),
    ("explain", PATHS, {"workload": "download:64kB", "compare_with": "eff"}),
]


def without_classes(text: str, plait_binary: Plait) -> str:
    """Removes the classes that other tests have registered from a list of schedulers."""
    listed = json.loads(plait_binary("list", "schedulers", "--json").stdout)["entries"]
    built_in = [entry["name"] for entry in listed]
    for entry in plait.list_schedulers():
        if entry["name"] not in built_in:
            text = text.replace(f", {entry['name']}", "", 1)
    return text


@pytest.mark.parametrize(("command", "paths", "settings"), WRONG)
def test_an_error_has_the_text_of_the_command_line(
    plait_binary: Plait, command: str, paths: list[str], settings: dict[str, Any]
) -> None:
    words = [word for path in paths for word in ("--path", path)]
    words += [word for name, text in settings.items() for word in (f"--{name.replace('_', '-')}", text)]
    with pytest.raises(plait.Error) as refused:
        getattr(plait, command)(paths, **settings)
    assert plait_binary(command, *words).stderr == f"plait: {without_classes(str(refused.value), plait_binary)}\n"


def test_an_unknown_setting_is_named_with_the_nearest_one() -> None:
    with pytest.raises(plait.Error, match="--ruins: .*unknown setting(.|\n)*did you mean `runs`"):
        plait.compare(PATHS, workload="download:1MB", ruins=3)


@pytest.mark.parametrize(
    ("call", "settings", "text"),
    [
        (plait.runs, {"explain": True}, r"explain: plait.runs does not have it\n  allowed: plait.compare\(..., explain=True\)"),
        (plait.compare, {"events": True}, r"events: .*\n  allowed: plait.run\(..., events=True\)"),
        (plait.run, {"progress": True}, r"progress: .*\n  allowed: plait.compare\(..., progress=True\)"),
        (plait.compare, {"progress": "x"}, "--progress: `x`: neither on nor off"),
        (plait.compare, {"workload": ["download:64kB", "upload:64kB"]}, "--workload: it takes one value, 2 .*\n.*vary={\"workload\": "),
        (plait.compare, {"seed": []}, "--seed: it takes one value, 0 are given\n  allowed: one value"),
        (plait.compare, {"vary": {"lte-att.rtt": ["20ms", "20ms"]}}, "--vary: .*: `20ms` stands there twice"),
    ],
)
def test_an_argument_of_another_call_or_of_another_form_is_refused(call: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(plait.Error, match=text):
        call(PATHS, **{"workload": "download:64kB", **settings})


def test_an_error_is_a_value_error_of_the_package() -> None:
    assert issubclass(plait.Error, ValueError)
    assert plait.Error.__module__ == "plait"


def test_a_place_in_a_text_has_line_and_column() -> None:
    text = "workload = 'download:2MB'\npath = ['wifi:rtt=25,rate=25mbit']\n"
    scenario = plait.Scenario.from_toml(text, "home.toml")
    with pytest.raises(plait.Error, match="^home.toml:2:"):
        scenario.to_toml()
    with pytest.raises(plait.Error, match="^home.toml:2:"):
        plait.compare(scenario=scenario, runs=3)
    with pytest.raises(plait.Error, match="^scenario:1:"):
        plait.Scenario.from_toml("workload 3")


def test_a_question_that_cannot_be_answered_names_the_key() -> None:
    with pytest.raises(plait.Error, match=r"subflows\[0\].srtt_ms: expected a number"):
        plait.decide(scheduler="ecf", subflows=[{"id": 0, "srtt_ms": "9"}])
    with pytest.raises(plait.Error, match="did you mean `lia`"):
        plait.decide(cc="lai", flows=[], event={})


def test_a_broken_expectation_is_an_error_of_check() -> None:
    settings: dict[str, Any] = {"workload": "download:64kB", "schedulers": "ecf", "runs": 2}
    broken = plait.compare(PATHS, expect="ecf.completion_ms.median < 1", **settings)
    assert not broken.holds
    assert str(broken).endswith(str(pytest.raises(plait.Error, broken.check).value))
    assert "expected: ecf.completion_ms.median" in broken._repr_html_()
    with pytest.raises(plait.Error, match="ecf.completion_ms.median < 1"):
        broken.check()
    held = plait.compare(PATHS, expect=["ecf.completion_ms.median > 1", "ecf.completion_ms.max > 1"], **settings)
    assert held.check() is held


def test_a_run_that_kept_no_events_says_how_to_keep_them() -> None:
    run = plait.run(PATHS, workload="download:64kB")
    with pytest.raises(plait.Error, match="events=True"):
        len(run.events)


class Fast:
    """The lowest RTT."""

    def schedule(self, view: plait.View) -> plait.Decision:
        return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


RUN: dict[str, Any] = {"workload": "download:64kB"}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: plait.compare(5, **RUN), "--path: `5` is no path"),  # type: ignore[arg-type]
        (lambda: plait.compare([None, "lte-att"], **RUN), "--path: `None` is no path"),  # type: ignore[list-item]
        (lambda: plait.compare(set(PATHS), **RUN), "--path: a set has no order"),
        (lambda: plait.compare(PATHS, schedulers={"ecf", "minrtt"}, **RUN), "--schedulers: a set has no order"),
        (lambda: plait.experiment("ton-fig8", cache="/dev/null/x"), "cache: `/dev/null/x` cannot be made"),
        (lambda: plait.Send("wifi"), "subflow: `wifi` is no subflow\n  allowed"),  # type: ignore[arg-type]
        (lambda: plait.compare(scenario=5), "--scenario: `5` is no name of a file"),  # type: ignore[arg-type]
        (lambda: plait.runs(PATHS, workload="download:64kB", until="ci=1%"), "until: `ci=` needs all runs"),
        (lambda: plait.runs(PATHS, schedulers="ecf", expect="ecf.completion_ms.median < 1", **RUN), "expect: an expectation needs"),
        (lambda: plait.explain(PATHS, slowest=-1, **RUN), "--slowest: `-1`: not a number that fits\n  allowed: a whole"),
        (lambda: plait.explain(PATHS, slowest="all", **RUN), "--slowest: `all`"),  # type: ignore[arg-type]
        (lambda: plait.experiment("ton-fig8", again=-1), "--again: `-1`"),
        (lambda: plait.experiment("ton-fig8", more=1.5), "--more: `1.5`"),  # type: ignore[arg-type]
        (lambda: plait.experiment("ton-fig8", jobs=0), "--jobs: `0`"),
        (lambda: plait.experiment("ton-fig8", seed=2**64), "--seed: `18446744073709551616`"),
        (lambda: plait.experiment(8), "name_or_file: `8` is no name"),  # type: ignore[arg-type]
        (lambda: plait.sweep(5, out="/nowhere/x"), "scenarios: `5` is no scenario"),  # type: ignore[arg-type]
        (lambda: plait.Sweep.open("/nowhere/x"), "/nowhere/x/manifest.json: there is no such file"),
        (lambda: plait.check(Fast()), "object of the class Fast\n  allowed: the class"),  # type: ignore[arg-type]
        (lambda: plait.check("minrtt"), "object of the class str"),  # type: ignore[arg-type]
        (lambda: plait.check(Fast, connections=0), "--connections: `0`"),
        (lambda: plait.check(dict), "dict has no method schedule"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, schedulers=[Fast()], **RUN), "object of the class Fast"),  # type: ignore[list-item]
        (lambda: plait.compare(PATHS, schedulers=dict, **RUN), "dict has no method schedule"),  # type: ignore[arg-type]
        (lambda: plait.decide(scheduler=Fast(), subflows=[]), "object of the class Fast"),
        (lambda: plait.decide(scheduler="ecf", subflows={1}), "question: Object of type set"),
        (lambda: plait.decide(scheduler="ecf", subflows=3), "subflows: expected a list, found 3$"),
        (lambda: plait.decide(scheduler="ecf", subflows=[{"id": 0, "srtt_ms": float("nan")}]), "question: Out of range float"),
        (lambda: plait.decide("ecf"), "question: `ecf` is no dictionary"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, schedulers=Fast(), **RUN), "object of the class Fast"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, schedulers=len, **RUN), "--schedulers: `.*` is no setting"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, workload=b"download:64kB"), "--workload: `.*` is no setting"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, dial_delay=timedelta(1), **RUN), "--dial-delay: `1 day"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, explain=3, **RUN), "--explain: `3`: neither on nor off"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, schedulers="ecf", scheduler="ecf", **RUN), "--scheduler: it stands beside"),
        (lambda: plait.compare([{"name": 3}], **RUN), "--path: `3` is no text"),
        (lambda: plait.compare([plait.Path("wifi", rtt=object())], **RUN), "--path wifi:rtt: `.*` is no setting"),  # type: ignore[arg-type]
        (lambda: plait.compare([plait.Path("wifi", rate_up=b"1mbit")], **RUN), "--path wifi:rate_up: `.*` is no setting"),
        (lambda: plait.Path(3), "path: `3` is no text"),  # type: ignore[arg-type]
        (lambda: plait.run(PATHS, events="yes", **RUN), "--events: `yes`"),  # type: ignore[arg-type]
        (lambda: plait.run(PATHS, runs=3, **RUN), "--runs: this call makes one run"),
        (lambda: plait.explain(PATHS, at=1.2, **RUN), "--at: `1.2` has no unit"),  # type: ignore[arg-type]
        (lambda: plait.explain(PATHS, compare_with=3, **RUN), "unknown scheduler"),  # type: ignore[arg-type]
        (lambda: plait.Scenario.from_toml(3), "text: `3` is no text"),  # type: ignore[arg-type]
        (lambda: plait.list_workloads(3), "unknown workload `3`"),  # type: ignore[arg-type]
        (lambda: plait.sweep(plait.Scenario(PATHS, **RUN), out="/nowhere/x", seed=3), "seed: it is for experiments"),
        (lambda: plait.sweep(experiment=3, out="/nowhere/x"), "experiment: `3` is no name"),  # type: ignore[arg-type]
        (lambda: plait.sweep(plait.Scenario(PATHS, **RUN), out="/dev/null/x"), "out: `/dev/null/x` cannot be made: Not a directory\n  allowed"),
        (lambda: plait.compare(PATHS, seed=2**64, **RUN), "allowed: a whole number from 0 to 18446744073709551615"),
        (lambda: plait.experiment("ton-fig8", quick="no"), "--quick: `no`"),  # type: ignore[arg-type]
        (lambda: plait.compare(PATHS, schedulers="minrtt", runs=1, **RUN).table[0], "column: `0` is no text"),  # type: ignore[index]
        (lambda: plait.compare(PATHS, schedulers="minrtt", runs=1, **RUN).table["nix"], "unknown column `nix`\n  allowed: scheduler, cc"),
    ],
)
def test_an_argument_of_another_kind_is_an_error_of_the_package(call: Any, text: str) -> None:
    with pytest.raises(plait.Error, match=text):
        call()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(plait.Error, match="it is a pipe, and a call reads only files"):
        plait.compare([f"wifi:trace={pipe},rtt=20ms", "lte-att"], **RUN)
    with pytest.raises(plait.Error, match="it is a pipe"):
        plait.compare(scenario=pipe)


HALF = "\udcff"
"""Half of a character, as in the name of a file whose bytes are not UTF-8."""


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (lambda: plait.compare(f"{HALF}:rate=1mbit", **RUN), "--path"),
        (lambda: plait.compare([plait.Path("wifi", rate=HALF), "lte-att"], **RUN), "--path wifi:rate"),
        (lambda: plait.compare([{"name": "wifi", HALF: 3}, "lte-att"], **RUN), "--path"),
        (lambda: plait.compare(PATHS, workload=HALF), "--workload"),
        (lambda: plait.compare(PATHS, **{**RUN, HALF: 3}), "setting"),
        (lambda: plait.compare(PATHS, vary={HALF: ["20ms"]}, **RUN), "--vary"),
        (lambda: plait.run(PATHS, scheduler=HALF, **RUN), "--scheduler"),
        (lambda: plait.explain(PATHS, at=HALF, **RUN), "--at"),
        (lambda: plait.Scenario.from_toml(HALF), "text"),
        (lambda: plait.Scenario.from_file(HALF), "file"),
        (lambda: plait.experiment(HALF), "name_or_file"),
        (lambda: plait.sweep(HALF, out="/nowhere/x"), r"scenarios\[0\]"),
        (lambda: plait.Sweep.open(f"/nowhere/{HALF}"), "out"),
        (lambda: plait.list_schedulers(HALF), "schedulers"),
    ],
)
def test_half_of_a_character_is_an_error_of_the_package(call: Any, place: str) -> None:
    with pytest.raises(plait.Error, match=rf"^{place}: `.*\\udcff.*` is no text of Unicode\n  allowed: ") as refused:
        call()
    # It can be printed.
    str(refused.value).encode()


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    result = plait.compare(PATHS, schedulers="minrtt", runs=2, **RUN)
    for call, name in [(result.to_polars, "polars"), (result.to_pandas, "pandas"), (result.plot, "matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(plait.Error, match=rf"{name} is not installed\n  allowed: pip install {name}, or pip install 'plait\["):
            call()


def test_a_class_answers_a_question() -> None:
    subflows = [{"id": 0, "srtt_ms": 60}, {"id": 1, "srtt_ms": 9}]
    assert plait.decide(scheduler=Fast, subflows=subflows)["subflow"] == 1
    with pytest.raises(plait.Error, match="missing field `scheduler`"):
        plait.decide(subflows=subflows)


def test_numbers_and_paths_of_other_libraries_are_settings(tmp_path: Any) -> None:
    numpy = pytest.importorskip("numpy")
    trace = tmp_path / "x.csv"
    trace.write_text("0,20mbit\n")
    path = plait.Path("wifi", trace=trace, rtt="22ms")
    assert str(path) == f"wifi:trace={trace},rtt=22ms"
    result = plait.compare(PATHS, schedulers="minrtt", runs=numpy.int64(2), seed=numpy.int64(3), **RUN)
    assert "--runs 2 --seed 3" in result.command
    assert plait.explain(PATHS, slowest=numpy.int64(2), **RUN).command.endswith("--slowest 2")
