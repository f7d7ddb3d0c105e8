"""Checks of arguments, and of packages that need not be installed. An error has the form of the command line's."""

from __future__ import annotations

import operator
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from plait import _plait


def whole(name: str, value: object, least: int, most: int) -> int:
    """Returns ``value``, which is a whole number in these limits.

    >>> whole("slowest", 3, 1, 100)
    3
    >>> whole("slowest", -1, 1, 100)
    Traceback (most recent call last):
        ...
    plait.Error: --slowest: `-1`: not a number that fits
      allowed: a whole number from 1 to 100
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if least <= number <= most:
        return number
    raise _plait.Error(f"--{name}: `{value}`: not a number that fits\n  allowed: a whole number from {least} to {most}")


def unicode(place: str, text: str) -> str:
    """Returns ``text``, which has no half of a character (a lone surrogate). Files of bytes outside UTF-8 have such names.

    >>> unicode("--path", "wifi")
    'wifi'
    >>> unicode("--path", "wifi\\udcff")
    Traceback (most recent call last):
        ...
    plait.Error: --path: `wifi\\udcff` is no text of Unicode
      allowed: a text without lone surrogates, which stand for bytes outside UTF-8
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "backslashreplace").decode()
        place = place.encode("utf-8", "backslashreplace").decode()
        allowed = "a text without lone surrogates, which stand for bytes outside UTF-8"
        raise _plait.Error(f"{place}: `{shown}` is no text of Unicode\n  allowed: {allowed}") from None
    return text


def switch(name: str, value: object) -> bool:
    """Returns ``value``, which is True or False."""
    # numpy has a bool of its own.
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise _plait.Error(f"--{name}: `{value}`: neither on nor off\n  allowed: True, False")


def word(name: str, value: object) -> str:
    """Returns ``value``, which is a text."""
    if isinstance(value, str):
        return unicode(name, value)
    raise _plait.Error(f"{name}: `{value}` is no text (it is of the type {type(value).__name__})\n  allowed: a text")


def file_name(name: str, value: object) -> str:
    """Returns ``value``, which is a text or a path of a file."""
    if isinstance(value, (str, os.PathLike)):
        named = os.fspath(value)
        if isinstance(named, str):
            return unicode(name, named)
    raise _plait.Error(f"{name}: `{value}` is no name of a file\n  allowed: a text, or a pathlib.Path")


def directory(name: str, value: object) -> Path:
    """Returns a directory, and makes it if it does not exist.

    >>> directory("out", "/dev/null/sweep")
    Traceback (most recent call last):
        ...
    plait.Error: out: `/dev/null/sweep` cannot be made: Not a directory
      allowed: a directory for files, which is made if it does not exist
    """
    given = file_name(name, value)
    if given == "":
        raise _plait.Error(f"{name}: the name is empty\n  allowed: a directory, or \".\" for this one")
    path = Path(given)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        # A name with a null byte is a ValueError.
        why = error.strerror if isinstance(error, OSError) else error
        allowed = "a directory for files, which is made if it does not exist"
        raise _plait.Error(f"{name}: `{path}` cannot be made: {why}\n  allowed: {allowed}") from None
    return path


def package(name: str, wanted_by: str, extra: str) -> Any:
    """Imports a package that need not be installed. ``extra`` is the extra of plait that has it."""
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).partition(".")[0]
        text = f"{wanted_by}: {missing} is not installed\n  allowed: pip install {missing}, or pip install 'plait[{extra}]'"
        raise _plait.Error(text) from None
