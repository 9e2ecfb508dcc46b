"""Agreement with Linux 6.1 in the scenarios of ``reference/linux-more.json``.

They were measured after the preset ``linux`` had been developed on ``reference/linux.json``, and
are held to the same tolerances. What has none there is treated as its elapsed times are: a group's
goodput beside another group and the completion times of short transfers must be within 15 % or
inside the spread over seeds. Seeds are fixed, so a pass is a pass.
"""

from __future__ import annotations

import json
import statistics
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from test_linux_reference import (
    ELAPSED,
    REFERENCE,
    SEEDS,
    Metrics,
    assert_agrees,
    group,
    inside_spread,
    link,
    red,
    tcp,
)

from redtail.engine import batches, plans

SCENARIOS: dict[str, Any] = json.loads((REFERENCE / "linux-more.json").read_text())
SCHEMA = (REFERENCE.parents[1] / "schema" / "experiment.schema.json").read_text()

#: The kernel's congestion controls: our TCP as a TOML table.
TCPS = {
    "cubic": '{ preset = "linux" }',
    "reno": tcp(),
    "vegas": '{ preset = "linux", growth = "vegas", slow_start = "vegas" }',
    "bbr": '{ preset = "bbr" }',
    "dctcp": '{ preset = "dctcp", ecn = true }',
    "cubic, ecn": '{ preset = "linux", ecn = true }',
    "reno, ecn": tcp(ecn=True, ecn_fallback=True),
}
#: Those that have no place above are presets.
OTHERS = ("westwood", "bic", "htcp", "hybla", "illinois", "highspeed", "scalable", "veno", "yeah")


def bulk(law: str, flows: int, back_ms: str, *, start: str = "0..4", name: str = "") -> str:
    """A group of endless flows, named after its congestion control unless it has a name."""
    return group(
        name or law,
        {
            "kind": '"bulk"',
            "flows": str(flows),
            "tcp": TCPS.get(law, f'{{ preset = "{law}" }}'),
            "start": f'"uniform {start} s"',
            "return_delay": f"[{back_ms}]",
        },
    )


def short(size: str, starts: list[str], back_ms: str) -> str:
    """Short transfers of CUBIC, one after the other."""
    return group(
        "short",
        {
            "kind": '"transfer"',
            "flows": str(len(starts)),
            "tcp": TCPS["cubic"],
            "size": f'"{size}"',
            "start": json.dumps(starts),
            "return_delay": f"[{back_ms}]",
        },
    )


def ten(queue: str, *, flows: int = 10) -> str:
    """Flows of CUBIC at 10 Mbit/s, 25 ms each way."""
    return link("10 Mbit/s", 25, queue, duration_s=90, warmup_s=30) + bulk(
        "cubic", flows, '"25 ms"', name="bulk"
    )


def thirty_two(queue: str, law: str = "cubic") -> str:
    """32 flows at 10 Mbit/s, 10 ms each way."""
    return link("10 Mbit/s", 10, queue, duration_s=90, warmup_s=30) + bulk(
        law, 32, '"10 ms"', name="bulk"
    )


def sixty_four(queue: str) -> str:
    """64 flows of Reno with ECN at 10 Mbit/s, 50 ms to the receiver and four return delays."""
    return link("10 Mbit/s", 50, queue, duration_s=90, warmup_s=30) + bulk(
        "reno, ecn", 64, '"70 ms", "90 ms", "110 ms", "130 ms"', name="bulk"
    )


def tail_drop(packets: int) -> str:
    """The kernel's pfifo."""
    return f'{{ kind = "tail-drop", limit = "{packets} packets" }}'


def laws(
    *groups: tuple[str, int], limit: int = 100, duration_s: int = 80, warmup_s: int = 20
) -> str:
    """Groups of flows behind tail drop at 10 Mbit/s, 20 ms each way."""
    text = link("10 Mbit/s", 20, tail_drop(limit), duration_s=duration_s, warmup_s=warmup_s)
    return text + "".join(bulk(law, flows, '"20 ms"') for law, flows in groups)


# Of fq_codel, fq_pie, sfq and fq the kernel's quantum is Ethernet's 1514 B for frames of 1514 B:
# a full packet is one turn. The same here is 1500 B.
QUANTUM = 'quantum = "1500 B"'
FQ_CODEL = f'{{ kind = "fq-codel", {QUANTUM}, inverse_sqrt = "newton" }}'

EXPERIMENTS = {
    "fq_codel_32": thirty_two(FQ_CODEL),
    "cake_32": thirty_two('{ kind = "cake", diffserv = "besteffort", isolation = "flows" }'),
    "fq_codel_32_ecn": thirty_two(FQ_CODEL, "cubic, ecn"),
    "bbr_1_pfifo100": link("10 Mbit/s", 20, tail_drop(100), duration_s=90, warmup_s=30)
    + bulk("bbr", 1, '"20 ms"', start="0..1"),
    "bbr_2_cubic_2_pfifo300": laws(
        ("bbr", 2), ("cubic", 2), limit=300, duration_s=120, warmup_s=30
    ),
    "bbr_4_pfifo50": laws(("bbr", 4), limit=50, duration_s=90, warmup_s=30),
    "fq_codel_10_short": link("10 Mbit/s", 25, FQ_CODEL, duration_s=65, warmup_s=10)
    + bulk("cubic", 10, '"25 ms"', name="bulk")
    + short("20 kB", [f"{10 + k / 2} s" for k in range(100)], '"25 ms"'),
    "sfq_120_limit127": ten(f'{{ kind = "sfq", limit = "127 packets", {QUANTUM} }}', flows=120),
    "sfq_10": ten(f'{{ kind = "sfq", {QUANTUM} }}'),
    "transfers_pfifo50": link("2 Mbit/s", 20, tail_drop(50), duration_s=150, warmup_s=10)
    + bulk("cubic", 2, '"20 ms"', name="bulk")
    + short("100 kB", [f"uniform {10 + 3 * k}..{11 + 3 * k} s" for k in range(40)], '"20 ms"'),
    "cubic_4_20mbit": link("20 Mbit/s", 40, tail_drop(100), duration_s=90, warmup_s=30)
    + bulk("cubic", 4, '"40 ms"', name="bulk"),
    "pie_20": ten(
        '{ kind = "pie", limit = "1000 packets", flavour = "linux", update = "16 ms" }', flows=20
    ),
    "red_64_ecn": sixty_four(red(450000, 45000, 270000, 1 / 128, True, max_p=0.3)),
    "red_64_ecn_overload": sixty_four(red(300000, 30000, 120000, 1 / 128, True, max_p=0.05)),
    "red_2_half": link(
        "5 Mbit/s",
        20,
        red(90000, 15000, 45000, 1 / 512, False, max_p=0.5),
        duration_s=150,
        warmup_s=30,
    )
    + bulk("reno", 2, '"20 ms"', name="bulk"),
    "dctcp_4_step": link(
        "20 Mbit/s",
        5,
        red(600000, 30000, 30001, 1 / 2, True, max_p=1.0),
        duration_s=60,
        warmup_s=20,
    )
    + bulk("dctcp", 4, '"5 ms"', name="bulk"),
    "full_queue_short": link("5 Mbit/s", 20, tail_drop(1000), duration_s=110, warmup_s=20)
    + bulk("cubic", 4, '"20 ms"', start="0..1", name="bulk")
    + short("50 kB", [f"uniform {30 + 5 * k}..{31 + 5 * k} s" for k in range(12)], '"20 ms"'),
    "fq_10": ten('{ kind = "fq" }'),
    "pfifo_fast_10": ten('{ kind = "pfifo-fast", limit = "100 packets" }'),
    "fq_pie_10": ten(f'{{ kind = "fq-pie", {QUANTUM}, update = "16 ms" }}'),
    "cubic_2": laws(("cubic", 2)),
    "reno_2": laws(("reno", 2)),
}
EXPERIMENTS |= {f"{law}_2": laws((law, 2)) for law in (*OTHERS, "vegas")}
EXPERIMENTS |= {f"{law}_2_cubic_2": laws((law, 2), ("cubic", 2)) for law in (*OTHERS, "vegas")}


def needs(name: str) -> str:
    """What a scenario needs that redtail may not have: a preset or a kind of queue."""
    kinds = {"fq_10": "fq", "pfifo_fast_10": "pfifo-fast"}
    law = name.split("_")[0]
    return kinds.get(name, law if law in OTHERS else "linux")


@cache
def run(name: str) -> tuple[Metrics, ...]:
    """The metrics of every seed, with the median of what the transfers took."""
    plan = plans.plan(EXPERIMENTS[name])

    def one(seed: int) -> Metrics:
        outcome = batches.run_one(plan.scenario(0, seed))
        if "short.completion_time_mean" not in outcome.metrics:
            return outcome.metrics
        _, packed = outcome.series["transfers"]["completion_time_s"]
        times = [x for (x,) in struct.iter_unpack("<d", packed) if x == x]
        return outcome.metrics | {"short.completion_time_median": statistics.median(times)}

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(one, range(SEEDS)))


def spread_metrics(name: str) -> list[str]:
    """The metrics that are compared as elapsed times are."""
    metrics = SCENARIOS[name]["metrics"]
    times = ("short.completion_time_mean", "short.completion_time_median")
    return [metric for metric in metrics if metric.endswith(".goodput") or metric in times]


def test_every_scenario_is_compared() -> None:
    assert set(SCENARIOS) == set(EXPERIMENTS)


#: Scenarios in which a figure is outside its tolerance, and what is known of it: redtail beside
#: the kernel with the half-width of its interval. docs/limitations.md tells of them.
OUTSIDE = {
    "cake_32": "the link idles 5 % of the time and the kernel's 1 %; loss and queue agree",
    "pfifo_fast_10": "the kernel's ring frees places in batches: 100 packets hold 79 on average",
    # 40 seeds: 4.3 +-0.3 % with the default random times of hosts, 4.2 +-0.2 % without.
    "red_64_ecn": "loss 4.1 and 3.5 +-1.3 %: which flows lose a SYN and so ECN decides",
    # 0.34 packets without random times, 0.50 with those of a packet's time.
    "fq_codel_32_ecn": "standard deviation of the queue 0.24 and 0.45 +-0.44 packets",
    "bbr_4_pfifo50": "loss 11.1 and 8.6 +-1.1 %: cause not found",
    "vegas_2": "a second flow takes the first one's queue for the path: 16 to 41 packets, 9 here",
    "hybla_2": "loss 0.52 and 0.29 +-0.54 %: seeds of both are near 0.1 or 0.55 %",
    "hybla_2_cubic_2": "loss 1.9 and 1.3 +-0.4 %: seeds of the kernel differ much",
}


def case(name: str) -> Any:
    """The parameter of a scenario; one that begins to agree must leave the table."""
    outside = pytest.mark.xfail(strict=True, reason=OUTSIDE.get(name, ""))
    return pytest.param(name, marks=[outside] if name in OUTSIDE else [])


@pytest.mark.parametrize("name", [case(name) for name in SCENARIOS])
def test_further_scenarios_agree_with_linux(name: str) -> None:
    if f'"const": "{needs(name)}"' not in SCHEMA:
        pytest.skip(f"redtail has no {needs(name)} yet")
    seeds = run(name)
    assert_agrees(name, seeds, SCENARIOS)
    for metric in spread_metrics(name):
        ours = [metrics[metric] for metrics in seeds]
        reference = SCENARIOS[name]["metrics"][metric]
        assert inside_spread(ours, reference, ELAPSED), f"{metric}: {sorted(ours)}, {reference}"
