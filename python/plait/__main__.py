"""The command ``plait``: the command line inside the interpreter, so that it can name schedulers in Python.

It behaves as the binary does. The exit codes, the signals and the streams are the same.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys

from plait import _plait

CLASS = re.compile(r"(?<![\w.-])(?!tcp:)(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?![\w=])")
"""A scheduler that is a class: ``module:Class``. The parameters of other schedulers have a ``=``."""


FLAGS = ("--scheduler", "--schedulers", "--compare-with", "--what-if", "--port")
"""The flags that name schedulers."""
LISTS = ("schedulers", "scheduler")
"""The names of the list of schedulers: ``plait list schedulers NAME`` shows a page."""


def main() -> None:
    """Performs the command of ``sys.argv`` and ends the process."""
    _be_like_a_binary()
    try:
        arguments = ["plait", *with_classes(sys.argv[1:])]
    except NotAScheduler as error:
        sys.exit(_refused(error))
    sys.exit(_plait.command(arguments, sys.executable))


class NotAScheduler(Exception):
    """A flag names a class that cannot be a scheduler."""


def with_classes(arguments: list[str]) -> list[str]:
    """Registers the classes that flags name, and returns the arguments with the names of their schedulers.

    >>> with_classes(["run", "--scheduler", "ecf:beta=0.5", "--path", "wifi:rtt=9ms"])
    ['run', '--scheduler', 'ecf:beta=0.5', '--path', 'wifi:rtt=9ms']
    """
    named = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        flag, equals, value = argument.partition("=")
        if before in FLAGS or (arguments[0] == "list" and before in LISTS):
            argument = _registered(before, argument)
        elif equals and flag in FLAGS:
            argument = f"{flag}={_registered(flag, value)}"
        named.append(argument)
    return named


def _registered(flag: str, value: str) -> str:
    """Registers the classes in the value of a flag, and returns the value with the names of their schedulers."""

    def name(found: re.Match[str]) -> str:
        from plait.schedulers import name_of, register

        # As with `python -m`, modules of the current directory can be named.
        if "" not in sys.path:
            sys.path.insert(0, "")
        try:
            scheduler = getattr(importlib.import_module(found["module"]), found["name"])
            return name_of(register(scheduler))
        except (ImportError, AttributeError, _plait.Error) as error:
            raise NotAScheduler(f"{flag}: {error}") from error
        except Exception as error:  # The module itself may raise anything.
            raise NotAScheduler(f"{flag}: {found[0]}: {type(error).__name__}: {error}") from error

    return CLASS.sub(name, value)


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
