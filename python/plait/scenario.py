"""Scenarios: paths and settings, under the names of the command line and of scenario files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any, TypeAlias, Union

from plait._plait import Draft, Error
from plait.arguments import file_name, unicode, word
from plait.schedulers import Scheduler, name_of, register

Value: TypeAlias = Union[str, int, float, bool, "Path", type[Scheduler]]
"""One value of a setting, with its unit: ``"2MB"``, ``30`` or ``True``. A scheduler may be a class."""

Setting: TypeAlias = Union[Value, Iterable[Value], Mapping[str, object], None]
"""A setting: a value, several values, or for ``vary`` a dictionary of them. None leaves the default."""

AnyPath: TypeAlias = Union[str, "Path", Mapping[str, Value | Iterable[Value] | None]]
"""A path: a text as after ``--path``, a `Path`, or a dictionary with the key ``name``."""


class Path:
    """A path or a shared link: its name, and its keys as in docs/reference/keys.md.

    A switch is True. A key that repeats takes a list. Without keys, the name is that of a profile.

    >>> str(Path("wifi", rate="20mbit", rtt="22ms", down=["1s..2s", "5s..6s"], backup=True))
    'wifi:rate=20mbit,rtt=22ms,down=1s..2s,down=5s..6s,backup'
    >>> str(Path("lte-att"))
    'lte-att'
    """

    def __init__(self, name: str, /, **keys: Value | Iterable[Value] | None) -> None:
        self.name = word("path", name)
        self.keys = {key: value for key, value in keys.items() if value is not None and value is not False}

    def __str__(self) -> str:
        pieces = []
        for key, value in self.keys.items():
            if value is True:
                pieces.append(key)
            else:
                pieces += [f"{key}={text}" for text in texts_of(f"--path {self.name}:{key}", value)]
        return f"{self.name}:{','.join(pieces)}" if pieces else self.name

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Scenario:
    """A scenario: paths, a workload, and every other setting of docs/reference/keys.md as a keyword.

    >>> scenario = Scenario(["wifi-home", "lte-att"], workload="download:512kB", schedulers="minrtt,ecf", runs=3)
    >>> scenario.command
    'plait compare --path wifi-home --path lte-att --workload download:512kB --schedulers minrtt,ecf --runs 3 --seed 1'
    >>> Scenario.from_toml(scenario.to_toml()).command == scenario.command
    True
    """

    def __init__(self, paths: Iterable[AnyPath] | AnyPath = (), **settings: Setting) -> None:
        self._draft = filled(Draft(), paths, settings)

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario") -> Scenario:
        """Reads a scenario file from a text. Errors name the place as ``name:LINE:COLUMN``.

        A scheduler may be ``module:Class``, if the program has imported the module. The text itself imports nothing.
        """
        return cls._of(Draft.from_toml(word("name", name), word("text", text)))

    @classmethod
    def from_file(cls, file: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file (TOML), as ``--save-scenario`` writes it."""
        return cls._of(Draft.from_file(file_name("file", file)))

    @classmethod
    def _of(cls, draft: Draft) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._draft = draft
        return scenario

    def to_toml(self) -> str:
        """Returns the scenario file that ``--scenario`` reads."""
        return self._draft.to_toml()

    def replace(self, paths: Iterable[AnyPath] | AnyPath = (), **settings: Setting) -> Scenario:
        """Returns a copy with other settings. If there are paths, they replace all paths.

        >>> scenario = Scenario(["wifi-home", "lte-att"], workload="download:512kB", runs=3)
        >>> "--runs 9" in scenario.replace(runs=9).command
        True
        """
        return Scenario._of(filled(self._draft.copy(), paths, settings))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Scenario) and self.to_toml() == other.to_toml())

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        # The classes themselves are part of it, so that another process imports them.
        return _restored, (self.to_toml(), self._draft.classes())

    @property
    def command(self) -> str:
        """The command line that compares the schedulers of the scenario."""
        return self._draft.command()

    def __repr__(self) -> str:
        try:
            return f"<plait.Scenario {self.command!r}>"
        except Error as error:
            why = str(error).partition("\n")[0]
            return f"<plait.Scenario, incomplete: {why}>"


def _restored(text: str, classes: list[type[Scheduler]]) -> Scenario:
    """Returns the scenario that was pickled."""
    scenario = Scenario.from_toml(text)
    for scheduler in classes:
        register(scheduler)
    return scenario


AnyScenario: TypeAlias = Scenario | str | os.PathLike[str]
"""A scenario, or the name of a scenario file."""


def draft_of(
    scenario: AnyScenario | None,
    paths: Iterable[AnyPath] | AnyPath,
    settings: Mapping[str, Setting],
) -> Draft:
    """Returns a scenario with further settings, which override those of the scenario."""
    if scenario is None:
        draft = Draft()
    elif isinstance(scenario, Scenario):
        draft = scenario._draft.copy()
    else:
        draft = Draft.from_file(file_name("--scenario", scenario))
    return filled(draft, paths, settings)


def filled(draft: Draft, paths: Iterable[AnyPath] | AnyPath, settings: Mapping[str, Setting]) -> Draft:
    """Adds paths and settings to a scenario under construction."""
    if not isinstance(paths, (str, Path, Mapping, Iterable)):
        raise _no_path(paths)
    if isinstance(paths, (set, frozenset)):
        raise Error("--path: a set has no order, and the first path is the primary\n  allowed: a list of paths")
    several = [paths] if isinstance(paths, (str, Path, Mapping)) else paths
    if described := [_path(path) for path in several]:
        draft.set_paths(described)
    if settings.get("scheduler") is not None and settings.get("schedulers") is not None:
        raise Error("--scheduler: it stands beside --schedulers\n  allowed: one of the two")
    for name, value in settings.items():
        unicode("setting", name)
        if value is not None:
            # The command line takes both spellings.
            texts = texts_of(f"--{name.replace('_', '-')}", value)
            draft.set("schedulers" if name == "scheduler" else name, texts)
    return draft


def _path(path: AnyPath) -> str:
    if isinstance(path, Mapping):
        keys = {str(key): value for key, value in path.items()}
        return unicode("--path", str(Path(word("--path", keys.pop("name", "")), **keys)))
    if isinstance(path, (str, Path)):
        return unicode("--path", str(path))
    raise _no_path(path)


def _no_path(given: object) -> Error:
    allowed = "a text such as \"wifi:rate=20mbit,rtt=22ms\", a plait.Path, a dictionary, or a list of these"
    return Error(f"--path: `{given}` is no path\n  allowed: {allowed}")


def texts_of(place: str, value: object) -> list[str]:
    """Returns the texts of a setting as the command line has them. Errors name the ``place``."""
    if isinstance(value, Mapping):
        return [unicode(place, f"{key}={_joined(place, values)}") for key, values in value.items()]
    if isinstance(value, (set, frozenset)):
        raise Error(f"{place}: a set has no order\n  allowed: a list")
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, type)):
        return [_text(place, one) for one in value]
    return [_text(place, value)]


def _joined(place: str, values: object) -> str:
    return ",".join(texts_of(place, values))


def _text(place: str, value: Any) -> str:
    # `register` refuses an object, and says so.
    if isinstance(value, type) or hasattr(value, "schedule"):
        return name_of(register(value))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, os.PathLike):
        return file_name(place, value)
    # The numbers of numpy and `decimal` are such numbers too.
    if isinstance(value, (str, Path, Number)):
        return unicode(place, str(value))
    allowed = "a text with its unit, a number, True, False, or a list of these"
    raise Error(f"{place}: `{value}` is no setting (it is of the type {type(value).__name__})\n  allowed: {allowed}")
