"""Clusters whose workers come late, or never."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_sweep import scenario

import plait
from plait.cluster import executors


class Empty:
    """A client of a cluster whose workers come late, or never."""

    def __init__(self, looks: int, planned: bool) -> None:
        self.looks = looks
        self.pool = ThreadPoolExecutor(1)
        self.cluster = type("Cluster", (), {"plan": {0} if planned else set()})()

    def nthreads(self) -> dict[str, int]:
        self.looks -= 1
        return {} if self.looks >= 0 else {"tcp://127.0.0.1:1": 1}

    def submit(self, function: Any, *given: Any, key: str, pure: bool) -> Any:
        return self.pool.submit(function, *given)


@pytest.mark.parametrize(("looks", "planned", "joins"), [(10**6, False, False), (40, True, True), (6, False, True)])
def test_a_cluster_without_workers_is_named(
    looks: int, planned: bool, joins: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in [("JOIN_SECONDS", 0.2), ("NOTICE_SECONDS", 0.02), ("LOOK_SECONDS", 0.01)]:
        monkeypatch.setattr(executors, name, seconds)
    few = scenario(vary=None)
    if joins:
        assert plait.sweep(few, out=tmp_path, executor=Empty(looks, planned), progress=False).rows == 12
        # A sweep without a missing run needs no worker.
        assert plait.sweep(few, out=tmp_path, executor=Empty(10**6, False), progress=False).workers == {}
    else:
        with pytest.raises(plait.Error, match=r"no worker has joined the cluster in 0.2 s\n  allowed: .*dask worker tcp://HOST:8786"):
            plait.sweep(few, out=tmp_path, executor=Empty(looks, planned), progress=False)
    assert capsys.readouterr().err.count("no worker has joined the cluster yet\n  start one on each host: dask worker") == 1
