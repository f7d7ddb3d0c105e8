"""Sends work to an executor of the standard library, to a Dask cluster, or does it here."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from typing import Any, Protocol

from plait import _plait
from plait.cluster.worker import Answer, Batch, the_same, work, work_with

Texts = Callable[[], Mapping[str, str]]
"""Returns the large texts of a batch by digest. A call takes time, so it is made only if a text is due."""

KEPT_TEXTS = 64
"""Large texts that a cluster keeps for later tasks: those of the latest tasks."""


JOIN_SECONDS = 30.0
"""Time in which the first worker must join a cluster that has started no workers itself."""

NOTICE_SECONDS = 2.0
"""Time without a worker after which a message says so."""

LOOK_SECONDS = 0.1
"""Time between two looks at a cluster without workers."""


class Lost(_plait.Error):
    """Workers were lost or never joined, or the scheduler of a cluster was lost."""


class Future(Protocol):
    """A task that was handed out."""

    def result(self) -> Answer | None: ...

    def cancel(self, /) -> Any: ...

    def add_done_callback(self, called: Callable[[Any], object], /) -> Any: ...


class Workers(Protocol):
    """The workers of a sweep."""

    def wait(self) -> None:
        """Waits until there is a worker."""

    def count(self) -> int:
        """Returns the number of tasks that run at the same time."""

    def submit(self, batch: Batch, address: str, texts: Texts, lacking: bool = False) -> Future:
        """Hands out a batch, which has the name ``address``.

        The result is None if the worker lacks a large text. Then the batch is handed out again with ``lacking``.
        """


class OfExecutor:
    """An executor of `concurrent.futures`."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def wait(self) -> None:
        """Returns at once: an executor starts its workers itself."""

    def count(self) -> int:
        # The executors of the standard library have this attribute, others need not.
        known = getattr(self.executor, "_max_workers", None)
        return known if isinstance(known, int) and known > 0 else os.cpu_count() or 1

    def submit(self, batch: Batch, address: str, texts: Texts, lacking: bool = False) -> Future:
        given = (batch, texts()) if lacking else (batch,)
        try:
            return self.executor.submit(work, *given)
        except BrokenExecutor as error:
            raise lost(error) from None
        except RuntimeError as error:
            raise _plait.Error(f"executor: {error}\n  allowed: an executor that is open") from None


class OfClient:
    """A client of `distributed`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.texts: dict[str, Any] = {}
        """Tasks that have a large text as their result, by digest: the latest one last."""

    def wait(self) -> None:
        """Waits for the first worker.

        It raises `plait.Error` after `JOIN_SECONDS`. Workers that a cluster has requested may come later, for example jobs
        that wait in the queue of SLURM.
        """
        began, told = time.monotonic(), False
        while not self.threads():
            waited = time.monotonic() - began
            if not told and waited >= min(NOTICE_SECONDS, JOIN_SECONDS / 2):
                told = True
                if sys.stderr is not None:
                    print(f"plait: no worker has joined the cluster yet\n  {self.remedy()}", file=sys.stderr, flush=True)
            if waited >= JOIN_SECONDS and not self.planned():
                text = f"executor: no worker has joined the cluster in {JOIN_SECONDS:g} s"
                raise Lost(f"{text}\n  allowed: a cluster with workers; {self.remedy()}")
            time.sleep(LOOK_SECONDS)

    def remedy(self) -> str:
        """Returns how a worker is started."""
        scheduler = getattr(getattr(self.client, "scheduler", None), "address", "tcp://HOST:8786")
        return f"start one on each host: dask worker {scheduler} --nthreads 8"

    def planned(self) -> bool:
        """Returns true if the cluster has requested workers, which start later."""
        cluster = getattr(self.client, "cluster", None)
        return bool(getattr(cluster, "plan", None))

    def threads(self) -> int:
        """Returns the number of threads of all workers."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except OSError as error:
            raise lost(error) from None
        return sum(threads.values())

    def count(self) -> int:
        # All workers may be lost for a moment, until others take their places.
        return max(1, self.threads())

    def submit(self, batch: Batch, address: str, texts: Texts, lacking: bool = False) -> Future:
        try:
            needed = self.tasks_of(batch.named, texts)
            future: Future = self.client.submit(work_with, batch, needed, key=f"plait-{address}", pure=True)
        except OSError as error:
            raise lost(error) from None
        return future

    def tasks_of(self, digests: list[str], texts: Texts) -> list[Any]:
        """Returns the tasks that have these texts as their results.

        A worker gets a text from the client once, or from another worker. If all workers that have a text are lost, Dask
        repeats its task. It could not repeat `scatter`.
        """
        due = [digest for digest in digests if digest not in self.texts]
        given = texts() if due else {}
        for digest in due:
            self.texts[digest] = self.client.submit(the_same, given[digest], key=f"plait-text-{digest}", pure=True)
        tasks = {digest: self.texts.pop(digest) for digest in digests}
        self.texts.update(tasks)
        # Dask forgets a text that is dropped here, after the last task that needs it.
        for digest in list(self.texts)[:-KEPT_TEXTS]:
            del self.texts[digest]
        return list(tasks.values())


def workers_of(executor: object) -> Workers | None:
    """Returns the workers of an executor; None for work in this process."""
    if executor is None:
        return None
    if isinstance(executor, Executor):
        return OfExecutor(executor)
    # `distributed` is not imported here: it takes half a second, and need not be installed.
    if callable(getattr(executor, "nthreads", None)) and callable(getattr(executor, "submit", None)):
        if getattr(executor, "asynchronous", False):
            raise _plait.Error("executor: an asynchronous client\n  allowed: distributed.Client(...)")
        status = getattr(executor, "status", "running")
        if status != "running":
            raise _plait.Error(f"executor: the client is {status}\n  allowed: a client with a connection")
        return OfClient(executor)
    raise _plait.Error(
        f"executor: `{type(executor).__name__}`: unknown executor\n"
        "  allowed: an executor of concurrent.futures, a distributed.Client, or None for this process"
    )


def is_loss(error: Exception) -> bool:
    """Returns true if workers were lost and their tasks are not repeated, or the scheduler of a cluster."""
    # `distributed` is not imported here, so its exception is known by its name. If its scheduler is gone, it cancels
    # all tasks.
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__name__ == "KilledWorker"


def lost(error: BaseException) -> Lost:
    """Returns the error for an executor that has lost a process and takes no further work."""
    why = str(error) or type(error).__name__
    return Lost(
        f"executor: it has lost a worker: {why}\n  The finished runs are kept: repeat the call with a new executor"
    )
