"""The command `plait` of the package behaves as the binary does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Plait, binary

import plait
from plait.__main__ import CLASS, NotAScheduler, register_classes, with_modules

COMMAND = Path(sys.executable).parent / ("plait.exe" if os.name == "nt" else "plait")
PATHS = ["--path", "wifi:rate=20mbit,rtt=22ms", "--path", "lte:rate=8mbit,rtt=60ms"]
SHORT = [*PATHS, "--workload", "download:64kB", "--schedulers", "minrtt,ecf", "--runs", "3"]
LONG = [*PATHS, "--workload", "bulk:60s", "--schedulers", "minrtt", "--runs", "1000"]

SCHEDULERS = '''
class Fast:
    """The lowest RTT."""
    def schedule(self, view):
        return min(view.usable, key=lambda it: (it.srtt_ms, it.id))

class Broken:
    def schedule(self, view):
        raise ZeroDivisionError("mine")

class Leaves:
    def schedule(self, view):
        raise SystemExit(3)

class Wrong:
    pass

class Outer:
    class Inner(Fast):
        pass
'''


def ended(*arguments: str, program: Path = COMMAND, **settings: object) -> subprocess.CompletedProcess[str]:
    """Returns the ended command."""
    environment = {**os.environ, "COLUMNS": "90"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=environment, **settings)  # type: ignore[call-overload, no-any-return]


def wait_for_runs(process: int) -> None:
    """Waits until a comparison makes runs: it then has a thread for signals, and workers."""
    threads = Path(f"/proc/{process}/task")
    deadline = time.monotonic() + 10
    while threads.exists() and len(list(threads.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)


def the_binary() -> Path:
    program = binary()
    if program is None:
        pytest.skip("there is no binary of the command line: `cargo build --release -p plait-cli`, or set PLAIT")
    return program


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--help"], 0),
        (["help", "--help"], 0),
        (["compare", "--help"], 0),
        (["comparison"], 2),
        (["compare", *SHORT], 0),
        (["compare", *SHORT, "--format", "csv"], 0),
        (["compare", *SHORT, "wifi"], 2),
        (["compare", "--path", "x:rtt=9"], 2),
        (["compare", *SHORT, "--expect", "ecf.completion_ms.p95 < 0.1 * minrtt.completion_ms.p95"], 1),
        (["compare", *SHORT, "--output", "/nowhere/x"], 2),
        (["run", *PATHS, "--workload", "download:64kB", "--scheduler", "ecf"], 0),
        (["run", *PATHS, "--workload", "bulk:9s", "--scheduler", "eff"], 2),
        (["experiment", "list"], 0),
        (["experiment", "check", "ton-fig8"], 0),
        (["experiment", "run", "ton-fig99"], 2),
        (["doctor", "nothing"], 2),
        (["doctor", "serve", "--json"], None),
    ],
)
def test_code_and_streams_are_those_of_the_binary(arguments: list[str], code: int | None) -> None:
    expected = ended(*arguments, program=the_binary())
    found = ended(*arguments)
    assert (found.returncode, found.stdout, found.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    assert code is None or found.returncode == code


def test_the_version_is_that_of_the_package() -> None:
    lines = ended("--version").stdout.splitlines()
    assert lines[0] == f"plait {plait.__version__}"
    assert lines[2].startswith("features simulator")


def test_the_digest_is_that_of_the_package() -> None:
    found = ended("compare", *SHORT, "--json")
    paths = [word for word in PATHS if word != "--path"]
    result = plait.compare(paths, workload="download:64kB", schedulers="minrtt,ecf", runs=3)
    assert json.loads(found.stdout)["digest"] == result.digest


def test_the_module_runs_too() -> None:
    ran = subprocess.run([sys.executable, "-m", "plait", "list", "cc"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "cubic" in ran.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals and devices of POSIX")
class TestPosix:
    """Signals and streams."""

    @pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT] * 2])
    def test_an_interrupt_ends_it_with_the_code_of_the_binary(self, signals: list[int]) -> None:
        codes = []
        for program in (the_binary(), COMMAND):
            command = [str(program), "compare", *LONG, "--json"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                wait_for_runs(process.pid)
                for number in signals:
                    process.send_signal(number)
                    time.sleep(0.05)
                output = process.communicate(timeout=20)
            codes.append((process.returncode, output[1].splitlines()))
        assert codes[0][0] == codes[1][0] == 130
        # The second interrupt ends it at once, with or without its last words.
        if len(signals) == 1:
            assert codes[0][1][-1:] == codes[1][1][-1:]

    @pytest.mark.parametrize("output", ["/dev/full", "-", "| true", "| head -c 9"])
    def test_a_bad_stdout_is_as_with_the_binary(self, output: str) -> None:
        words = " ".join(["list", "schedulers"])
        redirected = {"-": ">&-"}.get(output, output if output.startswith("|") else f">{output}")
        found = [
            ended("-c", f"set -o pipefail; {program} {words} {redirected}", program=Path("/bin/bash"))
            for program in (the_binary(), COMMAND)
        ]
        assert found[0].returncode == found[1].returncode
        assert found[0].stderr == found[1].stderr
        assert "Traceback" not in found[1].stderr

    def test_an_ignored_interrupt_stays_ignored(self) -> None:
        # The shell of a background job ignores SIGINT for it.
        script = f'trap "" INT; "{COMMAND}" list cc & sleep 0.01; kill -INT $!; wait $!; echo "code $?"'
        assert ended("-c", script, program=Path("/bin/bash")).stdout.endswith("code 0\n")


@pytest.fixture()
def home(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(SCHEDULERS)
    (tmp_path / "wrong.py").write_text("def schedule(:")
    return tmp_path


def test_a_class_is_a_scheduler(home: Path) -> None:
    words = [*PATHS, "--workload", "download:64kB", "--runs", "2", "--json"]
    found = ended("compare", *words, "--schedulers", "mine:Fast,minrtt", cwd=home)
    assert found.returncode == 0, found.stderr
    rows = {row["scheduler"]: row for row in json.loads(found.stdout)["rows"]}
    assert list(rows)[:2] == ["fast", "minrtt"]
    assert rows["fast"]["measures"] == rows["minrtt"]["measures"]
    copied = ended("compare", *words, "--schedulers=mine:Fast+copy", cwd=home)
    assert json.loads(copied.stdout)["rows"][0]["scheduler"] == "fast+copy"


def test_a_class_answers_questions(home: Path) -> None:
    question = '{"subflows":[{"id":0,"srtt_ms":60},{"id":1,"srtt_ms":9}]}\n'
    found = ended("decide", "--scheduler", "mine:Fast", cwd=home, input=question)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["subflow"] == 1


def test_a_class_has_a_page(home: Path) -> None:
    found = ended("list", "schedulers", "mine:Fast", cwd=home)
    assert found.returncode == 0, found.stderr
    assert "fast" in found.stdout
    assert "mine" not in ended("list", "schedulers", cwd=home).stdout


def test_a_class_that_ends_the_interpreter_ends_a_comparison(home: Path) -> None:
    words = [*PATHS, "--workload", "download:512kB", "--runs", "2"]
    found = ended("compare", *words, "--schedulers", "mine:Leaves", cwd=home, timeout=60)
    assert found.returncode == 2 and "SystemExit: 3" in found.stderr


def test_every_flag_of_schedulers_takes_a_class(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", [*sys.path])
    given = ["serve", "--scheduler", "mine:Fast+copy", "--port=443=mine:Outer.Inner", "--port", "80=ecf"]
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    register_classes(given)
    for text in ("mine:Fast+copy", "mine:Outer.Inner"):
        scenario = plait.Scenario(["wifi-home", "lte-att"], workload="download:64kB", scheduler=text)
        assert f"--schedulers {text} " in scenario.command


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("mine:Slow", "module 'mine' has no attribute 'Slow'"),
        ("__main__:Fast", "`Fast` is a class of the program that wrote `__main__:Fast`, and this is another one"),
        ("theirs:Fast", "No module named 'theirs'"),
        ("mine:Wrong", "no method schedule"),
        ("mine:Broken", "ZeroDivisionError: mine"),
        ("mine:Leaves", "SystemExit: 3"),
        ("wrong:Any", "--scheduler: wrong:Any: SyntaxError: "),
    ],
)
def test_a_bad_class_is_an_invalid_argument(home: Path, named: str, text: str) -> None:
    found = ended("run", *PATHS, "--workload", "download:512kB", "--scheduler", named, cwd=home)
    assert found.returncode == 2
    assert text in found.stderr


@pytest.mark.parametrize("given", [["--scheduler", "nosuch:C"], ["--schedulers=ecf,nosuch:C"], ["--port", "443=nosuch:C"]])
def test_the_error_names_the_flag(given: list[str]) -> None:
    flag = given[0].partition("=")[0]
    with pytest.raises(NotAScheduler, match=f"^{flag}: No module named 'nosuch'$"):
        register_classes(["compare", *given])


def test_other_arguments_are_not_classes() -> None:
    given = ["serve", "--scheduler", "ecf:beta=0.5", "--schedulers=minrtt+rp:mode=retransmit,tcp:wifi", "--path", "a:b"]
    register_classes([*given, "--port", "443=ecf:beta=1"])
    assert not [text for argument in given[:4] for text in CLASS.findall(argument)]


def test_the_printed_command_runs_again(home: Path) -> None:
    words = [*PATHS, "--workload", "download:64kB", "--runs", "2"]
    found = ended("compare", *words, "--schedulers", "mine:Fast,minrtt", cwd=home)
    assert found.returncode == 0, found.stderr
    printed = found.stdout.rsplit("Run again:", 1)[1].replace("\\\n", " ").split()
    assert printed[printed.index("--schedulers") + 1] == "mine:Fast,minrtt"
    again = ended(*printed[1:], cwd=home)
    assert again.stdout == found.stdout
    ran = ended("run", *words[:6], "--scheduler", "mine:Fast+copy", "--json", cwd=home)
    assert " --scheduler mine:Fast+copy " in json.loads(ran.stdout)["command"]
    explained = ended("explain", *words[:6], "--scheduler", "mine:Fast", "--compare-with", "mine:Fast,ecf", "--json", cwd=home)
    command = json.loads(explained.stdout)["command"]
    assert " --scheduler mine:Fast " in command and command.endswith(" --compare-with mine:Fast,ecf")


def test_the_name_and_the_class_have_one_digest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*PATHS, "--workload", "download:64kB", "--runs", "2", "--json"]
    found = json.loads(ended("compare", *words, "--schedulers", "mine:Fast", cwd=home).stdout)
    monkeypatch.syspath_prepend(home)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    import mine  # type: ignore[import-not-found]

    plait.register(mine.Fast)
    for scheduler in ("fast", "mine:Fast", mine.Fast):
        paths = [word for word in PATHS if word != "--path"]
        result = plait.compare(paths, workload="download:64kB", schedulers=scheduler, runs=2)
        assert result.digest == found["digest"] and result.command == found["command"]


FILE = """
workload = "download:64kB"
schedulers = ["minrtt", "mine:Fast"]
runs = 2
path = ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"]
"""


def test_a_scenario_file_names_a_class(home: Path) -> None:
    (home / "home.toml").write_text(FILE)
    refused = ended("compare", "--scenario", "home.toml", cwd=home)
    assert refused.returncode == 2 and "home.toml:3:" in refused.stderr
    assert "`mine:Fast`: the module `mine` is not imported, and input may not import it" in refused.stderr
    assert "plait --import mine" in refused.stderr
    found = ended("--import", "mine", "compare", "--scenario", "home.toml", cwd=home)
    assert found.returncode == 0, found.stderr
    assert "--schedulers minrtt,mine:Fast" in found.stdout
    # What a flag says is imported, and is saved under this name.
    words = ["compare", "--scenario", "home.toml", "--schedulers", "mine:Fast", "--save-scenario", "saved.toml"]
    assert ended(*words, cwd=home).returncode == 0
    assert '"mine:Fast"' in (home / "saved.toml").read_text()
    (home / "home.toml").write_text(FILE.replace("Fast", "Slow"))
    missing = ended("--import=mine", "compare", "--scenario", "home.toml", cwd=home)
    assert missing.returncode == 2 and "home.toml:3:" in missing.stderr
    assert "the module `mine` has no class `Slow`" in missing.stderr


EXPERIMENT = """
title = "A class over two paths"
workload = "download:64kB"
runs = 2
path = ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"]

[row.own]
scheduler = "mine:Fast"
"""


def test_the_printed_command_of_an_experiment_imports_its_classes(home: Path) -> None:
    (home / "own.toml").write_text(EXPERIMENT)
    words = ["experiment", "run", "own.toml", "--seed", "3", "--json", "--no-cache"]
    found = ended("--import", "mine", *words, cwd=home)
    assert found.returncode == 0, found.stderr
    command = json.loads(found.stdout)["command"]
    assert command == "plait --import mine experiment run own.toml --seed 3"
    again = ended(*command.split()[1:], "--json", "--no-cache", cwd=home)
    assert again.stdout == found.stdout


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--import", "theirs"], "--import: No module named 'theirs'"),
        (["--import", "wrong"], "--import: wrong: SyntaxError: "),
        (["--import"], "--import: the module is missing"),
    ],
)
def test_a_bad_import_is_an_invalid_argument(home: Path, given: list[str], text: str) -> None:
    found = ended(*given, cwd=home)
    assert found.returncode == 2 and text in found.stderr


def test_only_leading_flags_import() -> None:
    given = ["shell", "python3", "--import", "nosuch"]
    assert with_modules(given) == given
