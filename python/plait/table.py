"""Tables, which other libraries read through the Arrow C stream interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plait import _plait
from plait.arguments import package, word

if TYPE_CHECKING:
    import pandas
    import polars


class Table:
    """Columns of equal length. Every library that reads Arrow streams takes it: ``polars.DataFrame(table)``.

    >>> import plait
    >>> run = plait.run(["wifi-home", "lte-att"], workload="download:64kB", events=True)
    >>> run.events.columns[:3]
    ['t_ns', 'host', 'connection']
    >>> run.events["event"].count("loaded"), "decision" in run.events["event"]
    (0, True)
    """

    def __init__(self, inner: _plait.Table) -> None:
        self._inner = inner

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_parts, (self._inner.parts(), len(self))

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return self._inner.columns

    def __getitem__(self, name: str) -> list[Any]:
        """Returns the values of a column; None for a row that has no value."""
        if word("column", name) not in self.columns:
            raise _plait.Error(f"column: unknown column `{name}`\n  allowed: {', '.join(self.columns)}")
        return self._inner.column(name)

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over the rows, each a dictionary by column."""
        columns = self.columns
        for values in zip(*(self[name] for name in columns), strict=True):
            yield dict(zip(columns, values, strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns by name."""
        return {name: self[name] for name in self.columns}

    def to_polars(self) -> polars.DataFrame:
        """Returns a data frame of polars, which shares the memory of the table."""
        frame: polars.DataFrame = package("polars", "to_polars", "polars").DataFrame(self)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a data frame of pandas. It copies the values, and needs no further library."""
        frame: pandas.DataFrame = package("pandas", "to_pandas", "pandas").DataFrame(self.to_dict())
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._inner.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<plait.Table: {len(self)} rows, columns {', '.join(self.columns)}>"


def _of_parts(parts: list[tuple[str, str, list[Any]]], rows: int) -> Table:
    """Returns the table that was pickled as these parts."""
    return Table(_plait.Table.of_parts(parts, rows))
