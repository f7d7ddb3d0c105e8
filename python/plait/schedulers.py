"""Schedulers that are Python classes."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar, Union

from plait import _plait
from plait._plait import Send, Subflow, View, Wait
from plait.arguments import whole, word

Decision: TypeAlias = Union[Subflow, int, Send, Wait, None]
"""A decision: the subflow for the segment (or its id), `Send`, `Wait`, or None to wait."""


_HOOKS = ["on_data_ack", "on_subflows_changed", "on_window_limited"]
"""Methods that a scheduler need not have."""


class Scheduler(Protocol):
    """What a scheduler needs. Each end of each connection has an object of its own.

    The arguments of ``__init__`` are the parameters of the scheduler, and each needs a default. A class may also have
    these methods:

    * ``on_data_ack(view, old, new)``: the peer has acknowledged the data between these offsets.
    * ``on_subflows_changed(view, live, began)``: a subflow began, ended, or changed its priority. ``live`` has the ids of
      the live subflows; ``began`` is the id of a new one, or None. An id may be used again.
    * ``on_window_limited(view)``: there was data and a usable subflow, but the send window was full.
    """

    def schedule(self, view: View) -> Decision:
        """Decides about the next segment. It is called while at least one subflow can take the segment.

        The same views must give the same decisions: it reads no clock and draws no random numbers.
        """


S = TypeVar("S", bound=type[Scheduler])


def register(scheduler: S) -> S:
    """Adds a class to the list of schedulers, under its attribute ``name`` or its own name in lower case.

    Afterwards every call knows the name; ``all`` does not include it. A class may also stand in ``schedulers`` itself. A
    class with the name of an earlier one takes its place. Arguments of ``__init__`` are parameters: ``"spare:share=0.4"``.

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
    add(scheduler)
    return scheduler


def add(scheduler: type[Scheduler], text: str | None = None) -> None:
    """Adds a class to the list of schedulers. ``text`` is the ``module:Class`` by which the user has named it."""
    if not isinstance(scheduler, type):
        given = type(scheduler).__name__
        problem = f"a scheduler is a class, and this is an object of the class {given}"
        raise _plait.Error(f"{problem}\n  allowed: the class, without `()`")
    if not callable(getattr(scheduler, "schedule", None)):
        problem = f"{scheduler.__name__} has no method schedule(view)"
        raise _plait.Error(f"{problem}\n  allowed: a class as in help(plait.Scheduler)")
    for method in _HOOKS:
        if not callable(getattr(scheduler, method, len)):
            problem = f"{scheduler.__name__}.{method} is no method"
            raise _plait.Error(f"{problem}\n  allowed: a class as in help(plait.Scheduler)")
    idea = (inspect.getdoc(scheduler) or "a scheduler in Python").splitlines()[0]
    text = text or f"{scheduler.__module__}:{scheduler.__qualname__}"
    _plait.register(scheduler, text, name_of(scheduler), idea, _parameters(scheduler))


def found(text: str) -> str:
    """Registers ``module:Class``, a class of an imported module, and returns its name in lists of schedulers.

    Scenario files and questions come here. They import no module, because reading them must run no code.
    """
    module, _, path = text.partition(":")
    scheduler: object = sys.modules.get(module)
    if scheduler is None:
        raise _plait.Error(
            f"the module `{module}` is not imported, and input may not import it\n"
            f"  allowed: `import {module}` in Python, or `plait --import {module} ...` in a shell"
        )
    for name in path.split("."):
        # An attribute that is computed would run code.
        scheduler = inspect.getattr_static(scheduler, name, None)
    if not isinstance(scheduler, type):
        raise no_class(text)
    add(scheduler, text)
    return name_of(scheduler)


def imported(text: str) -> str:
    """Imports ``module:Class`` and registers the class. Returns its name in lists of schedulers."""
    module, _, path = text.partition(":")
    scheduler: Any = sys.modules[module] if module == "__main__" else import_module(module)
    for name in path.split("."):
        if module == "__main__" and not hasattr(scheduler, name):
            raise no_class(text)
        scheduler = getattr(scheduler, name)
    add(scheduler, text)
    return name_of(scheduler)


def no_class(text: str) -> _plait.Error:
    """Returns the error for a class that its module does not have."""
    module, _, path = text.partition(":")
    if module != "__main__":
        return _plait.Error(f"the module `{module}` has no class `{path}`\n  allowed: a class of `dir({module})`")
    problem = f"`{path}` is a class of the program that wrote `{text}`, and this is another one"
    return _plait.Error(f"{problem}\n  allowed: mine:{path}, with the class in a file mine.py")


def _parameters(scheduler: type[Scheduler]) -> list[tuple[str, bool | int | float]]:
    """Returns the arguments of ``__init__`` with their defaults."""
    if scheduler.__init__ is object.__init__:
        return []
    # Without `self`.
    arguments = list(inspect.signature(scheduler.__init__).parameters.values())[1:]
    named = [it for it in arguments if it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)]
    for argument in named:
        if argument.default is argument.empty or argument.kind is argument.POSITIONAL_ONLY:
            text = f"{scheduler.__name__}.__init__: the argument {argument.name} needs a default and a name"
            raise _plait.Error(f"{text}\n  allowed: {argument.name}=0.2, a number, True or False")
    return [(argument.name, argument.default) for argument in named]


@dataclass(frozen=True)
class Checked:
    """The result of `check`."""

    name: str
    """The name of the scheduler."""
    connections: int
    """Number of random connections."""
    decisions: int
    """Number of decisions."""

    def __str__(self) -> str:
        several = "" if self.connections == 1 else "s"
        return f"{self.name} keeps the contract: {self.decisions} decisions on {self.connections} connection{several}"


def check(scheduler: type[Scheduler], *, connections: int = 100, seed: int = 1) -> Checked:
    """Checks the contract of schedulers with a class, on random connections.

    Two objects that get the same views must decide alike, subflows that cannot take the segment are refused, a wait is
    for a live subflow, all data is sent in the end, and ``room=True`` means that the same subflow would follow. Extreme
    views (no RTT, a window of 0, huge numbers) may raise no exception. Each parameter is also tried at its limits.

    Raises `plait.Error` with the decision and its view if a rule is broken. An exception of the class is its cause.

    >>> import plait
    >>> class LowestRtt:
    ...     "The usable subflow with the lowest RTT."
    ...     def schedule(self, view):
    ...         return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))
    >>> print(plait.check(LowestRtt))
    lowest-rtt keeps the contract: ... decisions on 100 connections
    """
    name = name_of(register(scheduler))
    connections = whole("connections", connections, 1, 2**32 - 1)
    seed = whole("seed", seed, 0, 2**64 - 1)
    return Checked(name, connections, _plait.check(name, connections, seed))


def name_of(scheduler: type[Scheduler]) -> str:
    """Returns the name of a class in a list of schedulers."""
    words = getattr(scheduler, "name", None) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", scheduler.__name__)
    return word(f"{scheduler.__name__}.name", words).lower()
