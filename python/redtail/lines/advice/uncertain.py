"""What is uncertain about an advice, and what it assumed."""

from __future__ import annotations

from collections.abc import Iterator

from redtail.lines.advice.access import ACCESS
from redtail.lines.advice.autorate import VERSION
from redtail.lines.advice.candidates import Candidate
from redtail.lines.advice.simulated import Simulated
from redtail.lines.line import Line, Recorded

_PLACES = {"down": "provider", "up": "modem"}
_RATES = {"down": "download", "up": "upload"}


def uncertain(
    line: Line, recorded: Recorded | None, wanted: Simulated, chosen: Candidate
) -> tuple[str, ...]:
    """Return what is uncertain, a sentence or two each.

    Args:
        line: the line.
        recorded: what a recording told of it; None without one.
        wanted: what was simulated.
        chosen: the queue that is advised.
    """
    found = [*_bounds(line, recorded), *_varies(wanted, chosen), _buffers(recorded, wanted)]
    found += [
        "Nobody knows your load. These loads have Linux's TCP (CUBIC) without ECN, and calls "
        "that send 80 kbit/s whatever happens; the experiment file has them all.",
        "Servers are as far as the round trip that you gave. To farther ones everything takes "
        "longer, with each queue.",
    ]
    if wanted.divisor > 1:
        found.append(
            f"The line is too fast to be simulated in a minute: its rates and its people were "
            f"divided by {wanted.divisor:.3g}, its round trip was not. On the line itself "
            "a packet takes less time, so that delays and page times are lower."
        )
    found.append(
        "Packets were simulated without what the line adds to them; small packets take more of "
        "the line than here."
    )
    found += ACCESS[line.access].cautions
    found += dict.fromkeys((*chosen.down.cautions, *chosen.up.cautions))
    return tuple(found)


def _bounds(line: Line, recorded: Recorded | None) -> Iterator[str]:
    """Yield what was assumed where the recording gives a bound only."""
    if recorded is None:
        return
    for name, bps in (("down", line.down_bps), ("up", line.up_bps)):
        if recorded.bound(name):
            yield (
                f"The {_RATES[name]} rate is a bound: at least {bps / 1e6:.4g} Mbit/s, for the "
                "line was not seen full. The advice assumes that it is this. If the line is "
                "faster, a shaper of this rate loses the rest, and nothing here says how much: "
                f"before one is set, give the rate with --{name} RATE, or record the line while it "
                "is full."
            )
    if recorded.bound("rtt"):
        yield (
            f"The round trip is a bound: {recorded.bound('rtt')} {1e3 * line.rtt_s:.4g} ms. The "
            "advice assumes that it is this; --rtt TIME gives another one."
        )


def _buffers(recorded: Recorded | None, wanted: Simulated) -> str:
    """Return how long the line's own buffers are, and why so."""
    times = dict(zip(_PLACES, (f"{1e3 * each:.0f} ms" for each in wanted.buffers), strict=True))
    reasons = {name: _reason(recorded, name) for name in _PLACES}
    head = "The buffers in front of the line hold"
    if len({*times.values()}) == 1 and len({*reasons.values()}) == 1:
        return f"{head} {times['down']}: {reasons['down']}."
    each = [f"{times[name]} ({place}: {reasons[name]})" for name, place in _PLACES.items()]
    return f"{head} {' and '.join(each)}."


def _reason(recorded: Recorded | None, name: str) -> str:
    """Return where the size of a buffer comes from."""
    seconds = None
    if recorded is not None:
        seconds = recorded.down_buffer_s if name == "down" else recorded.up_buffer_s
    if recorded is None or seconds is None:
        return "assumed; a recording of the line would tell"
    if bound := recorded.bound(f"{name}_buffer"):
        return f"assumed; the recording says {bound} {1e3 * seconds:.0f} ms"
    return "as recorded"


def _varies(wanted: Simulated, chosen: Candidate) -> Iterator[str]:
    """Yield what a promise for a rate that varies is about."""
    varied = wanted.varied
    if varied is None:
        return
    cuts = varied.amount.cuts
    yield (
        f"What is promised is for what was recorded: {cuts} parts of {varied.length_s:g} s, "
        f"{100 * varied.covered:.0f} % of its {varied.duration_s:.4g} s. The line at another time "
        "or place is not in it; intervals are over these parts and the replications."
    )
    yield (
        "The buffers hold so much at the mean rate. While the line is slower, they take longer to "
        "empty. The buffers of radio modems are often larger."
    )
    if any(each.shaped.follows is not None for each in (chosen.down, chosen.up)):
        yield (
            "How the shaper's rate follows is computed beside a model in which senders never run "
            "out of data, not from the packets that are simulated. Where it was computed from "
            "packets, a call's delay was 7 % lower to 41 % higher. With less load the program "
            "stays nearer to its base rate. CAKE's target does not change with the rate here, as "
            f"it does in Linux below 3.6 Mbit/s. The law is that of {VERSION}."
        )
