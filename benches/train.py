"""The runs by which a build with a profile is optimised: what users run, as they run it.

The compiler takes code that these runs do not reach as cold. So they have each queue discipline,
each TCP preset and each kind of traffic, as `make attack` begins with them, and the guarded rows of
`make bench`. ``make profile`` and ``make wheel`` run it with the module that writes profiles. It
makes the same runs every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import ROWS
from instructions import GUARDED, shortened

from attack.inputs import QUEUE, QUEUES, TRAFFIC, experiment, queue_keys
from redtail import facts
from redtail.engine import batches, plans

_SCENARIOS = Path(__file__).resolve().parent / "scenarios"


def experiments() -> Iterator[str]:
    """The texts of all experiments."""
    for row in GUARDED:
        yield shortened((_SCENARIOS / ROWS[row][1]).read_text())
    for kind in QUEUES:
        groups = [("always", "bulk", "flows = 16"), ("step", "cbr", TRAFFIC["cbr"])]
        yield experiment(queue_keys(kind), groups, "20 s")
    for preset in facts.presets():
        yield experiment(QUEUE, [("always", "bulk", f'flows = 16\ntcp = "{preset}"')], "20 s")
    for kind, keys in TRAFFIC.items():
        yield experiment(QUEUE, [("always", kind, keys)], "20 s")


def main() -> int:
    """Make all runs."""
    for text in experiments():
        batches.run_one(plans.plan(text).scenario(0, 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
