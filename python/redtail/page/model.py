"""What the page shows, as plain data: of these the template and the script make all that is seen.

Numbers are in the units in which they are shown. Names are escaped by `escape.name`. HTML is
escaped where it is made: by Jinja in the template, and by the script, which sets texts and never
HTML.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redtail import escape, quantities, selection
from redtail import metrics as names
from redtail.analysis import censoring, places
from redtail.analysis import compare as comparing
from redtail.analysis.along import changing_along
from redtail.analysis.stats import estimate
from redtail.errors import RedtailError
from redtail.page import answer, curves, network
from redtail.scenario import links
from redtail.store import advice, segments

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.compare import Comparisons
    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate

# So many metrics are in the answer.
_DECIDE = 7
_DELAYS = 3

# So that a page of a large campaign can be opened: values of single runs, and differences.
_MOST_VALUES = 150_000
_MOST_DIFFERENCES = 20_000

_DIGITS = 6


@dataclass(frozen=True)
class Section:
    """An experiment on the page.

    Attributes:
        id: of its part of the page.
        title: the name of the experiment.
        description: its description, possibly empty.
        facts: what is known of the runs: pairs of a word and what it is.
        drawing: the network; None when no scenario can be read.
        factors: what is compared: pairs of a factor and its settings.
        advice: what `redtail advise` said of these runs, in parts; empty without it.
        answer: the answer in lines.
        pairing: what differences are taken of, a line each.
        verdicts: whether the answer has any.
        warnings: what to know before it is trusted.
        table: head and rows of the table as it is shown at first.
        data: what the script draws of.
        repeat: what it takes to repeat the experiment.
    """

    id: str
    title: str
    description: str
    facts: list[tuple[str, str]]
    drawing: network.Drawing | None
    factors: list[tuple[str, str]]
    advice: list[advice.Part]
    answer: list[answer.Paragraph]
    pairing: list[str]
    verdicts: bool
    warnings: list[str]
    table: dict[str, Any]
    data: dict[str, Any]
    repeat: dict[str, Any]


def section(results: Results, number: int, metrics: Sequence[str] = ()) -> Section:
    """Return what the page shows of an experiment.

    Args:
        results: the experiment's results.
        number: of the section, from 1.
        metrics: what is shown first, as for `Results.select`.

    Raises:
        SpecError: there is no such metric.
        StoreError: what was advised cannot be read.
    """
    chosen = _chosen(results, metrics)
    factor = _compared(results)
    decide = _deciding(results, chosen, factor, asked_for=bool(metrics or results.report))
    held: Comparisons | None = None
    if factor is not None:
        baseline = results.cases[0].labels[factor]
        held = comparing.compare(results, decide, baseline=baseline, by=factor, correction="holm")
    scenario = results.scenario
    settings = {
        key: list(dict.fromkeys(case.labels.get(key, "") for case in results.cases))
        for key in results.factors
    }
    data = _data(results, factor, chosen, scenario, decide)
    paragraphs = answer.paragraphs(results, decide, held)
    advised, told = advice.read(results.folder, results.provenance.text)
    return Section(
        id=f"e{number}",
        title=escape.name(results.name),
        description=escape.text(results.description),
        facts=_facts(results, scenario),
        drawing=network.drawing(scenario, network.varied(results)),
        factors=[
            (names.factor_title(key), ", ".join(map(escape.name, labels)))
            for key, labels in settings.items()
        ],
        advice=advised,
        answer=paragraphs,
        pairing=held.pairing if held is not None and len(held) else [],
        verdicts=any(line.verdict for each in paragraphs for line in each.lines),
        warnings=[*told, *_warnings(results, held)],
        table=_table(data),
        data=data,
        repeat=_repeat(results),
    )


def _chosen(results: Results, metrics: Sequence[str]) -> list[str]:
    """Return the metrics that are shown first: without those that say nothing here."""
    found = []
    for name in results.select(metrics):
        means = [case.metric(name).mean for case in results.cases]
        unfinished = any(case.metric(name).unfinished for case in results.cases)
        absent = all(map(math.isnan, means)) and not unfinished
        if absent or (name == "mark" and not any(means)):
            continue
        found.append(name)
    return found or list(results.metric_names[:_DECIDE])


def _deciding(
    results: Results, chosen: Sequence[str], factor: str | None, *, asked_for: bool
) -> list[str]:
    """Return the metrics of the answer, of different quantities rather than of many groups.

    Where queues are compared, the delay in them is the first; of a chain, the delays at the hops
    where packets wait longest. A metric that has the means of
    another one in all cases is left out: the loss of the only UDP group is the UDP loss of all.
    """
    if asked_for:
        return list(chosen[:_DECIDE])
    delays: list[str] = []
    if factor is not None and comparing.is_queue(factor):
        hops = places.path_delays(results) or ["queue_delay_mean"]
        delays = [name for name in hops if name in results.metric_names]
        # The hops where packets wait longest.
        delays.sort(key=lambda name: -max(case.metric(name).mean for case in results.cases))
        delays = delays[:_DELAYS]
    turns: dict[str, int] = {}
    ranked = []
    seen: set[tuple[float, ...]] = set()
    for place, name in enumerate(chosen):
        if selection.is_last(name) or name in delays:
            continue
        values = tuple(case.metric(name).mean for case in results.cases)
        if values in seen:
            continue
        seen.add(values)
        turn = turns[names.base(name)] = turns.get(names.base(name), 0) + 1
        ranked.append((turn, place))
    kept = {place for _, place in sorted(ranked)[: _DECIDE - len(delays)]}
    return [*delays, *(name for place, name in enumerate(chosen) if place in kept)]


def _compared(results: Results) -> str | None:
    """Return the factor whose settings are compared; None without one that has several.

    A queue first, then what has names: numbers, such as a limit, are what figures are drawn over.
    """
    several = [
        key for key in results.factors if len({case.labels.get(key) for case in results.cases}) > 1
    ]

    def rank(key: str) -> tuple[bool, bool]:
        numbers = quantities.in_one_unit([case.factors.get(key) for case in results.cases])
        return numbers is not None, not comparing.is_queue(key)

    return min(several, key=rank, default=None)


def _rounded(value: float | None, scale: float = 1.0) -> float | None:
    """Return a number to six digits, which is more than a figure can show; None for NaN."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value * scale:.{_DIGITS}g}")


def _cell(name: str, found: Estimate, scale: float) -> list[Any]:
    """Return an estimate as mean, half-width, number of values, and the text of a table."""
    text = censoring.cell(name, found, scale)
    return [_rounded(found.mean, scale), _rounded(found.ci95, scale), found.n, text]


def _data(
    results: Results,
    factor: str | None,
    chosen: Sequence[str],
    scenario: dict[str, Any],
    decide: Sequence[str],
) -> dict[str, Any]:
    wanted = [*chosen, *(name for name in results.metric_names if name not in chosen)]
    runs = sum(len(case.runs) for case in results.cases)
    kept = wanted if runs * len(wanted) <= _MOST_VALUES else list(chosen)
    factors = [_factor(results, key) for key in results.factors]
    data: dict[str, Any] = {
        "factors": factors,
        "first": 0 if results.report else _telling(results, factor, chosen, decide),
        "plane": _plane(results, factor, scenario),
        "compared": None if factor is None else list(results.factors).index(factor),
        "along": []
        if factor is None
        else [list(results.factors).index(key) for key in changing_along(results.cases, factor)],
        "cases": [
            {
                "labels": [escape.name(case.labels.get(key, "")) for key in results.factors],
                "title": case.title or escape.name(results.name),
            }
            for case in results.cases
        ],
        "metrics": [
            {
                "name": escape.name(name),
                "axis": names.axis(name),
                "head": " ".join(names.head(name).split("\n")[:-1]),
                "unit": names.describe(name).shown_unit,
                "group": _group(name),
                "chosen": name in chosen,
            }
            for name in wanted
        ],
        "estimates": [
            [_cell(name, case.metric(name), names.describe(name).scale) for case in results.cases]
            for name in wanted
        ],
        "runs": [
            [
                [_rounded(value, names.describe(name).scale) for value in case.values(name)]
                for case in results.cases
            ]
            for name in wanted
            if name in kept
        ],
        "differences": {} if factor is None else _differences(results, factor, wanted, chosen),
        "series": curves.series(results, scenario),
        "tails": curves.tails(results),
    }
    if places.path_delays(results) and len(kept) == len(wanted):
        for key, value in zip(("metrics", "estimates", "runs"), _path_delay(results), strict=True):
            data[key].append(value)
    return data


def _telling(
    results: Results, factor: str | None, chosen: Sequence[str], decide: Sequence[str]
) -> int:
    """Return the place of the metric that is drawn first.

    Where queues are compared it is the delay in them, as in the answer; otherwise the one in which
    settings differ most in shares.
    """
    of_queues = factor is not None and comparing.is_queue(factor)
    if of_queues and decide and decide[0] in chosen and "queue_delay" in decide[0]:
        return list(chosen).index(decide[0])

    def spread(name: str) -> float:
        means: dict[tuple[str, ...], list[float]] = {}
        for case in results.cases:
            place = tuple(label for key, label in case.labels.items() if key != factor)
            means.setdefault(place, []).append(abs(case.metric(name).mean))
        known = [[mean for mean in each if not math.isnan(mean)] for each in means.values()]
        shares = [1 - min(each) / max(each) for each in known if each and max(each) > 0]
        return sum(shares) / len(shares) if shares else 0.0

    spreads = [spread(name) for name in chosen]
    return spreads.index(max(spreads)) if spreads else 0


def _plane(results: Results, factor: str | None, scenario: dict[str, Any]) -> tuple[str, str]:
    """Return the delay and the goodput that are drawn against each other first.

    The delay is that of the queue that is compared; in a chain of several hops the sum of the
    delays at all of them, unless a queue of a return link is compared.
    """
    for link in links(scenario):
        name = "queue_delay_mean" if link == "bottleneck" else f"{link}.queue_delay_mean"
        of_queue = f"{network.link_key(link, scenario)}.queue"
        if link in places.forward([link]) and places.path_delays(results):
            continue
        if factor is not None and f"{factor}.".startswith(f"{of_queue}."):
            return name, "goodput"
    return places.PATH_DELAY if places.path_delays(results) else "queue_delay_mean", "goodput"


def _path_delay(results: Results) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """Return the sum of the hops' delays as a metric, with its estimates and its runs."""
    path = places.path_delays(results)
    about = names.describe(path[0])
    title = places.path_title(path)
    values = [places.sums(case, path) for case in results.cases]
    metric = {
        "name": places.PATH_DELAY,
        "axis": f"{title} ({about.shown_unit})",
        "head": "delay, sum of hops",
        "unit": about.shown_unit,
        "group": _group(""),
        "chosen": False,
    }
    return (
        metric,
        [_cell("", estimate(each), about.scale) for each in values],
        [[_rounded(value, about.scale) for value in each] for each in values],
    )


def _factor(results: Results, key: str) -> dict[str, Any]:
    """Return a factor with the number of each case, if its settings are numbers in one unit."""
    read = quantities.in_one_unit([case.factors.get(key) for case in results.cases])
    values, unit = (None, "") if read is None or len(set(read[0])) < 2 else read
    title = names.factor_title(key)
    return {
        "title": f"{title} ({unit})" if unit else title,
        "values": None if values is None else list(values),
    }


def _group(name: str) -> str:
    """Return what metrics are listed under in a menu."""
    of = names.prefix(name)
    number = names.phase(name)
    if number is not None:
        return f"phase {number}"
    return escape.name(of) if of else "the link and all traffic"


def _differences(
    results: Results, factor: str, wanted: Sequence[str], chosen: Sequence[str]
) -> dict[str, Any]:
    """Return for each baseline and metric what each case differs by; None where it is none.

    The interval of each difference is for it alone; the answer has verdicts for all at once.
    """
    labels = list(dict.fromkeys(case.labels[factor] for case in results.cases))
    cases = len(results.cases)
    metrics = [name for name in wanted if names.phase(name) is None]
    if len(metrics) * cases * len(labels) > _MOST_DIFFERENCES:
        metrics = list(chosen)
    if len(metrics) * cases * len(labels) > _MOST_DIFFERENCES:
        labels = labels[:1]
    place = {id(case): number for number, case in enumerate(results.cases)}
    found: dict[str, Any] = {}
    for label in labels:
        of_label = found.setdefault(escape.name(label), {})
        for name in metrics:
            scale = names.describe(name).scale
            row: list[Any] = [None] * cases
            for case, difference in results.differences(name, factor=factor, baseline=label):
                if not math.isnan(difference.mean):
                    *numbers, text = _cell(name, difference, scale)
                    row[place[id(case)]] = [*numbers, answer.signed(text)]
            of_label[escape.name(name)] = row
    return found


def _table(data: dict[str, Any]) -> dict[str, Any]:
    """Return the table as it is before the script changes it."""
    columns = [number for number, each in enumerate(data["metrics"]) if each["chosen"]]
    base = next(iter(data["differences"]), None)
    rows = []
    for number, case in enumerate(data["cases"]):
        cells = []
        for column in columns:
            name = data["metrics"][column]["name"]
            of_base = data["differences"].get(base, {}).get(name)
            difference = of_base[number] if of_base else None
            cells.append(
                {
                    "value": data["estimates"][column][number][0],
                    "text": data["estimates"][column][number][3],
                    "difference": difference[3] if difference else "",
                }
            )
        rows.append({"labels": case["labels"], "number": number, "cells": cells})
    return {
        "factors": [each["title"] for each in data["factors"]],
        "heads": [
            {key: data["metrics"][column][key] for key in ("name", "head", "unit")}
            for column in columns
        ],
        "rows": rows,
        "base": base,
    }


def _facts(results: Results, scenario: dict[str, Any]) -> list[tuple[str, str]]:
    counts = sorted({len(case.runs) for case in results.cases})
    replications = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    found = [
        ("cases", str(len(results.cases))),
        ("replications", replications),
        ("runs", str(results.run_count)),
    ]
    for key, title in (("duration", "each run lasts"), ("warmup", "not measured before")):
        if isinstance(scenario.get(key), str):
            found.append((title, escape.name(scenario[key])))
    backend = {"sim": "the simulator (sim)"}.get(results.backend, results.backend)
    found.append(("made by", escape.name(backend)))
    if results.provenance.version:
        found.append(("version", f"redtail {escape.name(results.provenance.version)}"))
    return found


def _warnings(results: Results, compared: Comparisons | None) -> list[str]:
    found = [*results.warnings, *names.some(results.unsure, "cases.parquet has every interval")]
    if results.failures:
        found.append(results.failure_summary())
    if compared is not None:
        found += compared.warnings
    if len(results.cases) and max(len(case.runs) for case in results.cases) < 2:
        found.append("each case was run once, so nothing here has an interval")
    return [escape.text(text) for text in found]


def _repeat(results: Results) -> dict[str, Any]:
    """Return what it takes to repeat the experiment."""
    provenance = results.provenance
    manifests = list(_manifests(results))
    machines = dict.fromkeys(
        ", ".join(
            str(manifest[key]) for key in ("platform", "processor", "python") if key in manifest
        )
        for manifest in manifests
    )
    created = sorted(str(each["created"]) for each in manifests if "created" in each)
    options = [] if results.backend == "sim" else ["--backend", results.backend]
    facts = [
        ("redtail", provenance.version or "unknown"),
        ("code", results.made_by or "unknown"),
        ("backend", results.backend),
        ("seed", "unknown" if provenance.seed is None else str(provenance.seed)),
        ("overrides", ", ".join(provenance.sets) or "none"),
        ("files it names", ", ".join(provenance.inputs) or "none"),
        ("machine", "; ".join(machines) or "unknown"),
    ]
    if created:
        first, last = (each.replace("T", " ").replace("+00:00", " UTC") for each in _ends(created))
        facts.append(("runs made", first if first == last else f"{first} to {last}"))
    return {
        "facts": [(word, escape.name(text)) for word, text in facts],
        "command": escape.name(command)
        if (command := provenance.command(*options)) is not None
        else None,
        "file": escape.name(provenance.file or provenance.name),
        "text": None if provenance.text is None else escape.text(provenance.text),
        "runs": [
            (case.title or "the case", ", ".join(segments.keys_of(case.runs).values()))
            for case in results.cases
        ]
        if results.run_count <= _RUNS_LISTED
        else [],
    }


_RUNS_LISTED = 2000
_MANIFESTS_READ = 200


def _manifests(results: Results) -> list[dict[str, Any]]:
    """Return the manifests of some runs, of all cases alike."""
    found: list[dict[str, Any]] = []
    cases: list[CaseResult] = [case for case in results.cases if case.runs]
    each = max(1, _MANIFESTS_READ // max(1, len(cases)))
    for case in cases[:_MANIFESTS_READ]:
        for number in sorted(case.runs)[:each]:
            with contextlib.suppress(RedtailError, KeyError):
                found.append(case.runs[number].manifest)
    return found


def _ends(values: Sequence[str]) -> tuple[str, str]:
    return values[0], values[-1]
