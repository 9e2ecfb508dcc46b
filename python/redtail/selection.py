"""Which metrics tables, figures and reports show.

Names are given with `--metrics`, as an argument in Python, or in the table `[report]` of an
experiment file; what is given at the command counts before the file. Without names the choice
follows the traffic: what calls, pages, videos and transfers are judged by, for each group, and
utilization, loss and delay of every queue. Metrics of the file's [metrics] come first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from redtail import metrics as names
from redtail.errors import SpecError
from redtail.metrics import nearest

# What a group is judged by: the first metric tells which groups these are.
_OF_GROUPS = (
    ("mos", ("one_way_delay_p99", "end_to_end_loss")),
    ("quality", ("bitrate", "frozen", "one_way_delay_p95")),
    ("not_started", ("bitrate_mean", "rebuffering_ratio", "startup_delay_mean")),
    (
        "responses",
        (
            "response_time_p50",
            "response_time_p95",
            "unanswered",
            "pages",
            "page_time_p50",
            "page_time_p95",
            "pages_unfinished",
        ),
    ),
    ("completed", ("completion_time_mean", "completion_time_p50")),
    (
        "payload_rate",
        (
            "back_payload_rate",
            "datagram_loss",
            "back_datagram_loss",
            "tcp_rtt_p50",
            "back_tcp_rtt_p50",
            "quic_rtt_p50",
            "back_quic_rtt_p50",
        ),
    ),
)

# The default, the most important first. None stands for what groups are judged by.
_DEFAULT = (
    "utilization",
    "goodput",
    "offered_load",
    None,
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
_FURTHER_QUEUES = ("utilization", "loss", "queue_delay_mean", "queue_delay_p95")

# What a narrow table leaves out before anything else.
_LAST = (
    "queue_delay_std",
    "consecutive_loss_mean",
    "queue_delay_p95",
    "fairness",
    "queue_length_mean",
)


def select(
    present: Collection[str],
    patterns: Sequence[str] = (),
    *,
    links: Sequence[str] = (),
    where: str = "metrics",
    free: Sequence[str] = (),
    lenient: bool = False,
) -> list[str]:
    """Return the metrics to show.

    Args:
        present: the names of all metrics that there are.
        patterns: names, with `*` and `?` for any letters (`web.*`, `*.one_way_delay_p99`); phases
            are meant only by a pattern that begins with "phase". Empty: what suits the traffic.
        links: the names of the queues in results, the forward bottleneck first.
        where: what messages call the place of the patterns.
        free: what stands in front of names that queues of users choose, which are not in `present`
            before a run.
        lenient: leave out what is not present, in place of an error.

    Returns:
        Each name once, in the order of the patterns.

    Raises:
        SpecError: a pattern fits no metric; the message has the nearest names.

    >>> select(["goodput", "web.goodput", "phase1.goodput"], ["*goodput"])
    ['goodput', 'web.goodput']
    >>> select(["queue_delay_p99", "loss"], ["queue_dealy_p99"])
    Traceback (most recent call last):
    redtail.errors.SpecError: metrics: no run has 'queue_dealy_p99'; nearest: queue_delay_p99
    """
    if not patterns:
        return default(present, links)
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = _fitting(present, pattern)
        if not fitting and pattern.startswith(tuple(free)):
            fitting = [] if _is_wild(pattern) else [pattern]
        elif not fitting and not lenient:
            raise SpecError(
                f"{where}: no run has {pattern!r}{nearest(present, pattern)}", key=where
            )
        found.update(dict.fromkeys(fitting))
    return list(found)


def default(present: Collection[str], links: Sequence[str] = ()) -> list[str]:
    """Return which metrics to show when none is named.

    What programs measure and what the experiment derives by formulas, those of `_DEFAULT`, and
    besides the goodput of each group when there are several, what each group is judged by, and
    utilization, loss and delay of queues beyond the first. In a chain no queue is the first. Phases
    are left out.

    >>> default(["goodput", "hop1.loss", "hop1.ftp.loss"], ["hop1"])
    ['goodput', 'hop1.loss']
    >>> default(["utilization", "calls.mos", "calls.jitter", "calls.end_to_end_loss"])
    ['utilization', 'calls.mos', 'calls.end_to_end_loss']
    >>> default(["goodput", "web.goodput", "web.responses", "web.response_time_p50"])
    ['goodput', 'web.responses', 'web.response_time_p50']
    """
    found: dict[str, None] = dict.fromkeys(name for name in present if isinstance(name, names.Own))
    of_groups = [name for name in present if name.count(".") == 1 and names.phase(name) is None]
    goodputs = [name for name in of_groups if names.base(name) == "goodput"]
    for name in _DEFAULT:
        if name is None:
            found.update(dict.fromkeys(_of_groups(present, of_groups)))
            continue
        if name in present:
            found[name] = None
        if name == "goodput" and len(goodputs) > 1:
            found.update(dict.fromkeys(goodputs))
        if name == "offered_load":
            found.update(dict.fromkeys(each for each in of_groups if names.base(each) == name))
        if name in _FURTHER_QUEUES:
            further = (f"{link}.{name}" for link in links)
            found.update(dict.fromkeys(each for each in further if each in present))
    return list(found)


def _of_groups(present: Collection[str], of_groups: Iterable[str]) -> list[str]:
    """Return what each group is judged by, group by group."""
    groups: dict[str, list[str]] = {}
    for name in of_groups:
        groups.setdefault(names.prefix(name), []).append(names.base(name))
    found = []
    for group, bases in groups.items():
        for first, others in _OF_GROUPS:
            if first in bases:
                found += [f"{group}.{base}" for base in (first, *others) if base in bases]
                break
    return found


def is_last(name: str) -> bool:
    """Return whether a narrow table leaves this metric out before anything else.

    >>> is_last("fairness"), is_last("return.queue_delay_mean")
    (True, False)
    """
    return names.base(name) in _LAST


def split(texts: Iterable[str] | str | None) -> list[str]:
    """Return the names in the texts of `--metrics`, which may each have several.

    >>> split(["goodput,loss", "web.*"]), split(None), split("mos, loss")
    (['goodput', 'loss', 'web.*'], [], ['mos', 'loss'])
    """
    if texts is None:
        return []
    each = [texts] if isinstance(texts, str) else texts
    return [name.strip() for text in each for name in text.split(",") if name.strip()]


def _fitting(present: Collection[str], pattern: str) -> list[str]:
    if not _is_wild(pattern):
        return [names.named(present, pattern)] if pattern in present else []
    phases = pattern.startswith("phase")
    return [
        name
        for name in present
        if fnmatchcase(name, pattern) and (phases or names.phase(name) is None)
    ]


def _is_wild(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")
