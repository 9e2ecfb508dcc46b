"""What did not finish: times of which a run has seen only a part.

A mean response time is one of the responses that came. A queue that loses most requests can have a
short one, because the slow ones are missing. For each such time there is a share of what had not
finished when the run ended, and two cases may be compared by it only where that share is small.

Quantiles count what did not finish, as at least as long as it has lasted (Kaplan and Meier 1958,
`Histogram::quantile_with_unfinished` in the crate `network`). They are right whatever the share is.
Where a quantile is beyond what these times show, it has no value in this replication, and neither
has the mean over replications.

`docs/explanation/statistics.md` has the rule for users, under "What did not finish".
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

from redtail import metrics as names
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate

BOUND = 0.01
"""Up to this share of what did not finish, means of the others are compared.

Source: ours. What is merely in progress when the run ends makes a mean too small by about this
share of itself: all time spent, over what finished, is the estimate for exponential times.
"""

# Times of what finished: the metric of the same group that is a share of what did not, or of what
# did.
_SHARES: tuple[tuple[re.Pattern[str], str, bool], ...] = (
    (re.compile(r"(response_time|slowdown)_"), "unanswered", False),
    (re.compile(r"page_time_"), "pages_unfinished", False),
    (re.compile(r"completion_time_"), "completed", True),
    (re.compile(r"handshake_time_"), "established", True),
    (re.compile(r"first_byte_time_"), "begun", True),
    (re.compile(r"startup_delay_"), "not_started", False),
)
_COMPLETE = {share: float(finished) for _, share, finished in _SHARES}
_QUANTILE = re.compile(r"_p\d+$")

# Shown by default only beside times of which some did not finish.
_BESIDE = frozenset({"completion_time_p50"})

Values = Callable[[str], Sequence[float]]
"""Gives a metric of a case, replication by replication; NaN where it is undefined."""


def is_quantile(name: str) -> bool:
    """Return whether a time counts what did not finish.

    >>> is_quantile("web.page_time_p95"), is_quantile("web.page_time_mean")
    (True, False)
    """
    return _QUANTILE.search(name) is not None


def shares(name: str, values: Values) -> list[float]:
    """Return for each replication which share did not finish; empty for a metric without one.

    NaN where there was nothing that could finish.

    >>> shares("short.completion_time_mean", {"short.completed": [0.75, 1.0]}.__getitem__)
    [0.25, 0.0]
    >>> shares("queue_delay_mean", {}.__getitem__)
    []
    """
    found = _share_of(name)
    if found is None:
        return []
    share, of_finished = found
    return [1.0 - each if of_finished else each for each in values(share)]


def _share_of(name: str) -> tuple[str, bool] | None:
    base, prefix = names.base(name), names.prefix(name)
    for pattern, share, of_finished in _SHARES:
        if pattern.match(base):
            return f"{prefix}.{share}", of_finished
    return None


def mean_share(name: str, values: Values) -> float | None:
    """Return which share did not finish, the mean over replications; None where it is not known."""
    known = [share for share in shares(name, values) if not math.isnan(share)]
    return math.fsum(known) / len(known) if known else None


def beyond(name: str, values: Values) -> int:
    """Return in how many replications a time has no value because of what did not finish.

    >>> found = {"web.unanswered": [0.5, 0.0, 1.0], "web.response_time_p95": [math.nan, 0.2, 0.3]}
    >>> beyond("web.response_time_p95", found.__getitem__)
    1
    """
    found = shares(name, values)
    if not any(share > 0 for share in found):
        return 0
    pairs = zip(found, values(name), strict=True)
    return sum(share > 0 and math.isnan(value) for share, value in pairs)


def estimated(name: str, found: Estimate, values: Values) -> Estimate:
    """Return the estimate of a metric with the share that did not finish.

    Without a mean where the metric is a quantile that some replication does not show, and without
    an interval where nothing finished in some replication.

    Args:
        name: the metric's name.
        found: its estimate from the replications that have a value.
        values: gives the metrics of the case.
    """
    share = mean_share(name, values)
    if share is None:
        return found
    missing = beyond(name, values)
    if not missing:
        return dataclasses.replace(found, unfinished=share)
    total = len(shares(name, values))
    return dataclasses.replace(
        found,
        mean=math.nan if is_quantile(name) else found.mean,
        ci95=None,
        mostly=None,
        no_interval=_why_missing(name, missing, total),
        unfinished=share,
    )


def _why_missing(name: str, missing: int, total: int) -> str:
    if is_quantile(name):
        return f"the quantile is among what did not finish in {missing} of {total} replications"
    return f"nothing finished in {missing} of {total} replications"


def why_incomparable(name: str, values: Values) -> str | None:
    """Return why a time of a case may not be compared with that of another; None when it may be.

    Args:
        name: the metric's name.
        values: gives the metrics of the case.

    >>> found = {"web.unanswered": [0.1, 0.3], "web.response_time_mean": [1.0, 2.0]}
    >>> found["web.response_time_p50"] = [1.1, 2.1]
    >>> why_incomparable("web.response_time_mean", found.__getitem__)
    '20 % did not finish and are not in the mean; compare web.response_time_p50'
    """
    share = mean_share(name, values)
    if not share:
        return None
    missing = beyond(name, values)
    if missing:
        return _why_missing(name, missing, len(shares(name, values)))
    if is_quantile(name) or share <= BOUND:
        return None
    median = re.sub("_(mean|std)$", "_p50", name)
    known = names.base(median) in names.METRICS and not all(map(math.isnan, values(median)))
    hint = f"; compare {median}" if known else ""
    return f"{percent(share)} did not finish and are not in the mean{hint}"


EQUAL = " ="
"""Behind a mean that every replication has, which needs no interval."""


def cell(name: str, found: Estimate, scale: float) -> str:
    """Return an estimate as tables show it.

    With the share that it is of where that is not all, and a sign where all replications are equal.

    >>> cell("web.page_time_mean", Estimate(0.25, 0.01, 10, unfinished=0.4), 1.0)
    '0.250 ±0.010 of 60 %'
    >>> cell("web.page_time_p95", Estimate(math.nan, None, 3, "", unfinished=0.4), 1.0)
    'not finished'
    >>> cell("loss", Estimate(1.0, None, 10, "all 10 replications are equal", True), 100.0)
    '100 ='
    >>> cell("loss", Estimate(0.004, None, 10, "9 of 10 replications are equal"), 100.0)
    '0.4 ±?'
    """
    text = shown(found, scale)
    if found.constant and text.endswith(" ±?"):
        text = text.removesuffix(" ±?") + EQUAL
    if not found.unfinished:
        return text
    if math.isnan(found.mean):
        return "not finished"
    if is_quantile(name) or found.unfinished <= BOUND:
        return text
    return f"{text} of {percent(1.0 - found.unfinished)}"


def percent(share: float) -> str:
    """Return a share of what did not finish; what is nearly all is not shown as all.

    >>> percent(0.0312), percent(0.9996), percent(1.0)
    ('3.1 %', '99.96 %', '100 %')
    """
    text = f"{100 * share:.2g}"
    return f"{100 * share:.4g} %" if text == "1e+02" and share < 1 else f"{float(text):g} %"


def says_nothing(name: str, values: Sequence[float]) -> bool:
    """Return whether a share of what did not finish says nothing: everything did.

    Args:
        name: the metric's name.
        values: its means over replications, of all cases.

    >>> says_nothing("web.unanswered", [0.0, 0.0]), says_nothing("ftp.completed", [1.0, 0.9])
    (True, False)
    """
    complete = _COMPLETE.get(names.base(name))
    return complete is not None and all(math.isnan(each) or each == complete for each in values)


def is_beside(name: str) -> bool:
    """Return whether a time is shown by default only where some did not finish."""
    return names.base(name) in _BESIDE


def notes(found: Sequence[tuple[str, Estimate]], replications: int) -> list[str]:
    """Return what is to be known of times that are shown: a line for each metric.

    Args:
        found: each estimate that is shown, with the name of its metric.
        replications: the most that a case has.
    """
    lines = []
    for name in dict.fromkeys(name for name, _ in found):
        of_name = [each for other, each in found if other == name]
        most = max((each.unfinished or 0.0 for each in of_name), default=0.0)
        fewest = min(each.n for each in of_name)
        if most == 0:
            continue
        of = f", from {fewest} of {replications} replications" if fewest < replications else ""
        what = "count as later" if is_quantile(name) else "are not in it"
        lines.append(f"{name}: up to {percent(most)} did not finish and {what}{of}")
    return lines
