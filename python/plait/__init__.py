"""Multipath TCP schedulers, compared in a simulator with exact repetition.

A table of schedulers over two paths:

>>> import plait
>>> result = plait.compare(
...     paths=["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"],
...     workload="download:256kB",
...     schedulers=["minrtt", "ecf"],
...     runs=5,
... )
>>> [row["scheduler"] for row in result.rows]
['minrtt', 'ecf', 'tcp:wifi', 'tcp:lte']

The names and the units are those of the command line. ``result.command`` is the command line that gives the same
numbers: its ``digest`` is ``result.digest``.
"""

from plait._plait import VERSION as __version__
from plait._plait import Error, Send, Subflow, View, Wait
from plait.calls import compare, explain, run, runs
from plait.cluster import Sweep, sweep
from plait.experiments import ExperimentResult, experiment, experiments
from plait.listing import (
    decide,
    list_controllers,
    list_measures,
    list_paths,
    list_schedulers,
    list_workloads,
)
from plait.results import Explanation, Result, Run
from plait.scenario import Path, Scenario
from plait.schedulers import Checked, Decision, Scheduler, check, register
from plait.table import Table

__all__ = [
    "Checked",
    "Decision",
    "Error",
    "ExperimentResult",
    "Explanation",
    "Path",
    "Result",
    "Run",
    "Scenario",
    "Scheduler",
    "Send",
    "Subflow",
    "Sweep",
    "Table",
    "View",
    "Wait",
    "__version__",
    "check",
    "compare",
    "decide",
    "experiment",
    "experiments",
    "explain",
    "list_controllers",
    "list_measures",
    "list_paths",
    "list_schedulers",
    "list_workloads",
    "register",
    "run",
    "runs",
    "sweep",
]
