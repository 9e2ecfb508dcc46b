"""Flows that had data to send and made no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redtail import metrics as names

if TYPE_CHECKING:
    from redtail.analysis.results import Results

# Groups that a warning names.
_GROUPS_SHOWN = 3


def warnings(results: Results) -> list[str]:
    """Return a warning about groups with flows that made no progress, or nothing."""
    stalled = [
        (name, case)
        for name in results.metric_names
        if names.base(name) == "stalls" and names.phase(name) is None
        for case in results.cases
        if any(value > 0 for value in case.values(name))
    ]
    if not stalled:
        return []
    groups = dict.fromkeys(names.prefix(name) for name, _ in stalled)
    of = {id(case): case for _, case in stalled}
    runs = sum(
        any(value > 0 for value in values)
        for case in of.values()
        for values in zip(*(case.values(f"{group}.stalls") for group in groups), strict=True)
    )
    wait = max(max(case.values(f"{names.prefix(name)}.ack_wait_max")) for name, case in stalled)
    name, worst = max(stalled, key=lambda each: each[1].metric(each[0]).mean)
    group = names.prefix(name)
    shown = [repr(each) for each in groups]
    more = len(groups) - _GROUPS_SHOWN
    if more > 0:
        shown[_GROUPS_SHOWN:] = [names.counted(more, "other group")]
    *first, last = shown
    named = f"{', '.join(first)} and {last}" if first else last
    where = [f"of {group!r}"] * (len(groups) > 1) + [f"in '{worst.title}'"] * bool(worst.title)
    most = f"most {' '.join(where)}: " if where else ""
    cases = names.counted(len(results.cases), "case")
    return [
        f"flows of {named} that had sent data made no cumulative progress "
        f"for more than 10 s, and for up to {wait:.0f} s, in {runs} of "
        f"{names.counted(results.run_count, 'run')} ({len(of)} of {cases}), "
        f"{most}{worst.metric(name).mean:.3g} times in a run; {name} and "
        f"{group}.ack_wait_max have it case by case"
    ]
