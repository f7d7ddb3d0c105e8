"""The call `plait.sweep`, and the loop that hands out units."""

from __future__ import annotations

import hashlib
import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from plait import _plait
from plait.arguments import directory, file_name, switch, whole
from plait.cluster.dataset import Sweep, check_arrow, check_place, write
from plait.cluster.executors import Future, Workers, is_loss, lost, workers_of
from plait.cluster.worker import Answer, Batch, Compact, Part, Unit, compact, work
from plait.progress import progress_bar
from plait.scenario import AnyScenario, Scenario

UNIT_RUNS = 16
"""Largest number of runs of a unit."""

TASK_SECONDS = 0.5
"""Time that a task should take: long beside the cost of handing it out, and short to repeat."""

AHEAD = 3
"""Tasks for each worker that are handed out at the same time."""

COUNT_SECONDS = 1.0
"""Time after which the workers are counted again, because a cluster may grow or shrink."""


def sweep(
    scenarios: AnyScenario | Iterable[AnyScenario] = (),
    *,
    out: str | os.PathLike[str],
    executor: Any = None,
    cache: str | os.PathLike[str] | None = None,
    experiment: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    quick: bool = False,
    seed: int | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Makes the runs of scenarios on any number of workers, and writes them as one Parquet data set.

    ``scenarios`` is a `Scenario`, a scenario file, or several of them. ``experiment`` adds experiments by name or
    file, whose first runs `plait experiment run` makes too; ``quick`` and ``seed`` are its flags.

    ``executor`` is an executor of `concurrent.futures`, a ``distributed.Client``, or None for all cores of this
    machine. The bytes of the data set depend on none of these, and not on the number of workers or on lost workers.

    Finished runs are kept in ``out/cache``, or in the directory ``cache``. The same call continues after a crash, and
    ``plait experiment run --cache`` uses the same runs.

    All scenarios are checked before the first run: `plait.Error` names the wrong one.

    >>> import plait, tempfile
    >>> scenario = plait.Scenario(
    ...     ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"],
    ...     workload="download:64kB", schedulers="minrtt,ecf", runs=2, vary={"lte.rtt": ["60ms", "120ms"]},
    ... )
    >>> with tempfile.TemporaryDirectory() as out:
    ...     swept = plait.sweep(scenario, out=out)
    ...     swept.rows, swept.to_polars()["scheduler"].unique().sort().to_list()
    (16, ['ecf', 'minrtt', 'tcp:lte', 'tcp:wifi'])
    """
    check_arrow()
    workers = workers_of(executor)
    if not experiment and (quick or seed is not None):
        raise _plait.Error(f"{'quick' if quick else 'seed'}: it is for experiments\n  allowed: plait.Scenario(..., seed=N)")
    plans = plans_of(scenarios, experiment, switch("quick", quick), seed)
    results = directory("out", out)
    check_place(results)
    finished = directory("out", results / "cache") if cache is None else directory("cache", cache)
    log = _plait.RunLog(os.fspath(finished))
    counts = make_missing(plans, log, workers, progress)
    return write(results, plans, log, counts)


def plans_of(
    scenarios: AnyScenario | Iterable[AnyScenario] = (),
    experiments: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    quick: bool = False,
    seed: int | None = None,
) -> list[_plait.Plan]:
    """Returns the plans of all scenarios and experiments."""
    if not isinstance(scenarios, (Scenario, str, os.PathLike, Iterable)):
        raise _no_scenario("scenarios", scenarios)
    several = [scenarios] if isinstance(scenarios, (Scenario, str, os.PathLike)) else list(scenarios)
    if not isinstance(experiments, (str, os.PathLike, Iterable)):
        experiments = file_name("experiment", experiments)
    named = [experiments] if isinstance(experiments, (str, os.PathLike)) else list(experiments)
    seed = whole("seed", 1 if seed is None else seed, 0, 2**64 - 1)
    plans = []
    for place, scenario in enumerate(several):
        name = at = f"scenarios[{place}]"
        if isinstance(scenario, (str, os.PathLike)):
            name = file_name(at, scenario)
        elif not isinstance(scenario, Scenario):
            raise _no_scenario(at, scenario)
        try:
            draft = scenario._draft if isinstance(scenario, Scenario) else _plait.Draft.from_file(name)
            plans.append(_plait.Plan.of_scenario(draft, name))
        except _plait.Error as error:
            raise _plait.Error(f"{at}: {error}") from None
    plans += [_plait.Plan.of_experiment(file_name("experiment", name), seed, quick) for name in named]
    if not plans:
        raise _plait.Error("scenarios: there are none\n  allowed: a plait.Scenario, a scenario file, or several of them")
    return plans


def _no_scenario(place: str, given: object) -> _plait.Error:
    allowed = "a plait.Scenario, or the name of a scenario file"
    return _plait.Error(f"{place}: `{given}` is no scenario\n  allowed: {allowed}")


def make_missing(
    plans: Sequence[_plait.Plan], log: _plait.RunLog, workers: Workers | None, progress: bool | None
) -> dict[str, int]:
    """Makes the runs that the log lacks. Returns the number of runs of each worker."""
    due = deque(
        (place, unit) for place, plan in enumerate(plans) for unit in log.missing(plan, UNIT_RUNS)
    )
    total = sum(end - first for _, (_, first, end) in due)
    with progress_bar(progress) as tell:
        making = _Making(plans, log, due, total, tell)
        if workers is None:
            making.here()
        else:
            making.by(workers)
    return making.counts


class _Making:
    """The units that are due, and those under way."""

    def __init__(
        self,
        plans: Sequence[_plait.Plan],
        log: _plait.RunLog,
        due: deque[tuple[int, Unit]],
        total: int,
        tell: Callable[[int, int], None] | None,
    ) -> None:
        self.plans, self.log, self.due, self.total = plans, log, due, total
        self.tell = tell or (lambda done, total: None)
        self.left = total
        self.done = 0
        self.seconds = 0.0
        self.counts: dict[str, int] = {}
        self.sources: dict[int, Compact] = {}
        """The sources of the plans without their large texts, by place."""

    def here(self) -> None:
        """Makes all runs in this process, on all cores."""
        jobs = os.cpu_count() or 1
        while self.due:
            batch = self.next_batch(self.left, jobs)
            before = self.done

            def tell(done: int, before: int = before) -> None:
                self.tell(before + done, self.total)

            answer = work(batch, None, jobs, tell) or work(batch, self.texts(batch), jobs, tell)
            assert answer is not None
            self.take(batch, Answer(answer.worker, answer.seconds * jobs, answer.lines))

    def by(self, workers: Workers) -> None:
        """Hands out batches, of which only a few are under way at the same time."""
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        under_way: dict[Future, Batch] = {}
        if self.due:
            workers.wait()
        count, counted = workers.count(), time.monotonic()

        def hand_out(batch: Batch, lacking: bool = False) -> None:
            future = workers.submit(batch, self.address(batch), partial(self.texts, batch), lacking)
            under_way[future] = batch
            future.add_done_callback(ended.put)

        try:
            while self.due or under_way:
                if time.monotonic() - counted >= COUNT_SECONDS:
                    count, counted = workers.count(), time.monotonic()
                while self.due and len(under_way) < AHEAD * count:
                    hand_out(self.next_batch(self.left / (2 * count), 1))
                try:
                    # A wait without a limit would hold Ctrl-C back on some systems.
                    future = ended.get(timeout=COUNT_SECONDS)
                except queue.Empty:
                    continue
                try:
                    answer = future.result()
                except Exception as error:
                    if is_loss(error):
                        raise lost(error) from None
                    raise
                batch = under_way.pop(future)
                if answer is None:
                    hand_out(batch, lacking=True)
                else:
                    self.take(batch, answer)
        finally:
            # A client keeps a failed task until it is cancelled, and would answer the same call with its error.
            for future in under_way:
                future.cancel()

    def next_batch(self, most: float, jobs: int) -> Batch:
        """Takes the next runs: about ``most``, or fewer if a task would take longer than `TASK_SECONDS`.

        A unit that has more runs is divided. The time of a run is unknown until the first one has ended.
        """
        fitting = TASK_SECONDS * jobs * self.done / self.seconds if self.seconds else float(jobs)
        wanted = max(1, int(min(fitting, most)))
        taken: dict[int, list[Unit]] = {}
        runs = 0
        while self.due and runs < wanted:
            place, (cell, first, end) = self.due.popleft()
            until = min(end, first + wanted - runs)
            if until < end:
                self.due.appendleft((place, (cell, until, end)))
            taken.setdefault(place, []).append((cell, first, until))
            runs += until - first
        self.left -= runs
        parts = []
        for place, units in taken.items():
            parts.append(Part(place, self.source(place), tuple(units), self.plans[place].describe(units[0])))
        return Batch(self.log.program, tuple(parts))

    def source(self, place: int) -> Compact:
        """Returns the source of a plan for its tasks."""
        if place not in self.sources:
            self.sources[place], _ = compact(self.plans[place].source)
        return self.sources[place]

    def texts(self, batch: Batch) -> dict[str, str]:
        """Returns the large texts of a batch by digest."""
        texts: dict[str, str] = {}
        for part in batch.parts:
            if part.source.named:
                texts.update(compact(self.plans[part.plan].source)[1])
        return texts

    def address(self, batch: Batch) -> str:
        """Returns the name of a task, from the content addresses of its units."""
        hasher = hashlib.sha256()
        for part in batch.parts:
            for unit in part.units:
                hasher.update(self.plans[part.plan].address(unit, self.log.program).encode())
        return hasher.hexdigest()[:32]

    def take(self, batch: Batch, answer: Answer) -> None:
        """Keeps the runs of an answer."""
        for part, lines in zip(batch.parts, answer.lines, strict=True):
            self.log.add(self.plans[part.plan], list(part.units), lines)
            self.done += len(lines)
            self.counts[answer.worker] = self.counts.get(answer.worker, 0) + len(lines)
        self.seconds += answer.seconds
        self.tell(self.done, self.total)
