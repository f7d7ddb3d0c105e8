"""The command ``plait``: the command line inside the interpreter, so that it can name schedulers in Python.

It behaves as the binary does. The exit codes, the signals and the streams are the same.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from plait import _plait

CLASS = re.compile(r"(?<![\w.-])(?!tcp:)[A-Za-z_][\w.]*:[A-Za-z_][\w.]*(?![\w.=])")
"""A scheduler that is a class: ``module:Class``. The parameters of other schedulers have a ``=``."""


FLAGS = ("--scheduler", "--schedulers", "--compare-with", "--what-if", "--port")
"""The flags that name schedulers."""
LISTS = ("schedulers", "scheduler")
"""The names of the list of schedulers: ``plait list schedulers NAME`` shows a page."""


def main() -> None:
    """Performs the command of ``sys.argv`` and ends the process."""
    _be_like_a_binary()
    try:
        arguments = with_modules(sys.argv[1:])
        register_classes(arguments)
    except NotAScheduler as error:
        sys.exit(_refused(error))
    sys.exit(_plait.command(["plait", *arguments], sys.executable))


class NotAScheduler(Exception):
    """A flag names a class that cannot be a scheduler, or a module that cannot be imported."""


def with_modules(arguments: list[str]) -> list[str]:
    """Imports the modules of ``--import MODULE``, which stands before the command. Returns the other arguments.

    >>> with_modules(["--quiet", "--import", "json", "compare", "--scenario", "home.toml"])
    ['--quiet', 'compare', '--scenario', 'home.toml']
    """
    rest = list(arguments)
    place = 0
    while place < len(rest) and rest[place].startswith("-"):
        flag, equals, module = rest[place].partition("=")
        if flag != "--import":
            place += 1
            continue
        del rest[place]
        if not equals and place < len(rest):
            module = rest.pop(place)
        if not module:
            raise NotAScheduler("--import: the module is missing\n  allowed: --import mine, for a file mine.py")
        _imported("--import", module, import_module)
    return rest


def register_classes(arguments: list[str]) -> None:
    """Imports and registers the classes that flags name.

    >>> register_classes(["run", "--scheduler", "ecf:beta=0.5", "--path", "wifi:rtt=9ms"])
    """
    for before, argument in zip(["", *arguments], arguments, strict=False):
        flag, equals, value = argument.partition("=")
        if before in FLAGS or (arguments[0] == "list" and before in LISTS):
            flag, value = before, argument
        elif not equals or flag not in FLAGS:
            continue
        for text in CLASS.findall(value):
            from plait.schedulers import imported

            _imported(flag, text, imported)


Loaded = TypeVar("Loaded")


def _imported(flag: str, text: str, load: Callable[[str], Loaded]) -> None:
    """Imports what a flag names."""
    # As with `python -m`, modules of the current directory can be named.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        load(text)
    except (ImportError, AttributeError, _plait.Error) as error:
        raise NotAScheduler(f"{flag}: {error}") from error
    except Exception as error:  # The module itself may raise anything.
        raise NotAScheduler(f"{flag}: {text}: {type(error).__name__}: {error}") from error


def _refused(error: Exception) -> int:
    """Writes the error as the command line writes its own, and returns the exit code of an invalid argument."""
    if sys.stderr is not None:
        allowed = "" if "allowed:" in str(error) else "\n  allowed: a name, or module:Class of Python"
        print(f"plait: {error}{allowed}", file=sys.stderr)
    return 2


def _be_like_a_binary() -> None:
    """Takes back what the interpreter changed for itself: handlers of signals, and closed streams."""
    # A signal that was ignored at the start stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    # No file that is opened later may take the place of a stream.
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    main()
