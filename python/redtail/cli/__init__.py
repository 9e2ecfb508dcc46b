"""The command line: a thin layer over the Python interface.

Exit codes: 0 done, 1 a run failed or its results could not be kept, 2 the input is not valid,
130 interrupted. Standard output carries results alone; progress, warnings and errors go to
standard error.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer
from rich.console import Console

from redtail import escape
from redtail.errors import Cancelled, RedtailError, RedtailWarning, SpecError
from redtail.running.interrupts import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.table import Table

    from redtail._engine import Plan
    from redtail.analysis.results import Results
    from redtail.papers import Reproduction
    from redtail.running.runner import Progress

P = ParamSpec("P")

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

# A table sent to a file or through a pipe has no terminal to fit.
_WIDTH_WITHOUT_TERMINAL = 118

# A log of a campaign of hours gets a line so often.
_SECONDS_BETWEEN_LINES = 60.0

app = typer.Typer(
    help="What does this queue, with these parameters, do to this traffic on this link?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, in TOML.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, for instance bottleneck.rate='20 Mbit/s'. May be repeated.",
    ),
]
Replications = Annotated[
    int | None, typer.Option("--replications", min=1, metavar="N", help="Replications per case.")
]
Until = Annotated[
    list[str] | None,
    typer.Option(
        "--until",
        metavar="RULE",
        help="Replications until sure, for instance 'queue_delay_p99 within 5 %'. May be repeated.",
    ),
]
AtLeast = Annotated[
    int | None,
    typer.Option("--at-least", min=2, metavar="N", help="Replications before --until looks."),
]
AtMost = Annotated[
    int | None, typer.Option("--at-most", min=2, metavar="N", help="Replications at most.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", help="Runs at a time; default: all processors."),
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where results are kept: a folder, or a URL such as s3://bucket/runs.",
    ),
]


AllowCode = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-code",
        metavar="PATH",
        help="A file or folder, outside the experiment's own, whose code the experiment may "
        "execute. May be repeated.",
    ),
]


class Part(StrEnum):
    """What `redtail list` lists."""

    queues = "queues"
    tcp = "tcp"
    traffic = "traffic"
    metrics = "metrics"


def main() -> None:
    """Run the command line."""
    try:
        try:
            app(prog_name="redtail")
        finally:
            if sys.stdout is not None:  # closed by who started it
                sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            _complain(f"{error.filename}: {error.strerror}")
        elif error.errno != errno.EPIPE:  # who reads it may stop when they have enough
            _complain(f"standard output cannot be written: {error.strerror}")
        # The interpreter would try again, at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_FAILED)


def _reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a user can run into one clear message and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            _complain("interrupted; finished runs are kept")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except Cancelled as error:
            _complain(str(error))
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except SpecError as error:
            _complain(str(error))
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except RedtailError as error:
            _complain(str(error))
            raise typer.Exit(EXIT_FAILED) from None

    return wrapped


def _complain(text: str, kind: str = "error") -> None:
    # Plain print: a message may contain what rich would take for markup.
    # Where nobody can be told, the exit code still says how it ended.
    with contextlib.suppress(OSError):
        print(escape.text(f"{kind}: {text}"), file=sys.stderr)


def _say(text: str) -> None:
    """Print a result; what cannot be seen in names is escaped, which is the same text in JSON."""
    print(escape.text(text))


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Show redtail's warnings as lines, not as Python shows warnings."""

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        if issubclass(category, RedtailWarning):
            _complain(str(message), "warning")
        else:
            original(message, category, *rest)  # type: ignore[arg-type]

    with warnings.catch_warnings():
        original = warnings.showwarning
        warnings.simplefilter("always", RedtailWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _version(wanted: bool) -> None:
    if wanted:
        from redtail import _engine

        _say(f"redtail {_engine.version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


@app.command()
@_reported
def run(
    file: File,
    sets: Sets = None,
    replications: Replications = None,
    until: Until = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw figures. --json draws none.")
    ] = True,
    phases: Annotated[
        bool, typer.Option("--phases", help="Show each phase in a row of its own.")
    ] = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast",
            help="When a run fails, make the others, or stop at once.",
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Make the runs on a dask cluster: the address of its scheduler "
            "(tcp://host:8786) or its scheduler file (.json). Results are kept here.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and what it would take.")
    ] = False,
    pcap: Annotated[
        list[str] | None,
        typer.Option(
            "--pcap",
            metavar="LINK=FILE",
            help="Capture what a link has sent off (LINK:in=FILE: what arrives at its queue) in "
            "one run, as pcapng. LINK is its name in results: bottleneck, return, hop1 … May be "
            "repeated; the same FILE again puts both into one.",
        ),
    ] = None,
    pcap_case: Annotated[
        int | None,
        typer.Option(
            "--pcap-case",
            min=0,
            metavar="N",
            help="The case that is captured, from 0; required when there are several.",
        ),
    ] = None,
    pcap_replication: Annotated[
        int,
        typer.Option("--pcap-replication", min=0, metavar="N", help="Its replication, from 0."),
    ] = 0,
    pcap_ip: Annotated[
        int, typer.Option("--pcap-ip", metavar="4|6", help="The version of IP in the headers.")
    ] = 4,
    allow_code: AllowCode = None,
) -> None:
    """Run an experiment: table, figures, data. Runs made before are not made again."""
    from redtail import experiment
    from redtail.metrics import counted
    from redtail.running import captures, runner
    from redtail.store.objects import is_url

    checked = experiment.check if dry_run else experiment.prepare
    plan = checked(
        file,
        set=sets,
        replications=replications,
        until=until,
        at_least=at_least,
        at_most=at_most,
        allow_code=allow_code or (),
    )
    for text in plan.warnings:
        _complain(text, "warning")
    if dry_run:
        _print_forecast(plan, out, jobs)
        return
    captured = None
    if pcap:
        with _warnings_shown(), _progress() as show:
            calibrated = runner.calibrated(plan, jobs=jobs, out=out, progress=show)[0]
        captured = captures.execute(
            calibrated,
            captures.points(pcap),
            case=pcap_case,
            replication=pcap_replication,
            ip=pcap_ip,
        )
    elif pcap_case is not None:
        raise SpecError("--pcap-case says which case --pcap captures; there is no --pcap")
    start = time.monotonic()
    with _cluster(dask) as executor, _warnings_shown(), _progress() as show:
        results = runner.execute(
            plan, jobs=jobs, out=out, progress=show, keep_going=keep_going, executor=executor
        )
    seconds = time.monotonic() - start
    if as_json:
        _say(results.to_json())
        if results.replaced:
            _complain(_replacing(results), "note")
        _warn_of(results)
        _exit_for(results)
        return
    _print_table(results, phases)
    for line in _loads(results):
        _say(f"load:    {line}")
    reused = f", {results.reused} of them reused" if results.reused else ""
    _say(f"{counted(results.run_count, 'run')}{reused}, in {seconds:.1f} s")
    for text in results.unsure:
        _say(f"unsure:  {text}")
    drawn = results.figures() if figures else []
    for folder in dict.fromkeys(path.parent for path in drawn):
        _say(f"figures: {folder}/ ({', '.join(dict.fromkeys(path.stem for path in drawn))})")
    for name in ("cases.parquet", "replications.parquet"):
        _say(f"data:    {results.folder / name}")
    _say(f"runs:    {results.folder}/")
    if is_url(out):
        _say(f"kept in: {out}")
    for path in captured.files if captured else ():
        _say(f"capture: {path}")
    if results.replaced:
        _say(f"note:    {_replacing(results)}")
    _warn_of(results)
    _exit_for(results)


def _warn_of(results: Results) -> None:
    """Say what to check before the results are trusted, after everything else."""
    sys.stdout.flush()
    for text in results.warnings:
        _complain(text, "warning")


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
    from redtail.analysis.stats import estimate
    from redtail.display.tables import shown

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
        _complain(results.failure_summary(), "warning")
        raise typer.Exit(EXIT_FAILED)


@app.command()
@_reported
def compare(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The experiment, in TOML, or the folder of its results."
        ),
    ],
    metric: Annotated[
        list[str],
        typer.Option("--metric", metavar="NAME", help="What to compare. May be repeated."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="LABEL", help="Compare with this one; default: every pair."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="FACTOR", help="The factor compared; default: the queue, or the first."
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(
            "--correction", metavar="NAME", help="For many comparisons at once: holm or none."
        ),
    ] = "holm",
    sets: Sets = None,
    replications: Replications = None,
    until: Until = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparisons as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
    allow_code: AllowCode = None,
) -> None:
    """Compare cases replication by replication: difference, interval, whether they differ."""
    from redtail import experiment
    from redtail.analysis import results
    from redtail.files import path_of
    from redtail.running import runner

    if correction not in ("holm", "none"):
        raise SpecError(f"--correction {correction}: accepted: holm, none")
    if path_of(file).is_dir():
        if sets or replications or until:
            raise SpecError(f"{file} holds results; --set and replications go with a file")
        found = results.load(file)
    else:
        plan = experiment.prepare(
            file,
            set=sets,
            replications=replications,
            until=until,
            at_least=at_least,
            at_most=at_most,
            allow_code=allow_code or (),
        )
        for text in plan.warnings:
            _complain(text, "warning")
        with _warnings_shown(), _progress() as show:
            found = runner.execute(plan, jobs=jobs, out=out, progress=show)
    with _warnings_shown():
        compared = found.compare(metric, baseline=baseline, by=by, correction=correction)  # type: ignore[arg-type]
    if as_json:
        _say(compared.to_json())
        return
    if len(compared):
        _print_wide(compared.table())


@app.command()
@_reported
def check(
    file: File,
    sets: Sets = None,
    replications: Replications = None,
    until: Until = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    allow_code: AllowCode = None,
) -> None:
    """Check an experiment without running it, and say what it amounts to.

    Code that it names is not executed.
    """
    from redtail import experiment

    plan = experiment.check(
        file,
        set=sets,
        replications=replications,
        until=until,
        at_least=at_least,
        at_most=at_most,
        allow_code=allow_code or (),
    )
    for text in plan.warnings:
        _complain(text, "warning")
    _say(f"{file}: {plan.name!r} is valid: {_amount(plan)}")
    for line in plan.outline:
        _say(f"  {line}")
    _print_code(plan)
    titles = [case.title for case in plan.cases if case.title]
    if titles:
        _say("cases:")
    for title in titles:
        _say(f"  {title}")


def _print_code(plan: Plan) -> None:
    """Say which code of the user a run executes."""
    for each in plan.code:
        _say(f"would run code: {each.text}")


def _print_forecast(plan: Plan, out: str, jobs: int | None) -> None:
    from redtail.metrics import counted
    from redtail.running import forecast

    found = forecast.forecast(plan, out=out, jobs=jobs)
    _say(f"{plan.name}: {_amount(plan)}")
    for case, stored in zip(plan.cases, found.stored, strict=True):
        told = "runs code, not looked up" if stored is None else f"{counted(stored, 'run')} stored"
        _say(f"  {case.title or 'the case'}: {told}")
    _print_code(plan)
    for line in forecast.lines(found):
        _say(line)


def _amount(plan: Plan) -> str:
    """Return how many cases, replications and runs there are."""
    from redtail.metrics import counted

    cases = counted(len(plan.cases), "case")
    if plan.stop is None:
        return f"{cases}, {counted(plan.replications, 'replication')}, {counted(plan.runs, 'run')}"
    rule = "; ".join(str(bound) for bound in plan.stop.until)
    least = len(plan.cases) * plan.at_least
    return (
        f"{cases}, {plan.at_least} to {plan.replications} replications until {rule}, "
        f"{least} to {counted(plan.runs, 'run')}"
    )


@app.command()
@_reported
def schema() -> None:
    """Print the JSON schema of the experiment file, for editors that complete and check."""
    from redtail import _engine

    _say(json.dumps(_engine.schema(), indent=2, ensure_ascii=False))


@app.command("list")
@_reported
def list_parts(
    part: Annotated[Part, typer.Argument(help="What to list.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Show this one alone; for metrics an experiment file: show those it will have.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print metrics as JSON and nothing else.")
    ] = False,
) -> None:
    """List queues, TCP presets or traffic with parameters, or metrics with definitions."""
    from redtail import catalog

    if part is Part.metrics:
        from redtail import experiment

        measured = None if kind is None else experiment.measured(kind)
        _say(catalog.metric_listing(measured, as_json))
        return
    if as_json:
        raise SpecError(f"--json: not for {part.value}; accepted: redtail list metrics --json")
    _say(catalog.listing(part.value, kind))


@app.command()
@_reported
def advise(
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="For instance 10Mbit/s.")],
    rtt: Annotated[
        str,
        typer.Option("--rtt", metavar="TIME", help="Round trip without queueing; the shortest."),
    ],
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", help="TCP flows that send all the time.")
    ],
    rtt_max: Annotated[
        str | None,
        typer.Option("--rtt-max", metavar="TIME", help="The longest; default: the same."),
    ] = None,
    packet: Annotated[
        str, typer.Option("--packet", metavar="SIZE", help="A TCP packet on the link.")
    ] = "1500 B",
    delayed_acks: Annotated[
        bool,
        typer.Option(
            "--delayed-acks/--no-delayed-acks",
            help="Whether receivers acknowledge every second segment.",
        ),
    ] = True,
    udp_rate: Annotated[
        str, typer.Option("--udp-rate", metavar="RATE", help="UDP traffic that arrives.")
    ] = "0 bit/s",
    udp_packet: Annotated[
        str, typer.Option("--udp-packet", metavar="SIZE", help="A UDP packet on the link.")
    ] = "1500 B",
    queue: Annotated[
        str,
        typer.Option("--queue", metavar="KIND", help="red, pi, codel, fq-codel, pie or tail-drop."),
    ] = "red",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the advice as JSON and nothing else.")
    ] = False,
) -> None:
    """Compute parameters for a queue on a link, each with its source."""
    from redtail import advice

    found = advice.advise(
        rate,
        rtt,
        flows=flows,
        rtt_max=rtt_max,
        packet=packet,
        delayed_acks=delayed_acks,
        udp_rate=udp_rate,
        udp_packet=udp_packet,
        queue=queue,
    )
    if as_json:
        _say(found.to_json())
        return
    for text in found.cautions:
        _complain(text, "warning")
    _say(found.model)
    _print_wide(found.table())
    _say(found.queue)


@app.command("import")
@_reported
def import_trace(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table of connections: .csv, .parquet or .cvec."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write it as Parquet, in its normal form."),
    ] = None,
) -> None:
    """Check a table of connections for traffic of kind `trace`, and say what it amounts to."""
    from redtail.inputs.traces import read_trace

    with _warnings_shown():
        trace = read_trace(file)
    _say(trace.summary())
    if out is not None:
        trace.write(out)
        _say(f"written: {out}")


@app.command()
@_reported
def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER]",
            help="For instance iscc2001, or a folder with one of your own; without it: a list.",
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="SCALE", help="How much is run: quick or paper.")
    ] = "quick",
    then_and_now: Annotated[
        bool,
        typer.Option(
            "--then-and-now",
            help="Also try the headline findings with a TCP of today, with initial window 10, …",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 if a verdict is not the expected one."),
    ] = False,
    copy_to: Annotated[
        Path | None,
        typer.Option(
            "--copy-to",
            metavar="DIR",
            help="Copy the paper's files there, to be changed, and run nothing.",
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
    allow_code: AllowCode = None,
) -> None:
    """Repeat a published evaluation, with a verdict on each of its findings."""
    from redtail import papers
    from redtail.papers import definition, report
    from redtail.running.pool import available_cores
    from redtail.store.objects import is_url

    if paper is None:
        _say(report.listing())
        return
    if copy_to is not None:
        copied = definition.copy(papers.load(paper), copy_to)
        _say(f"{len(copied)} files copied; redtail reproduce {copy_to} runs them")
        return
    if is_url(out):
        raise SpecError(f"--out {out}: a paper is reproduced in a folder")
    start = time.monotonic()
    with _warnings_shown(), _progress() as show:
        done = papers.reproduce(
            paper,
            scale=scale,
            then_and_now=then_and_now,
            out=out,
            jobs=jobs,
            progress=show,
            allow_code=allow_code or (),
        )
    seconds = time.monotonic() - start
    written = done.write()
    if as_json:
        _say(report.to_json(done))
    else:
        _print_wide(report.table(done))
        if done.now:
            _say("\nthe headline findings then and now:\n")
            _print_wide(report.now_table(done))
            for each in done.now:
                if each.setting:
                    _say(f"{each.name}: {each.setting.about}")
        _say(report.counts(done))
        reused = f", {done.reused} of them reused" if done.reused else ""
        _say(f"{done.run_count} runs{reused}, in {seconds:.1f} s")
        if done.packets:
            rate = done.packets / seconds
            _say(
                f"{done.packets / 1e6:.1f} M packets over the bottleneck: {rate / 1e6:.2f} M "
                f"packets/s, {rate / (jobs or available_cores()) / 1e6:.2f} M packets/s per core"
            )
        drawn = list(dict.fromkeys(path.stem for path in written if path.suffix == ".png"))
        _say(f"report:   {written[0]}")
        _say(f"verdicts: {written[1]}")
        _say(f"figures:  {done.folder / 'figures'}/ ({', '.join(drawn)})")
        _say(f"set-up:   {done.paper.folder}/")
    if check:
        _exit_for_verdicts(done)


def _exit_for_verdicts(done: Reproduction) -> None:
    """Say whether the verdicts are the expected ones; exit with 1 if not."""
    from redtail.papers import definition, report

    if scale_expected := done.paper.expected.get(done.scale):
        changed = report.changes(done)
        for line in changed:
            _complain(line, "changed")
        if changed:
            raise typer.Exit(1)
        _complain(f"all {len(scale_expected)} verdicts are as expected", "check")
        return
    raise SpecError(
        f"{done.paper.folder / definition.EXPECTED} has no verdicts for scale {done.scale}: "
        "there is nothing to check against"
    )


runs_app = typer.Typer(
    help="List, show, verify and clean what is kept of runs.", no_args_is_help=True
)
app.add_typer(runs_app, name="runs")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@runs_app.command("list")
@_reported
def runs_list(out: Out = "runs", as_json: AsJson = False) -> None:
    """List the experiments: runs, size, newest, versions of the code."""
    from redtail.store import objects, runs

    with objects.whole_copy(out) as folder:
        found = runs.listing(folder)
    if as_json:
        _say(json.dumps([each.as_json() for each in found], indent=2, ensure_ascii=False))
        return
    if not found:
        _say(f"{out}: no experiments")
        return
    _print_wide(runs.table(found))


@runs_app.command("show")
@_reported
def runs_show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KEY|EXPERIMENT",
            help="The beginning of a run's key, or EXPERIMENT/KEY, or an experiment.",
        ),
    ],
    out: Out = "runs",
    as_json: AsJson = False,
) -> None:
    """Show a run with scenario, manifest and metrics, or an experiment with its runs."""
    from redtail.store import objects, runs

    with objects.whole_copy(out) as folder:
        found = runs.show(folder, runs.find(folder, name))
        text = json.dumps(found, indent=2, ensure_ascii=False) if as_json else runs.text(found)
        _say(text.replace(str(folder), out) if objects.is_url(out) else text)


@runs_app.command("verify")
@_reported
def runs_verify(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="This one alone, or one run.")
    ] = None,
    out: Out = "runs",
) -> None:
    """Check all stored runs against their hashes; exits with 1 if anything is wrong."""
    from redtail.metrics import counted
    from redtail.store import objects, runs

    checked = 0
    wrong = 0
    with objects.whole_copy(out) as root:
        where = runs.folders(root) if experiment is None else [runs.find(root, experiment)]
        for folder in where:
            single = runs.is_run(folder)
            checked += 1 if single else len(runs.all_names(folder))
            for finding in runs.verify_run(folder) if single else runs.verify(folder):
                told = str(finding)
                _say(told.replace(str(root), out) if objects.is_url(out) else told)
                wrong += 1
    within = "" if experiment else f" in {counted(len(where), 'experiment')}"
    verdict = f"{counted(wrong, 'problem')}" if wrong else "everything is as it was written"
    _say(f"{counted(checked, 'run')}{within} checked: {verdict}")
    if wrong:
        raise typer.Exit(EXIT_FAILED)


@runs_app.command("gc")
@_reported
def runs_gc(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="This one alone.")
    ] = None,
    out: Out = "runs",
    unreferenced: Annotated[
        bool,
        typer.Option("--unreferenced", help="Also runs that no results.json refers to."),
    ] = False,
    older_code: Annotated[
        bool,
        typer.Option(
            "--older-code",
            help="Also runs of other versions of the code that no results.json refers to.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing, whatever else is given.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove; without it nothing is.")] = False,
) -> None:
    """Remove leftovers and damaged runs, and on request runs that no results refer to."""
    from redtail import _engine
    from redtail.files import path_of
    from redtail.store import objects, runs

    if objects.is_url(out):
        raise SpecError(
            f"--out {out}: an object store has no locks that would keep campaigns away; remove "
            "objects with its own tools, while no campaign is at work"
        )
    root = path_of(out)
    where = runs.folders(root) if experiment is None else [runs.find(root, experiment)]
    count = 0
    size = 0
    really = yes and not dry_run
    for folder in where:
        if runs.is_run(folder):
            raise SpecError(f"{folder} is a run; name its experiment, {folder.parent.name}")
        found = runs.clean(
            folder,
            code_version=_engine.code_version() if older_code else None,
            unreferenced=unreferenced,
            yes=really,
        )
        for each in found.removals:
            _say(f"{each.path}: {each.why}, {runs.shown_size(each.size)}")
        for text in found.kept:
            _complain(text, "note")
        count += len(found.removals)
        size += found.size
    things = "1 thing" if count == 1 else f"{count} things"
    if really or not count:
        _say(f"removed {things}, {runs.shown_size(size)}" if count else "nothing to remove")
    else:
        _say(f"{things}, {runs.shown_size(size)}, to remove; give --yes to do it")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on standard error; a line now and then when that is not a terminal."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(
        BarColumn(bar_width=None),
        TextColumn("{task.fields[runs]}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[failed]}"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, runs="", speed="", left="", failed="")
        noted = 0

        def show(state: Progress) -> None:
            nonlocal noted
            for text in state.notes[noted:]:
                bar.console.print(escape.text(text), highlight=False, markup=False, emoji=False)
            noted = len(state.notes)
            runs, speed, left, failed = _words(state)
            bar.update(
                task,
                total=state.total,
                completed=state.done + state.failed,
                runs=runs,
                speed=speed,
                left=left,
                failed=failed,
            )

        yield show


def _lines() -> Callable[[Progress], None]:
    """Return what prints a line of progress, but not more often than every so many seconds."""
    last = time.monotonic()

    def show(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            _complain(", ".join(filter(None, _words(state))), "progress")

    return show


def _words(state: Progress) -> tuple[str, str, str, str]:
    """Return runs, speed, time left and failures; what there is nothing to say of is empty."""
    # How many runs calibrating takes, nobody knows before its end.
    left = None if state.calibrating else state.left_s
    return (
        f"{state.done}/{state.total} {'runs to calibrate' if state.calibrating else 'runs'}",
        f"{state.packets_per_s / 1e6:.2f} M packets/s" if state.packets else "",
        "" if left is None else f"{_duration(left)} left",
        f"{state.failed} failed" if state.failed else "",
    )


def _duration(seconds: float) -> str:
    """Return a time to wait, to two places.

    >>> [_duration(seconds) for seconds in (7.4, 119.6, 7260, 200_000)]
    ['7 s', '2 min 0 s', '2 h 1 min', '2 d 7 h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def _print_table(results: Results, phases: bool) -> None:
    from redtail.display.tables import summary_table

    _print_wide(summary_table(results, _width(), phases))


def _print_wide(table: Table) -> None:
    Console(width=_width(), highlight=False, markup=False, emoji=False).print(table)


def _width() -> int:
    console = Console()
    return console.width if console.is_terminal else _WIDTH_WITHOUT_TERMINAL
