"""``python3 -m plait.cluster``: a sweep from a shell.

``plait experiment run FILE --cluster ADDRESS`` calls it with ``--runs-only``, and then judges the claims itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from plait import _plait
from plait.cluster.executors import Lost, workers_of
from plait.cluster.sweeping import make_missing, plans_of, sweep

CONNECT_SECONDS = 10
"""Time in which the cluster must answer."""

INVALID, FAILED, INTERRUPTED = 2, 4, 130
"""Exit codes of the command line: invalid input, a failed peer, Ctrl-C."""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python3 -m plait.cluster",
        description="Makes the runs of scenarios and experiments on many machines, and writes them as Parquet.",
    )
    parser.add_argument("scenarios", nargs="*", metavar="FILE", help="scenario files")
    parser.add_argument("--experiment", action="append", default=[], metavar="NAME", help="an experiment, by name or file")
    parser.add_argument("--quick", action="store_true", help="make the quick runs of experiments")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of experiments [default: 1]")
    parser.add_argument("--cluster", metavar="ADDRESS", help="the Dask scheduler, such as tcp://10.0.0.1:8786 [default: this machine]")
    parser.add_argument("--out", metavar="DIR", help="write the data set into this directory")
    parser.add_argument("--cache", metavar="DIR", help="keep finished runs in this directory [default: DIR/cache of --out]")
    parser.add_argument("--runs-only", action="store_true", help="only make the runs that the cache lacks")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    given = parser().parse_args(words)
    try:
        perform(given)
    except Lost as error:
        print(f"plait.cluster: {error}", file=sys.stderr)
        return FAILED
    except _plait.Error as error:
        print(f"plait.cluster: {error}", file=sys.stderr)
        return INVALID
    except OSError as error:
        print(f"plait.cluster: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("plait.cluster: interrupted: the same command continues", file=sys.stderr)
        return INTERRUPTED
    return 0


def perform(given: argparse.Namespace) -> None:
    """Makes the sweep."""
    if given.program is not None and given.program != _plait.program():
        raise _plait.Error(
            f"the command is plait {given.program}, and the Python package is plait {_plait.program()}\n"
            "  allowed: both of the same version"
        )
    needed = "--cache" if given.runs_only else "--out"
    if (given.cache if given.runs_only else given.out) is None:
        raise _plait.Error(f"{needed} is missing\n  allowed: {needed} DIR")
    # Invalid input is an error before the cluster is asked.
    plans = plans_of(given.scenarios, given.experiment, given.quick, given.seed)
    with ExitStack() as stack:
        client = None if given.cluster is None else stack.enter_context(connected(given.cluster))
        if given.runs_only:
            make_missing(plans, _plait.RunLog(given.cache), workers_of(client), None)
            return
        swept = sweep(
            given.scenarios,
            out=given.out,
            executor=client,
            cache=given.cache,
            experiment=given.experiment,
            quick=given.quick,
            seed=given.seed,
        )
    print(f"{swept.rows} runs in {swept.out}\ndigest {swept.digest}")


def connected(address: str) -> Any:
    """Returns a client of the cluster."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        text = "--cluster needs the Python package distributed\n  install it: pip install 'plait[cluster]'"
        raise _plait.Error(text) from None
    if address.partition("://")[0] in ("tls", "wss"):
        # A client of these needs keys, which an address does not have.
        text = f"--cluster: `{address}`: this command has no keys for TLS"
        remedy = f"plait.sweep(..., executor=distributed.Client({address!r}, security=distributed.Security(...)))"
        raise _plait.Error(f"{text}\n  allowed: tcp://HOST:PORT, or in Python {remedy}")
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS)
    except (TypeError, ValueError) as error:
        raise _plait.Error(f"--cluster: `{address}`: {error}\n  allowed: tcp://HOST:PORT") from None
    except OSError as error:
        raise OSError(f"--cluster: `{address}`: no Dask scheduler answers: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
