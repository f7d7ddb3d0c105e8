"""The same scenario has one digest on the command line, here, in a module for browsers and on a worker of Dask."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Plait
from test_digests import document, drawn

import plait

SCENARIOS = 200 if "PLAIT_SOAK" in os.environ else 24
"""Number of random scenarios."""


def scenario(seed: int) -> tuple[list[str], dict[str, str]]:
    """Draws a scenario without ``vary``, which the module for browsers does not take."""
    paths, settings = drawn(seed)
    settings.pop("vary", None)
    return paths, settings


def digest_of(given: tuple[list[str], dict[str, str]]) -> str:
    """Compares here: in the tests, or on a worker."""
    paths, settings = given
    return plait.compare(paths, **settings, progress=False).digest  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def module() -> Path:
    """Returns the directory of the module, which `tests/web build` makes."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / "web-quick", ROOT / "target" / "web") if (path / "plait.wasm").exists()]
    if not built:
        pytest.skip("there is no module for browsers: `tests/web build`")
    if shutil.which("node") is None:
        pytest.skip("there is no node (Debian package nodejs)")
    return built[0]


def test_a_random_scenario_has_one_digest_everywhere(plait_binary: Plait, module: Path, client: Any) -> None:
    given = [scenario(seed) for seed in range(1000, 1000 + SCENARIOS)]
    words = [[("path", path) for path in paths] + list(settings.items()) for paths, settings in given]
    program = [str(ROOT / "web" / "tests" / "digest.mjs"), str(module)]
    browser = subprocess.run(["node", *program], input=json.dumps(words), capture_output=True, text=True, check=False)
    assert browser.returncode == 0, browser.stderr
    workers = client.gather(client.map(digest_of, given, pure=False))
    for flags, here, there, worker in zip(words, map(digest_of, given), browser.stdout.split(), workers, strict=True):
        shell = document(plait_binary, "compare", *(word for name, text in flags for word in (f"--{name}", text)))["digest"]
        assert [here, there, worker] == [shell] * 3, flags
    assert len({*workers}) == SCENARIOS
