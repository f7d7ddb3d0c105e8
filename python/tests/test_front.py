"""The front: examples of the documentation, types and texts."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plait
from plait._plait import Draft
from plait.scenario import filled

ROOT = Path(__file__).resolve().parents[2]
MODULES = [f"plait.{module.name}" for module in pkgutil.iter_modules(plait.__path__) if module.name != "_plait"]


@pytest.mark.parametrize("name", ["plait", *MODULES])
def test_the_examples_of_docstrings_run(name: str) -> None:
    if name == "plait.gym":
        pytest.importorskip("gymnasium")
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried > 0 or name == "plait.progress"


def test_the_guide_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    guide = ROOT / "docs" / "guides" / "python.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(guide), "exec"), scope)


def test_every_public_function_has_an_example() -> None:
    public = [getattr(plait, name) for name in plait.__all__]
    functions = [it for it in public if inspect.isfunction(it)]
    assert len(functions) >= 10
    for function in functions:
        assert function.__doc__, function.__name__
        assert ">>> " in function.__doc__ or function.__name__.startswith("list_"), function.__name__
    assert all(it.__doc__ for it in public if inspect.isclass(it))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory that the calls of mypy share."""
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *words: str) -> None:
    """Runs mypy, or a module of it."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command, environment = [sys.executable, "-m", *words], {**os.environ, "MYPY_CACHE_DIR": str(cache)}
    checked = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_types_are_strict(cache: Path) -> None:
    mypy(cache, "mypy")
    mypy(cache, "mypy", *map(str, sorted((ROOT / "python" / "tests").glob("*.py"))))


def test_the_stub_is_that_of_the_module(cache: Path) -> None:
    mypy(cache, "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "--ignore-disjoint-bases", "plait._plait")


def test_the_stub_documents_what_a_scheduler_sees_as_the_module_does() -> None:
    stub = ast.parse((ROOT / "python" / "plait" / "_plait.pyi").read_text())
    classes = {it.name: it for it in stub.body if isinstance(it, ast.ClassDef)}
    for public in (plait.View, plait.Subflow, plait.Send, plait.Wait):
        described = classes[public.__name__]
        assert ast.get_docstring(described) == inspect.getdoc(public)
        properties = {name for name, it in vars(public).items() if inspect.isgetsetdescriptor(it)}
        methods = {it.name: it for it in described.body if isinstance(it, ast.FunctionDef) and it.name != "__new__"}
        assert properties == methods.keys()
        for name, method in methods.items():
            documented = ast.get_docstring(method)
            assert documented and documented == getattr(public, name).__doc__, name
            # A quantity has its unit in words.
            unit = {"ms": "in ms", "bytes": "ytes", "rate": "bytes per second"}.get(name.rpartition("_")[2], "")
            assert unit in documented, f"{name}: {documented}"


def test_arguments_that_are_classes_have_the_type_of_the_protocol() -> None:
    for function, argument in [
        (plait.check, "scheduler"),
        (plait.compare, "schedulers"),
        (plait.run, "scheduler"),
        (plait.explain, "scheduler"),
        (plait.explain, "compare_with"),
    ]:
        taken = function.__annotations__[argument]
        assert "type[Scheduler]" in taken and "type " not in taken, f"{function.__name__}: {taken}"


def test_settings_are_the_texts_of_the_command_line() -> None:
    def command(**settings: object) -> str:
        return filled(Draft(), ["a:rtt=9ms,rate=9mbit", "b:rtt=20ms,rate=9mbit"], {"workload": "bulk:1s", **settings}).command()  # type: ignore[dict-item]

    assert "--exact" in command(exact=True)
    assert "--exact" not in command(exact=False)
    assert "--dial-delay 20ms" in command(dial_delay="20ms")
    assert "--runs 7" in command(runs=7)
    assert "--schedulers ecf,blest:mode=paper" in command(schedulers=("ecf", "blest:mode=paper"))
    assert "--vary a.rtt=9ms,12ms --vary b.loss=0%,1%" in command(vary={"a.rtt": ["9ms", "12ms"], "b.loss": "0%,1%"})
    assert command(vary=["a.rtt=9ms,12ms"]) == command(vary="a.rtt=9ms,12ms")
    link = plait.Path("cell", rate="20mbit")
    shared = filled(Draft(), [plait.Path("a", rtt="9ms", rate="30mbit", via="cell")], {"workload": "bulk:1s", "link": link})
    assert "--link cell:rtt=0s,rate=20mbit" in shared.command()


def test_every_setting_is_known_by_its_keyword() -> None:
    assert len(Draft.settings()) > 40
    for name in Draft.settings():
        draft = Draft()
        draft.set(name.replace("-", "_"), ["x"])
        with pytest.raises(plait.Error, match="--") as refused:
            draft.to_toml()
        assert "unknown setting" not in str(refused.value)


def test_later_settings_replace_earlier_ones() -> None:
    scenario = plait.Scenario(["wifi-home", "lte-att"], workload="download:64kB", runs=2)
    changed = scenario.replace("lte-att", runs=5, vary="sndbuf=64kB,1MB")
    assert "--runs 5" in changed.command and "wifi-home" not in changed.command
    assert "--runs 2" in scenario.command and "wifi-home" in scenario.command
