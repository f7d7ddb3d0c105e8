from collections.abc import Callable, Iterator
from typing import Any, final

from plait.cluster.worker import Source
from plait.schedulers import Scheduler

__all__ = [
    "Comparison",
    "Draft",
    "EachRun",
    "Episode",
    "Error",
    "ExperimentReport",
    "PROGRAM",
    "Plan",
    "RunLog",
    "RunReport",
    "Send",
    "Subflow",
    "Table",
    "VERSION",
    "View",
    "Wait",
    "Work",
    "check",
    "command",
    "compare",
    "decide",
    "decide_cc",
    "experiment",
    "explain",
    "label_of_measure",
    "list_entries",
    "list_experiments",
    "program",
    "register",
    "run",
]

VERSION: str
PROGRAM: str

class Error(ValueError): ...

@final
class Draft:
    def __new__(cls) -> Draft: ...
    @staticmethod
    def from_toml(name: str, text: str) -> Draft: ...
    @staticmethod
    def from_file(file: str) -> Draft: ...
    @staticmethod
    def settings() -> list[str]: ...
    def copy(self) -> Draft: ...
    def set_paths(self, texts: list[str]) -> None: ...
    def set(self, name: str, texts: list[str]) -> None: ...
    def to_toml(self) -> str: ...
    def classes(self) -> list[type[Scheduler]]: ...
    def command(self) -> str: ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]: ...
    def parts(self) -> list[tuple[str, str, list[Any]]]: ...
    @staticmethod
    def of_parts(parts: list[tuple[str, str, list[Any]]], rows: int) -> Table: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class View:
    """The state of a connection before a decision."""

    @property
    def now_ms(self) -> float:
        """Time since the start of the run in ms."""

    @property
    def segment_dsn(self) -> int:
        """Offset of the segment in the data, in bytes from 0."""

    @property
    def segment_bytes(self) -> int:
        """Payload bytes of the segment."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes that have not been sent, including the segment."""

    @property
    def window_left_bytes(self) -> int:
        """Bytes from the segment to the end of the send window."""

    @property
    def subflows(self) -> list[Subflow]:
        """All subflows, in the order of their ids."""

    @property
    def candidates(self) -> list[Subflow]:
        """The live subflows that may carry new data: backup subflows only if there is no other."""

    @property
    def usable(self) -> list[Subflow]:
        """The candidates that can take the segment now. At a decision there is at least one."""

@final
class Subflow:
    """A subflow before a decision. Counts of bytes are payload bytes."""

    @property
    def id(self) -> int:
        """The id, from 0. A later subflow may get the id of one that has ended."""

    @property
    def srtt_ms(self) -> float:
        """Smoothed RTT in ms; infinite before the first sample."""

    @property
    def min_rtt_ms(self) -> float:
        """Lowest RTT in ms; infinite before the first sample."""

    @property
    def rttvar_ms(self) -> float:
        """RTT variation (RFC 6298) in ms."""

    @property
    def cwnd_bytes(self) -> int:
        """Congestion window in bytes."""

    @property
    def ssthresh_bytes(self) -> int | None:
        """Slow start threshold in bytes; None if it is infinite."""

    @property
    def inflight_bytes(self) -> int:
        """Bytes in flight."""

    @property
    def room_bytes(self) -> int:
        """Bytes that the congestion window still allows."""

    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""

    @property
    def backup(self) -> bool:
        """True if this end or the peer requested low priority."""

    @property
    def cost(self) -> int:
        """Price of a byte, relative to other subflows; 0 is free."""

    @property
    def delivery_rate(self) -> int:
        """Delivery rate in bytes per second; 0 if it is unknown."""

@final
class Send:
    """A decision to send the segment on a subflow, which is given as itself or by its id.

    With `room`, the subflow takes further segments without another call while it has room and nothing else changes.
    """

    def __new__(cls, subflow: Subflow | int, room: bool = False) -> Send: ...

@final
class Wait:
    """A decision to wait: for a subflow, which is given as itself or by its id, or for any change."""

    def __new__(cls, subflow: Subflow | int | None = None) -> Wait: ...

_KeptRun = tuple[int, int, int, str | None, list[tuple[str, float]]]

@final
class Comparison:
    def __eq__(self, other: object, /) -> bool: ...
    def parts(self) -> tuple[str, list[list[_KeptRun]]]: ...
    @staticmethod
    def of_parts(document: str, runs: list[list[_KeptRun]]) -> Comparison: ...
    @property
    def digest(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def verdicts(self) -> list[str]: ...
    @property
    def broken(self) -> str: ...
    def json(self) -> str: ...
    def text(self, width: int, colour: bool = False) -> str: ...
    def markdown(self) -> str: ...
    def csv(self, per_run: bool) -> str: ...
    def rows(self) -> Table: ...
    def runs(self) -> Table: ...

@final
class RunReport:
    @property
    def digest(self) -> str: ...
    @property
    def command(self) -> str: ...
    def json(self) -> str: ...
    def text(self, width: int, colour: bool = False) -> str: ...
    def recipe(self) -> tuple[str, bool, type[Scheduler] | None]: ...
    def drawings(self) -> str: ...
    def events(self) -> Table | None: ...

@final
class ExperimentReport:
    @property
    def command(self) -> str: ...
    @property
    def broken(self) -> list[str]: ...
    def json(self) -> str: ...
    def text(self, width: int, colour: bool = False) -> str: ...
    def markdown(self) -> str: ...
    def csv(self) -> str: ...
    def figures(self) -> list[tuple[str, str, str, str]]: ...
    def cells(self) -> Table: ...
    def runs(self) -> Table: ...

@final
class EachRun(Iterator[dict[str, Any]]):
    def __new__(cls, draft: Draft) -> EachRun: ...
    def __iter__(self) -> EachRun: ...
    def __next__(self) -> dict[str, Any]: ...

def check(name: str, connections: int, seed: int) -> int: ...
def command(arguments: list[str], interpreter: str) -> int: ...
_Unit = tuple[int, int, int]

@final
class Plan:
    @staticmethod
    def of_scenario(draft: Draft, name: str) -> Plan: ...
    @staticmethod
    def of_experiment(name: str, seed: int, quick: bool) -> Plan: ...
    @property
    def command(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> Source: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def cells(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def address(self, unit: _Unit, program: str) -> str: ...
    def describe(self, unit: _Unit) -> str: ...

@final
class Work:
    def __new__(cls, source: Source) -> Work: ...
    def run(
        self, units: list[_Unit], jobs: int, progress: Callable[[int, int], None] | None = None
    ) -> list[str]: ...

@final
class RunLog:
    def __new__(cls, directory: str) -> RunLog: ...
    @property
    def program(self) -> str: ...
    def missing(self, plan: Plan, most: int) -> list[_Unit]: ...
    def add(self, plan: Plan, units: list[_Unit], lines: list[str]) -> None: ...
    def summary(self, plan: Plan) -> tuple[str, list[str]]: ...
    def table(self, plan: Plan, first: int, end: int) -> Table: ...

@final
class Episode:
    @staticmethod
    def numbers() -> tuple[list[str], list[str]]: ...
    @staticmethod
    def paths(draft: Draft) -> int: ...
    def __new__(cls, draft: Draft, slots: int) -> Episode: ...
    def observe(self) -> bytes | None: ...
    def act(self, action: int) -> bytes | None: ...
    @property
    def report(self) -> RunReport | None: ...

def compare(
    draft: Draft, explain: bool = False, progress: Callable[[int, int], None] | None = None
) -> Comparison: ...
def run(draft: Draft, events: bool = False) -> RunReport: ...
def explain(
    draft: Draft,
    slowest: int,
    at: str | None,
    compare_with: str | None,
    width: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[str, str]: ...
def experiment(
    name: str, making: dict[str, Any], progress: Callable[[int, int], None] | None = None
) -> ExperimentReport: ...
def list_experiments() -> str: ...
def register(
    class_: type[Scheduler], text: str, name: str, idea: str, params: list[tuple[str, bool | int | float]]
) -> None: ...
def decide(question: str) -> str: ...
def decide_cc(question: str) -> str: ...
def label_of_measure(name: str) -> str: ...
def list_entries(kind: str, name: str | None = None) -> str: ...
def program() -> str: ...
