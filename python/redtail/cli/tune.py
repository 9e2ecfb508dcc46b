"""`redtail tune`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from redtail.cli.options import BackendName, File, Jobs, Out, with_plan_options
from redtail.cli.output import complain, print_wide, say, warnings_shown, width
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError
from redtail.options import PlanOptions

if TYPE_CHECKING:
    from redtail.tuning.found import Tuned

Queue = Annotated[
    str,
    typer.Option(
        "--queue",
        "--law",
        metavar="KIND",
        help="What to tune: a label or a kind of FILE's queues (or laws), another kind, or a table "
        "'{kind = \"red\", ...}'.",
    ),
]
Vary = Annotated[
    list[str],
    typer.Option(
        "--vary",
        metavar="KEYS",
        help="The keys to vary: min_th,max_p. With ranges: min_th=5..100packets,max_p=0.01..0.5; "
        "with values: ecn=false|true. May be repeated.",
    ),
]
Objective = Annotated[
    list[str],
    typer.Option(
        "--objective",
        metavar="AIM",
        help="'min METRIC' or 'max METRIC'. May be repeated; then the first decides.",
    ),
]
SubjectTo = Annotated[
    list[str] | None,
    typer.Option(
        "--subject-to",
        metavar="BOUND",
        help="'METRIC >= VALUE' or 'METRIC <= VALUE', for example 'utilization >= 0.98'. May be "
        "repeated.",
    ),
]
At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="KEY",
        help="Where it is: bottleneck.return.queue, or traffic.GROUP.tcp.growth for a law of TCP.",
    ),
]
Trials = Annotated[int, typer.Option("--trials", min=1, metavar="N", help="Candidates to try.")]
OverLoads = Annotated[
    str,
    typer.Option("--over", metavar="LOADS", help="What counts: worst (the worst load) or mean."),
]
Sampler = Annotated[
    str,
    typer.Option("--sampler", metavar="NAME", help="What suggests candidates: tpe, nsga2, random."),
]
SamplerSeed = Annotated[
    int, typer.Option("--sampler-seed", metavar="N", help="Where its random numbers start from.")
]
Write = Annotated[
    Path | None,
    typer.Option(
        "--write",
        metavar="FILE",
        help="The experiment file to write; by default NAME-tuned.toml beside FILE, whose earlier "
        "version is replaced.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Figures = Annotated[
    bool, typer.Option("--figures/--no-figures", help="Draw figures. --json draws none.")
]


@with_plan_options
def tune(
    file: File,
    queue: Queue,
    vary: Vary,
    objective: Objective,
    subject_to: SubjectTo = None,
    at: At = "bottleneck.queue",
    trials: Trials = 100,
    over: OverLoads = "worst",
    sampler: Sampler = "tpe",
    sampler_seed: SamplerSeed = 1,
    write: Write = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    out: Out = "runs",
    figures: Figures = True,
    backend: BackendName = None,
    **given: Unpack[PlanOptions],
) -> None:
    """Search parameters of a queue or law over an experiment's loads. Goes on if stopped."""
    from redtail.tuning import search
    from redtail.tuning.bench import Bench

    target = _target(file, write)
    found = search.prepare(
        Bench(file, given, at),
        queue=queue,
        vary=vary,
        objective=objective,
        subject_to=subject_to or (),
        trials=trials,
        over=over,  # type: ignore[arg-type]
        sampler=sampler,
        sampler_seed=sampler_seed,
    )
    for text in found.bench.plan.warnings:
        complain(text, "warning")
    start = time.monotonic()
    with warnings_shown(), progress_shown() as show:
        tuned = found.run({"jobs": jobs, "out": out, "progress": show, "backend": backend})
    seconds = time.monotonic() - start
    tuned.write(target)
    if as_json:
        say(tuned.to_json())
    else:
        _print(tuned, seconds)
        if figures:
            drawn = [*tuned.figures(), *tuned.results.figures()]
            folder = tuned.results.folder / "figures"
            say(f"figures: {folder}/ ({', '.join(dict.fromkeys(path.stem for path in drawn))})")
        say(f"runs:    {tuned.results.folder}/")
        say(f"file:    {target}")
    sys.stdout.flush()
    for text in (*tuned.warnings, *tuned.results.warnings):
        complain(text, "warning")


def _target(file: Path, write: Path | None) -> Path:
    """Return the file to write; one that the command has not made is not replaced.

    Raises:
        SpecError: there is such a file, or no folder for it.
    """
    from redtail.files import path_of
    from redtail.tuning.file import HEADER

    target = path_of(file.with_name(f"{file.stem}-tuned.toml") if write is None else write)
    if not target.parent.is_dir():
        raise SpecError(f"--write {target}: there is no folder {target.parent}")
    if target.exists() and not _begins_with(target, HEADER):
        raise SpecError(
            f"--write {target}: the file exists, and redtail tune has not made it; accepted: "
            "another file"
        )
    return target


def _begins_with(path: Path, line: str) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().rstrip("\n") == line
    except (OSError, UnicodeDecodeError):
        return False


def _print(tuned: Tuned, seconds: float) -> None:
    """Print what was found."""
    from redtail.display.tables import summary_table
    from redtail.metrics import counted

    finding = tuned.finding
    for axis in finding.axes:
        say(f"varied:  {axis.text}")
    loads = len(tuned.results.cases) // (len(tuned.own) + 1)
    counts = "" if loads == 1 else f", of which the {finding.over} counts"
    say(
        f"search:  {counted(len(tuned.candidates), 'candidate')} by {finding.sampler}, "
        f"{counted(loads, 'load')}{counts}, in {seconds:.1f} s"
    )
    say(f"found:   {tuned.queue.toml}")
    say("")
    wanted = [aim.metric for aim in (*finding.objectives, *finding.bounds)]
    shown = [name for name in dict.fromkeys((*wanted, *tuned.results.report))]
    print_wide(summary_table(tuned.results, width(), metrics=shown))
    say("these runs have seeds that the search has not used")
    for line in _differences(tuned):
        say(line)
    for axis in finding.axes:
        say(f"{_sensitivity(tuned, axis.key)}")


def _differences(tuned: Tuned) -> list[str]:
    """Return how far the best queue is from each other one, at the load where it gains least."""
    from redtail.analysis.digits import shown
    from redtail.metrics import describe, readable

    finding = tuned.finding
    found = []
    for own in tuned.own:
        pairs = []
        for aim in finding.objectives:
            differences = [
                each
                for case, each in tuned.results.differences(
                    aim.metric, factor=finding.key, baseline=own.queue.label
                )
                if case.labels[finding.key] == tuned.queue.label
            ]
            worst = max(differences, key=lambda each: aim.cost(each.mean))
            about = readable(describe(aim.metric), [worst.mean])
            unit = "percentage points" if about.shown_unit == "%" else about.shown_unit
            pairs.append(f"{aim.metric} {shown(worst, about.scale)} {unit}".rstrip())
        loads = len(differences)
        place = "" if loads == 1 else ", at the load where it gains least"
        found.append(f"against {own.queue.label}{place}: {', '.join(pairs)}")
    return found


def _sensitivity(tuned: Tuned, key: str) -> str:
    """Return in a line for which values of a key the objective is about as good."""
    from redtail.tuning.found import NEAR
    from redtail.tuning.space import Range

    axis = next(each for each in tuned.finding.axes if each.key == key)
    values = [each.table[key] for each in tuned.insensitive(key)]
    if isinstance(axis, Range):
        numbers = sorted(number for value in values if (number := axis.number(value)) is not None)
        text = f"{numbers[0]:g} to {numbers[-1]:g} {axis.unit}".rstrip()
        if len(numbers) == 1:
            text = f"only {numbers[0]:g} {axis.unit}".rstrip() + " of the values tried"
    else:
        text = ", ".join(
            str(value).lower() if isinstance(value, bool) else str(value) for value in values
        )
    return f"within {100 * NEAR:g} % of the best: {key} {text}"
