"""The data set of a sweep: Parquet files, and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait import _plait
from plait.arguments import file_name, package

if TYPE_CHECKING:
    import pandas
    import polars

PART_RUNS = 100_000
"""Runs of a Parquet file."""

CELLS_AT_ONCE = 256
"""Cells that are converted at a time."""

SCHEMA = "plait.sweep/1"
"""The schema of a manifest."""

REPEAT = "repeat the call of plait.sweep with this `out`: it writes the files again, and makes only missing runs"

FIRST = ["scenario"]
TEXTS = ["scheduler", "cc"]


def check_arrow() -> None:
    """Raises `plait.Error` if pyarrow is missing."""
    if find_spec("pyarrow") is None:
        package("pyarrow", "sweep", "cluster")


class Sweep:
    """The data set of a sweep, in a directory."""

    def __init__(self, out: Path, manifest: dict[str, Any], workers: dict[str, int]) -> None:
        self.out = out
        self.manifest = manifest
        self.workers = workers
        """Number of runs that each worker has made in this call, by host and process."""

    @classmethod
    def open(cls, out: str | os.PathLike[str]) -> Sweep:
        """Opens the data set in a directory."""
        manifest = Path(file_name("out", out)) / "manifest.json"
        allowed = f"the directory of a sweep that has ended; {REPEAT}"
        try:
            content = json.loads(manifest.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise _plait.Error(f"{manifest}: there is no such file\n  allowed: {allowed}") from None
        except OSError as error:
            raise _plait.Error(f"{manifest}: {error.strerror}\n  allowed: {allowed}") from None
        except ValueError as error:
            raise _plait.Error(f"{manifest}: {error}\n  allowed: {allowed}") from None
        if not _is_manifest(content):
            raise _plait.Error(f"{manifest}: it is no manifest of a sweep ({SCHEMA})\n  allowed: {allowed}")
        return cls(Path(out), content, {})

    @property
    def digest(self) -> str:
        """SHA-256 over all runs, whichever workers have made them."""
        return str(self.manifest["digest"])

    @property
    def rows(self) -> int:
        """The number of runs."""
        return int(self.manifest["runs"])

    @property
    def files(self) -> list[Path]:
        """The Parquet files."""
        return [self.out / file["name"] for file in self.manifest["files"]]

    def _present(self) -> list[Path]:
        """Returns the Parquet files, all of which exist and are those of the manifest."""
        for file, about in zip(self.files, self.manifest["files"], strict=True):
            problem = ""
            if not file.is_file():
                problem = "there is no such file"
            elif hashlib.sha256(file.read_bytes()).hexdigest() != about.get("sha256"):
                problem = "it is not the file that this sweep has written"
            if problem:
                raise _plait.Error(f"{file}: {problem}\n  allowed: all files of the sweep; {REPEAT}")
        return self.files

    def to_polars(self) -> polars.DataFrame:
        """Returns all runs as a data frame of polars."""
        frame: polars.DataFrame = package("polars", "to_polars", "polars").read_parquet(self._present())
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Returns all runs as a data frame of pandas."""
        package("pandas", "to_pandas", "pandas")
        data = package("pyarrow.dataset", "to_pandas", "cluster").dataset(self._present())
        frame: pandas.DataFrame = data.to_table().to_pandas()
        return frame

    def __repr__(self) -> str:
        names = ", ".join(scenario["name"] for scenario in self.manifest["scenarios"][:3])
        more = len(self.manifest["scenarios"]) - 3
        return f"<plait.Sweep {self.out}: {self.rows} runs of {names}{f' and {more} more' if more > 0 else ''}>"


def _is_manifest(content: Any) -> bool:
    """Returns true for a manifest with all that `Sweep` reads."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        return False
    named = [content.get(key) for key in ("files", "scenarios")]
    lists = all(isinstance(it, list) and all(isinstance(one, dict) and "name" in one for one in it) for it in named)
    return lists and isinstance(content.get("runs"), int) and "digest" in content


def check_place(out: Path) -> None:
    """Refuses a directory whose manifest is of something else, because a sweep replaces it."""
    manifest = out / "manifest.json"
    try:
        ours = not manifest.exists() or _is_manifest(json.loads(manifest.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise _plait.Error(f"out: `{manifest}` is no manifest of a sweep ({SCHEMA})\n  allowed: another directory, or without this file")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Lets one process at a time write into a directory, and removes what a killed one has left there."""
    try:
        import fcntl
    except ImportError:
        # Windows. Each file is still replaced as a whole.
        yield
        return
    descriptor = os.open(out, os.O_RDONLY)
    try:
        # Some file systems have no locks.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for left in [*out.glob("*.partial"), *out.glob("runs/*.partial")]:
                left.unlink()
        yield
    finally:
        os.close(descriptor)


def write(out: Path, plans: Sequence[_plait.Plan], log: _plait.RunLog, workers: dict[str, int]) -> Sweep:
    """Writes the runs of all plans, which the log has, and the manifest last."""
    with _alone(out):
        return _write(out, plans, log, workers)


def _write(out: Path, plans: Sequence[_plait.Plan], log: _plait.RunLog, workers: dict[str, int]) -> Sweep:
    import pyarrow

    summaries = [log.summary(plan) for plan in plans]
    schema = _schema(plans, summaries)
    directory = out / "runs"
    directory.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").unlink(missing_ok=True)
    files = []
    for number, part in enumerate(_parts(plans, log, schema)):
        path = directory / f"part-{number:05}.parquet"
        _write_part(part, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append({"name": f"runs/{path.name}", "runs": part.num_rows, "sha256": digest})
    kept = {file["name"] for file in files}
    for path in directory.glob("part-*.parquet"):
        if f"runs/{path.name}" not in kept:
            path.unlink()
    manifest = {
        "schema": SCHEMA,
        "version": _plait.PROGRAM,
        "program": log.program,
        "pyarrow": pyarrow.__version__,
        "digest": hashlib.sha256("".join(digest for digest, _ in summaries).encode()).hexdigest(),
        "cells": sum(plan.cells for plan in plans),
        "runs": sum(plan.runs for plan in plans),
        "scenarios": [
            {
                "name": plan.name,
                "command": plan.command,
                "seed": plan.seed,
                "cells": plan.cells,
                "runs": plan.runs,
                "digest": digest,
            }
            for plan, (digest, _) in zip(plans, summaries, strict=True)
        ],
        "files": files,
    }
    _replace(out / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    return Sweep(out, manifest, workers)


def _schema(plans: Sequence[_plait.Plan], summaries: Sequence[tuple[str, list[str]]]) -> Any:
    """Returns the columns, which are the same in all files: the place of a run, and its values by name."""
    import pyarrow

    texts = [*FIRST, *dict.fromkeys(name for plan in plans for name in plan.columns), *TEXTS]
    fields = [(name, pyarrow.string()) for name in dict.fromkeys(texts)]
    fields += [
        ("run", pyarrow.int64()),
        ("seed", pyarrow.uint64()),
        ("completed", pyarrow.bool_()),
        ("failure", pyarrow.string()),
        ("segment_hash", pyarrow.string()),
    ]
    values = sorted({name for _, names in summaries for name in names})
    return pyarrow.schema(fields + [(name, pyarrow.float64()) for name in values])


def _parts(plans: Sequence[_plait.Plan], log: _plait.RunLog, schema: Any) -> Iterator[Any]:
    """Yields tables of `PART_RUNS` runs, the last one with the rest."""
    import pyarrow

    held: list[Any] = []
    rows = 0
    for plan in plans:
        for first in range(0, plan.cells, CELLS_AT_ONCE):
            table = pyarrow.table(log.table(plan, first, first + CELLS_AT_ONCE))
            held.append(_with_schema(table, schema))
            rows += table.num_rows
            while rows >= PART_RUNS:
                whole = pyarrow.concat_tables(held)
                yield whole.slice(0, PART_RUNS)
                held = [whole.slice(PART_RUNS)]
                rows -= PART_RUNS
    if rows:
        yield pyarrow.concat_tables(held)


def _with_schema(table: Any, schema: Any) -> Any:
    """Returns a table with all columns; those that it lacks are null."""
    import pyarrow

    known = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in known
        else pyarrow.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pyarrow.table(columns, schema=schema)


def _write_part(table: Any, path: Path) -> None:
    import pyarrow.parquet

    whole = table.combine_chunks()
    partial = _partial(path)
    pyarrow.parquet.write_table(whole, partial, compression="zstd", version="2.6", data_page_version="1.0")
    os.replace(partial, path)


def _replace(path: Path, text: str) -> None:
    partial = _partial(path)
    partial.write_text(text)
    os.replace(partial, path)


def _partial(path: Path) -> Path:
    """Returns the name of a file until it is whole. Another process has another name."""
    return path.with_suffix(f".{os.getpid()}.partial")
