"""The pictures of a run over time, as ``plait run --html`` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plait.plots import BYTES, RATES, TIMES, Canvas, Theme, scaled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Band = dict[str, list[float | None]]
"""The least, the greatest and the last value in each bin."""

BARS = 120
"""Largest number of bars of a drawing."""
ORDER = ["arrived", "sent", "copied", "again", "lost"]
"""The kinds of marks, from the lowest layer to the topmost."""
MARKS = {"again": ("x", "sent again"), "copied": ("D", "copy of another subflow's"), "lost": ("v", "lost")}
"""The marker and the words of the kinds that are points."""


class RunPlot:
    """The numbers of the drawings, and the figure."""

    def __init__(self, numbers: dict[str, Any], title: str, theme: Theme | None) -> None:
        self.run = numbers
        self.paths: list[dict[str, Any]] = numbers["paths"]
        # Times in ms, or in s for long runs.
        self.unit, self.unit_name = (1e6, "s") if numbers["end_us"] >= 1e6 else (1e3, "ms")
        self.end = max(numbers["end_us"], numbers["bin_us"]) / self.unit
        self.edges = [min(at * numbers["bin_us"] / self.unit, self.end) for at in range(numbers["bins"] + 1)]
        lanes = [0.32 * len(numbers["blocked"]) + 0.4] if numbers["blocked"] else []
        heights = [3.6, 1.6, 1.2, *lanes, *[1.6, 1.2, 1.2] * len(self.paths)]
        self.canvas = Canvas(theme, 9.6, heights)
        self.canvas.title(title)
        self.axes = iter([line[0] for line in self.canvas.axes])

    def draw(self) -> Figure:
        """Draws everything, in the order of the page."""
        self._sequence(next(self.axes))
        self._rates(next(self.axes))
        self._held(next(self.axes))
        if self.run["blocked"]:
            self._blocked(next(self.axes))
        for number, path in enumerate(self.paths):
            self._windows(next(self.axes), number, path)
            self._curve(next(self.axes), number, path, "srtt_us", "srtt", TIMES)
            self._curve(next(self.axes), number, path, "queue", "Queue", BYTES)
        drawn = [line[0] for line in self.canvas.axes]
        for axes in drawn:
            axes.set_xlim(0, self.end)
            axes.tick_params(labelbottom=axes is drawn[-1])
        drawn[-1].set_xlabel(f"time of the run ({self.unit_name})")
        return self.canvas.figure

    def _scale(self, axes: Axes, units: Sequence[str]) -> None:
        axes.yaxis.set_major_formatter(scaled(units))
        axes.yaxis.set_major_locator(_locator(4))
        axes.set_ylim(bottom=0)

    def _band(self, axes: Axes, band: Band, colour: str, filled: bool = False, label: str | None = None) -> None:
        """Draws a value over time: its range in each bin, and its last value or the area below it."""
        seen = [at for at, value in enumerate(band["last"]) if value is not None]
        if not seen:
            return
        first, last = seen[0], seen[-1] + 1
        edges = self.edges[first : last + 1]

        def stepped(values: list[float | None]) -> list[float]:
            known = [value or 0.0 for value in values[first:last]]
            return [*known, known[-1]]

        high = stepped(band["greatest"])
        low = [0.0] * len(high) if filled else stepped(band["least"])
        alpha = 0.22 if filled else 0.3
        axes.fill_between(edges, low, high, step="post", color=colour, alpha=alpha, linewidth=0, label=label if filled else None)
        if not filled:
            axes.step(edges, stepped(band["last"]), where="post", color=colour, linewidth=1.3, label=label)

    def _sequence(self, axes: Axes) -> None:
        self._band(axes, self.run["readable"], self.canvas.colours["text"], label="readable")
        # As many points as there are in view, as small.
        total = sum(len(group["boxes"]) // 4 for group in self.run["marks"])
        size = 4.5 if total < 80 else 3.0 if total < 300 else 2.0
        for group in sorted(self.run["marks"], key=lambda group: ORDER.index(group["kind"])):
            kind, boxes = group["kind"], group["boxes"]
            colour = self.canvas.colours["alert"] if kind == "lost" else self.canvas.colour(group["path"])
            left = [at / self.unit for at in boxes[0::4]]
            right = [(at + length) / self.unit for at, length in zip(boxes[0::4], boxes[1::4], strict=True)]
            low, high = boxes[2::4], [at + length for at, length in zip(boxes[2::4], boxes[3::4], strict=True)]
            if kind in MARKS:
                middle = [(a + b) / 2 for a, b in zip(left, right, strict=True)], [(a + b) / 2 for a, b in zip(low, high, strict=True)]
                axes.plot(
                    *middle, MARKS[kind][0], color=colour, markersize=size, markerfacecolor=colour if kind == "lost" else "none"
                )
                continue
            from matplotlib.collections import LineCollection

            segments = [[(a, c), (b, d)] for a, b, c, d in zip(left, right, low, high, strict=True)]
            axes.add_collection(LineCollection(segments, colors=colour, linewidths=1.6, alpha=0.55 if kind == "arrived" else 1.0))
        axes.autoscale_view()
        self._scale(axes, BYTES)
        self._key(axes)
        self.canvas.caption(axes, "Data sequence", "the path of each byte, its arrival (pale), and when it was readable")

    def _key(self, axes: Axes) -> None:
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], color=self.canvas.colour(number), linewidth=4, label=path["name"])
            for number, path in enumerate(self.paths)
        ]
        kinds = {group["kind"] for group in self.run["marks"]}
        for kind, (marker, words) in MARKS.items():
            if kind in kinds:
                colour = self.canvas.colours["alert" if kind == "lost" else "text"]
                face = colour if kind == "lost" else "none"
                handles.append(
                    Line2D([], [], marker=marker, linestyle="", color=colour, markerfacecolor=face, markersize=4, label=words)
                )
        handles.append(Line2D([], [], color=self.canvas.colours["text"], linewidth=1.3, label="readable"))
        self.canvas.legend(axes, handles=handles, loc="upper left")

    def _rates(self, axes: Axes) -> None:
        bins, size = self.run["bins"], max(1, -(-self.run["bins"] // BARS))
        bars = range(0, bins, size)
        left = [self.edges[at] for at in bars]
        widths = [self.edges[min(at + size, bins)] - self.edges[at] for at in bars]
        below = [0.0] * len(left)
        for number, path in enumerate(self.paths):
            amounts = [0.0] * len(left)
            for at, amount in path["sent"]:
                amounts[at // size] += amount
            least = self.run["bin_us"] / self.unit
            values = [8e6 * amount / (max(width, least) * self.unit) for amount, width in zip(amounts, widths, strict=True)]
            axes.bar(left, values, widths, below, align="edge", color=self.canvas.colour(number), linewidth=0)
            below = [a + b for a, b in zip(below, values, strict=True)]
        self._scale(axes, RATES)
        self.canvas.caption(axes, "Sent", "payload by path, stacked")

    def _held(self, axes: Axes) -> None:
        self._band(axes, self.run["held"], self.canvas.colours["text"], filled=True)
        self._band(axes, self.run["held"], self.canvas.colours["soft"])
        self._scale(axes, BYTES)
        axes.set_ylim(top=max(axes.get_ylim()[1], 1000))
        self.canvas.caption(axes, "Out of order", "held at the receiver behind a gap")

    def _blocked(self, axes: Axes) -> None:
        lanes = self.run["blocked"]
        for lane, cause in enumerate(lanes):
            base = len(lanes) - 1 - lane
            at = [self.edges[number] for number, _ in cause["shares"]]
            widths = [self.edges[number + 1] - self.edges[number] for number, _ in cause["shares"]]
            tall = [0.75 * min(share / 1000, 1) for _, share in cause["shares"]]
            axes.bar(at, tall, widths, base, align="edge", color=self.canvas.colours["soft"], linewidth=0)
        axes.set_yticks(range(len(lanes)), [cause["name"] for cause in reversed(lanes)])
        axes.set_ylim(0, len(lanes))
        axes.tick_params(axis="y", labelcolor=self.canvas.colours["text"])
        for label in axes.get_yticklabels():
            label.set_verticalalignment("bottom")
        self.canvas.caption(axes, "Held back", "causes that kept the sender from sending")

    def _outages(self, axes: Axes, path: dict[str, Any]) -> None:
        for start, stop in path["down"]:
            axes.axvspan(start / self.unit, stop / self.unit, color=self.canvas.colours["alert"], alpha=0.13, linewidth=0)

    def _windows(self, axes: Axes, number: int, path: dict[str, Any]) -> None:
        self._outages(axes, path)
        self._band(axes, path["inflight"], self.canvas.colour(number), filled=True)
        self._band(axes, path["cwnd"], self.canvas.colour(number))
        self._scale(axes, BYTES)
        alert = self.canvas.colours["alert"]
        top = axes.get_xaxis_transform()
        for amounts, face in ((path["lost_acks"], "none"), (path["lost"], alert)):
            at = [(bin_number + 0.5) * self.run["bin_us"] / self.unit for bin_number, _ in amounts]
            heights = [1.03] * len(at)
            (line,) = axes.plot(at, heights, "v", color=alert, markerfacecolor=face, markersize=4, transform=top, clip_on=False)
            line.set_in_layout(False)
        for us, on, what in self.run["incidents"]:
            if on == number:
                colour = self.canvas.colours["soft"] if what == "up" else alert
                axes.axvline(us / self.unit, color=colour, linewidth=1.6 if what == "timeout" else 0.8)
        note = "cwnd: line, in flight: area; ▼ data lost, ▽ ACK lost, lines: up, down, timeout"
        self.canvas.caption(axes, path["name"], note, pad=10)

    def _curve(self, axes: Axes, number: int, path: dict[str, Any], which: str, heading: str, units: Sequence[str]) -> None:
        self._outages(axes, path)
        self._band(axes, path[which], self.canvas.colour(number))
        self._scale(axes, units)
        self.canvas.caption(axes, f"{path['name']}: {heading}", "in the path, towards the receiver" if which == "queue" else "")


def _locator(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, steps=[1, 2, 5, 10])


def draw(numbers: dict[str, Any], title: str, theme: Theme | None) -> Figure:
    """Draws a run.

    >>> empty = dict.fromkeys(["least", "greatest", "last"], [])
    >>> nothing = {"paths": [], "blocked": [], "marks": [], "incidents": [], "readable": empty, "held": empty}
    >>> len(draw({**nothing, "bin_us": 100.0, "bins": 0, "end_us": 0.0}, "none", "light").axes)
    3
    """
    return RunPlot(numbers, title, theme).draw()
