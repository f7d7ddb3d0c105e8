"""The pictures of a comparison: intervals and distributions of its rows, or lines over a varied setting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from plait import _plait
from plait.arguments import word
from plait.plots import COLOURS, Canvas, Theme, numbers_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = tuple[str, str]
"""The scheduler and the congestion controller of a row."""
Line = dict[str, Any]
"""A run, by column."""

STYLES = ["-", "--", ":", "-."]
"""The lines of schedulers: the first controller has the first style."""

PLAIN_STYLES = [":", "-.", "--"]
"""The lines of plain TCP on each path."""

MOST_PANELS = 12
"""Largest number of drawings in a figure."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns a percentile, interpolated linearly between the nearest ranks, as the table has it.

    >>> percentile([1.0, 2.0, 4.0], 50), percentile([1.0, 2.0], 95)
    (2.0, 1.95)
    """
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


class ResultPlot:
    """What the pictures of a comparison draw."""

    def __init__(self, document: dict[str, Any], runs: Sequence[Line], measure: str | None) -> None:
        self.measure = document["primary_measure"] if measure is None else word("measure", measure)
        self.workload = document["workload"]
        self.varied = [entry["name"] for entry in document["varied"]]
        self.runs = [run for run in runs if run.get(self.measure) is not None and run["completed"]]
        if not any(run["completed"] for run in runs):
            raise _plait.Error("plot: every run failed, so there is nothing to draw\n  allowed: print(result), which says why")
        if not self.runs:
            known = sorted({name for row in document["rows"] for name in row["measures"]})
            raise _plait.Error(f"measure: `{self.measure}`: no run has it\n  allowed: {', '.join(known)}")
        self.rows: list[Row] = list(dict.fromkeys((row["scheduler"], row["cc"]) for row in document["rows"]))
        self.plain = [row for row in self.rows if row[0].startswith("tcp:")]
        self.several_cc = len({cc for name, cc in self.rows if not name.startswith("tcp:")}) > 1
        self.intervals = {
            (row["scheduler"], row["cc"]): row["measures"][self.measure]["ci95"]
            for row in document["rows"]
            if self.measure in row["measures"] and not row.get("vary")
        }
        self.label = _plait.label_of_measure(self.measure)

    def name(self, row: Row) -> str:
        """Returns the name of a row."""
        return f"{row[0]}, {row[1]}" if self.several_cc else row[0]

    def look(self, canvas: Canvas, row: Row) -> tuple[str, str]:
        """Returns the colour and the style of the lines of a row: a colour for each scheduler, grey for plain TCP."""
        if row in self.plain:
            return canvas.colours["soft"], PLAIN_STYLES[self.plain.index(row) % len(PLAIN_STYLES)]
        others = [it for it in self.rows if it not in self.plain]
        schedulers, controllers = (list(dict.fromkeys(names)) for names in zip(*others, strict=True))
        at = schedulers.index(row[0])
        style = controllers.index(row[1]) + at // COLOURS * len(controllers)
        return canvas.colour(at), STYLES[style % len(STYLES)]

    def values(self, row: Row, **place: str) -> list[float]:
        """Returns the values of a row where the varied settings have these values."""
        return [
            run[self.measure]
            for run in self.runs
            if (run["scheduler"], run["cc"]) == row and all(run[name] == value for name, value in place.items())
        ]

    def points(self, setting: str) -> list[str]:
        """Returns the values of a varied setting in their order."""
        return list(dict.fromkeys(run[setting] for run in self.runs))

    def over_rows(self, theme: Theme | None) -> Figure:
        """Draws the interval of each row, and the distribution of its runs if there are several runs."""
        several = any(len(self.values(row)) > 1 for row in self.rows)
        height = max(2.6, 0.34 * len(self.rows) + 1.2)
        canvas = Canvas(theme, 9.6 if several else 6.4, [height], 2 if several else 1)
        canvas.title(self.workload)
        self._intervals(canvas, canvas.axes[0][0], several)
        if several:
            self._distribution(canvas, canvas.axes[0][1])
        return canvas.figure

    def _intervals(self, canvas: Canvas, axes: Axes, several: bool) -> None:
        for at, row in enumerate(self.rows):
            values = self.values(row)
            if not values:
                continue
            colour, style = self.look(canvas, row)
            axes.hlines(at, percentile(values, 5), percentile(values, 95), color=colour, linewidth=1.2)
            if row in self.intervals:
                axes.hlines(at, *self.intervals[row], color=colour, linewidth=6, alpha=0.35)
            filled = colour if style == "-" else canvas.colours["ground"]
            axes.plot([percentile(values, 50)], [at], "o", color=colour, markerfacecolor=filled, markersize=5)
        axes.set_yticks(range(len(self.rows)), [self.name(row) for row in self.rows])
        axes.tick_params(axis="y", labelcolor=canvas.colours["text"])
        axes.set_ylim(len(self.rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(self.label)
        canvas.caption(axes, "Each row", "median, 5–95 % of the runs, thick: 95 % interval of the mean" if several else "")

    def _distribution(self, canvas: Canvas, axes: Axes) -> None:
        for row in self.rows:
            values = sorted(self.values(row))
            if values:
                colour, style = self.look(canvas, row)
                shares = [(at + 1) / len(values) for at in range(len(values))]
                places, heights = [values[0], *values], [0.0, *shares]
                axes.step(places, heights, style, where="post", color=colour, linewidth=1.5, label=self.name(row))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(self.label)
        axes.set_ylabel("share of runs")
        canvas.caption(axes, "Distribution", "with at most this value; hollow mark: broken line")

    def over_setting(self, theme: Theme | None) -> Figure:
        """Draws each row over the first varied setting, with a drawing for each value of the others."""
        setting, *others = self.varied
        panels = list(product(*(self.points(name) for name in others)))
        if len(panels) > MOST_PANELS:
            raise _plait.Error(f"vary: {len(panels)} drawings\n  allowed: at most {MOST_PANELS}; plot parts of to_pandas()")
        columns = min(len(panels), 3)
        lines = -(-len(panels) // columns)
        canvas = Canvas(theme, max(4.2 * columns, 6.4), [3.3] * lines, columns)
        canvas.title(self.workload)
        points = self.points(setting)
        numbers = numbers_of(points)
        spread = False
        for nth in range(lines * columns):
            axes = canvas.axes[nth // columns][nth % columns]
            if nth >= len(panels):
                axes.set_axis_off()
                continue
            spread |= self._lines(canvas, axes, setting, dict(zip(others, panels[nth], strict=True)))
            if numbers is None:
                axes.set_xticks(range(len(points)), points)
            axes.set_xlabel(f"{setting} ({numbers[1]})" if numbers and numbers[1] else setting)
            axes.set_ylabel(self.label)
            axes.set_ylim(bottom=0)
            canvas.caption(axes, ", ".join(f"{name}={value}" for name, value in zip(others, panels[nth], strict=True)))
        first = canvas.axes[0][0]
        if not others:
            canvas.caption(first, "Medians", "lines through them: 5–95 % of the runs" if spread else "")
        handles, labels = first.get_legend_handles_labels()
        key = canvas.figure.legend(
            handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8, labelcolor=canvas.colours["text"]
        )
        key.set_in_layout(True)
        return canvas.figure

    def _lines(self, canvas: Canvas, axes: Axes, setting: str, place: dict[str, str]) -> bool:
        points = self.points(setting)
        numbers = numbers_of(points)
        spread = False
        for row in self.rows:
            colour, style = self.look(canvas, row)
            places, medians = [], []
            for at, point in enumerate(points):
                values = self.values(row, **place, **{setting: point})
                if values:
                    places.append(numbers[0][at] if numbers else at)
                    medians.append(percentile(values, 50))
                    low, high = percentile(values, 5), percentile(values, 95)
                    spread |= low < high
                    axes.vlines(places[-1], low, high, color=colour, linewidth=1)
            axes.plot(places, medians, style, marker="o", markersize=4, color=colour, linewidth=1.5, label=self.name(row))
        return spread


def draw(document: dict[str, Any], runs: Sequence[Line], measure: str | None, theme: Theme | None) -> Figure:
    """Draws a comparison."""
    plot = ResultPlot(document, runs, measure)
    return plot.over_setting(theme) if plot.varied else plot.over_rows(theme)
