"""The part of a sweep that runs on a worker."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from plait import _plait

LARGE = 2048
"""Characters from which a text is no part of the tasks."""

KEPT = 16
"""Sources of which a worker keeps the cells."""

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
class Named:
    """The name of a text that is no part of the tasks."""

    digest: str
    """SHA-256 of the text, as hexadecimal digits."""


@dataclass(frozen=True)
class Compact:
    """A source in a task. Large texts stand in it by name."""

    experiment: bool
    name: str
    text: str | Named
    files: tuple[tuple[str, str | Named], ...]
    seed: int
    quick: bool

    @property
    def named(self) -> list[str]:
        """The digests of the large texts."""
        texts = [self.text, *(text for _, text in self.files)]
        return [text.digest for text in texts if isinstance(text, Named)]

    def whole(self, texts: Mapping[str, str]) -> Source | None:
        """Returns the source with its large texts; None if ``texts`` lacks one."""
        if not all(digest in texts for digest in self.named):
            return None

        def given(text: str | Named) -> str:
            return texts[text.digest] if isinstance(text, Named) else text

        files = {name: given(text) for name, text in self.files}
        return Source(
            experiment=self.experiment, name=self.name, text=given(self.text), files=files, seed=self.seed, quick=self.quick
        )


def compact(source: Source) -> tuple[Compact, dict[str, str]]:
    """Returns a source for tasks, and its large texts by digest.

    >>> trace = "5\\n" * 2000
    >>> source = {"experiment": False, "name": "a", "text": "", "files": {"trace": trace}, "seed": 1, "quick": False}
    >>> small, texts = compact(source)
    >>> len(trace), len(repr(small)) < 250, list(texts.values()) == [trace], small.whole(texts) == source
    (4000, True, True, True)
    >>> small.whole({}) is None
    True
    """
    texts: dict[str, str] = {}

    def named(text: str) -> str | Named:
        if len(text) < LARGE:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()
        texts[digest] = text
        return Named(digest)

    files = tuple((name, named(text)) for name, text in sorted(source["files"].items()))
    text = named(source["text"])
    return Compact(source["experiment"], source["name"], text, files, source["seed"], source["quick"]), texts


@dataclass(frozen=True)
class Part:
    """Units of one scenario."""

    plan: int
    """The place of the scenario in the sweep."""
    source: Compact
    units: tuple[Unit, ...]
    description: str
    """The first unit in words, for errors."""


@dataclass(frozen=True)
class Batch:
    """Units that a worker makes in one task."""

    program: str
    """The name of the program in the addresses of runs."""
    parts: tuple[Part, ...]

    @property
    def named(self) -> list[str]:
        """The digests of the large texts, each once."""
        return list(dict.fromkeys(digest for part in self.parts for digest in part.source.named))


@dataclass(frozen=True)
class Answer:
    """The runs of a batch: the lines of each part."""

    worker: str
    seconds: float
    lines: list[list[str]]


def work(
    batch: Batch, texts: Mapping[str, str] | None = None, jobs: int = 1, progress: Callable[[int], None] | None = None
) -> Answer | None:
    """Makes the runs of a batch on ``jobs`` threads. ``progress`` takes the number of finished runs.

    ``texts`` has the large texts by digest. This process keeps the cells of its latest sources, which need no texts.
    Returns None, and makes no run, if a text is missing.
    """
    began = time.perf_counter()
    program = _plait.program()
    name = f"{socket.gethostname()}:{os.getpid()}"
    if program != batch.program:
        raise _plait.Error(
            f"worker {name}: it has plait {program}, and this sweep plait {batch.program}\n"
            "  allowed: the same version on all machines"
        )
    made: list[_plait.Work] = []
    lines: list[list[str]] = []

    def tell(done: int, _: int) -> None:
        if progress is not None:
            progress(sum(map(len, lines)) + done)

    for part in batch.parts:
        try:
            cells = _CELLS.of(part.source, texts or {})
        except _plait.Error as error:
            raise _failed(name, part, error) from None
        if cells is None:
            return None
        made.append(cells)
    for part, cells in zip(batch.parts, made, strict=True):
        try:
            lines.append(cells.run(list(part.units), jobs, tell if progress else None))
        except _plait.Error as error:
            raise _failed(name, part, error) from None
    return Answer(name, time.perf_counter() - began, lines)


def work_with(batch: Batch, texts: list[str]) -> Answer | None:
    """Makes the runs of a batch. ``texts`` are its large texts in the order of `Batch.named`."""
    return work(batch, dict(zip(batch.named, texts, strict=True)))


def the_same(text: str) -> str:
    """Returns the text: the task of a cluster whose result is a large text."""
    return text


def _failed(name: str, part: Part, error: _plait.Error) -> _plait.Error:
    return _plait.Error(f"worker {name}: {part.description}: {error}")


class _Cells:
    """The cells of the latest sources of this process."""

    def __init__(self) -> None:
        self.kept: OrderedDict[Compact, _plait.Work] = OrderedDict()
        # Two threads that need the same cells make them once.
        self.lock = threading.Lock()

    def of(self, source: Compact, texts: Mapping[str, str]) -> _plait.Work | None:
        """Returns the cells of a source; None if a text is missing."""
        with self.lock:
            cells = self.kept.pop(source, None)
            if cells is None:
                whole = source.whole(texts)
                if whole is None:
                    return None
                cells = _plait.Work(whole)
            self.kept[source] = cells
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
            return cells


_CELLS = _Cells()
