"""Hands runs to threads, or to any executor: processes here or on other machines."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from redtail import backends, facts
from redtail.backends import Backend, Batching, Cancel
from redtail.errors import Cancelled, InvalidRun, PluginError, RunError, SpecError
from redtail.inputs import programs
from redtail.inputs import queues as own
from redtail.inputs import traces as tables
from redtail.outcomes import Listed, Outcomes
from redtail.progress import Inside
from redtail.running.interrupts import Interrupts

# Short runs are handed out several at a time, so many that a batch takes so many seconds. To hand a
# batch over takes about a millisecond to a thread and some milliseconds to another machine.
_BATCH_S = 0.05
_REMOTE_BATCH_S = 0.5
_LARGEST_BATCH = 200

# The time after which a wait is interrupted for periodic work and for Ctrl-C.
TICK_S = 0.5

Contents: TypeAlias = "Mapping[str, Any]"
"""Files that runs need, by the names that scenarios have for them."""


class Task(Protocol):
    """One run to be made."""

    @property
    def scenario(self) -> str:
        """The run, as canonical JSON."""
        ...


class Work(Protocol):
    """A source of runs, such as an experiment."""

    @property
    def needs(self) -> Needs:
        """What its runs need in addition to their scenarios."""
        ...

    def left(self) -> int:
        """Return an upper bound of the runs that can be handed out now."""
        ...

    def next(self, count: int) -> Sequence[Task]:
        """Return the next runs, at most `count`; fewer when no more are available now."""
        ...

    def keep(self, tasks: Sequence[Any], outcomes: Outcomes) -> None:
        """Store what runs measured."""
        ...

    def failure(self, task: Any, error: RunError) -> str:
        """Record a run that failed; returns the message about it."""
        ...

    def more(self) -> bool:
        """Return whether there are more runs, after all that were handed out have ended."""
        ...

    def tick(self, running: Inside, idle: bool) -> None:
        """Do periodic work.

        Args:
            running: how far the runs in progress are, those of all works.
            idle: whether no run has just finished, so that nothing else tells of progress.
        """
        ...

    def flush(self) -> None:
        """Write what is not written yet."""
        ...


@dataclass(frozen=True)
class Missing:
    """A worker's answer when it does not have the files that runs name.

    Attributes:
        names: what scenarios call them.
    """

    names: tuple[str, ...]


Answer: TypeAlias = "list[Outcomes | RunError] | Missing"
"""What `run_batch` returns."""


@dataclass(frozen=True)
class Needs:
    """What runs need in addition to their scenarios.

    Attributes:
        queues: the classes that they name as queues.
        traces: the tables of connections that they name.
        code_version: the identity that the backend must have where an executor runs it.
        backend: the name of the backend that makes them.
        maker: this backend with what an experiment's runs need; None for the one of the name.
        columns: whether runs without series are stored in columns, those of a batch all at once.
    """

    queues: Mapping[str, own.Located] = field(default_factory=dict)
    traces: Mapping[str, tables.Located | programs.Located] = field(default_factory=dict)
    code_version: str | None = None
    backend: str = backends.DEFAULT
    columns: bool = False
    maker: backends.Backend | None = None


class Pool:
    """Hands runs to an executor, a few batches at a time, and gives back what they measured.

    Args:
        executor: where they are made; None for threads of this process.
        jobs: how many are made at the same time. An executor with an attribute `width` says so
            itself, anew for each batch. A backend may allow fewer.
        keep_going: whether the others are made when one fails. They are when one is not valid.
        backend: what makes them.
    """

    def __init__(
        self, executor: Executor | None, jobs: int, keep_going: bool, backend: Backend
    ) -> None:
        self.executor = executor
        self.backend = backend
        self.jobs = self._allowed(jobs)
        self.keep_going = keep_going

    def run(self, works: Sequence[Work]) -> bool:
        """Make all runs of all works, those of the first before those of the next.

        The last runs of a work, or of a round of it, delay nothing: an idle worker makes
        runs of the next one meanwhile.

        Returns:
            Whether all are made; False when interrupted.

        Raises:
            RunError: a run failed, without `keep_going`.
            StoreError: `keep` could not store a result.
        """
        threads = None
        token: Cancel | None = None
        if self.executor is None:
            threads = ThreadPoolExecutor(self.jobs, thread_name_prefix="redtail")
            token = self.backend.cancel_token()
        executor = self.executor or threads
        assert executor is not None
        going = [_Running(work, _BATCH_S if threads else _REMOTE_BATCH_S) for work in works]
        pending: dict[Future[Answer], tuple[_Running, list[Any]]] = {}

        def submit(one: _Running, batch: list[Any], contents: Contents) -> None:
            scenarios = [task.scenario for task in batch]
            # A token cannot be sent to another process.
            future = executor.submit(run_batch, scenarios, token, one.work.needs, contents)
            pending[future] = one, batch
            one.pending += 1

        def fill() -> None:
            while going:
                width = self._width()
                for one in list(going):
                    while left := one.work.left():
                        if len(pending) >= (2 * width if self.backend.at_once is None else width):
                            return
                        if batch := list(one.work.next(one.size(left, width))):
                            submit(one, batch, {})
                    if not one.pending:
                        if not one.work.more():
                            going.remove(one)
                        break  # what it has now comes before the next one's
                else:
                    return

        def take(future: Future[Answer]) -> RunError | None:
            one, batch = pending[future]
            answer = _answer(future)
            if isinstance(answer, Missing):
                submit(one, batch, one.packed(answer.names))
                return None
            stop: RunError | None = None
            while answer:
                part, count = answer[0], 1
                if not isinstance(part, RunError):
                    count = len(part)
                    one.seen(part.wall_time_s)
                    one.work.keep(batch[:count], part)
                elif self.keep_going or isinstance(part, InvalidRun):
                    one.work.failure(batch[0], part)
                elif stop is None:
                    stop = type(part)(one.work.failure(batch[0], part))
                    stop.__cause__ = part
                # An interrupt finds in both what is left to be kept.
                del batch[:count], answer[0]
            return stop

        whole = False
        with Interrupts() as held:
            try:
                fill()
                while pending:
                    finished, _ = wait(pending, timeout=TICK_S, return_when=FIRST_COMPLETED)
                    running = _inside(token)
                    for one in going:
                        one.work.tick(running, not finished)
                    stop: RunError | None = None
                    # In the order in which they began, and all of them: one that has failed does
                    # not lose what others have measured.
                    for future in [future for future in pending if future in finished]:
                        failed = take(future)
                        stop = stop or failed
                        one, _ = pending.pop(future)
                        one.pending -= 1
                    if stop is not None:
                        raise stop
                    held.let_through()
                    fill()
                whole = True
            except KeyboardInterrupt:
                if token is not None:
                    token.cancel()
                    # Written now: with a second interrupt nothing more is.
                    for one in going:
                        one.work.flush()
                    _wait_for(pending)
                # What ended while we were being interrupted is worth keeping as well.
                for future, (one, batch) in list(pending.items()):
                    if future.done() and not future.cancelled() and future.exception() is None:
                        for part in _measured(future.result()):
                            count = 1 if isinstance(part, RunError) else len(part)
                            if not isinstance(part, RunError):
                                one.work.keep(batch[:count], part)
                            del batch[:count]
            finally:
                if not whole:
                    if token is not None:
                        token.cancel()
                    for future in pending:
                        future.cancel()
                if threads is not None:
                    if held.waits_for_runs:
                        _wait_for(pending)
                    threads.shutdown(wait=held.waits_for_runs, cancel_futures=True)
        return whole

    def _allowed(self, count: int) -> int:
        """Return how many of `count` runs the backend makes at the same time."""
        return count if self.backend.at_once is None else min(count, self.backend.at_once)

    def _width(self) -> int:
        return self._allowed(max(1, int(getattr(self.executor, "width", self.jobs))))


class _Running:
    """A work in progress: how many of its batches are out, how long its latest runs took.

    Args:
        work: which.
        aim_s: seconds that a batch of it should take.
    """

    def __init__(self, work: Work, aim_s: float) -> None:
        self.work = work
        self.aim_s = aim_s
        self.pending = 0
        self.mean_s: float | None = None
        self._contents: dict[str, Any] = {}

    def packed(self, names: Iterable[str]) -> Contents:
        """Return the files that a worker does not have.

        Raises:
            PluginError: a class cannot be sent, or is not what it was when it was checked.
            SpecError: a table is not what it was.
        """
        needs = self.work.needs
        for name in names:
            if name not in self._contents:
                located = needs.queues.get(name) or needs.traces[name]
                self._contents[name] = located.pack()
        # All of them: the next worker may have fewer.
        return dict(self._contents)

    def seen(self, seconds: Sequence[float]) -> None:
        """Take note of how long runs took."""
        mean = sum(seconds) / len(seconds)
        old = 0.0 if self.mean_s is None else 0.9 ** len(seconds)
        self.mean_s = mean if self.mean_s is None else old * self.mean_s + (1 - old) * mean

    def size(self, left: int, width: int) -> int:
        """Return how many runs make the next batch."""
        if self.mean_s is None:
            return 1
        size = min(_LARGEST_BATCH, math.ceil(self.aim_s / max(self.mean_s, 1e-9)))
        # Towards the end the runs that are left are shared between all workers.
        return max(1, min(size, left // (8 * width)))


def _wait_for(futures: Iterable[Future[Any]]) -> None:
    """Wait until all are done, in short steps, so that Ctrl-C takes effect meanwhile."""
    left = set(futures)
    while left:
        left = wait(left, timeout=TICK_S).not_done


def _inside(token: Cancel | None) -> Inside:
    """Return how far the runs in progress are; empty where this is not known."""
    running = getattr(token, "running", None)
    return tuple(running()) if running is not None else ()


def _answer(future: Future[Answer]) -> Answer:
    try:
        answer = future.result()
    except (RunError, SpecError, Cancelled):
        raise
    except Exception as error:  # the executor's own, when its workers have ended, say
        raise RunError(f"the executor failed: {type(error).__name__}: {error}") from error
    return answer


def _measured(answer: Answer) -> list[Outcomes | RunError]:
    return [] if isinstance(answer, Missing) else answer


def run_batch(
    scenarios: list[str],
    cancel: Cancel | None,
    needs: Needs,
    contents: Contents,
) -> Answer:
    """Run scenarios one after the other; this function is sent to an executor.

    Args:
        scenarios: the runs.
        cancel: stops them.
        needs: what they need in addition to their scenarios.
        contents: files that this process may not have.

    Returns:
        What they measured, in their order: outcomes of one run after the other, and in the place
        of a run that failed its error; fewer when stopped. When files are missing that the
        scenarios name, no run is made.
    """
    backend = needs.maker or backends.find(needs.backend)
    if needs.code_version not in (None, backend.identity()):
        raise RunError(
            "a worker has another version of redtail, whose results are not the same: "
            f"{facts.version()} with engine {backend.identity()}, and not engine "
            f"{needs.code_version}"
        )
    queues: dict[str, own.Located] = {}
    traces: dict[str, Any] = {}
    if needs.code_version is None:
        queues.update(needs.queues)
        traces.update(needs.traces)
    else:
        missing = []
        for found, wanted in ((queues, needs.queues), (traces, needs.traces)):
            for name, located in wanted.items():
                here = _here(name, located, contents.get(name))
                if here is None:
                    missing.append(name)
                else:
                    found[name] = here
        if missing:
            return Missing(tuple(missing))
    # Not isinstance, which takes a millisecond for a protocol.
    if not hasattr(backend, "run_many"):
        return _one_by_one(backend, scenarios, cancel, queues or None, traces or None)
    batching = cast(Batching, backend)
    in_columns = needs.columns and needs.code_version is None
    done = batching.run_many(scenarios, cancel, queues or None, traces or None, in_columns)
    if needs.code_version is None:
        return done
    # Plain data can be sent to the process that stores it.
    return [part if isinstance(part, RunError) else _listed(part) for part in done]


def _listed(part: Outcomes) -> Listed:
    return Listed(part[place] for place in range(len(part)))


def _one_by_one(
    backend: Backend,
    scenarios: Sequence[str],
    cancel: Cancel | None,
    queues: Mapping[str, own.Located] | None,
    traces: Mapping[str, Any] | None,
) -> list[Outcomes | RunError]:
    """Make runs; returns what `Batching.run_many` does."""
    done: list[Outcomes | RunError] = []
    for scenario in scenarios:
        try:
            done.append(Listed([backend.run(scenario, cancel, queues, traces)]))
        except RunError as error:
            done.append(error)
        except Cancelled:
            break
    return done


# What this process has unpacked, by the name and the hash of the content.
_UNPACKED: dict[tuple[str, str], Any] = {}
_UNPACKING = threading.Lock()


def _here(name: str, located: Any, content: Any) -> Any:
    """Return what can be loaded in this process, None when the file is not there."""
    mark = (name, getattr(located, "source", name))
    with _UNPACKING:
        if mark in _UNPACKED:
            return _UNPACKED[mark]
        if content is None:
            try:
                located.load()
            except (PluginError, SpecError):
                return None
            here = located
        else:
            here = located.unpack(content)
        _UNPACKED[mark] = here
        return here


def available_cores() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
