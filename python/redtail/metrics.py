"""What metrics and cases are called in tables, in figures and on screen.

The engine names metrics by dotted paths: `goodput` is the forward bottleneck or all traffic
together, `ftp.goodput` is one group's, `return.loss` another queue's. `phase2.` in front of such a
X
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

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


class Own(str):
    """The name of a metric that an experiment defines: programs tell it, or a formula gives it.

    It is a text like the names of all metrics. Unlike theirs, its unit and titles do not follow
    from it, so it has them with it.

    Args:
        name: the name.
        about: how the metric is shown.

    Attributes:
        about: as given.
    """

    about: Metric

    def __new__(cls, name: str, about: Metric) -> Self:
        """Return the name with what belongs to it."""
        made = super().__new__(cls, name)
        made.about = about
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return str(self), self.about


class Derived(Own):
    """The name of a metric that an experiment derives from others by a formula.

    Args:
        name: the name.
        about: how the metric is shown.
        inputs: the metrics of a run that it follows from.

    Attributes:
        inputs: as given.
    """

    inputs: tuple[str, ...]

    def __new__(cls, name: str, about: Metric, inputs: Iterable[str] = ()) -> Self:
        """Return the name with what belongs to it."""
        made = super().__new__(cls, name, about)
        made.inputs = tuple(inputs)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return str(self), self.about, self.inputs


def named(present: Iterable[str], name: str) -> str:
    """Return a name as it is among those that there are, so that an own one says what it is."""
    return next((each for each in present if each == name), name)


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
_BY_NAME: dict[str, Definition] = {each.name: each for each in DEFINITIONS}
METRICS: dict[str, Metric] = {name: each.metric for name, each in _BY_NAME.items()}

# Bins of response times to a factor of ten (crates/network/src/answers.rs).
BINS_PER_DECADE = 50

# Where values of the measure "1" cannot be beyond; those of the measure "fraction" are shares.
_RANGES: dict[str, tuple[float, float]] = {
    "fairness": (0.0, 1.0),  # Jain's index
    "mos": (1.0, 4.5),  # ITU-T G.107, Annex B
    "mos_min": (1.0, 4.5),
    "quality": (1.0, 5.0),  # ITU-T G.1070
    "quality_min": (1.0, 5.0),
    "video_quality": (1.0, 5.0),
    "audio_quality": (1.0, 4.5),
    "back_quality": (1.0, 5.0),
    "back_video_quality": (1.0, 5.0),
    "back_audio_quality": (1.0, 4.5),
    "r_factor": (-math.inf, 100.0),  # ITU-T G.107
    "offered_load": (0.0, math.inf),  # more can be offered than a link carries
    "max_p": (0.0, 1.0),
    "chosen": (0.0, 1.0),
    "short_share": (0.0, 1.0),
    "short_service": (0.0, 1.0),
    "long_share": (0.0, 1.0),
    "long_service": (0.0, 1.0),
}

# Units of shown numbers: the SI unit, and each unit with what a stored number is multiplied by.
_UNITS = {
    "s": (("s", 1.0), ("ms", 1e3), ("µs", 1e6)),
    "bit/s": (("Gbit/s", 1e-9), ("Mbit/s", 1e-6), ("kbit/s", 1e-3), ("bit/s", 1.0)),
    "bytes": (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("bytes", 1.0)),
}


def describe(name: str) -> Metric:
    """Return how the metric `name` is shown.

    >>> describe("ftp.goodput").axis
    'TCP goodput (Mbit/s)'
    >>> describe("queue.l_delay_mean").axis
    'Mean queueing delay, L queue (ms)'
    >>> describe("ftp.something_new").unit
    ''
    """
    if isinstance(name, Own):
        return name.about
    known = METRICS.get(base(name))
    if known is not None:
        return known
    words = escape.name(base(name).replace("_", " "))
    return Metric(words.capitalize(), words, "", "", 1.0, "")


MEASURED = "measured"
"""What stands between a group and the names of what its programs measure.

No group has this name (`validate.rs`).
"""


def base(name: str) -> str:
    """Return the last part of a name, which says what it is.

    What programs measure keeps the word before it: its name is the user's, and says nothing of
    redtail's metric of this name.

    >>> base("ftp.goodput"), base("iperf.measured.goodput")
    ('goodput', 'measured.goodput')
    """
    return _parts(name)[1]


def prefix(name: str) -> str:
    """Return the group or queue a metric belongs to; empty for the bottleneck or all traffic.

    >>> prefix("ftp.goodput"), prefix("goodput"), prefix("iperf.measured.goodput")
    ('ftp', '', 'iperf')
    """
    return _parts(name)[0]


def _parts(name: str) -> tuple[str, str]:
    of, _, last = name.rpartition(".")
    group, dot, word = of.rpartition(".")
    return (group, f"{word}.{last}") if dot and word == MEASURED else (of, last)


def phase(name: str) -> int | None:
    """Return the number of the phase a metric is about; None for the whole period.

    >>> phase("phase2.ftp.goodput"), phase("ftp.goodput")
    (2, None)
    """
    found = re.match(r"phase([0-9]+)\.", name)
    return int(found[1]) if found else None


def axis(name: str, about: Metric | None = None) -> str:
    """Return the text of a figure's axis.

    Args:
        name: the metric.
        about: how it is shown, when not as `describe` says.

    >>> axis("hop2.queue_delay_mean"), axis("web.response_time_p95")
    ('Mean queueing delay at hop2 (ms)', 'Response time of web, 95th percentile (ms)')
    >>> axis("return.loss"), axis("phase2.ftp.goodput")
    ('Packets lost at the queue, return link (%)', 'TCP goodput of ftp, phase 2 (Mbit/s)')
    """
    about = about or describe(name)
    title = title_of(name)
    return f"{title} ({about.shown_unit})" if about.shown_unit else title


def title_of(name: str) -> str:
    """Return what a metric is in words, without its unit.

    >>> title_of("return.calls.queue_delay_p99")
    'Queueing delay of calls at the return link, 99th percentile'
    >>> title_of("left.calls.queue_delay_p99")
    'Queueing delay of calls at left, 99th percentile'
    """
    title, _, rest = describe(name).title.partition(", ")
    groups, places, phases = [], [], []
    for part in prefix(name).split(".") if prefix(name) else []:
        if found := re.fullmatch("phase([0-9]+)", part):
            phases.append(f"phase {found[1]}")
        elif part == "return":
            places.append("return link")
        elif re.fullmatch("hop[0-9]+", part):
            places.append(part)
        elif part != "queue":
            groups.append(escape.name(part))
    if len(groups) == 2 and not places:  # a hop with a name of its own, and a group there
        places.append(groups.pop(0))
    place = " ".join(places)
    if re.search(r" at |(ed|sent|lost|arrivals|end)$", title):  # "lost at the queue at hop2"
        ends = [*groups, *([place] if place else [])]
    else:
        title += "".join(f" of {group}" for group in groups)
        if place:
            title += f" at the {place}" if place.endswith("link") else f" at {place}"
        ends = []
    return ", ".join(part for part in (title, *ends, rest, *phases) if part)


def bounds(name: str) -> tuple[float, float]:
    """Return the least and the greatest value that a metric can have, as it is stored.

    >>> bounds("loss"), bounds("ftp.goodput"), bounds("calls.mos")
    ((0.0, 1.0), (0.0, inf), (1.0, 4.5))
    """
    known = None if isinstance(name, Own) else _BY_NAME.get(base(name))
    if base(name) in _RANGES:
        return _RANGES[base(name)]
    if known is None:  # named by a queue of the user, or by the experiment
        return -math.inf, math.inf
    return 0.0, 1.0 if known.measure == "fraction" else math.inf


def readable(about: Metric, values: Iterable[float]) -> Metric:
    """Return how a metric is shown so that its numbers are neither very small nor very large.

    Args:
        about: how it is shown by default; kept where its largest number is from 0.1 to 10 000.
        values: the numbers that are shown, as they are stored.

    >>> readable(describe("queue_delay_mean"), [4e-6, 12e-6]).shown_unit
    'µs'
    >>> readable(describe("goodput"), [3.2e10]).shown_unit
    'Gbit/s'
    >>> readable(describe("queue_delay_mean"), [0.265]).shown_unit
    'ms'
    """
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    if largest == 0.0 or 0.1 <= largest * about.scale < 1e4 or about.unit not in _UNITS:
        return about
    units = _UNITS[about.unit]
    unit, scale = next((each for each in units if largest * each[1] >= 1.0), units[-1])
    return replace(about, shown_unit=unit, scale=scale)


def head(name: str, about: Metric | None = None) -> str:
    r"""Return the head of a table column, on two or three lines; `about` as for `axis`.

    The name of a group or link ends with a colon, so that it is told apart from the words.

    >>> head("stream.end_to_end_loss").split("\n")
    ['stream:', 'lost', '%']
    """
    of = escape.name(prefix(name))
    lines = (about or describe(name)).head
    return f"{of}:\n{lines}" if of else lines


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


def some(lines: Sequence[str], rest: str) -> list[str]:
    """Return lines of one kind; of many the first, and how many more there are.

    Args:
        lines: of which each says the same of another case.
        rest: where the others are.

    >>> some(["case 1", "case 2", "case 3"], "the file has them")
    ['case 1', 'case 2', 'case 3']
    >>> some([f"case {number}" for number in range(500)], "the file has them")[3:]
    ['case 3', 'case 4', 'and 495 more; the file has them']
    """
    more = len(lines) - _LINES_SHOWN
    return [*lines] if more < 2 else [*lines[:_LINES_SHOWN], f"and {more} more; {rest}"]


_LINES_SHOWN = 5


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


# Most names that a message lists.
_NEAREST = 5


def nearest(present: Collection[str], wanted: str) -> str:
    """Return the names that are most like one that does not exist, as the end of a message.

    Args:
        present: the names that there are.
        wanted: a name, or a pattern with wildcards.

    >>> nearest(["calls.mos", "calls.jitter"], "mos"), nearest(["ftp.goodput"], "ftp.godput")
    ('; nearest: calls.mos', '; nearest: ftp.goodput')
    >>> nearest(["queue_delay_mean", "loss"], "delay")
    '; nearest: queue_delay_mean'
    >>> nearest(["loss"], "x")
    '; `redtail list metrics FILE` has the names'
    """
    whole = [name for name in present if phase(name) is None]
    bare = wanted.replace("*", "").strip(".")
    word = base(bare)
    found = [name for name in whole if base(name) == word and "*" not in wanted]
    if not found and len(word) > 2:
        found = [name for name in whole if word in base(name) and prefix(name) == prefix(bare)]
    found += get_close_matches(bare, whole, n=3, cutoff=0.7)
    # A name may be right but for its group, or its group but for the name.
    for like in get_close_matches(word, {base(name) for name in whole}, n=2, cutoff=0.75):
        alike = [name for name in whole if base(name) == like]
        found += sorted(alike, key=lambda name: prefix(name) != prefix(bare))
    if not found and len(word) > 2:
        found = [name for name in whole if word in base(name)]
    if not found:
        found = get_close_matches(bare, whole, n=3, cutoff=0.5)
    chosen = list(dict.fromkeys(found))[:_NEAREST]
    if not chosen:
        return "; `redtail list metrics FILE` has the names"
    return f"; nearest: {', '.join(chosen)}"
