"""What metrics and cases are called in tables, in figures and on screen.

The engine names metrics by dotted paths: `goodput` is the forward bottleneck or all traffic
together, `ftp.goodput` is one group's, `return.loss` another queue's. `phase2.` in front of such a
X
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail import escape


@dataclass(frozen=True)
class Metric:
    """How a metric is shown.

    Attributes:
        title: for the axis of a figure.
        short: for the head of a table column.
        unit: SI unit of the stored numbers; "1" for fractions and ratios.
        suffix: unit as the end of a column name; empty for fractions and ratios.
        scale: a shown number is a stored number times this.
        shown_unit: unit of a shown number; empty for a ratio.
    """

    title: str
    short: str
    unit: str
    suffix: str
    scale: float
    shown_unit: str

    @property
    def head(self) -> str:
        """The head of a table column, with the unit on a second line."""
        return f"{self.short}\n{self.shown_unit}"

    @property
    def axis(self) -> str:
        """The text of a figure's axis, with the unit."""
        return f"{self.title} ({self.shown_unit})" if self.shown_unit else self.title


@dataclass(frozen=True)
class Definition:
    """What a metric is. Rust defines it; `make generate` writes it to `metrics.json`.

    Attributes:
        name: the last part of its name in results.
        metric: how it is shown.
        measure: its unit in words: fraction, count, s.
        form: its name in results, with GROUP and CLASS for names of the experiment.
        scope: what it is measured of: a link, a group, a queue.
        phases: whether each phase has it too.
        of: which links, groups or queues have it.
        text: the definition, in Markdown.
    """

    name: str
    metric: Metric
    measure: str
    form: str
    scope: str
    phases: bool
    of: str
    text: str


def _definition(given: dict[str, Any]) -> Definition:
    keys = ("title", "short", "unit", "suffix", "scale", "shown_unit")
    return Definition(
        name=given["name"],
        metric=Metric(**{key: given[key] for key in keys}),
        measure=given["measure"],
        form=given["form"],
        scope=given["scope"],
        phases=given["phases"],
        of=given["of"],
        text=given["definition"],
    )


DEFINITIONS: tuple[Definition, ...] = tuple(
    map(
        _definition,
        json.loads(Path(__file__).with_name("metrics.json").read_text(encoding="utf-8")),
    )
)
"""All metrics, except those that queues of users name themselves."""

# Definitions of one name are shown alike; a test of the Rust code holds that.
METRICS: dict[str, Metric] = {each.name: each.metric for each in DEFINITIONS}

# Bins of response times to a factor of ten (crates/network/src/answers.rs).
BINS_PER_DECADE = 50

# Metrics of groups that tables show, with the group's name, for every group that has them.
OF_GROUPS = (
    "mos",
    "bitrate_mean",
    "rebuffering_ratio",
    "transaction_rate",
    "response_time_p50",
    "response_time_p95",
)

# What each group was found to offer that was asked for by its load.
_OFFERED = ("offered_load",)

# Metrics of the printed table, the most important first: narrow screens show only the first ones.
TABLE = (
    "utilization",
    "goodput",
    *_OFFERED,
    *OF_GROUPS,
    "udp_loss",
    "loss",
    "mark",
    "queue_delay_mean",
    "queue_delay_std",
    "consecutive_loss_mean",
    "queue_delay_p95",
    "fairness",
    "queue_length_mean",
)

# Of these, every queue beyond the first is worth a column and a figure.
FURTHER_QUEUES = ("utilization", "loss", "queue_delay_mean")

# Metrics that get a figure of their own.
FIGURES = (
    "goodput",
    "utilization",
    *OF_GROUPS,
    "udp_loss",
    "loss",
    "queue_delay_mean",
    "queue_delay_std",
    "queue_delay_p95",
    "queue_length_mean",
    "consecutive_loss_mean",
    "fairness",
)


def describe(name: str) -> Metric:
    """Return how the metric `name` is shown.

    >>> describe("ftp.goodput").axis
    'TCP goodput (Mbit/s)'
    >>> describe("queue.l_delay_mean").axis
    'Mean queueing delay, L queue (ms)'
    >>> describe("ftp.something_new").unit
    ''
    """
    known = METRICS.get(base(name))
    if known is not None:
        return known
    words = escape.name(base(name).replace("_", " "))
    return Metric(words.capitalize(), words, "", "", 1.0, "")


def base(name: str) -> str:
    """Return the last part of a name, which says what it is.

    >>> base("ftp.goodput")
    'goodput'
    """
    return name.rpartition(".")[2]


def prefix(name: str) -> str:
    """Return the group or queue a metric belongs to; empty for the bottleneck or all traffic.

    >>> prefix("ftp.goodput"), prefix("goodput")
    ('ftp', '')
    """
    return name.rpartition(".")[0]


def phase(name: str) -> int | None:
    """Return the number of the phase a metric is about; None for the whole period.

    >>> phase("phase2.ftp.goodput"), phase("ftp.goodput")
    (2, None)
    """
    found = re.match(r"phase([0-9]+)\.", name)
    return int(found[1]) if found else None


def axis(name: str) -> str:
    """Return the text of a figure's axis.

    >>> axis("hop2.queue_delay_mean")
    'hop2: Mean queueing delay (ms)'
    """
    of = prefix(name)
    return f"{of}: {describe(name).axis}" if of else describe(name).axis


def head(name: str) -> str:
    """Return the head of a table column, on two or three lines."""
    of = escape.name(prefix(name))
    return f"{of}\n{describe(name).head}" if of else describe(name).head


def shown(present: Collection[str], links: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return which metrics to show, from the `wanted` ones without a prefix.

    To these come the goodput of each group when there are several, the metrics of `OF_GROUPS` of
    each group that has them, and, for queues beyond the first, those of `FURTHER_QUEUES`. In a
    chain no queue is the first. Phases are left out.

    >>> shown(["goodput", "hop1.loss", "hop1.ftp.loss"], ["hop1"], ["goodput", "loss"])
    ['goodput', 'hop1.loss']
    >>> shown(["utilization", "calls.mos", "calls.jitter"], [], ["mos", "utilization"])
    ['calls.mos', 'utilization']
    >>> shown(["goodput", "web.goodput", "web.transaction_rate"], [], TABLE)
    ['goodput', 'web.transaction_rate']
    """
    groups = [
        name
        for name in present
        if name.count(".") == 1 and name.endswith(".goodput") and phase(name) is None
    ]
    found = []
    for name in wanted:
        if name in present:
            found.append(name)
        if name == "goodput" and len(groups) > 1:
            found.extend(groups)
        if name in (*_OFFERED, *OF_GROUPS):
            found.extend(each for each in present if each.count(".") == 1 and base(each) == name)
        if name in FURTHER_QUEUES:
            found.extend(f"{link}.{name}" for link in links if f"{link}.{name}" in present)
    return found


def column(name: str) -> str:
    """Return the table column that holds the metric `name`: the name with its SI unit.

    >>> column("ftp.goodput"), column("queue_delay_p95"), column("loss")
    ('ftp.goodput_bit_per_s', 'queue_delay_p95_s', 'loss')
    """
    return name + describe(name).suffix


CASE_NAME = "case.name"
"""The factor that stands for a list of cases: its values are their names."""


def factor_title(key: str) -> str:
    """Return the key of a factor as words.

    >>> factor_title("bottleneck.queue"), factor_title("traffic.ftp.flows")
    ('queue', 'ftp flows')
    >>> factor_title("case.name")
    'case'
    """
    if key == CASE_NAME:
        return "case"
    head, _, rest = key.partition(".")
    words = rest if head in ("bottleneck", "traffic", "chain") and rest else key
    return escape.name(words.replace(".", " "))


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "run"), counted(90, "run")
    ('1 run', '90 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def case_title(factors: Mapping[str, object], labels: Mapping[str, str]) -> str:
    """Return a case in one line.

    A table (such as a queue) is named by its label alone; a plain value by its key and its label.
    Invisible characters are escaped.

    >>> case_title({"bottleneck.queue": {}, "traffic.ftp.flows": 16},
    ...            {"bottleneck.queue": "RED", "traffic.ftp.flows": "16"})
    'RED, ftp flows 16'
    """
    return ", ".join(
        escape.name(label)
        if key == CASE_NAME or isinstance(factors.get(key), dict)
        else f"{factor_title(key)} {escape.name(label)}"
        for key, label in labels.items()
    )
