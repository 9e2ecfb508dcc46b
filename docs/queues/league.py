"""Fills the league table of queues in league.md.

    .venv/bin/python docs/queues/league.py

Each kind, with the parameters of its page, has the same traffic on the same link: 20 bulk flows and
four calls over 10 Mbit/s with a round-trip time of about 100 ms. Senders are the preset "sack"
without ECN; queues that only mark have senders for it, and queues of classes have the calls in
another class than the bulk flows.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import redtail

sys.path.insert(0, str(Path(__file__).parent))

from load_step import QUEUES

PAGE = Path(__file__).parent / "league.md"
_MARK = re.compile(r"<!-- league -->\n.*?<!-- end -->", re.S)

#: TCP of the bulk flows, where the queue is made for another than the plain one.
TCP = {"dualpi2": "prague", "step": "dctcp"}

#: The class of the calls, where the queue goes by it.
DSCP = {"wred": "AF11", "pfifo-fast": "AF42", "dualpi2": "EF"}

#: Queues whose example puts the group `always` first: the calls take its place.
CALLS_FIRST = ("prio",)

#: The columns: metric, title, factor to the unit of the title, and digits after the point.
COLUMNS = (
    ("calls.mos", "calls, MOS", 1.0, 2),
    ("calls.loss", "calls lost %", 100.0, 2),
    ("utilization", "utilization %", 100.0, 1),
    ("queue_delay_mean", "delay ms", 1000.0, 1),
    ("queue_delay_p95", "delay p95 ms", 1000.0, 1),
    ("loss", "loss %", 100.0, 2),
    ("mark", "marked %", 100.0, 2),
    ("bulk.fairness", "fairness", 1.0, 2),
)

#: In the page; the tests make shorter runs too.
REPLICATIONS = 10
DURATION = "80 s"


def experiment(kind: str, duration: str = DURATION) -> str:
    """Return the experiment's TOML text."""
    dscp = f'dscp = "{DSCP[kind]}"\n' if kind in DSCP else ""
    path = 'access_delay = ["1 ms", "4 ms", "7 ms", "10 ms", "13 ms"]\nreturn_delay = "50 ms"\n'
    # The examples of queues of classes name the groups `always` and `step`.
    always, step = ("calls", "bulk") if kind in CALLS_FIRST else ("bulk", "calls")
    keys = QUEUES[kind].replace('"always"', f'"{always}"').replace('"step"', f'"{step}"')
    return f"""name = "League {kind}"
duration = "{duration}"
warmup = "20 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "43 ms"
[bottleneck.queue]
kind = "{kind}"
{keys}
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 20
start = "uniform 0..5 s"
tcp = "{TCP.get(kind, "sack")}"
{path}
[[traffic]]
name = "calls"
kind = "voip"
flows = 4
{dscp}{path}"""


def run(kind: str, duration: str = DURATION, replications: int = REPLICATIONS) -> redtail.Results:
    """Run the experiment of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        text = redtail.Toml(experiment(kind, duration), f"league of {kind}")
        return redtail.run(text, replications=replications, out=folder)


def row(kind: str, results: redtail.Results) -> str:
    """Return the line of a kind in the table."""
    (case,) = results.cases
    cells = []
    for name, _, factor, digits in COLUMNS:
        found = case.metric(name)
        spread = "?" if found.ci95 is None else f"{factor * found.ci95:.{digits}f}"
        cells.append(f"{factor * found.mean:.{digits}f} ±{spread}")
    return f"| [{kind}]({kind}.md) | {' | '.join(cells)} |"


def main() -> None:
    """Run all kinds, the one with the best calls first, and fill the page."""
    rows = []
    for kind in QUEUES:
        results = run(kind)
        metric = results.cases[0].metric
        rank = (-round(metric("calls.mos").mean, 2), metric("queue_delay_p95").mean)
        rows.append((rank, row(kind, results)))
        print(rows[-1][1], flush=True)
    heads = ["queue", *(title for _, title, *_ in COLUMNS)]
    table = "\n".join(
        [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(line for _, line in sorted(rows))]
    )
    page = _MARK.sub(lambda _: f"<!-- league -->\n\n{table}\n\n<!-- end -->", PAGE.read_text())
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
