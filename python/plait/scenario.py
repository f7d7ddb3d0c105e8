"""Scenarios: paths and settings, under the names of the command line and of scenario files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, Union

from plait._plait import Draft, Error
from plait.arguments import file_name
from plait.schedulers import name_of, register

Value: TypeAlias = Union[str, int, float, bool, "Path", type]
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
        self.name = name
        self.keys = {key: value for key, value in keys.items() if value is not None and value is not False}

    def __str__(self) -> str:
        pieces = []
        for key, value in self.keys.items():
            if value is True:
                pieces.append(key)
            else:
                pieces += [f"{key}={text}" for text in _texts(value)]
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
        """Reads a scenario file from a text. Errors name the place as ``name:LINE:COLUMN``."""
        return cls._of(Draft.from_toml(name, text))

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

    @property
    def command(self) -> str:
        """The command line that compares the schedulers of the scenario."""
        return self._draft.command()

    def __repr__(self) -> str:
        return f"<plait.Scenario {self.command!r}>"


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
        draft = Draft.from_file(file_name("scenario", scenario))
    return filled(draft, paths, settings)


def filled(draft: Draft, paths: Iterable[AnyPath] | AnyPath, settings: Mapping[str, Setting]) -> Draft:
    """Adds paths and settings to a scenario under construction."""
    if not isinstance(paths, (str, Path, Mapping, Iterable)):
        raise _no_path(paths)
    several = [paths] if isinstance(paths, (str, Path, Mapping)) else paths
    if texts := [_path(path) for path in several]:
        draft.set_paths(texts)
    for name, value in settings.items():
        if value is not None:
            # The command line takes both spellings.
            draft.set("schedulers" if name == "scheduler" else name, _texts(value))
    return draft


def _path(path: AnyPath) -> str:
    if isinstance(path, Mapping):
        keys = dict(path)
        return str(Path(str(keys.pop("name", "")), **keys))
    if isinstance(path, (str, Path)):
        return str(path)
    raise _no_path(path)


def _no_path(given: object) -> Error:
    allowed = "a text such as \"wifi:rate=20mbit,rtt=22ms\", a plait.Path, a dictionary, or a list of these"
    return Error(f"--path: `{given}`: a {type(given).__name__} is no path\n  allowed: {allowed}")


def _texts(value: Value | Iterable[Value] | Mapping[str, object]) -> list[str]:
    """Returns the texts of a setting as the command line has them."""
    if isinstance(value, Mapping):
        return [f"{name}={_joined(values)}" for name, values in value.items()]
    if isinstance(value, (str, int, float, Path, type)):
        return [_text(value)]
    return [_text(one) for one in value]


def _joined(values: object) -> str:
    if isinstance(values, Iterable) and not isinstance(values, str):
        return ",".join(_text(one) for one in values)
    return _text(values)


def _text(value: Any) -> str:
    # `register` refuses an object, and says so.
    if isinstance(value, type) or hasattr(value, "schedule"):
        return name_of(register(value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
