"""Rates are fractions: between 0 and 1 for every queue, in every phase."""

from __future__ import annotations

import math

import pytest

from redtail import facts
from redtail.engine import batches, plans
from redtail.metrics import base

QUEUES = {kind: keys for kind, keys in facts.queue_examples().items() if kind != "plugin"}
FRACTIONS = {"loss", "mark", "udp_loss", "utilization", "wire_loss", "end_to_end_loss"}

# A queue that grows for 2 s under thrice the load, and is emptied as the load ends: what waited is
# dropped or marked in phases in which little or nothing arrives.
FILE = """
name = "ranges"
duration = "6 s"
warmup = "1 s"
phases = [{phases}]
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
wire.loss = 0.01
[bottleneck.queue]
kind = "{kind}"
{queue}
[[traffic]]
name = "always"
kind = "bulk"
flows = 10
tcp = {{ preset = "linux", ecn = {ecn} }}
[[traffic]]
name = "step"
kind = "cbr"
flows = 3
rate = "10 Mbit/s"
packet = "1500 B"
access_rate = "100 Mbit/s"
stop = "2 s"
"""


@pytest.mark.parametrize("ecn", ["false", "true"])
@pytest.mark.parametrize("kind", QUEUES)
def test_rates_are_fractions(kind: str, ecn: str) -> None:
    phases = ", ".join(f'"{1 + 0.1 * number:.1f} s"' for number in range(1, 40))
    queue = QUEUES[kind]
    text = FILE.format(phases=phases, kind=kind, queue=queue, ecn=ecn)
    plan = plans.plan(text)
    for replication in range(3):
        found = batches.run_one(plan.scenario(0, replication)).metrics
        seen = {name: value for name, value in found.items() if base(name) in FRACTIONS}
        assert len(seen) > 100
        wrong = {name: value for name, value in seen.items() if not 0 <= value <= 1 + 1e-12}
        assert not wrong
        assert not any(map(math.isnan, seen.values()))
