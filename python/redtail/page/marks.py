"""Events as marks on time series, each with its text; so many at most, the rest counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail.analysis.story import flow as stories
from redtail.analysis.story import overview, recorded, words
from redtail.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np


EACH = 40
"""So many marks has a curve at most."""

ALL = 4000
"""So many have all curves of an experiment, about 1 MB."""

# The kinds that a curve of a flow shows, the most telling first; of groups the first two.
_KINDS = (
    "timeout",
    "stall",
    "spurious",
    "undo",
    "slow_start_end",
    "idle_restart",
    "state",
    "recovery",
    "mark_answered",
)
_OF_GROUPS = _KINDS[:2]


class Marks:
    """The marks of the curves of one run.

    Args:
        folder: of the run.
        curves: how many curves all runs have, which share `ALL`.
    """

    def __init__(self, folder: Path, curves: int) -> None:
        self._each = max(1, min(EACH, ALL // max(1, curves)))
        self._lines: dict[str, list[stories.Line]] = {}
        self._log = recorded.log_of_run(folder)

    def of(
        self,
        table: str,
        name: str,
        flow: int | None,
        times: np.ndarray[Any, Any],
        values: np.ndarray[Any, Any],
    ) -> dict[str, Any]:
        """Return the marks of a curve.

        Args:
            table: "queues", "groups" or "flows".
            name: of the link or the group.
            flow: the number of the flow.
            times: of the curve, in s.
            values: of the curve.

        Returns:
            `marks`, each with `x`, `y` on the curve, `kind` and `text`, in the order of time; and
            `left_out`, how many there are besides. Empty for a run without events.
        """
        import numpy as np

        if self._log is None or not len(times):
            return {}
        shown = sorted(self._told(table, name, flow))
        kept = sorted(shown[: self._each], key=lambda each: each[1])
        known = np.isfinite(values)
        marks = []
        for _, time, kind, text in kept:
            y = float(np.interp(time, times[known], values[known])) if known.any() else 0.0
            marks.append({"x": round(time, 4), "y": float(f"{y:.4g}"), "kind": kind, "text": text})
        return {"marks": marks, "left_out": len(shown) - len(kept)} if shown else {}

    def _told(
        self, table: str, name: str, flow: int | None
    ) -> Iterator[tuple[float, float, str, str]]:
        """Yield the rank, time, kind and text of what a curve could show."""
        assert self._log is not None
        if table == "queues":
            for part in overview.bursts(self._log, name):
                entry = overview.burst(self._log, part)
                yield -len(part), entry.from_s, "losses", escape.name(entry.text)
            return
        kinds = _OF_GROUPS if table == "groups" else _KINDS
        for line in self._of_group(name):
            if line.kind in kinds and not line.quiet and flow in (None, line.flow.number):
                text = line.text if flow is not None else f"{words.flow(line.flow)}: {line.text}"
                yield kinds.index(line.kind), line.time_s, line.kind, _shown(line.time_s, text)

    def _of_group(self, group: str) -> list[stories.Line]:
        assert self._log is not None
        if group not in self._lines:
            self._lines[group] = [
                line
                for flow in self._log.flows
                if flow.group == group
                for line in stories.lines(self._log, flow)
            ]
        return self._lines[group]


def _shown(time_s: float, text: str) -> str:
    return escape.name(f"{words.at(time_s)}: {text}")


def of_runs(folders: dict[int, Path], curves: int) -> dict[int, Marks]:
    """Return the marks of runs by their case; a run whose events are damaged has none."""
    found = {}
    for case, folder in folders.items():
        try:
            found[case] = Marks(folder, curves)
        except StoreError:
            continue
    return found
