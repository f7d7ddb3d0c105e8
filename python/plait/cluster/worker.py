"""The part of a sweep that runs on a worker."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

from plait import _plait

Unit = tuple[int, int, int]
"""A cell, the first of its runs, and the end of the range."""


class Source(TypedDict):
    """The texts from which a worker makes the cells of a scenario, or of an experiment."""

    experiment: bool
    name: str
    text: str
    files: dict[str, str]
    seed: int
    quick: bool


@dataclass(frozen=True)
class Part:
    """Units of one scenario."""

    plan: int
    """The place of the scenario in the sweep."""
    source: Source
    units: tuple[Unit, ...]
    description: str
    """The first unit in words, for errors."""


@dataclass(frozen=True)
class Batch:
    """Units that a worker makes in one task."""

    program: str
    """The name of the program in the addresses of runs."""
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Answer:
    """The runs of a batch: the lines of each part."""

    worker: str
    seconds: float
    lines: list[list[str]]


def work(batch: Batch, jobs: int = 1, progress: Callable[[int], None] | None = None) -> Answer:
    """Makes the runs of a batch on ``jobs`` threads. ``progress`` takes the number of finished runs."""
    began = time.perf_counter()
    program = _plait.program()
    name = f"{socket.gethostname()}:{os.getpid()}"
    if program != batch.program:
        raise _plait.Error(
            f"worker {name}: it has plait {program}, and this sweep plait {batch.program}\n"
            "  allowed: the same version on all machines"
        )
    lines: list[list[str]] = []
    for part in batch.parts:
        before = sum(map(len, lines))

        def tell(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done)

        try:
            cells = _cells(_Key(part.source))
            lines.append(cells.run(list(part.units), jobs, tell if progress else None))
        except _plait.Error as error:
            raise _plait.Error(f"worker {name}: {part.description}: {error}") from None
    return Answer(name, time.perf_counter() - began, lines)


class _Key:
    """A source as a key: a dictionary does not hash."""

    def __init__(self, source: Source) -> None:
        self.source = source
        files = tuple(sorted(source["files"].items()))
        self.parts = (source["name"], source["text"], files, source["seed"], source["quick"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


@lru_cache(maxsize=16)
def _cells(key: _Key) -> _plait.Work:
    return _plait.Work(key.source)
