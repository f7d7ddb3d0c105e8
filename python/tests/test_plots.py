"""Pictures: what they draw, and their colours. tests/python writes none; look at them after a change of the drawing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Plait

import plait
from plait.plots import THEMES

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=0.5%,down=200ms..300ms", "lte:rate=8mbit,rtt=60ms,jitter=2ms"]
SETTINGS: dict[str, Any] = {"workload": "download:256kB", "schedulers": "minrtt,ecf"}

needs_matplotlib = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('matplotlib')", reason="matplotlib")


def test_the_colours_are_those_of_the_pages() -> None:
    css = (ROOT / "crates" / "plait-report" / "src" / "page" / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    for name, text in (("light", light), ("dark", dark)):
        page = dict(re.findall(r"--(\w+): (#\w+);", text))
        assert len(THEMES[name]) == 14
        assert THEMES[name].items() <= page.items()


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plait.Error, match=r"plait\[plot\]"):
        plait.compare(PATHS, runs=1, **SETTINGS).plot()


@needs_matplotlib
def test_rows_have_their_intervals_and_distributions() -> None:
    result = plait.compare(PATHS, runs=5, **SETTINGS)
    rows, shares = result.plot().axes
    names = [row["scheduler"] for row in result.rows]
    assert [label.get_text() for label in rows.get_yticklabels()] == names
    dots = [line for line in rows.get_lines() if line.get_marker() == "o"]
    assert [float(line.get_xdata()[0]) for line in dots] == result.table["completion_ms"]
    for line in shares.get_lines():
        of_row = [run["completion_ms"] for run in result.runs if run["scheduler"] == line.get_label()]
        assert list(line.get_xdata())[1:] == sorted(of_row)
        assert list(line.get_ydata())[-1] == 1.0
    assert len(shares.get_lines()) == len(names)
    assert "completion time (ms)" in rows.get_xlabel()
    # One run has no distribution.
    assert len(plait.compare(PATHS, runs=1, **SETTINGS).plot("goodput_mbps").axes) == 1


@needs_matplotlib
def test_varied_settings_are_lines_and_panels() -> None:
    result = plait.compare(PATHS, runs=3, vary={"lte.rtt": ["40ms", "90ms"], "sndbuf": ["64kB", "1MB"]}, **SETTINGS)
    panels = result.plot().axes
    assert [axes.get_title(loc="left") for axes in panels] == ["sndbuf=64kB", "sndbuf=1MB"]
    medians = {(line["sndbuf"], line["scheduler"], line["lte.rtt"]): line["completion_ms"] for line in result.table}
    for size, axes in zip(["64kB", "1MB"], panels, strict=True):
        assert [line.get_label() for line in axes.get_lines()] == ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]
        for line in axes.get_lines():
            assert list(line.get_xdata()) == [40.0, 90.0]
            expected = [medians[size, str(line.get_label()), rtt] for rtt in ("40ms", "90ms")]
            assert list(line.get_ydata()) == pytest.approx(expected)
    words = plait.compare(PATHS, runs=1, vary="sndbuf=64kB,1MB", **SETTINGS).plot().axes[0]
    assert [label.get_text() for label in words.get_xticklabels()] == ["64kB", "1MB"]


@needs_matplotlib
def test_a_run_has_the_numbers_of_the_page(plait_binary: Plait, tmp_path: Path) -> None:
    run = plait.run(PATHS, workload="download:256kB", scheduler="ecf", seed=4)
    page = tmp_path / "run.html"
    words = [word for path in PATHS for word in ("--path", path)]
    plait_binary("run", *words, "--workload", "download:256kB", "--scheduler", "ecf", "--seed", "4", "--html", str(page))
    (numbers,) = re.findall(r'<script type="application/json" id="run">(.*?)</script>', page.read_text())
    assert json.loads(run._inner.drawings()) == json.loads(numbers)
    axes = run.plot(theme="dark").axes
    titles = [one.get_title(loc="left") for one in axes]
    assert titles == [
        "Data sequence", "Sent", "Out of order", "Held back",
        "wifi", "wifi: srtt", "wifi: Queue", "lte", "lte: srtt", "lte: Queue",
    ]  # fmt: skip
    sent = sum(bar.get_height() * bar.get_width() for bar in axes[1].patches)
    expected = sum(amount for path in json.loads(numbers)["paths"] for _, amount in path["sent"])
    # Mbit/s over ms.
    assert sent / 8e3 == pytest.approx(expected, rel=0.01)


@needs_matplotlib
@pytest.mark.parametrize("draw", [plait.Result.plot, plait.Run.plot])
def test_a_picture_is_a_file_and_shows_in_a_notebook(draw: Callable[..., Any], tmp_path: Path) -> None:
    compared = plait.compare(PATHS, runs=2, **SETTINGS)
    outcome = compared if draw is plait.Result.plot else plait.run(PATHS, workload="download:64kB")
    pictures = [draw(outcome, theme=theme) for theme in ("light", "dark")]
    assert all(it._repr_png_().startswith(b"\x89PNG") for it in pictures)
    assert pictures[0]._repr_png_() != pictures[1]._repr_png_()
    pictures[0].savefig(tmp_path / "file.svg")
    assert "<svg" in (tmp_path / "file.svg").read_text()
    with pytest.raises(plait.Error, match="light, dark"):
        draw(outcome, theme="grey")


@needs_matplotlib
def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(plait.Error, match=r"`goodput`: no run has it\n  allowed: .*goodput_mbps"):
        plait.compare(PATHS, runs=1, **SETTINGS).plot("goodput")


@needs_matplotlib
def test_a_measure_is_a_text() -> None:
    with pytest.raises(plait.Error, match="measure: `.*` is no text"):
        plait.compare(PATHS, runs=1, **SETTINGS).plot(["completion_ms"])  # type: ignore[arg-type]


@needs_matplotlib
def test_runs_that_all_failed_have_no_picture() -> None:
    with pytest.raises(plait.Error, match=r"plot: every run failed.*\n  allowed: print\(result\)"):
        plait.compare(PATHS, runs=1, until="1ms", **SETTINGS).plot()


@needs_matplotlib
def test_each_row_has_its_look() -> None:
    names = "minrtt,ecf,blest,slot,otias,daps,sttf,roundrobin,linux"
    result = plait.compare(PATHS, workload="download:64kB", schedulers=names, cc=["cubic", "lia"], runs=2)
    lines = [line for line in result.plot().axes[1].lines if not str(line.get_label()).startswith("tcp:")]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines) == 18
    assert len({line.get_color() for line in lines if str(line.get_label()).startswith("ecf,")}) == 1


@needs_matplotlib
def test_a_picture_changes_no_state_of_matplotlib() -> None:
    program = f"import plait, sys; plait.compare({PATHS!r}, runs=1, **{SETTINGS!r}).plot()._repr_png_(); print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
