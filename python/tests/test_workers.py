"""Clusters whose workers come late or never, and data sets that are damaged."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "it is no manifest of a sweep"),
        ("[3]", "it is no manifest of a sweep"),
        ('{"schema": "plait.sweep/1", "runs": 3, "digest": "", "files": [{}], "scenarios": []}', "it is no manifest"),
        ("{", "Expecting property name"),
    ],
)
def test_a_damaged_manifest_is_named(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(plait.Error, match=rf"manifest.json: {problem}.*\n  allowed: .*repeat the call of plait.sweep"):
        plait.Sweep.open(tmp_path)
    with pytest.raises(plait.Error, match=r"manifest.json: Not a directory\n  allowed: "):
        plait.Sweep.open(tmp_path / "manifest.json")


def test_a_deleted_file_is_named_and_the_same_call_writes_it_again(tmp_path: Path) -> None:
    few = scenario(vary=None)
    swept = plait.sweep(few, out=tmp_path, progress=False)
    (file,) = swept.files
    content = file.read_bytes()
    file.unlink()
    for module in ("polars", "pandas"):
        pytest.importorskip(module)
        with pytest.raises(plait.Error, match=r"part-00000.parquet: there is no such file\n  allowed: .*repeat the call"):
            getattr(plait.Sweep.open(tmp_path), f"to_{module}")()
    plait.sweep(few, out=tmp_path, progress=False)
    assert file.read_bytes() == content and json.loads((tmp_path / "manifest.json").read_text())["runs"] == 12
