"""The calls that run a scenario: `compare`, `run`, `runs` and `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plait import _plait
from plait.arguments import switch, unicode, whole
from plait.progress import progress_bar
from plait.results import Explanation, Result, Run, terminal_width
from plait.scenario import AnyPath, AnyScenario, Setting, draft_of, texts_of
from plait.schedulers import Scheduler


def compare(
    paths: Iterable[AnyPath] | AnyPath = (),
    *,
    scenario: AnyScenario | None = None,
    workload: str | None = None,
    schedulers: str | type[Scheduler] | Iterable[str | type[Scheduler]] | None = None,
    cc: str | Iterable[str] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    vary: Setting = None,
    expect: str | Iterable[str] | None = None,
    explain: bool = False,
    progress: bool | None = None,
    **settings: Setting,
) -> Result:
    """Compares schedulers over the same workload, paths and seeds, as ``plait compare`` does.

    The first path is the primary. ``scenario`` is a `Scenario` or a scenario file, which the other arguments
    override. ``vary`` repeats the comparison for each value of a setting. ``explain`` also finds out why rows were
    fast or slow, which takes longer. Every other setting of docs/reference/keys.md is a keyword too, spelled with
    ``_``: ``dial_delay="20ms"``.

    The result keeps about 1 kB for each run; `runs` keeps none.

    The call releases the interpreter's lock, so comparisons in several threads run in parallel. Ctrl-C ends it at
    once with KeyboardInterrupt.

    >>> import plait
    >>> result = plait.compare(
    ...     paths=[plait.Path("wifi", rate="20mbit", rtt="22ms"), {"name": "lte", "rate": "8mbit", "rtt": "60ms"}],
    ...     workload="download:256kB",
    ...     schedulers=["minrtt", "ecf:beta=0.5"],
    ...     runs=5,
    ...     host_jitter="100us",
    ... )
    >>> result.table["scheduler"]
    ['minrtt', 'ecf:beta=0.5', 'tcp:wifi', 'tcp:lte']
    >>> len(result.digest)
    64

    Raises `plait.Error` if an argument is invalid:

    >>> plait.compare(["wifi:rtt=22"], workload="download:256kB")
    Traceback (most recent call last):
        ...
    plait.Error: --path wifi:rtt: `22` has no unit: a time needs one of ns, us, ms, s, min
    """
    given: dict[str, Setting] = {
        "workload": workload,
        "schedulers": schedulers,
        "cc": cc,
        "runs": runs,
        "seed": seed,
        "vary": vary,
        "expect": expect,
    }
    _refuse(settings, "compare")
    draft = draft_of(scenario, paths, {**given, **settings})
    with progress_bar(progress) as tell:
        return Result(_plait.compare(draft, switch("explain", explain), tell))


def run(
    paths: Iterable[AnyPath] | AnyPath = (),
    *,
    scenario: AnyScenario | None = None,
    workload: str | None = None,
    scheduler: str | type[Scheduler] | None = None,
    cc: str | None = None,
    seed: int | None = None,
    events: bool = False,
    **settings: Setting,
) -> Run:
    """Makes one run and reports it in depth, as ``plait run`` does.

    With ``events``, the run keeps every event for `Run.events`. The other arguments are those of `compare`.

    >>> import plait
    >>> run = plait.run(["wifi-home", "lte-att"], workload="download:64kB", scheduler="ecf", events=True)
    >>> "segment-sent" in run.events["event"]
    True
    """
    given: dict[str, Setting] = {"workload": workload, "scheduler": scheduler, "cc": cc, "seed": seed}
    _refuse(settings, "run")
    return Run(_plait.run(draft_of(scenario, paths, {**given, **settings}), switch("events", events)))


def runs(
    paths: Iterable[AnyPath] | AnyPath = (),
    *,
    scenario: AnyScenario | None = None,
    **settings: Setting,
) -> Iterator[dict[str, Any]]:
    """Iterates over the runs of a comparison, seed by seed, without a report.

    Each run is a dictionary with the columns of `Result.runs`. A value that a run lacks is None: a row ``tcp:wifi`` has no
    RTT of another path. Only a measure that no run so far has had is absent. As many runs are made at a time as there are cores
    (``jobs``), and none is kept, so the number of runs is not limited by memory. A loop may stop at any run. The
    arguments are those of `compare`, without ``expect`` and ``explain``, which need all runs.

    >>> import plait
    >>> first = next(plait.runs(["wifi-home", "lte-att"], workload="download:64kB", schedulers="ecf", runs=1000))
    >>> first["scheduler"], first["run"], first["seed"], first["completed"]
    ('ecf', 0, 1, True)
    """
    _refuse(settings, "runs")
    return EachRun(_plait.EachRun(draft_of(scenario, paths, settings)))


class EachRun(Iterator[dict[str, Any]]):
    """The runs, each with the keys of all."""

    # It is no generator: after Ctrl-C, it goes on.
    def __init__(self, inner: _plait.EachRun) -> None:
        self._inner = inner
        self._known: dict[str, None] = {}
        """The keys of the runs so far, in order."""

    def __next__(self) -> dict[str, Any]:
        run = next(self._inner)
        # Every run names all paths there.
        paths = [key.partition(".")[2] for key in run if key.startswith("path_share.")]
        measured = [f"{name}.{path}" for path in paths for name in ("rtt_ms", "rtt_min_ms", "rtt_max_ms")]
        self._known.update(dict.fromkeys([*run, *measured]))
        return {**run, **{key: None for key in self._known if key not in run}}


def explain(
    paths: Iterable[AnyPath] | AnyPath = (),
    *,
    scenario: AnyScenario | None = None,
    workload: str | None = None,
    scheduler: str | type[Scheduler] | None = None,
    cc: str | None = None,
    seed: int | None = None,
    slowest: int = 10,
    at: str | None = None,
    compare_with: str | type[Scheduler] | Iterable[str | type[Scheduler]] | None = None,
    progress: bool | None = None,
    **settings: Setting,
) -> Explanation:
    """Explains the lost time and the longest waits in a run, as ``plait explain`` does: causes, decisions and costs.

    ``at`` takes the waits at one time, such as ``"1.2s"``. ``compare_with`` shows the decisions of other schedulers
    in the same states.

    >>> import plait
    >>> explanation = plait.explain(["wifi-home", "lte-att"], workload="download:64kB", slowest=2)
    >>> len(explanation.stalls) <= 2
    True
    """
    given: dict[str, Setting] = {"workload": workload, "scheduler": scheduler, "cc": cc, "seed": seed}
    _refuse(settings, "explain")
    draft = draft_of(scenario, paths, {**given, **settings})
    most = whole("slowest", slowest, 1, 100)
    time = None if at is None else unicode("--at", str(at))
    others = None if compare_with is None else ",".join(texts_of("--compare-with", compare_with))
    with progress_bar(progress) as tell:
        document, text = _plait.explain(draft, most, time, others, terminal_width(), tell)
    return Explanation(document, text)


_ELSEWHERE = {
    "events": "plait.run(..., events=True)",
    "explain": "plait.compare(..., explain=True), plait.explain(...)",
    "slowest": "plait.explain(..., slowest=N)",
    "at": "plait.explain(..., at=TIME)",
    "compare_with": "plait.explain(..., compare_with=SCHEDULERS)",
    "progress": "plait.compare(..., progress=True), plait.explain(..., progress=True)",
}
"""Arguments that only some of the calls have, and those calls."""


def _refuse(settings: dict[str, Setting], call: str) -> None:
    """Refuses settings that belong to another call. A call does not find its own arguments in ``settings``."""
    if call in ("run", "explain") and str(settings.get("runs") or 1) != "1":
        raise _plait.Error("--runs: this call makes one run\n  allowed: plait.compare(..., runs=N), plait.runs(..., runs=N)")
    for name, allowed in _ELSEWHERE.items():
        if settings.get(name) is not None and f"plait.{call}(" not in allowed:
            raise _plait.Error(f"{name}: plait.{call} does not have it\n  allowed: {allowed}")
