"""The outcomes of `plait.compare`, `plait.run` and `plait.explain`."""

from __future__ import annotations

import html
import json
import shutil
import textwrap
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from plait import _plait, plot_result, plot_run
from plait.plots import Theme
from plait.schedulers import Scheduler, register
from plait.table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

HTML_WIDTH = 120
"""Width of a report on a page, in columns."""


def terminal_width() -> int:
    """Returns the width of the terminal in columns, as the command line takes it."""
    return shutil.get_terminal_size((80, 24)).columns


def page_of(text: str) -> str:
    """Returns a report for a notebook."""
    style = "line-height:1.25;white-space:pre;overflow-x:auto"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


class Compiled(Protocol):
    """The part of an outcome in the compiled module."""

    @property
    def command(self) -> str: ...
    def json(self) -> str: ...
    def text(self, width: int) -> str: ...


Inner = TypeVar("Inner", bound=Compiled)


class Report(Generic[Inner]):
    """An outcome that a command line repeats. It prints as that command does."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    @property
    def command(self) -> str:
        """The command line that gives the same numbers."""
        return self._inner.command

    def to_dict(self) -> dict[str, Any]:
        """Returns the document that `command` prints with ``--json``."""
        document: dict[str, Any] = json.loads(self._inner.json())
        return document

    def _text(self, width: int) -> str:
        """Returns the report in this width."""
        return self._inner.text(width)

    def __repr__(self) -> str:
        return self._text(terminal_width()).rstrip("\n")

    def _repr_html_(self) -> str:
        return page_of(self._text(HTML_WIDTH))

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self.to_dict()


class Result(Report[_plait.Comparison]):
    """The outcome of a comparison. It prints as the table of the terminal.

    >>> import plait
    >>> result = plait.compare(
    ...     ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"],
    ...     workload="download:256kB", schedulers="minrtt,ecf", runs=5, vary={"lte.rtt": ["60ms", "120ms"]},
    ... )
    >>> len(result.rows), len(result.runs)
    (8, 40)
    >>> sorted(set(result.table["lte.rtt"]))
    ['120ms', '60ms']
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._inner == other._inner

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return _result_of, self._inner.parts()

    @property
    def digest(self) -> str:
        """SHA-256 over the measures and the segments of every run.

        ``command`` with ``--json`` gives the same digest.
        """
        return self._inner.digest

    @property
    def verdict(self) -> str:
        """The sentences below the table; with ``vary`` a line for each point."""
        return "\n".join(self._inner.verdicts)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all points, as ``plait compare --json`` has them."""
        rows: list[dict[str, Any]] = self._document["rows"]
        return rows

    @cached_property
    def table(self) -> Table:
        """A table with a line for each row.

        It has all statistics of the primary measure, and the medians of the other measures.
        """
        return Table(self._inner.rows())

    @cached_property
    def runs(self) -> Table:
        """A table with a line for each run: its seed, and every measure."""
        return Table(self._inner.runs())

    @property
    def holds(self) -> bool:
        """True if every expectation (``expect``) holds."""
        return not self._inner.broken

    def check(self) -> Result:
        """Returns the result itself. If an expectation does not hold, it raises `plait.Error`."""
        if not self.holds:
            raise _plait.Error(self._inner.broken)
        return self

    def _text(self, width: int) -> str:
        """Returns the report. Expectations that do not hold stand at its end."""
        text, broken = self._inner.text(width), self._inner.broken
        return f"{text}\n{broken}\n" if broken else text

    def to_csv(self, per_run: bool = False) -> str:
        """Returns the text of ``plait compare --format csv``, with ``per_run`` that of ``--per-run``."""
        return self._inner.csv(bool(per_run))

    def to_markdown(self) -> str:
        """Returns the text of ``plait compare --format markdown``."""
        return self._inner.markdown()

    def to_polars(self) -> polars.DataFrame:
        """Returns `table` as a data frame of polars."""
        return self.table.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """Returns `table` as a data frame of pandas."""
        return self.table.to_pandas()

    def plot(self, measure: str | None = None, *, theme: Theme | None = None) -> Figure:
        """Draws the rows with matplotlib: their intervals and distributions; with ``vary`` lines over the setting.

        ``measure`` is the primary measure, if it is not given. ``theme`` is ``"light"`` or ``"dark"``; otherwise the
        style of matplotlib decides. A notebook shows the figure, and ``plot().savefig("file.pdf")`` writes it.
        """
        return plot_result.draw(self._document, list(self.runs), measure, theme)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Run(Report[_plait.RunReport]):
    """The outcome of one run. It prints as ``plait run`` does.

    >>> import plait
    >>> run = plait.run(["wifi-home", "lte-att"], workload="download:64kB", scheduler="ecf")
    >>> run.complete, "completion_ms" in run.measures
    (True, True)
    """

    # A run that was pickled has its document, and makes the rest when it is asked for.
    _recipe: tuple[str, bool, type[Scheduler] | None] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._document == other._document

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def _inner(self) -> _plait.RunReport:  # type: ignore[override]
        text, events, scheduler = self._recipe or ("", False, None)
        if self._of_agent:
            problem = "an agent of plait.gym made the decisions of this run, so a pickled one cannot repeat it"
            raise _plait.Error(f"{problem}\n  allowed: digest, complete, measures, to_dict()")
        if scheduler is not None:
            register(scheduler)
        inner = _plait.run(_plait.Draft.from_toml("scenario", text), events)
        if inner.digest != self.digest:
            problem = f"this is plait {_plait.PROGRAM}, which does not repeat the run with the digest {self.digest}"
            raise _plait.Error(f"{problem}\n  allowed: the same version, and the same class of the scheduler")
        return inner

    def __reduce__(self) -> tuple[Any, ...]:
        return _run_of, (self.to_dict(), self._recipe or self._inner.recipe())

    def _text(self, width: int) -> str:
        try:
            text = super()._text(width)
            if self._of_agent:
                why = "No command line repeats this run: an agent of plait.gym made its decisions."
                text = text.rpartition("Run again:")[0] + textwrap.fill(why, width) + "\n"
            return text
        except _plait.Error as error:
            # A run that was pickled and cannot be repeated.
            document, why = self._document, str(error).partition("\n")[0]
            return f"<plait.Run {document['scheduler']}, {document['workload']}, digest {self.digest}: {why}>"

    @property
    def _of_agent(self) -> bool:
        """True if an agent of `plait.gym` made the decisions."""
        return bool(self._document["scheduler"] == "environment")

    @property
    def command(self) -> str:
        """The command line that repeats the run. It is None if an agent of `plait.gym` made the decisions."""
        # No type says None, because a run of `plait.run` always has a command.
        command: str = self._document["command"]
        return command

    def to_dict(self) -> dict[str, Any]:
        """Returns the document of ``plait run --json``. Its ``command`` is that of the run."""
        if self._recipe is not None:
            return deepcopy(self._document)
        document = super().to_dict()
        if document["scheduler"] == "environment":
            document["command"] = None
        return document

    @property
    def digest(self) -> str:
        """Hash over every segment sent and delivered: ``segment_hash`` of ``plait run --json``."""
        return str(self._document["segment_hash"])

    @property
    def complete(self) -> bool:
        """True if the workload finished."""
        return bool(self._document["complete"])

    @property
    def measures(self) -> dict[str, float]:
        """The measures by name (`plait.list_measures`). A measure that the workload lacks is absent."""
        return dict(self._document["measures"])

    @cached_property
    def events(self) -> Table:
        """Every event, in the order of time; docs/events.md describes the columns.

        A list in an event, such as the subflows of a decision, is its JSON text. The run keeps its events only
        with ``plait.run(..., events=True)``.
        """
        inner = self._inner.events()
        if inner is None:
            raise _plait.Error("events: the run did not keep its events\n  allowed: plait.run(..., events=True)")
        return Table(inner)

    def plot(self, *, theme: Theme | None = None) -> Figure:
        """Draws the run over time with matplotlib, as ``plait run --html`` does. `Result.plot` has the arguments.

        It repeats the run, because a run keeps no numbers for drawings.
        """
        document = self._document
        if self._of_agent:
            problem = "an agent of plait.gym made the decisions of this run, so it cannot be repeated for a drawing"
            raise _plait.Error(f"plot: {problem}\n  allowed: print(run), run.measures, the timeline in run.to_dict()")
        title = f"{document['scheduler']}, {document['workload']}"
        return plot_run.draw(json.loads(self._inner.drawings()), title, theme)


def _result_of(document: str, runs: list[list[Any]]) -> Result:
    """Returns the result that was pickled."""
    return Result(_plait.Comparison.of_parts(document, runs))


def _run_of(document: dict[str, Any], recipe: tuple[str, bool, type[Scheduler] | None]) -> Run:
    """Returns the run that was pickled."""
    run = Run.__new__(Run)
    run.__dict__.update(_document=document, _recipe=recipe)
    return run


class Explanation:
    """Why a run lost time, why data waited, and which decisions caused it. It prints as ``plait explain`` does."""

    def __init__(self, document: str, text: str) -> None:
        self._text = text
        self._document: dict[str, Any] = json.loads(document)

    @property
    def command(self) -> str:
        """The command line that gives the same explanation."""
        return str(self._document["command"])

    @property
    def sentence(self) -> str:
        """The main cause of the lost time."""
        return str(self._document["sentence"])

    @property
    def stalls(self) -> list[dict[str, Any]]:
        """The explained waits, the longest first."""
        return list(self._document["stalls"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the document of ``plait explain --json``."""
        return dict(self._document)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return page_of(self._text)
