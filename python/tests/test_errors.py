"""Errors have the texts of the command line: the place, the reason and a proposal."""

from __future__ import annotations

import json
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
    with pytest.raises(plait.Error, match="ecf.completion_ms.median < 1"):
        broken.check()
    held = plait.compare(PATHS, expect=["ecf.completion_ms.median > 1", "ecf.completion_ms.max > 1"], **settings)
    assert held.check() is held


def test_a_run_that_kept_no_events_says_how_to_keep_them() -> None:
    run = plait.run(PATHS, workload="download:64kB")
    with pytest.raises(plait.Error, match="events=True"):
        len(run.events)
