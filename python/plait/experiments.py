"""Experiments: sweeps with the claims of a paper, built in or from a file."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plait import _plait
from plait.arguments import directory, file_name, switch, whole
from plait.progress import progress_bar
from plait.results import Report
from plait.table import Table


def experiments() -> list[dict[str, Any]]:
    """Returns the built-in experiments: the name, the paper, the title and the claims of each.

    >>> import plait
    >>> [entry["title"] for entry in plait.experiments() if entry["id"] == "ton-fig8"]
    ['...']
    """
    found: list[dict[str, Any]] = json.loads(_plait.list_experiments())["experiments"]
    return found


def experiment(
    name_or_file: str | os.PathLike[str],
    *,
    quick: bool = False,
    seed: int = 1,
    more: int | None = None,
    again: int = 0,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | bool = True,
    progress: bool | None = None,
) -> ExperimentResult:
    """Runs an experiment and judges its claims, as ``plait experiment run`` does.

    ``quick`` runs only the points of the core claims. ``more`` limits the runs of an undecided claim, as a multiple
    of those in the file. ``again`` judges the claims that hold with so many further seeds. ``jobs`` limits the runs at a
    time.

    Finished runs are cached, so a call that was interrupted continues where it stopped. ``cache`` is the directory; True
    is the user's own, which the command ``plait`` of this package uses too, and False keeps nothing.

    >>> import plait
    >>> result = plait.experiment("ton-fig8", quick=True, cache=False)
    >>> {claim["standing"] for claim in result.claims} <= {"holds", "fails", "undecided", "miss"}
    True
    """
    making = {
        "quick": switch("quick", quick),
        "seed": whole("seed", seed, 0, 2**64 - 1),
        "more": None if more is None else whole("more", more, 1, 1024),
        "again": whole("again", again, 0, 1000),
        "jobs": None if jobs is None else whole("jobs", jobs, 1, 1024),
        "cache": _directory(cache),
    }
    with progress_bar(progress) as tell:
        return ExperimentResult(_plait.experiment(file_name("name_or_file", name_or_file), making, tell))


def _directory(cache: str | os.PathLike[str] | bool) -> str | None:
    """Returns the directory of finished runs; None if they are not kept."""
    if cache is False:
        return None
    if cache is not True:
        return os.fspath(directory("cache", cache))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    usual = os.path.join(base, "plait")
    try:
        os.makedirs(usual, exist_ok=True)
    except OSError as error:
        warnings.warn(f"plait: runs are not cached: {usual}: {error.strerror}", stacklevel=3)
        return None
    return usual


@dataclass(frozen=True)
class Figure:
    """A figure of an experiment. A notebook shows it."""

    name: str
    """Its name, such as ``ton-fig8-1-1``."""
    title: str
    """The heading above it."""
    note: str
    """The meaning of its marks, and the data that it omits."""
    svg: str
    """The drawing."""

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the drawing (SVG)."""
        Path(file).write_text(self.svg, encoding="utf-8")


class ExperimentResult(Report[_plait.ExperimentReport]):
    """The outcome of an experiment. It prints as ``plait experiment run`` does."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "cannot pickle plait.ExperimentResult: pickle its table, runs, figures or to_dict(), or repeat the call, "
            "which finds the finished runs in its cache"
        )

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims with their verdicts: ``standing`` is ``holds``, ``fails``, ``undecided`` or ``miss``."""
        return list(self._document["claims"])

    @cached_property
    def table(self) -> Table:
        """A table with a line for each row at each point: the medians of its measures."""
        return Table(self._inner.cells())

    @cached_property
    def runs(self) -> Table:
        """A table with a line for each run."""
        return Table(self._inner.runs())

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures of the file, as ``plait reproduce --html`` draws them."""
        return [Figure(*parts) for parts in self._inner.figures()]

    @property
    def holds(self) -> bool:
        """True if no exact or hard claim fails, except those that are known to fail."""
        return not self._inner.broken

    def check(self) -> ExperimentResult:
        """Returns the result itself. If the command would fail, it raises `plait.Error`."""
        if not self.holds:
            raise _plait.Error("\n".join(self._inner.broken))
        return self

    def to_csv(self) -> str:
        """Returns the text of ``plait experiment run --format csv``."""
        return self._inner.csv()

    def to_markdown(self) -> str:
        """Returns the text of ``plait experiment run --format markdown``."""
        return self._inner.markdown()
