"""Stories from small tables of events, each with one cause: they claim what the events carry."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from redtail.analysis.story import flow as stories
from redtail.analysis.story import overview, timeouts
from redtail.analysis.story.events import TEXTS, Event, Flow, Log, Recorded, Sender
from redtail.analysis.story.words import Queue

PAYLOAD = 1448
SENDER = Sender(PAYLOAD, duplicates=3)
FLOW = Flow("cubic", 3)
QUEUES = {"bottleneck": Queue("RED", "packets"), "return": Queue("tail drop")}
_COLUMNS = {
    **dict.fromkeys(TEXTS, pa.string()),
    "flow": pa.uint32(),
    "connection": pa.uint32(),
    "back": pa.uint32(),
    "sequence": pa.uint64(),
    "bytes": pa.uint64(),
    **dict.fromkeys(
        ("wait_s", "average", "probability", "cwnd_bytes", "ssthresh_bytes", "value"), pa.float64()
    ),
}


def event(time_s: float, kind: str, sequence: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "time_s": time_s,
        "event": kind,
        "sequence": sequence,
        "group": "cubic",
        "flow": 3,
    } | more


def drop(time_s: float, sequence: int | None, reason: str = "early", **more: Any) -> dict[str, Any]:
    law = {"average": 41.23} if reason != "limit" else {}
    return (
        event(time_s, "drop", sequence, reason=reason, link="bottleneck", bytes=1500, **law) | more
    )


def log(*rows: dict[str, Any], **recorded: Any) -> Log:
    columns = {"time_s": pa.array([row["time_s"] for row in rows], pa.float64())}
    for name, kind in _COLUMNS.items():
        columns[name] = pa.array([row.get(name) for row in rows], kind)
    return Log(pa.table(columns), Recorded(**recorded), QUEUES, 0.04, {"cubic": SENDER})


def cause(*rows: dict[str, Any], **recorded: Any) -> timeouts.Cause:
    found = log(*rows, **recorded)
    told = timeouts.Timeouts(found, FLOW, found.of(FLOW)).causes()
    return told[-1][1]


def test_a_retransmission_that_is_dropped_again_is_named_with_the_law() -> None:
    rows = (
        drop(5.2, 1000),
        event(5.267, "recovery", 1000),
        event(5.367, "retransmission", 1000),
        drop(5.368, 1000),
        event(5.663, "timeout", 1000, value=0.296, reason="data"),
    )
    found = cause(*rows)
    assert found.kind == timeouts.AGAIN
    assert found.lost[-1].time_s == 5.368
    (line,) = [each for each in stories.lines(log(*rows), FLOW) if each.kind == "timeout"]
    assert str(line) == (
        "5.663 s: timeout after 296 ms: the retransmission of 5.367 s was dropped again at the "
        "bottleneck (RED, early, average 41.2 packets)"
    )


def test_a_drop_before_the_retransmission_is_not_its_drop() -> None:
    """The retransmission arrived, so the drop of the first copy does not explain the timeout."""
    found = cause(
        drop(5.2, 1000),
        event(5.3, "retransmission", 1000),
        event(5.6, "timeout", 1000, value=0.3, reason="data"),
    )
    assert found.kind == timeouts.UNKNOWN
    assert "no loss of the packet is in them" in found.text


def test_a_retransmission_after_a_timeout_is_told_apart() -> None:
    rows = (
        drop(1.0, 1000),
        event(1.3, "timeout", 1000, value=0.3, reason="data"),
        event(1.3, "retransmission", 1000),
        drop(1.31, 1000, "forced"),
        event(1.9, "timeout", 1000, value=0.6, reason="data"),
    )
    found = cause(*rows)
    assert found.kind == timeouts.AFTER_TIMEOUT
    assert "of 1.300 s, after the timeout then, was dropped again" in found.text


def test_a_lost_window_with_its_probe_is_a_whole_window() -> None:
    rows = [drop(2.0 + place / 1000, 1000 + place * PAYLOAD) for place in range(3)]
    found = cause(
        *rows,
        event(2.1, "tail_loss_probe", 1000 + 4 * PAYLOAD, reason="new_data"),
        drop(2.101, 1000 + 3 * PAYLOAD, "forced"),
        event(2.4, "timeout", 1000, value=0.28, reason="data"),
    )
    assert found.kind == timeouts.WINDOW
    assert "all 4 packets from it on were lost (RED, early 3, forced 1)" in found.text
    assert len(found.lost) == 4


def test_a_gap_among_the_lost_is_no_whole_window() -> None:
    """The second packet is not among the lost, so nothing says that all were."""
    found = cause(
        drop(2.0, 1000),
        drop(2.001, 1000 + 2 * PAYLOAD),
        event(2.1, "tail_loss_probe", 1000 + 4 * PAYLOAD, reason="new_data"),
        drop(2.101, 1000 + 3 * PAYLOAD),
        event(2.4, "timeout", 1000, value=0.28, reason="data"),
    )
    assert found.kind == timeouts.PROBE
    assert "all" not in found.text


def test_the_tail_and_the_probe_that_repeats_it_were_lost() -> None:
    found = cause(
        drop(2.0, 1000),
        event(2.1, "retransmission", 1000),
        event(2.1, "tail_loss_probe", 1000 + PAYLOAD, reason="last_segment"),
        drop(2.101, 1000),
        event(2.4, "timeout", 1000, value=0.3, reason="data"),
    )
    assert found.kind == timeouts.PROBE
    assert "the tail-loss probe of 2.100 s repeated it" in found.text


@pytest.mark.parametrize(
    ("behind", "kind", "words"),
    [
        (0, timeouts.WINDOW, "all 1 packet from it on were lost"),
        (2, timeouts.FEW, "2 of the 2 packets behind it arrived, which makes fewer than 3 dup"),
        (3, timeouts.UNKNOWN, "3 of the 3 packets behind it arrived; why no fast recovery began"),
    ],
)
def test_what_arrived_behind_a_lost_packet_makes_duplicates(
    behind: int, kind: str, words: str
) -> None:
    """It is known where arrivals of packets were recorded too."""
    arrivals = [
        event(2.0 + place / 1000, "arrival", 1000 + place * PAYLOAD, link="bottleneck")
        for place in range(behind + 1)
    ]
    # What was sent less than a round trip before the timeout could not be answered.
    late = event(2.39, "arrival", 1000 + 9 * PAYLOAD, link="bottleneck")
    end = event(2.4, "timeout", 1000, value=0.3, reason="data")
    found = cause(*arrivals, drop(2.0, 1000), late, end)
    assert found.kind == kind
    assert words in found.text


def test_a_recovery_in_progress_had_not_come_to_the_packet() -> None:
    found = cause(
        drop(2.0, 1000),
        drop(2.001, 1000 + PAYLOAD),
        event(2.06, "recovery", 1000),
        event(2.061, "retransmission", 1000),
        event(2.4, "timeout", 1000 + PAYLOAD, value=0.3, reason="data"),
        event(2.4, "recovery_end", reason="timeout"),
    )
    assert found.kind == timeouts.SLOW
    assert "the fast recovery of 2.060 s was in progress" in found.text


def test_a_recovery_that_ended_without_the_packet() -> None:
    rows = (
        drop(2.0, 1000),
        drop(2.001, 1000 + PAYLOAD),
        event(2.06, "recovery", 1000),
        event(2.061, "retransmission", 1000),
        event(2.12, "recovery_end", reason="acknowledged"),
        event(2.4, "timeout", 1000 + PAYLOAD, value=0.3, reason="data"),
    )
    found = cause(*rows)
    assert found.kind == timeouts.LEFT
    assert "of 2.060 s ended at 2.120 s without sending it again" in found.text
    # What was lost later was not its task.
    assert cause(*rows[:1], *rows[2:5], rows[1] | {"time_s": 2.13}, rows[5]).kind != timeouts.LEFT


def test_acknowledgements_that_were_dropped() -> None:
    acks = [
        drop(2.05 + place / 1000, None, "limit", link="return", back=1, bytes=52)
        for place in range(2)
    ]
    found = cause(*acks, event(2.3, "timeout", 1000, value=0.3, reason="data"))
    assert found.kind == timeouts.ACKS
    assert "2 acknowledgements of the flow were lost on the return path" in found.text
    assert "tail drop, limit 2" in found.text


def test_acknowledgements_lost_before_the_timer_started_explain_nothing() -> None:
    found = cause(
        drop(0.5, None, "limit", link="return", back=1, bytes=52),
        event(2.3, "timeout", 1000, value=0.3, reason="data"),
    )
    assert found.kind == timeouts.UNKNOWN


def test_a_spurious_timeout_is_one_only_if_an_event_says_so() -> None:
    timeout = event(2.3, "timeout", 1000, value=0.21, reason="data")
    found = cause(timeout, event(2.35, "spurious", reason="frto"))
    assert found.kind == timeouts.SPURIOUS
    assert "the timer of 210 ms was shorter than the round trip then" in found.text
    assert cause(timeout).kind == timeouts.UNKNOWN


def test_what_proved_spurious_later_is_not_this_timeout() -> None:
    found = log(
        event(2.3, "timeout", 1000, value=0.21, reason="data"),
        event(2.9, "timeout", 2000, value=0.21, reason="data"),
        event(2.95, "spurious", reason="frto"),
    )
    told = timeouts.Timeouts(found, FLOW, found.of(FLOW)).causes()
    assert [each.kind for _, each in told] == [timeouts.UNKNOWN, timeouts.SPURIOUS]


def test_a_lost_syn_is_no_loss_of_the_first_byte() -> None:
    """Both have the sequence number 0."""
    found = cause(
        drop(0.1, 0, "limit"),
        event(1.1, "timeout", 0, value=1.0, reason="handshake"),
        drop(1.2, 0),
        event(2.2, "timeout", 0, value=1.0, reason="data"),
    )
    assert found.kind == timeouts.UNKNOWN
    assert [each.time_s for each in found.lost] == [1.2]


def test_a_lost_syn() -> None:
    found = cause(drop(0.1, 0, "limit"), event(1.1, "timeout", 0, value=1.0, reason="handshake"))
    assert found.kind == timeouts.SYN
    assert "at 0.100 s" in found.text


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        ({"kinds": frozenset({"timeout"})}, "events of kind drop and retransmission were not"),
        ({"from_s": 5.0}, "recording began at 5 s"),
        ({"cut_s": 5.1}, "their limit of rows was reached at 5.100 s"),
    ],
)
def test_what_was_not_recorded_is_not_claimed(recorded: dict[str, Any], why: str) -> None:
    found = cause(event(5.2, "timeout", 1000, value=0.3, reason="data"), **recorded)
    assert found.kind == timeouts.UNKNOWN
    assert found.text.startswith(timeouts.UNKNOWN)
    assert why in found.text


def test_recovery_names_the_drop_that_it_answers() -> None:
    found = log(
        drop(1.0, 1000),
        drop(1.001, 1000 + PAYLOAD, "forced"),
        event(1.065, "recovery", 1000, cwnd_bytes=14480.0),
        event(1.066, "retransmission", 1000),
        event(1.13, "recovery_end", reason="acknowledged", value=0.065),
    )
    texts = [str(each) for each in stories.lines(found, FLOW) if stories.mentions(each, None)]
    assert texts == [
        "1.065 s: fast recovery began, window 14.5 kB: the packet dropped at the bottleneck (RED, "
        "early, average 41.2 packets) 65 ms before is missing; 1 packet more of the flow lost "
        "since then",
        "1.130 s: fast recovery ended after 65 ms: all that was sent before it is acknowledged",
    ]


def test_recovery_in_a_log_of_a_kernel_names_losses_that_it_cannot_place() -> None:
    found = log(drop(1.0, None), drop(1.3, None), event(1.5, "recovery"), event(2.0, "recovery"))
    told = [str(each) for each in stories.lines(found, FLOW) if each.kind == "recovery"]
    assert told == [
        "1.500 s: fast recovery began: since the last one the flow had lost 2 packets, the first "
        "dropped at the bottleneck (RED, early, average 41.2 packets) 500 ms before; what is "
        "missing is not known, as the log has no sequence numbers of packets",
        "2.000 s: fast recovery began: no loss that it could answer is in the recorded events: a "
        "packet may be late or overtaken",
    ]


def test_recovery_without_a_loss_claims_none() -> None:
    (line,) = stories.lines(log(event(1.0, "recovery", 1000)), FLOW)
    assert "no loss that it could answer is in the recorded events" in line.text
    (line,) = stories.lines(log(event(1.0, "recovery", 1000), kinds=frozenset({"recovery"})), FLOW)
    assert "events of kind drop were not recorded" in line.text


def test_marks_are_named_with_their_answer() -> None:
    found = log(
        event(1.0, "mark", link="bottleneck", average=12.0),
        event(1.1, "mark", link="bottleneck", average=13.0),
        event(1.2, "mark_answered", cwnd_bytes=20000.0),
        event(1.9, "mark_answered", cwnd_bytes=20000.0),
    )
    first, second = (each for each in stories.lines(found, FLOW) if each.kind == "mark_answered")
    assert "the last of 2, was marked at 1.100 s at the bottleneck (RED, average 13.0" in first.text
    assert second.text == "the sender answered marks, window 20 kB"


def test_a_stall_counts_what_happened_in_its_time() -> None:
    found = log(
        drop(1.0, 1000),
        drop(5.0, 1000),
        event(5.3, "timeout", 1000, value=0.3, reason="data"),
        event(16.0, "stall", value=12.0, reason="acknowledgement"),
    )
    line = stories.lines(found, FLOW)[-1]
    assert line.text == "stalled for 12 s; in this time 1 timeout and 1 packet lost (RED, early 1)"


def test_the_summary_counts_causes_and_reasons() -> None:
    rows: list[dict[str, Any]] = []
    for number, reason in enumerate(("early", "early", "forced")):
        begin, sequence = 2.0 * number, 1000 * (number + 1)
        rows += [
            drop(begin, sequence),
            event(begin + 0.1, "retransmission", sequence),
            drop(begin + 0.2, sequence, reason),
            event(begin + 0.5, "timeout", sequence, value=0.3, reason="data"),
        ]
    found = overview.overview(log(*rows))
    assert found.timeouts == (
        "3 timeouts: 3 the retransmission was dropped again (RED, early 2, forced 1)"
    )
    assert found.causes == {timeouts.AGAIN: 3}
    (flows,) = [part for part in found.parts if part.title == "flows with most timeouts"]
    assert flows.entries[0].text.startswith("cubic 3: 3 timeouts, at 0.500 s")


def test_lists_of_the_overview_are_bounded_and_the_rest_is_counted() -> None:
    rows = [
        drop(number + place / 1000, 1000 * place, flow=number)
        for number in range(20)
        for place in range(4)
    ]
    (part,) = overview.overview(log(*rows)).parts
    assert (len(part.entries), part.more) == (overview.MOST, 20 - overview.MOST)
    assert "4 packets of 1 flow were dropped at the bottleneck within 3 ms" in part.entries[0].text


def test_a_run_without_events_has_an_empty_story() -> None:
    found = overview.overview(log())
    assert (found.timeouts, found.parts, found.counts) == ("", [], {})


def test_what_stands_for_nothing_is_none() -> None:
    table = log(event(1.0, "drop", 2**64 - 1, average=math.nan, reason="")).table
    (found,) = Log(table).of(FLOW)
    assert (found.sequence, found.average, found.reason) == (None, None, None)
    assert found == Event(0, 1.0, "drop", group="cubic", flow=3)


def test_connections_of_a_user_are_flows_of_their_own() -> None:
    found = log(
        event(1.0, "timeout", 1, connection=7, group="web"),
        event(1.1, "timeout", 1, connection=8, group="web"),
        event(1.2, "page", group="web", value=0.7),
    )
    assert [str(each) for each in found.flows] == [
        "web 3",
        "web 3, connection 7",
        "web 3, connection 8",
    ]
    (line,) = stories.lines(found, Flow("web", 3))
    assert line.text == "a page was complete after 700 ms; in this time 2 timeouts"
