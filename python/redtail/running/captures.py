"""Captures the packets of one run, as pcapng files for Wireshark, tshark and tcptrace."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from redtail import backends, experiment
from redtail.backends import Capturing
from redtail.cases import Case
from redtail.engine import batches
from redtail.engine.plans import Plan
from redtail.errors import SpecError, StoreError
from redtail.experiment import Source
from redtail.files import path_of
from redtail.inputs.code import Allowed
from redtail.options import Overrides
from redtail.outcomes import Outcome
from redtail.running import calibration
from redtail.running.interrupts import Interrupts
from redtail.running.pool import TICK_S, available_cores

if TYPE_CHECKING:
    from redtail.backends import Cancel

Points: TypeAlias = "Mapping[str, str | os.PathLike[str]]"
"""The file for each point: a link's name, or `LINK:in` or `LINK:out`."""


@dataclass(frozen=True)
class Captured:
    """One run whose packets were captured.

    Attributes:
        files: the captures, in the order in which they were asked for.
        case: the case of the run.
        replication: its replication, from 0.
        metrics: what was measured, as without a capture: SI numbers by name.
    """

    files: tuple[Path, ...]
    case: Case
    replication: int
    metrics: dict[str, float]


def capture(
    source: Source,
    links: Points,
    *,
    case: int | None = None,
    replication: int = 0,
    set: Overrides | None = None,
    ip: int = 4,
    backend: str | None = None,
    allow_code: Allowed = (),
) -> Captured:
    """Make one run of an experiment and capture the packets at some of its links.

    The run is the same as without; nothing is put into the store.

    Args:
        source: a path, `Toml` text or an `Experiment`.
        links: the file for each point. A point is a link's name as in results ("bottleneck",
            "return", "hop1" …), for what its transmitter has sent off, or that with ":in", for
            what arrives at its queue. Points with the same file share it.
        case: number of the case, from 0; may be left out when there is only one.
        replication: which replication of it, from 0.
        set: overrides by dotted key, as for `check`.
        ip: the version of IP that the headers show, 4 or 6.
        backend: what makes the run: "sim", whose packets have the headers that real endpoints
            would send, or "live", whose packets are whole.
        allow_code: files and folders with code that may be executed, as for `run`.

    Raises:
        SpecError: the experiment is not valid, or it does not have what is to be captured.
        StoreError: a file cannot be written.
        RunError: the run failed.
    """
    plan = experiment.prepare(source, set=set, allow_code=allow_code)
    return execute(
        plan, list(links.items()), case=case, replication=replication, ip=ip, backend=backend
    )


def points(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the points and files of `LINK=FILE` texts.

    >>> points(["bottleneck:in=data.pcapng"])
    [('bottleneck:in', 'data.pcapng')]

    Raises:
        SpecError: a text has another form.
    """
    found = []
    for text in texts:
        link, _, file = text.partition("=")
        if not link or not file:
            raise SpecError(
                f"--pcap {text}: accepted: LINK=FILE, LINK:in=FILE or LINK:out=FILE, for "
                "instance bottleneck=packets.pcapng"
            )
        found.append((link, file))
    return found


def execute(
    plan: Plan,
    points: Sequence[tuple[str, str | os.PathLike[str]]],
    *,
    case: int | None = None,
    replication: int = 0,
    ip: int = 4,
    backend: str | None = None,
) -> Captured:
    """Capture a run of a checked experiment; arguments and errors as for `capture`."""
    backend = backends.chosen(backend, [plan])
    makes = backends.find(backend)
    if not isinstance(makes, Capturing):
        known = [name for name in backends.KNOWN if isinstance(backends.find(name), Capturing)]
        raise SpecError(
            f"packets of backend {backend} cannot be captured; accepted: {', '.join(known)}"
        )
    backends.require_able(makes, [plan])
    plan.require_loaded()
    number = _chosen(plan, case)
    if not 0 <= replication < plan.replications:
        raise SpecError(
            f"there is no replication {replication} to capture; the experiment has "
            f"{plan.replications}, counted from 0"
        )
    if ip not in (4, 6):
        raise SpecError(f"captures show IP version 4 or 6, not {ip}")
    plan = _calibrated(plan)
    with written(points) as pairs:
        outcome = _interruptible(plan, plan.scenario(number, replication), pairs, ip, makes)
    files = tuple(dict.fromkeys(path_of(file) for _, file in points))
    return Captured(files, plan.cases[number], replication, outcome.metrics)


@contextlib.contextmanager
def written(
    points: Sequence[tuple[str, str | os.PathLike[str]]],
) -> Iterator[list[tuple[str, str]]]:
    """Give the points with the files that are written to, which get their names at the end.

    So a whole file is a whole capture; but pipes and devices are written to as they are.

    Raises:
        StoreError: a file cannot be written.
    """
    asides: dict[Path, Path] = {}
    for _, file in points:
        path = path_of(file)
        special = path.exists() and not path.is_file()
        asides[path] = path if special else path.with_name(f".{path.name}.part")
    try:
        yield [(point, str(asides[path_of(file)].absolute())) for point, file in points]
        for path, aside in asides.items():
            if aside != path:
                aside.replace(path)
    except OSError as error:
        struck = [path for path, aside in asides.items() if str(aside.absolute()) == error.filename]
        why = os.strerror(error.errno) if error.errno else str(error)
        raise StoreError(
            f"{struck[0] if struck else 'the capture'} cannot be written: {why}"
        ) from error
    finally:
        for path, aside in asides.items():
            if aside != path and aside.parent.is_dir():
                aside.unlink(missing_ok=True)


def _calibrated(plan: Plan) -> Plan:
    """Find the users of groups that are asked for by their load, unless they are known."""
    if plan.users:
        return plan

    def measure(scenarios: list[tuple[str, str]]) -> list[float | None]:
        runs = [
            functools.partial(batches.run_one, scenario, queues=plan.queues, traces=plan.traces)
            for scenario, _ in scenarios
        ]
        return [
            outcome.metrics.get(name)
            for outcome, (_, name) in zip(_in_threads(runs), scenarios, strict=True)
        ]

    return calibration.calibrate(plan, measure)[0]


def _chosen(plan: Plan, case: int | None) -> int:
    count = len(plan.cases)
    if case is None and count == 1:
        return 0
    if case is not None and 0 <= case < count:
        return case
    lines = [f"  {number}: {known.title or plan.name}" for number, known in enumerate(plan.cases)]
    if case is None:
        text = (
            f"one run is captured, and there are {count} cases; choose one by its number with "
            "--pcap-case N (case=N in Python):"
        )
    else:
        text = f"there is no case {case} to capture; accepted:"
    raise SpecError("\n".join([text, *lines]))


def _interruptible(
    plan: Plan, scenario: str, points: list[tuple[str, str]], ip: int, backend: Capturing
) -> Outcome:
    """Run in another thread, for only Python code notices an interrupt."""
    run = functools.partial(
        backend.run_captured, scenario, points, ip, queues=plan.queues, traces=plan.traces
    )
    return _in_threads([run], backend.cancel_token())[0]


def _in_threads(
    runs: Sequence[Callable[[Any], Outcome]], token: Cancel | None = None
) -> list[Outcome]:
    """Make runs in other threads; Ctrl-C stops them.

    Raises:
        KeyboardInterrupt: there was a Ctrl-C.
    """
    token = token or batches.cancel_token()
    threads = ThreadPoolExecutor(available_cores(), thread_name_prefix="redtail")
    with Interrupts() as held:
        try:
            futures = [threads.submit(run, token) for run in runs]
            left = set(futures)
            while left:
                left = wait(left, timeout=TICK_S).not_done
                held.let_through()
            return [future.result() for future in futures]
        finally:
            token.cancel()
            threads.shutdown(wait=held.waits_for_runs, cancel_futures=True)
