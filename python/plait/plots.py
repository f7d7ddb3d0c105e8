"""What every picture needs: colours, axes, and words for numbers. matplotlib draws (``pip install plait[plot]``)."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from plait import _plait
from plait.arguments import package

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

THEMES: dict[str, dict[str, str]] = {
    "light": {
        "ground": "#ffffff", "line": "#d5d9e0", "grid": "#e8ebf0", "text": "#1b2027", "soft": "#5a6472", "alert": "#b3261e",
        "p0": "#0072b2", "p1": "#d55e00", "p2": "#00806a", "p3": "#a8478a",
        "p4": "#6a5acd", "p5": "#946200", "p6": "#3b7d9c", "p7": "#6b6b6b",
    },
    "dark": {
        "ground": "#14171c", "line": "#39414d", "grid": "#272d36", "text": "#e7eaef", "soft": "#a0aab8", "alert": "#ff5c7a",
        "p0": "#56b4e9", "p1": "#ff9447", "p2": "#2fc6a0", "p3": "#e59ac9",
        "p4": "#a99cf5", "p5": "#e8c14a", "p6": "#8fd0e6", "p7": "#b5b5b5",
    },
}  # fmt: skip
"""The colours of the pages (crates/plait-report/src/page/page.css)."""

COLOURS = 8
"""Number of colours for paths and rows."""


class Canvas:
    """A figure of matplotlib in the colours of a theme."""

    def __init__(self, theme: Theme | None, width: float, heights: Sequence[float], columns: int = 1) -> None:
        """Makes a figure with a drawing for each height, in inches, in each column."""
        package("matplotlib", "plot", "plot")
        import matplotlib.colors
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        class Picture(Figure):  # type: ignore[misc]
            """A figure that a notebook shows without pyplot."""

            def _repr_png_(self) -> bytes:
                bytes_of = io.BytesIO()
                self.savefig(bytes_of, format="png", dpi=96)
                return bytes_of.getvalue()

        if theme is None:
            # A dark style of matplotlib has a dark background.
            luminance = sum(matplotlib.colors.to_rgb(matplotlib.rcParams["figure.facecolor"]))
            theme = "dark" if luminance < 1.5 else "light"
        if theme not in THEMES:
            raise _plait.Error(f"theme: `{theme}`: unknown theme\n  allowed: light, dark")
        self.colours = THEMES[theme]
        self.figure: Figure = Picture(figsize=(width, sum(heights)), layout="constrained", facecolor=self.colours["ground"])
        FigureCanvasAgg(self.figure)
        grid = self.figure.subplots(len(heights), columns, height_ratios=heights, squeeze=False)
        self.axes: list[list[Axes]] = [list(line) for line in grid]
        for line in self.axes:
            for axes in line:
                self._dress(axes)

    def _dress(self, axes: Axes) -> None:
        axes.set_facecolor(self.colours["ground"])
        axes.grid(True, color=self.colours["grid"], linewidth=0.8)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(self.colours["line"])
        axes.tick_params(colors=self.colours["soft"], labelsize=8, length=0)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set_color(self.colours["soft"])
            label.set_fontsize(9)

    def colour(self, number: int) -> str:
        """Returns the colour of a path or row."""
        return self.colours[f"p{number % COLOURS}"]

    def caption(self, axes: Axes, heading: str, note: str = "", pad: float = 6) -> None:
        """Writes a heading above a drawing, and a note beside it."""
        title = axes.set_title(heading, loc="left", pad=pad, fontsize=9, fontweight="bold", color=self.colours["text"])
        if note:
            axes.annotate(
                note, xy=(1, 0), xycoords=title, xytext=(8, 0), textcoords="offset points",
                fontsize=8.5, color=self.colours["soft"], annotation_clip=False,
            ).set_in_layout(False)  # fmt: skip

    def title(self, text: str) -> None:
        """Writes the title of the figure."""
        self.figure.suptitle(text, x=0.01, ha="left", fontsize=11, color=self.colours["text"])

    def legend(self, axes: Axes, **settings: Any) -> None:
        """Writes the key of a drawing."""
        legend = axes.legend(frameon=False, fontsize=8, labelcolor=self.colours["text"], **settings)
        legend.set_in_layout(True)


def scaled(units: Sequence[str]) -> Callable[[float, object], str]:
    """Returns a formatter for matplotlib: three digits, and the unit of a power of 1000.

    >>> scaled(["B", "kB", "MB"])(2_500_000, None)
    '2.5 MB'
    """

    def words(value: float, _: object) -> str:
        unit = 0
        while abs(value) >= 999.5 and unit + 1 < len(units):
            value /= 1000
            unit += 1
        return f"{value:.3g} {units[unit]}" if value else "0"

    return words


BYTES = ["B", "kB", "MB", "GB"]
RATES = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]
TIMES = ["µs", "ms", "s"]


def number_of(text: str) -> float | None:
    """Returns the number of a text with a unit; None if it is no number.

    >>> number_of("2.5mbit"), number_of("30ms"), number_of("1%"), number_of("on")
    (2.5, 30.0, 1.0, None)
    """
    digits = text.rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    try:
        number = float(digits)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def numbers_of(texts: Sequence[str]) -> tuple[list[float], str] | None:
    """Returns the numbers of texts that have the same unit, and the unit; None if they have not.

    >>> numbers_of(["10ms", "40ms"]), numbers_of(["10ms", "1s"])
    (([10.0, 40.0], 'ms'), None)
    """
    numbers = [number_of(text) for text in texts]
    units = {text.lstrip("0123456789.") for text in texts}
    if None in numbers or len(units) != 1:
        return None
    return [number for number in numbers if number is not None], units.pop()
