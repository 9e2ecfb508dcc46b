"""`redtail run`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from redtail.backends import DEFAULT
from redtail.cli.check import amount, print_code
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import BackendName, File, Format, Jobs, KernelName, Out, with_plan_options
from redtail.cli.output import (
    complain,
    form_alone,
    print_wide,
    runs_in_words,
    say,
    warnings_shown,
    width,
)
from redtail.cli.pack import verify as verify_archive
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError
from redtail.options import PlanOptions

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from redtail.analysis.results import Results
    from redtail.engine.plans import Plan
    from redtail.running.captures import Captured


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON and nothing else.")]
Figures = Annotated[
    bool,
    typer.Option(
        "--figures/--no-figures",
        help="Draw the few figures that answer; `redtail figures` draws all. --json draws none.",
    ),
]
Phases = Annotated[bool, typer.Option("--phases", help="Show each phase in a row of its own.")]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="FILE is an archive of `redtail pack`: repeat it and say whether the bytes agree.",
    ),
]
Report = Annotated[
    bool,
    typer.Option("--report", help="Also write one HTML page with everything, to hand over."),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        "--keep-going/--fail-fast",
        help="When a run fails, make the others, or stop at once.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Make the runs on a dask cluster: the address of its scheduler "
        "(tcp://host:8786) or its scheduler file (.json). Results are kept here.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be run, and what it would take.")
]
Pcap = Annotated[
    list[str] | None,
    typer.Option(
        "--pcap",
        metavar="LINK=FILE",
        help="Capture what a link has sent off (LINK:in=FILE: what arrives at its queue) in "
        "one run, as pcapng. LINK is its name in results: bottleneck, return, hop1 … May be "
        "repeated; the same FILE again puts both into one.",
    ),
]
PcapCase = Annotated[
    int | None,
    typer.Option(
        "--pcap-case",
        min=0,
        metavar="N",
        help="The case that is captured, from 0; required when there are several.",
    ),
]
PcapReplication = Annotated[
    int,
    typer.Option("--pcap-replication", min=0, metavar="N", help="Its replication, from 0."),
]
Events = Annotated[
    bool,
    typer.Option(
        "--events",
        help="Record the event log of each run, events.parquet: what each flow and queue did, and "
        "why. [events] in the experiment says what of it.",
    ),
]
PcapIp = Annotated[
    int, typer.Option("--pcap-ip", metavar="4|6", help="The version of IP in the headers.")
]


@with_plan_options
def run(
    file: File,
    jobs: Jobs = None,
    as_json: AsJson = False,
    form: Format = None,
    out: Out = "runs",
    figures: Figures = True,
    phases: Phases = False,
    report: Report = False,
    verify: Verify = False,
    keep_going: KeepGoing = False,
    dask: Dask = None,
    backend: BackendName = None,
    kernel: KernelName = None,
    dry_run: DryRun = False,
    events: Events = False,
    pcap: Pcap = None,
    pcap_case: PcapCase = None,
    pcap_replication: PcapReplication = 0,
    pcap_ip: PcapIp = 4,
    **given: Unpack[PlanOptions],
) -> None:
    """Run an experiment: table, figures, data. Runs made before are not made again."""
    # Nothing here uses NumPy's BLAS, whose threads wait actively at first: 0.05 s of CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from redtail import backends, experiment
    from redtail.files import is_archive
    from redtail.running import captures, runner

    if verify:
        allowed = given.pop("allow_code", None) or ()
        others = (form, dask, pcap, pcap_case, backend, kernel, out != "runs")
        if (
            given
            or any(others)
            or events
            or phases
            or report
            or dry_run
            or keep_going
            or not figures
        ):
            raise SpecError(
                "--verify repeats what the archive says; accepted: --jobs, --allow-code, --json"
            )
        verify_archive(file, allow_code=allowed, jobs=jobs, as_json=as_json)  # type: ignore[arg-type]
        return
    if is_archive(file):
        raise SpecError(
            f"{file} is an archive; accepted: redtail run {file} --verify, or unpack it"
        )

    if form is not None:
        form = form_alone(form, as_json)
    if events:
        given["set"] = experiment.asking_for_events(file, given.get("set"))
    makes = backends.with_kernel(backend or "linux", kernel) if kernel else backend
    plan = (
        experiment.check(file, **given)
        if dry_run
        else experiment.prepare(file, backend=makes, **given)
    )
    if kernel is not None:
        backend = backends.with_kernel(backend or plan.backend or "linux", kernel)
    for text in plan.warnings:
        complain(text, "warning")
    if dry_run:
        _print_forecast(plan, out, jobs, backend)
        return
    captured = None
    if pcap:
        with warnings_shown(), progress_shown() as show:
            calibrated = runner.calibrated(plan, jobs=jobs, out=out, progress=show)[0]
        captured = captures.execute(
            calibrated,
            captures.points(pcap),
            case=pcap_case,
            replication=pcap_replication,
            ip=pcap_ip,
            backend=backend,
        )
    elif pcap_case is not None:
        raise SpecError("--pcap-case says which case --pcap captures; there is no --pcap")
    start = time.monotonic()
    with _cluster(dask) as executor, warnings_shown(), progress_shown() as show:
        results = runner.execute(
            plan,
            jobs=jobs,
            out=out,
            progress=show,
            keep_going=keep_going,
            executor=executor,
            backend=backend,
        )
    seconds = time.monotonic() - start
    if as_json or form is not None:
        say(results.to_json() if form is None else results.table_text(form, phases=phases))  # type: ignore[arg-type]
        if results.replaced:
            complain(_replacing(results), "note")
    else:
        _print_table(results, phases)
        _print_about_runs(results, seconds)
        _print_files(results, out, captured, figures=figures)
        if results.replaced:
            say(f"note:    {_replacing(results)}")
    if report:
        _write_report(results, quiet=as_json or form is not None)
    _warn_of(results)
    _exit_for(results)


def _print_about_runs(results: Results, seconds: float) -> None:
    """Say what made the runs, how many there are, and what they found beside the metrics."""
    from redtail.metrics import some

    if results.backend != DEFAULT:
        say(f"made by: backend {results.backend}, {results.made_by}")
    for line in _loads(results):
        say(f"load:    {line}")
    say(runs_in_words(results.run_count, results.reused, seconds))
    for text in some(results.unsure, "cases.parquet has every interval"):
        say(f"unsure:  {text}")


def _print_files(results: Results, out: str, captured: Captured | None, *, figures: bool) -> None:
    """Draw the figures if they are wanted, and say where everything is."""
    from redtail.store.objects import is_url

    drawn = results.figures() if figures else []
    for folder in dict.fromkeys(path.parent for path in drawn):
        say(f"figures: {folder}/ ({', '.join(dict.fromkeys(path.stem for path in drawn))})")
        say(f"         all of them: redtail figures {shlex.quote(str(results.folder))} --all")
    for name in ("cases.parquet", "replications.parquet"):
        say(f"data:    {results.folder / name}")
    say(f"runs:    {results.folder}/")
    if is_url(out):
        say(f"kept in: {out}")
    for path in captured.files if captured else ():
        say(f"capture: {path}")


def _write_report(results: Results, *, quiet: bool) -> None:
    """Write the page; with `--json` or `--format` its path goes to standard error."""
    from redtail import page

    path = page.write([results])
    if quiet:
        complain(str(path), "report")
    else:
        say(f"report:  {path}")


def _warn_of(results: Results) -> None:
    """Say what to check before the results are trusted, after everything else."""
    sys.stdout.flush()
    for text in results.warnings:
        complain(text, "warning")


@contextmanager
def _cluster(address: str | None) -> Iterator[Executor | None]:
    if address is None:
        yield None
        return
    from redtail import cluster

    with cluster.connected(address) as executor:
        yield executor


def _loads(results: Results) -> list[str]:
    """Return a line for each load that was asked for."""
    from redtail.analysis.digits import shown
    from redtail.analysis.stats import estimate

    return list(
        dict.fromkeys(
            f"{load.group}, {load.text} of {load.link} asked for: {load.users} users, "
            f"who offer {shown(estimate(load.offered.values()), 100.0)} %"
            for case in results.cases
            for load in case.loads
        )
    )


def _replacing(results: Results) -> str:
    from redtail.metrics import counted

    return (
        f"replaces the earlier results of this name ({counted(results.replaced, 'run')}); "
        "those runs are kept, and the command that made them brings the results back"
    )


def _exit_for(results: Results) -> None:
    if results.failed:
        sys.stdout.flush()
        complain(results.failure_summary(), "warning")
        raise typer.Exit(EXIT_FAILED)


def _print_forecast(plan: Plan, out: str, jobs: int | None, backend: str | None) -> None:
    from redtail.metrics import counted
    from redtail.running import forecast

    found = forecast.forecast(plan, out=out, jobs=jobs, backend=backend)
    say(f"{plan.name}: {amount(plan)}")
    for case, stored in zip(plan.cases, found.stored, strict=True):
        count = "runs code, not looked up" if stored is None else f"{counted(stored, 'run')} stored"
        say(f"  {case.title or 'the case'}: {count}")
    print_code(plan)
    for line in forecast.lines(found):
        say(line)


def _print_table(results: Results, phases: bool) -> None:
    from redtail.display.tables import summary_table

    print_wide(summary_table(results, width(), phases))
