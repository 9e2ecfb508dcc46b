"""How an advice ranks queues: margins, verdicts, the order of aims and of preference."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import stdev

import pytest

import redtail
from redtail.analysis.stats import p_zero_mean
from redtail.lines.advice.candidates import MERITS, QUEUES, candidate, variants
from redtail.lines.advice.objectives import IDLE, OBJECTIVES, THROUGHPUT, Margin, in_turn
from redtail.lines.advice.ranking import Entrant, choose, compared, in_order
from redtail.lines.advice.report import parts_of
from redtail.lines.advice.simulated import AS_IT_IS
from redtail.lines.line import Line

CALLS, GAMES, PAGES = (OBJECTIVES[name] for name in ("calls", "games", "pages"))
FAIRNESS = OBJECTIVES["fairness"]
HOME = Line(50e6, 10e6, 0.03, "docsis", ("calls", "web", "backup"), 4)


def spread(mean: float, half: float = 0.001, n: int = 10) -> list[float]:
    """Values with this mean, evenly around it."""
    return [mean + half * (2 * i / (n - 1) - 1) for i in range(n)]


def entrant(label: str, preference: int, **means: float | Sequence[float]) -> Entrant:
    values = {
        name: spread(each) if isinstance(each, float) else each for name, each in means.items()
    }
    return Entrant(label, values, (float(preference),), ("it is preferred",))


# A difference of two queues.


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (spread(0.0016, 0.001), "equal"),  # told apart from 0, and nobody notices
        (spread(0.030, 0.005), "worse"),
        (spread(-0.030, 0.005), "better"),
        (spread(0.021, 0.005), "undecided"),  # the interval has the margin in it
        (spread(0.019, 0.005), "undecided"),
        (spread(0.0, 0.2), "undecided"),
        ([0.0] * 10, "equal"),
        ([0.019] * 3, "equal"),  # without a spread it is taken as it is
        ([0.021] * 3, "worse"),
        ([-0.021] * 3, "better"),
        ([0.03] * 6 + [0.04] * 4, "worse"),  # the sign test
        ([0.03] * 3 + [0.04], "undecided"),  # too few for a sign test
        ([0.03], "undecided"),  # one observation
        ([math.nan] * 10, "no value"),
    ],
)
def test_a_difference_counts_if_its_interval_lies_beyond_the_margin(
    difference: list[float], verdict: str
) -> None:
    other = [0.02 + 0.001 * i for i in range(len(difference))]
    values = [a + b for a, b in zip(difference, other, strict=True)]
    found = compared(CALLS, values, other)
    assert found.verdict == verdict
    assert found.margin == 0.020
    mirrored = {"worse": "better", "better": "worse"}.get(verdict, verdict)
    assert compared(CALLS, other, values).verdict == mirrored


def test_what_is_undecided_says_how_many_replications_would_decide() -> None:
    found = compared(CALLS, spread(0.0215, 0.005), [0.0] * 10)
    assert found.verdict == "undecided" and found.needed is not None
    deviation = stdev(spread(0.0215, 0.005))
    # So many with this mean and deviation are enough, and one fewer is not.
    for n, verdict in ((found.needed, "worse"), (found.needed - 1, "undecided")):
        half = deviation / stdev(spread(0.0, 1.0, n))
        assert compared(CALLS, spread(0.0215, half, n), [0.0] * n).verdict == verdict
    inside = compared(CALLS, spread(0.0188, 0.005), [0.0] * 10)
    assert inside.verdict == "undecided" and inside.needed is not None
    at_margin = compared(CALLS, spread(0.02, 0.005), [0.0] * 10)
    assert at_margin.verdict == "undecided" and at_margin.needed is None


def test_with_more_comparisons_the_same_difference_is_less_certain() -> None:
    values = spread(0.0228, 0.0055)
    assert compared(CALLS, values, [0.0] * 10).verdict == "worse"
    assert compared(CALLS, values, [0.0] * 10, together=9).verdict == "undecided"


def test_the_margin_of_pages_grows_with_the_shorter_time() -> None:
    assert compared(PAGES, [0.39], [0.3]).margin == pytest.approx(0.1)
    assert compared(PAGES, [4.0], [3.0]).margin == pytest.approx(0.6)
    assert compared(PAGES, [3.0], [4.0]).margin == pytest.approx(0.6)
    assert Margin(0.1, 0.2, "", "").of(math.nan) == 0.1


def test_a_queue_that_is_at_the_margin_is_seldom_said_to_be_beyond_it() -> None:
    """False alarms among nine queues, eight of them equal and one worse by just the margin.

    The first is the smallest of eight means, so it is smaller than the truth. Bonferroni's
    correction allows 5 %; of 400 sets 5 % are 20, and 35 or more are seen once in 1,000 (binomial).
    """
    random = Random(44)
    alarms = 0
    for _ in range(400):
        equal = [[random.gauss(0.03, 0.005) for _ in range(10)] for _ in range(8)]
        at_margin = [random.gauss(0.05, 0.005) for _ in range(10)]
        names = [f"q{i}" for i in range(9)]
        rows = [
            Entrant(name, {"calls": values}, (float(i),))
            for i, (name, values) in enumerate(zip(names, [*equal, at_margin], strict=True))
        ]
        alarms += bool(choose(rows, [CALLS], together=9).steps)
    assert alarms < 35


# The choice among queues.


def test_a_difference_below_the_margin_does_not_decide_and_a_later_aim_does() -> None:
    """The case of the issue: 1.6 ms for calls against half the time of pages."""
    fq = entrant("FQ-CoDel", 1, calls=0.0238, pages=1.8)
    cake = entrant("CAKE", 0, calls=0.0254, pages=0.9)
    assert (
        p_zero_mean([a - b for a, b in zip(cake.values["calls"], fq.values["calls"], strict=True)])
        or 1.0
    ) <= 0.05
    for preferred in (0, 2):  # whichever is preferred
        cake = entrant("CAKE", preferred, calls=0.0254, pages=0.9)
        found = choose([fq, cake], [CALLS, PAGES], 2)
        assert found.label == "CAKE"
        (step,) = found.steps
        assert (step.aim.name, step.best, step.left) == ("pages", "CAKE", ("FQ-CoDel",))
        assert found.merit is None and found.remaining == ("CAKE",)


def test_the_first_aim_decides_before_the_second() -> None:
    slow_calls = entrant("a", 0, calls=0.08, pages=1.0)
    slow_pages = entrant("b", 1, calls=0.03, pages=2.0)
    assert choose([slow_calls, slow_pages], [CALLS, PAGES], 2).label == "b"
    assert choose([slow_calls, slow_pages], [PAGES, CALLS], 2).label == "a"


def test_what_no_aim_tells_apart_is_in_the_order_of_preference() -> None:
    """The case of quick mode: 0.3 ms for FQ-PIE."""
    rows = [
        entrant("FQ-PIE", 2, calls=0.0167),
        entrant("CAKE", 0, calls=0.0170),
        entrant("FQ-CoDel", 1, calls=0.0169),
    ]
    found = choose(rows, [CALLS], 3)
    assert found.label == "CAKE"
    assert found.remaining == ("CAKE", "FQ-CoDel", "FQ-PIE")
    assert found.merit == "it is preferred" and found.steps == ()


def test_an_undecided_difference_does_not_decide() -> None:
    rows = [
        entrant("a", 1, calls=spread(0.03, 0.05, 3)),
        entrant("b", 0, calls=spread(0.06, 0.02, 3)),
    ]
    assert choose(rows, [CALLS], 2).label == "b"
    sure = [entrant("a", 1, calls=spread(0.03, 0.002)), entrant("b", 0, calls=spread(0.06, 0.002))]
    assert choose(sure, [CALLS], 2).label == "a"


def test_a_queue_that_keeps_the_line_idle_leaves_first() -> None:
    idle = entrant("idle", 0, idle=0.4, calls=0.02, throughput=0.4)
    busy = entrant("busy", 1, idle=0.06, calls=0.05, throughput=0.06)
    aims = in_turn(CALLS, ("calls",), 1)
    assert aims == (IDLE, CALLS, THROUGHPUT)
    assert choose([idle, busy], aims, 2).label == "busy"
    assert choose([idle, busy], aims[1:], 2).label == "idle"


def test_an_aim_without_values_decides_nothing() -> None:
    nothing = [math.nan] * 10
    rows = [entrant("a", 1, calls=nothing, pages=1.0), entrant("b", 0, calls=nothing, pages=2.0)]
    assert choose(rows, [CALLS, PAGES], 2).label == "a"
    half = [entrant("a", 1, calls=nothing), entrant("b", 0, calls=0.03)]
    assert choose(half, [CALLS], 2).label == "b"


def test_all_places_are_filled_by_the_same_rule_whatever_the_order_is_given() -> None:
    rows = [
        entrant("slow", 0, calls=0.2),
        entrant("fast", 1, calls=0.02),
        entrant("equal", 2, calls=0.021),
        entrant("between", 3, calls=0.08),
    ]
    order, first = in_order(rows, [CALLS], 4)
    assert order == ["fast", "equal", "between", "slow"]
    assert in_order(rows[::-1], [CALLS], 4) == (order, first)
    assert first.steps[0].left == ("slow", "between")


def test_objectives_of_a_line_begin_with_the_chosen_one() -> None:
    uses = ("calls", "web", "games")
    names = [each.name for each in in_turn(PAGES, uses, 3)]
    assert names == ["idle", "pages", "calls", "games", "fairness", "throughput"]
    assert FAIRNESS not in in_turn(PAGES, uses, 1)
    assert in_turn(THROUGHPUT, ("calls",), 1) == (THROUGHPUT, CALLS)
    with pytest.raises(redtail.SpecError, match='objective = "fairness" is none'):
        redtail.advise(
            "5 Mbit/s", "1 Mbit/s", "20 ms", access="docsis", use="calls", objective="fairness"
        )


def test_every_margin_has_a_source() -> None:
    for aim in OBJECTIVES.values():
        assert aim.margin.source.endswith(".") and aim.margin.text and len(aim.words) == 2


def test_the_order_of_preference_is_fair_before_simple() -> None:
    flows = {"down": 4, "up": 4}
    found = {kind: candidate(kind, HOME, flows, port=False) for kind in QUEUES}  # type: ignore[arg-type]

    def order(people: int) -> list[str]:
        return sorted(found, key=lambda kind: found[kind].preference(people))

    assert order(4)[:2] == ["cake", "fq-codel"]
    assert {*order(4)[-2:]} == {"wred", "prio"}  # what needs marks
    assert order(4).index("tail-drop") > order(4).index("red")
    for each in found.values():
        assert len(each.preference(4)) == len(MERITS)


def test_cake_is_tried_with_its_ack_filter_and_without_where_acknowledgements_are_many() -> None:
    flows = {"down": 4, "up": 4}
    # 1500 B of download for every two acknowledgements of 40 B: 1/75 of the download.
    asymmetric = Line(150e6, 10e6, 0.03, "docsis", ("calls",), 1)
    cake = candidate("cake", asymmetric, flows, port=False)  # type: ignore[arg-type]
    without, filtered = variants(cake, asymmetric)
    assert without == cake and "ack_filter" not in cake.up.shaped.queue
    assert filtered.up.shaped.queue == {**cake.up.shaped.queue, "ack_filter": "on"}
    assert (filtered.key, filtered.label) == ("cake-ack-filter", "CAKE, ACK filter")
    assert filtered.preference(1) > without.preference(1)
    assert variants(candidate("cake", HOME, flows, port=False), HOME) == (  # type: ignore[arg-type]
        candidate("cake", HOME, flows, port=False),  # type: ignore[arg-type]
    )
    other = candidate("fq-codel", asymmetric, flows, port=False)  # type: ignore[arg-type]
    assert variants(other, asymmetric) == (other,)


# Advice.


def test_the_case_of_the_issue_is_decided_by_pages_and_says_so(tmp_path: Path) -> None:
    """CAKE with its ACK filter, as it was advised, was after FQ-CoDel by a few ms of calls."""
    line = Line(50e6, 5e6, 0.02, "docsis", ("calls", "web", "backup"), 4)
    found = redtail.advise_on(line, queues="cake,fq-codel", out=tmp_path)
    assert [each.label for each in found.ranking] == ["CAKE", "CAKE, ACK filter", "FQ-CoDel"]

    by_label = {each.label: each for each in found.ranking}
    filtered, other = by_label["CAKE, ACK filter"], by_label["FQ-CoDel"]
    assert other.values["calls"].mean < filtered.values["calls"].mean
    assert other.against_first["calls"].verdict == "equal"
    assert other.against_first["pages"].verdict == "worse"
    assert other.against_first["fairness"].verdict == "worse"
    assert other.values["pages"].mean > 1.5 * found.ranking[0].values["pages"].mean
    assert found.choice.merit == "it has fewer parameters to set"

    text = " ".join(found.to_text().split())
    assert "By time of Web pages, FQ-CoDel is worse than CAKE" in text
    assert "FQ-CoDel: equal within 20 ms for calls" in text
    assert "CAKE is preferred because it has fewer parameters to set" in text
    for aim in found.shown_aims:
        assert aim.margin.source.split(";")[0] in text
    parts = {each.head: each for each in parts_of(found)}
    assert any(each.startswith("FQ-CoDel: equal within") for each in parts["All queues"].items)
    told = json.loads(found.to_json())
    assert told["objectives"]["calls"]["margin"] == "20 ms"
    assert told["why"]["left"][0]["left"] == ["FQ-CoDel"]
    compared_with_first = told["ranking"][2]["against_first"]
    assert compared_with_first["calls"]["verdict"] == "equal"
    assert (
        compared_with_first["pages"]["difference"]["mean"] > compared_with_first["pages"]["margin"]
    )
    assert set(told["candidates"]) == {"cake", "cake-ack-filter", "fq-codel"}


def test_a_home_of_four_is_fair_to_people(tmp_path: Path) -> None:
    found = redtail.advise_on(HOME, queues="cake,fq-codel", effort="quick", out=tmp_path)
    assert found.chosen.kind == "cake"
    fair = {each.label: each.values["fairness"].mean for each in (*found.ranking, found.as_it_is)}
    # One of nine connections gets 2 / 9 of the half.
    assert fair["CAKE"] < 0.2
    assert fair["FQ-CoDel"] == pytest.approx(1 - 2 / 9, abs=0.1)
    assert fair[AS_IT_IS] > 0.5
    measures = found.expects("two people", "CAKE").known
    assert {"unequal_down", "unequal_up"} <= set(measures)


def test_quick_mode_does_not_decide_by_what_nobody_notices(tmp_path: Path) -> None:
    line = Line(10e6, 2e6, 0.02, "docsis", ("calls",), 1)
    found = redtail.advise_on(line, queues="fq-pie,fq-codel,cake", effort="quick", out=tmp_path)
    calls = [each.values["calls"].mean for each in found.ranking]
    assert found.chosen.kind == "cake"
    assert max(calls) - min(calls) < 0.02
    assert {each.label for each in found.equals} == {"FQ-CoDel", "FQ-PIE"}
    for each in found.equals:
        for name, other in each.against_first.items():
            assert other.verdict in ("equal", "undecided"), name
    assert "CAKE is preferred because it needs no shaper beside it" in " ".join(
        found.to_text().split()
    )
