"""The same scenario and seed give the same digest here and on the command line."""

from __future__ import annotations

import json
import os
import random
import shlex
from typing import Any

import pytest
from conftest import Plait

import plait

SCENARIOS = int(os.environ.get("PLAIT_SCENARIOS", "200"))
"""Number of random scenarios."""
SCHEDULERS = ["minrtt", "roundrobin", "redundant", "blest", "ecf", "daps", "stms-c", "linux", "slot", "ecf:beta=0.5"]
WORKLOADS = ["download:128kB", "upload:96kB", "burst:15seg", "bulk:1s", "stream:4kB@50ms,for=1s", "blocks:20kB@2mbit,for=1s"]


def drawn(seed: int) -> tuple[list[str], dict[str, str]]:
    """Draws paths and settings, as texts of the command line."""
    draw = random.Random(seed)
    paths = []
    for name in ["a", "b", "c"][: draw.choice([1, 2, 2, 2, 3])]:
        keys = [f"rate={draw.randint(1, 40)}mbit", f"rtt={draw.randint(5, 150)}ms"]
        optional = ["loss=0.5%", "jitter=2ms", "queue=30ms", "reorder=1%:5ms", "down=200ms..400ms", "loss=ge:p=1%,r=30%,bad=50%"]
        keys += draw.sample(optional[:5], draw.randint(0, 2)) if draw.random() < 0.8 else [optional[5]]
        paths.append(f"{name}:{','.join(keys)}")
    settings = {
        "workload": draw.choice(WORKLOADS),
        "schedulers": ",".join(draw.sample(SCHEDULERS, 2)),
        "cc": draw.choice(["cubic", "lia", "reno,olia", "bbr"]),
        "runs": str(draw.randint(1, 4)),
        "seed": str(draw.choice([draw.randint(0, 999), draw.getrandbits(64)])),
    }
    if draw.random() < 0.3:
        settings["vary"] = f"a.rtt={draw.randint(5, 20)}ms,{draw.randint(30, 90)}ms"
    if draw.random() < 0.3:
        settings["rcvbuf"] = f"{draw.randint(40, 400)}kB"
    return paths, settings


def document(plait_binary: Plait, *arguments: str) -> dict[str, Any]:
    """Returns the document of a command."""
    ended = plait_binary(*arguments, "--json")
    assert ended.returncode in (0, 4), ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_a_random_scenario_has_the_digest_of_the_command_line(plait_binary: Plait, seed: int) -> None:
    paths, settings = drawn(seed)
    words = [word for path in paths for word in ("--path", path)]
    words += [word for name, text in settings.items() for word in (f"--{name}", text)]
    expected = document(plait_binary, "compare", *words)
    result = plait.compare(paths, **settings)  # type: ignore[arg-type]
    assert result.digest == expected["digest"]
    assert result.command == expected["command"]
    # The documents are equal, not only their digests.
    assert result.to_dict() == expected


def test_the_command_of_a_result_gives_its_digest(plait_binary: Plait) -> None:
    result = plait.compare(
        [plait.Path("wifi", rate="20mbit", rtt="22ms", down=["1s..2s"]), {"name": "lte-att", "profile": "lte-att"}],
        workload="download:128kB",
        schedulers=["minrtt", "blest"],
        runs=3,
        seed=2**63 + 5,
        vary={"wifi.loss": ["0%", "1%"], "sndbuf": ["64kB", "256kB"]},
    )
    assert len(result.rows) == 16
    command = shlex.split(result.command)
    assert document(plait_binary, *command[1:])["digest"] == result.digest


def test_a_run_is_the_first_run_of_the_comparison_and_of_the_command_line(plait_binary: Plait) -> None:
    paths = ["wifi:rate=20mbit,rtt=22ms,loss=1%", "lte:rate=8mbit,rtt=60ms"]
    run = plait.run(paths, workload="download:128kB", scheduler="ecf", seed=7)
    assert document(plait_binary, *shlex.split(run.command)[1:]) == run.to_dict()
    compared = plait.compare(paths, workload="download:128kB", schedulers="ecf", runs=2, seed=7)
    assert compared.runs["completion_ms"][0] == run.measures["completion_ms"]


def test_an_explanation_is_that_of_the_command_line(plait_binary: Plait) -> None:
    paths = ["wifi:rate=20mbit,rtt=22ms", "lte:rate=2mbit,rtt=90ms"]
    explained = plait.explain(paths, workload="download:64kB", slowest=3, compare_with=["ecf", "blest"])
    assert document(plait_binary, *shlex.split(explained.command)[1:]) == explained.to_dict()
    assert "--compare-with ecf,blest" in explained.command
    assert explained.sentence == explained.to_dict()["sentence"]
    assert explained.sentence.startswith("The transfer of 64.0 kB took ")


def test_a_decision_is_that_of_the_command_line(plait_binary: Plait) -> None:
    question = {"scheduler": "blest", "subflows": [{"id": 0, "srtt_ms": 9}, {"id": 1, "srtt_ms": 80}]}
    answer = plait_binary("decide", stdin=json.dumps(question) + "\n").stdout
    assert plait.decide(question) == json.loads(answer)


def test_the_csv_and_the_table_are_those_of_the_command_line(plait_binary: Plait) -> None:
    words = ["--path", "wifi-home", "--path", "lte-att", "--workload", "download:64kB", "--schedulers", "ecf", "--runs", "2"]
    result = plait.compare(["wifi-home", "lte-att"], workload="download:64kB", schedulers="ecf", runs=2)
    assert result.to_csv() == plait_binary("compare", *words, "--format", "csv").stdout
    assert result.to_csv(per_run=True) == plait_binary("compare", *words, "--format", "csv", "--per-run").stdout
    assert result.to_markdown() == plait_binary("compare", *words, "--format", "markdown").stdout


def test_a_scenario_file_of_the_command_line_is_read(plait_binary: Plait, tmp_path: Any) -> None:
    words = ["--path", "wifi-home", "--path", "lte-att", "--workload", "download:64kB", "--schedulers", "ecf", "--runs", "2"]
    file = tmp_path / "home.toml"
    expected = document(plait_binary, "compare", *words, "--save-scenario", str(file))
    assert plait.compare(scenario=file).digest == expected["digest"]
    scenario = plait.Scenario.from_file(file)
    assert scenario.to_toml() == file.read_text()
    assert plait.compare(scenario=scenario).digest == expected["digest"]
    changed = document(plait_binary, "compare", "--scenario", str(file), "--runs", "3", "--path", "wifi-home")
    assert plait.compare("wifi-home", scenario=scenario, runs=3).digest == changed["digest"] != expected["digest"]
