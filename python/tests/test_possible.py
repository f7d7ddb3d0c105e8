"""Tests of the calculation in examples/python/possible.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "possible.py"


@pytest.fixture(scope="module")
def possible() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_paths_deliver_a_size_together(possible: dict[str, Any]) -> None:
    # Two paths with a byte in each ms.
    curves = [[(2_000, 2_000)], [(1_000, 1_000), (2_000, 2_000)]]
    assert possible["together"](curves, 1_000) == pytest.approx(500)
    assert possible["together"](curves, 1_000, join_after=100) == pytest.approx(550)
    assert possible["together"](curves, 1_000, payload=0.5) == pytest.approx(1_000)
    # The second path joins too late to help.
    assert possible["together"](curves, 1_000, join_after=5_000) == pytest.approx(1_000)


def test_a_curve_is_read_between_its_points_and_no_further(possible: dict[str, Any]) -> None:
    curve = [(10, 100), (20, 400)]
    assert [possible["delivered"](curve, time) for time in (-5, 5, 10, 15, 20, 99)] == [0, 50, 100, 250, 400, 400]


def test_a_command_is_taken_apart(possible: dict[str, Any]) -> None:
    given = possible["options"]("plait compare --path a:rtt=20ms,rate=5mbit --workload download:2000000B --exact --runs 1")
    assert given == [("--path", "a:rtt=20ms,rate=5mbit"), ("--workload", "download:2000000B"), ("--runs", "1")]
    assert possible["size_of"](given) == 2_000_000
    assert possible["rtt_ms"]("a:rtt=20.5ms,rate=5mbit") == 20.5
    assert possible["rtt_ms"]("b:owd_down=14.5ms,owd_up=500us,rate=5mbit") == 15.0


@pytest.mark.parametrize(("text", "part"), [("x", "Expecting value"), ("{}", "'cells'"), ('{"cells":[]}', "no download")])
def test_a_wrong_file_is_named_with_what_is_expected(
    possible: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, part: str
) -> None:
    file = tmp_path / "cells.json"
    file.write_text(text)
    monkeypatch.setattr("sys.argv", ["possible.py", str(file)])
    with pytest.raises(SystemExit, match=part) as error:
        possible["main"]()
    assert "plait scoreboard" in str(error.value)
