"""Which figures there are, by name: those that a run draws, those of a paper, and single ones.

What they look like is in `style`; each kind of figure has a module of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

import redtail
from redtail import escape
from redtail import metrics as names
from redtail.analysis import phases
from redtail.analysis.responses import group_of
from redtail.display import drawn, plane, recorded, style, values
from redtail.display.distributions import distribution_figure
from redtail.display.gaps import gap_figure
from redtail.display.heat import heat_figure
from redtail.display.layout import find_load, lines_of
from redtail.display.lengths import queue_figure
from redtail.display.losses import loss_figure
from redtail.display.phases import phase_figure
from redtail.display.recorded import Drawing
from redtail.display.responses import response_figure
from redtail.display.series import fairness_figure, series_figure
from redtail.display.values import Models, Published
from redtail.errors import RedtailError
from redtail.metrics import Metric, nearest
from redtail.scenario import series_key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from redtail.analysis.gap import Gaps
    from redtail.analysis.results import Results
    from redtail.display.style import Size

save = style.save

# Metrics whose paired differences are in one figure, at most; fewer if each needs several panels.
_DIFFERENCES = 12
_DIFFERENCES_OF_MANY = 4

# Files from which on several processes draw: each of them takes a second to start.
_MANY = 12


@dataclass(frozen=True)
class Wanted:
    """A figure that was asked for.

    Attributes:
        metric: what it shows; None where its kind needs none.
        size: its width, None for the kind's own; or Axes of the user.
        log: whether values are on a logarithmic axis; None to let the values decide.
        case: the index of the case of a figure over time.
        replication: the replication of a figure over time.
        flows: the numbers of the flows in a figure over time; None for the first three.
        models: curves of a figure of values.
        caption: whether what the marks mean is written below.
    """

    metric: str | None = None
    size: Size | None = None
    log: bool | None = None
    case: int = 0
    replication: int = 0
    flows: Sequence[int] | None = None
    models: Models | None = None
    caption: bool = True


Draw = Callable[["Results", Wanted], "Figure"]


def _metric(results: Results, wanted: Wanted) -> str:
    if wanted.metric is None:
        raise RedtailError("metric: a name is wanted; `redtail list metrics FILE` has them")
    if wanted.metric not in results.metric_names:
        raise RedtailError(
            f"no run has the metric {wanted.metric}{nearest(results.metric_names, wanted.metric)}"
        )
    return names.named(results.metric_names, wanted.metric)


def _distribution(results: Results, wanted: Wanted, *, tail: bool) -> Figure:
    return distribution_figure(
        results, wanted.metric or "queue_delay", tail=tail, size=wanted.size, log=wanted.log
    )


def _queue(results: Results, wanted: Wanted) -> Figure:
    found = queue_figure(results, wanted.metric, size=wanted.size)
    if found is None:
        raise RedtailError(
            "no series was recorded to draw queue_over_time from; ask for it with "
            f"{series_key('queues')} = true in [series] of the experiment"
        )
    return found


def _first_in_phases(results: Results) -> str:
    """Return the first metric that is shown and that phases have.

    Raises:
        RedtailError: there is none.
    """
    found = next(_in_phases(results, results.select()), None)
    if found is None:
        raise RedtailError(
            "no run has phases to draw; ask for phases = [...] in the experiment file"
        )
    return found


def _in_phases(results: Results, shown: Iterable[str]) -> Iterator[str]:
    """Yield the metrics among those shown that phases with times have."""
    if any(phases.prefix(1) + phases.BEGIN in case.metrics for case in results.cases):
        known = set(phases.metrics(results))
        yield from (name for name in shown if name in known)


KINDS: dict[str, Draw] = {
    "value": lambda results, wanted: values.metric_figure(
        results, _metric(results, wanted), size=wanted.size, log=wanted.log, models=wanted.models
    ),
    "difference": lambda results, wanted: values.difference_figure(
        results, [_metric(results, wanted)], size=wanted.size
    ),
    "quartiles": lambda results, wanted: values.quartile_figure(
        results, _metric(results, wanted), size=wanted.size
    ),
    "heatmap": lambda results, wanted: heat_figure(
        results, _metric(results, wanted), size=wanted.size, log=wanted.log
    ),
    "plane": lambda results, wanted: plane.plane_figure(
        results, wanted.metric, size=wanted.size, log=wanted.log
    ),
    "phases": lambda results, wanted: phase_figure(
        results, wanted.metric or _first_in_phases(results), size=wanted.size
    ),
    "loss_events": lambda results, wanted: loss_figure(results, wanted.metric, size=wanted.size),
    "response_times": lambda results, wanted: response_figure(
        results, group_of(results, wanted.metric), size=wanted.size
    ),
    "queue": _queue,
    "cdf": lambda results, wanted: _distribution(results, wanted, tail=False),
    "tail": lambda results, wanted: _distribution(results, wanted, tail=True),
    "fairness": lambda results, wanted: fairness_figure(results, wanted.metric, size=wanted.size),
    "series": lambda results, wanted: series_figure(
        results,
        case=wanted.case,
        replication=wanted.replication,
        link=wanted.metric,
        flows=wanted.flows,
        size=wanted.size,
    ),
}
"""The kinds of single figures, by name.

`metric` is of "plane" the delay (by default the mean queueing delay), of "phases" a metric that
phases have (by default the first that is shown), of "loss_events", "queue" and
"series" the link (by default the first), of "response_times" the group of users, of "fairness" a
group, and of "cdf" and "tail" a distribution (`Results.cdf`; by default the queueing delay).
"""


def figure(results: Results, kind: str, wanted: Wanted) -> Figure:
    """Draw a figure of a kind.

    Raises:
        RedtailError: there is no such kind, or nothing to draw it from.
    """
    if kind not in KINDS:
        raise RedtailError(f"kind = {kind!r}; accepted: {', '.join(KINDS)}")
    if isinstance(wanted.size, style.Given):
        return KINDS[kind](results, wanted)
    with mpl.rc_context(style.RC):
        found = KINDS[kind](results, wanted)
        if not wanted.caption:
            style.drop_caption(found)
        return found


def drawings(results: Results) -> list[Drawing]:
    """Return every figure that the results have data for; none is drawn yet."""
    shown = [name for name in results.select() if _has_values(results, name)]
    asked = bool(results.report)
    found = [Drawing(name, partial(values.metric_figure, results, name), asked) for name in shown]
    if shown and values.can_differ(results):
        found.append(Drawing("differences", lambda: _differences(results, shown), asked))
    for number, name in enumerate(_in_phases(results, shown)):
        draw = partial(phase_figure, results, name)
        found.append(Drawing(f"{name}_by_phase", draw, answers=asked or not number))
    found += [*_distributions(results, shown), *recorded.drawings(results, shown)]
    if not any(each.answers for each in found):
        tail = next((each for each in found if each.name.endswith("queue_delay_tail")), None)
        first = tail or next(iter(found), None)
        found = [replace(each, answers=each is first) for each in found]
    return found


def draw(
    results: Results,
    folder: Path,
    *,
    names: Collection[str] | None = None,
    every: bool = False,
    formats: Sequence[str] = (drawn.DEFAULT,),
    jobs: int = 1,
) -> list[Path]:
    """Draw figures that the results have data for, except what is drawn already.

    Args:
        results: what to draw.
        folder: where to; made when missing.
        names: which; None for the few that answer what the experiment asks.
        every: all of them.
        formats: the files of each.
        jobs: processes that draw, if there is much to draw.

    Returns:
        The paths, in the order of `formats` for each figure.

    Raises:
        RedtailError: there is no figure of such a name.
        StoreError: the folder cannot be written.
    """
    record = drawn.Record(folder, results)
    found = drawings(results)
    chosen = found if every else chosen_of(found, names)
    missing = [each for each in chosen if record.files_of([each.name], formats) is None]
    names_of_all = [each.name for each in chosen]
    if jobs > 1 and len(missing) * len(formats) >= _MANY:
        named = [each.name for each in missing]
        made = _draw_together(results.folder, named, folder, formats, jobs)
    else:
        with mpl.rc_context(style.RC):
            made = save([(each.name, each.draw()) for each in missing], folder, formats)
    choice = drawn.EVERY if every else drawn.ANSWERS if names is None else " ".join(names_of_all)
    record.add(choice, names_of_all, made)
    return [folder / f"{name}.{kind}" for name in names_of_all for kind in formats]


def _draw_together(
    stored: Path,
    names: Sequence[str],
    folder: Path,
    formats: Sequence[str],
    jobs: int,
) -> list[Path]:
    """Draw in several processes, each of which loads the results."""
    parts = [list(names[number::jobs]) for number in range(jobs)]
    with (
        _safe_path(),
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        asked = [
            pool.submit(_draw_part, stored, part, folder, tuple(formats)) for part in parts if part
        ]
        return [path for each in asked for path in each.result()]


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let Python processes that start here import no module of the current folder (`python -P`)."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _draw_part(
    stored: Path, names: Sequence[str], folder: Path, formats: Sequence[str]
) -> list[Path]:
    results = redtail.load(stored)
    with mpl.rc_context(style.RC):
        chosen = chosen_of(drawings(results), names)
        return save([(each.name, each.draw()) for each in chosen], folder, formats)


def chosen_of(found: Sequence[Drawing], names: Collection[str] | None) -> list[Drawing]:
    """Return the drawings of these names, in their order; without names those that answer.

    Raises:
        RedtailError: there is none of such a name.
    """
    if names is None:
        return [each for each in found if each.answers]
    known = {each.name: each for each in found}
    for name in names:
        if name not in known:
            raise RedtailError(
                f"there is no figure {escape.name(name)}; accepted: {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(names)]


def _has_values(results: Results, name: str) -> bool:
    known = [mean for case in results.cases if not math.isnan(mean := case.metric(name).mean)]
    return bool(known) and (any(known) or names.base(name) != "mark")


def _differences(results: Results, shown: Sequence[str]) -> Figure:
    """Draw paired differences; the goodput of each group is left to the figures of its own."""
    many = len(lines_of(results, find_load(results))) > style.DISTINCT
    most = _DIFFERENCES_OF_MANY if many else _DIFFERENCES
    chosen = [name for name in shown if not name.endswith(".goodput")][:most]
    return values.difference_figure(results, chosen or shown[:1])


def _distributions(results: Results, shown: Sequence[str]) -> Iterator[Drawing]:
    """Yield the figures that show more of the metrics drawn than means.

    Of metrics that were asked for, only those that show them too.
    """
    bases = {names.base(name) for name in shown}
    every = not results.report
    delays = any(base.startswith("queue_delay") for base in bases)
    if plane.can_draw(results) and (every or (delays and bases & {"goodput", "utilization"})):
        compares = len(results.cases) > 1
        yield Drawing("delay_and_goodput", partial(plane.plane_figure, results), compares)
    for group in results.user_groups:
        if every or any(name.startswith(f"{group}.response_time") for name in shown):
            first = group == next(iter(results.user_groups))
            yield Drawing(
                f"{group}.response_times",
                partial(response_figure, results, group),
                answers=first or not every,
            )
    for link in results.links:
        of = f"{link}." if link != results.links[0] else ""
        losses = every or "consecutive_loss_mean" in bases
        if losses and any(case.exceedance(link) for case in results.cases):
            yield Drawing(f"{of}consecutive_loss", partial(loss_figure, results, link))
        if any(recorded.has(results, "queues", case) for case in range(len(results.cases))):
            yield Drawing(
                f"{of}queue_over_time", partial(_queue, results, Wanted(link)), answers=not of
            )


def draw_gaps(gaps: Gaps, folder: Path, formats: Sequence[str] = (drawn.DEFAULT,)) -> list[Path]:
    """Draw a figure for each metric that was compared, with all backends beside each other.

    Args:
        gaps: what to draw.
        folder: where to; made when missing.
        formats: the files of each.

    Returns:
        The paths, in the order of `formats`; a metric without any value has no figure.

    Raises:
        StoreError: the folder cannot be written.
    """
    metrics = dict.fromkeys(
        row.metric for row in gaps if not all(math.isnan(mean.mean) for mean in row.means)
    )
    with mpl.rc_context(style.RC):
        return save([(name, gap_figure(gaps, name)) for name in metrics], folder, formats)


def overview(parts: Sequence[tuple[str, Results]]) -> Figure | None:
    """Draw delay against goodput in several experiments; see `plane.overview_figure`."""
    with mpl.rc_context(style.RC):
        return plane.overview_figure(parts)


def paper_figure(
    results: Results,
    draws: str,
    about: Metric,
    published: Published | None = None,
    source: str = "published",
) -> Figure:
    """Draw what a paper's figure shows.

    Args:
        results: what to draw, of a queue and a load.
        draws: a metric, "consecutive_loss", "queue_over_time", or a kind of `KINDS` with what it is
            of, such as "response_times:GROUP", "cdf:queue_delay", "plane" or "heatmap:METRIC".
        about: how the metric is shown.
        published: the paper's numbers, drawn as points.
        source: where they come from.

    Raises:
        RedtailError: there is nothing to draw it from.
    """
    kind, _, of = draws.partition(":")
    with mpl.rc_context(style.RC):
        match kind:
            case "consecutive_loss":
                return loss_figure(results)
            case "queue_over_time":
                return _queue(results, Wanted())
            case "quartiles":
                return values.quartile_figure(results, of, about)
            case _ if kind in KINDS:
                return KINDS[kind](results, Wanted(of or None))
            case _:
                return values.metric_figure(
                    results, draws, about, published=published, source=source
                )
