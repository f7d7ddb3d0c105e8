"""The command line's binary, with which the tests compare, and a Dask cluster."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their processes inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]

Plait = Callable[..., "subprocess.CompletedProcess[str]"]


def binary() -> Path | None:
    """Returns the binary: $PLAIT, or the newest build of this checkout."""
    if named := os.environ.get("PLAIT"):
        return Path(named)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in target.glob("*/plait") if os.access(path, os.X_OK)]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def plait_binary() -> Plait:
    """Returns a function that runs the binary with arguments."""
    program = binary()
    if program is None:
        pytest.skip("there is no binary of the command line: `cargo build --release -p plait-cli`, or set PLAIT")

    def call(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(program), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    return call


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yields a client of a Dask cluster with two workers on this host."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client
