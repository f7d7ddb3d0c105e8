"""Schedulers that are Python classes."""

from __future__ import annotations

import inspect
import re
from typing import Protocol, TypeAlias, TypeVar, Union

from plait._plait import Send, Subflow, View, Wait, register as _register

Decision: TypeAlias = Union[Subflow, int, Send, Wait, None]
"""A decision: the subflow for the segment (or its id), `Send`, `Wait`, or None to wait."""


class Scheduler(Protocol):
    """What a scheduler needs. Each end of each connection has an object of its own."""

    def schedule(self, view: View) -> Decision:
        """Decides about the next segment. It is called while at least one subflow can take the segment.

        The same views must give the same decisions: it reads no clock and draws no random numbers.
        """


S = TypeVar("S", bound=type)


def register(scheduler: S) -> S:
    """Adds a class to the list of schedulers, under its attribute ``name`` or its own name in lower case.

    Afterwards every call knows the name. A class may also stand in ``schedulers`` itself. A class with the name of
    an earlier one takes its place.

    >>> import plait
    >>> @plait.register
    ... class LowestRtt:
    ...     "The usable subflow with the lowest RTT."
    ...     def schedule(self, view):
    ...         return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))
    >>> paths = ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"]
    >>> mine = plait.run(paths, workload="download:256kB", scheduler="lowest-rtt")
    >>> mine.digest == plait.run(paths, workload="download:256kB", scheduler="minrtt").digest
    True
    """
    if not callable(getattr(scheduler, "schedule", None)):
        raise TypeError(f"{scheduler.__name__} has no method schedule(view)")
    idea = (inspect.getdoc(scheduler) or "a scheduler in Python").splitlines()[0]
    _register(scheduler, name_of(scheduler), idea)
    return scheduler


def name_of(scheduler: type) -> str:
    """Returns the name of a class in a list of schedulers."""
    words: str = getattr(scheduler, "name", None) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", scheduler.__name__)
    return words.lower()
