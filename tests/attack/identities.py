"""Runs whose figures must agree with each other, for every queue, preset and kind of traffic."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping

from attack.inputs import QUEUE, QUEUES, TRAFFIC, experiment, queue_keys
from redtail import facts
from redtail.engine import batches, plans
from redtail.metrics import base

FRACTIONS = {
    *("loss", "mark", "udp_loss", "utilization", "wire_loss", "end_to_end_loss", "late"),
    "loss_synchronization",
}
"""Metrics that are shares of something."""

ON_ARRIVAL = {"tail-drop", "red", "blue", "rem", "pi", "pie", "pi2", "sred", "gsp", "avq", "step"}
"""Queues that drop no packet that has waited."""

# Sums are made in another order than by the engine.
_NEAR = 1e-9


def scenario(seed: int, number: int) -> tuple[str, str]:
    """Return the kind of the queue, which comes in turn, and the experiment."""
    draw = random.Random(f"identities {seed} {number}")
    kinds = sorted(QUEUES)
    queue = kinds[number % len(kinds)]
    kind = draw.choice(sorted(TRAFFIC))
    preset = draw.choice(sorted(facts.presets()))
    # Queues of classes have one for each of these names.
    groups = [
        ("always", "bulk", f'{TRAFFIC["bulk"]}\ntcp = {{ preset = "{preset}" }}'),
        ("step", kind, TRAFFIC[kind]),
    ]
    # Long enough for all that was sent by 2 s, or asked for by then, to be delivered.
    text = experiment(queue_keys(queue) or QUEUE, groups, "20 s")
    return queue, f"seed = {draw.randrange(2**32)}\n{text}"


def wrong(queue: str, text: str) -> list[str]:
    """Run an experiment; return the identities that do not hold."""
    plan = plans.plan(text)
    outcome = batches.run_one(plan.scenario(0, 0))
    found = outcome.metrics
    return [
        *_ranges(found),
        *_sums(found),
        *_little(queue, found, outcome.bottleneck_packets, 20.0),
    ]


def _ranges(found: Mapping[str, float]) -> Iterator[str]:
    for name, value in found.items():
        if not math.isfinite(value):
            yield f"{name} = {value}"
        elif base(name) in FRACTIONS and not 0 <= value <= 1 + _NEAR:
            yield f"{name} = {value} is no fraction"
        elif base(name) == "fairness" and not 0 < value <= 1 + _NEAR:
            yield f"{name} = {value} is no index"
        elif value < 0 and not name.startswith("queue.") and base(name) not in ("r_factor",):
            yield f"{name} = {value} is negative"
    quantiles = [found.get(f"queue_delay_p{share}", 0.0) for share in (50, 95, 99)]
    if quantiles != sorted(quantiles):
        yield f"quantiles of the delay fall: {quantiles}"


def _sums(found: Mapping[str, float]) -> Iterator[str]:
    for name in ("queue_length_mean", "utilization"):
        total = sum(found.get(f"{group}.{name}", 0.0) for group in ("always", "step"))
        if abs(total - found[name]) > _NEAR * max(1.0, found[name]):
            yield f"{name} = {found[name]}, and its groups make {total}"
    received = sum(found.get(f"{group}.received_rate", 0.0) for group in ("always", "step"))
    if received > found["utilization"] * 5e6 * (1 + _NEAR):
        yield f"{received} bit/s received, of {found['utilization'] * 5e6} transmitted"
    yield from of_groups(found, ("always", "step"))


def of_groups(found: Mapping[str, float], groups: Iterable[str]) -> Iterator[str]:
    """What groups got or sent more of than they can have."""
    for group in groups:
        goodput = found.get(f"{group}.goodput", 0.0)
        if goodput > found.get(f"{group}.received_rate", math.inf) * (1 + _NEAR):
            yield f"{group}.goodput = {goodput} is more than what it received"
        segments = found.get(f"{group}.data_segments", math.inf)
        if found.get(f"{group}.retransmissions", 0.0) > segments:
            yield f"{group}: more retransmissions than segments"


def _little(queue: str, found: Mapping[str, float], sent: int, seconds: float) -> Iterator[str]:
    """Little's law: the mean length times the time is what all packets have waited.

    Everything is transmitted before the end, so nothing waits then. What was dropped after it
    had waited has waited too, and has no delay.
    """
    waited = found["queue_length_mean"] * seconds
    delays = found.get("queue_delay_mean", 0.0) * sent
    near = _NEAR * max(1.0, delays)
    if waited < delays - near:
        yield f"packets waited {waited} s by the length, {delays} s by their delays"
    if (queue in ON_ARRIVAL or found.get("loss", 0.0) == 0) and waited > delays + near:
        yield f"packets waited {waited} s by the length, only {delays} s by their delays"
