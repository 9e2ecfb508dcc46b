"""What is uncertain about an advice, and what it assumed, a sentence or two each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redtail.lines.advice.access import ACCESS, as_known, carried, could_be_own_port, own_port
from redtail.lines.advice.autorate import VERSION
from redtail.lines.advice.candidates import Candidate
from redtail.lines.advice.loads import LEAST_WINDOW_B, WINDOW_B, most_flows
from redtail.lines.advice.simulated import Simulated
from redtail.lines.advice.sold import BURST_S, port_of
from redtail.lines.advice.words import rate, size
from redtail.lines.line import DIRECTIONS, Direction, Line, Recorded

WAYS: dict[Direction, str] = {"down": "download", "up": "upload"}

_PLACES: dict[Direction, str] = {"down": "provider", "up": "modem"}


def uncertain(
    line: Line,
    recorded: Recorded | None,
    wanted: Simulated,
    chosen: Candidate,
    not_filled: Sequence[tuple[str, Direction]] = (),
) -> tuple[str, ...]:
    """Return what is uncertain.

    Args:
        line: the line.
        recorded: what a recording told of it; None without one.
        wanted: what was simulated.
        chosen: the queue that is advised.
        not_filled: loads that did not fill a direction as they are meant to.
    """
    return (
        *about_bounds(line, recorded),
        *about_what_is_added(line, recorded),
        *about_the_rate(line, recorded),
        *about_the_recording(wanted, chosen),
        *about_the_load(not_filled),
        *about_the_port(line),
        *about_the_buffers(wanted, recorded),
        "Nobody knows your load. These loads have Linux's TCP (CUBIC) without ECN, and calls that "
        "send 80 kbit/s whatever happens; the experiment file has them all.",
        "Servers are as far as the round trip that you gave. To farther ones everything takes "
        "longer, with each queue.",
        *about_the_divisor(wanted),
        *about_the_windows(line, wanted),
        "Packets were simulated without what the line adds to them; small packets take more of the "
        "line than here.",
        *ACCESS[line.access].cautions,
        *dict.fromkeys((*chosen.down.cautions, *chosen.up.cautions)),
    )


def about_bounds(line: Line, recorded: Recorded | None) -> Iterator[str]:
    """Yield what was assumed where the recording gives a bound only."""
    if recorded is None:
        return
    for name, bps in as_known(line, recorded).items():
        if recorded.bound(name):
            yield (
                f"The {WAYS[name]} rate is a bound: at least {rate(bps)}, for the line was not "
                "seen full. The advice assumes that it is this. If the line is faster, a shaper of "
                "this rate loses the rest, and nothing here says how much: before one is set, give "
                f"the rate with --{name} RATE, or record the line while it is full."
            )
    if recorded.bound("rtt"):
        yield (
            f"The round trip is a bound: {recorded.bound('rtt')} {1e3 * line.rtt_s:.4g} ms. The "
            "advice assumes that it is this; --rtt TIME gives another one."
        )


def about_what_is_added(line: Line, recorded: Recorded | None) -> Iterator[str]:
    """Yield what rates the line has, where the recorded ones do not count what it adds."""
    if recorded is None or not recorded.of_packets:
        return
    access = ACCESS[line.access]
    if carried(access.overhead, 1.0) == 1.0:
        return
    known, line_rates = as_known(line, recorded), {"down": line.down_bps, "up": line.up_bps}
    each = [
        f"{rate(known[name])} {name} are {rate(line_rates[name])} on the line"
        for name in recorded.of_packets
    ]
    yield (
        "Recorded rates are of IP packets. With what "
        f"{access.title} adds to full ones, {' and '.join(each)}; shapers count that."
    )


def unknown_courses(line: Line, recorded: Recorded | None) -> tuple[Direction, ...]:
    """Return the directions whose rate changes by itself, nobody knows how."""
    if not ACCESS[line.access].varies:
        return ()
    return tuple(name for name in DIRECTIONS if recorded is None or recorded.course(name) is None)


def about_the_rate(line: Line, recorded: Recorded | None = None) -> Iterator[str]:
    """Yield what is uncertain about a rate that changes by itself."""
    unknown = unknown_courses(line, recorded)
    if not unknown:
        return
    what = "this line" if len(unknown) == 2 else f"the {WAYS[unknown[0]]}"
    yield f"How the rate of {what} changes is not known. {HOW_TO_RECORD}"
    if len(unknown) == 2:
        yield ACCESS[line.access].changes


HOW_TO_RECORD = (
    "A recording tells: a transfer that fills the line for some minutes, at the times at which it "
    "matters, such as iperf3 -c SERVER -R -t 300 -i 0.1 --json > down.json for the download and "
    "the same without -R for the upload, or a trace of mahimahi. redtail estimate reads both and "
    "says how far the rate goes down, which is where a fixed shaper belongs; redtail advise --from "
    "takes them in the place of the rates, and simulates a trace and steps as they are."
)


def about_the_recording(wanted: Simulated, chosen: Candidate) -> Iterator[str]:
    """Yield what a promise for a rate that was recorded is about."""
    varied = wanted.varied
    if varied is None:
        return
    yield (
        f"What is promised is for what was recorded: {varied.amount.cuts} parts of "
        f"{varied.length_s:g} s, {100 * varied.covered:.0f} % of its {varied.duration_s:.4g} s. "
        "The line at another time or place is not in it; intervals are over these parts and the "
        "replications."
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


def about_the_load(not_filled: Sequence[tuple[str, Direction]]) -> Iterator[str]:
    """Yield which directions no load has filled."""
    if not_filled:
        where = "; ".join(f"{load}: {direction}" for load, direction in not_filled)
        yield (
            f"Senders did not fill the line where they are meant to ({where}): their windows (of "
            f"Linux, {size(WINDOW_B)} a connection) or the time were not enough. Little waits "
            "there, and the queue is not tested."
        )


def about_the_port(line: Line) -> Iterator[str]:
    """Yield what is uncertain about the port and the provider."""
    if could_be_own_port(line):
        own = rate(line.up_bps)
        yield (
            f"{own} is also the rate of a port. A shaper is advised for the upload, because a "
            "provider who hands the line over at a faster port drops or delays what exceeds it. If "
            f'the router\'s own port runs at {own} (ethtool), say --port-rate "{own}": the '
            "queue then stands there without a shaper, which loses nothing."
        )
    if own_port(line):
        yield (
            f"The port of {rate(line.up_bps)} is taken to be the slowest place of the upload. If "
            "the provider lets less pass, the queue at the port is empty and does nothing."
        )
    if line.burst_bytes is not None:
        down, up = line.burst_bytes
        both = size(down) if down == up else f"{size(down)} (down) and {size(up)} (up)"
        port = port_of(line)
        assumed = f" The port is assumed to have {rate(port)}." if line.port_bps is None else ""
        yield (
            f"The provider's policers let {both} pass at once. The default is "
            f"{1e3 * BURST_S:g} ms at the rate of the contract (Cisco NCS 540), the smallest that "
            f"is documented; others have 250 ms (Cisco ME 3600X) or 5 ms of the port's rate, here "
            f"{size(port * 0.005 / 8)} (Juniper). The larger it is, the less a shaper gains. "
            f"--provider policer:BURST sets it.{assumed}"
        )
    elif line.access == "ethernet" and not own_port(line):
        yield (
            "Whether the provider delays what exceeds the rate, in a buffer, or drops it is not "
            "known: a buffer is simulated. --provider policer simulates the other."
        )


FEW_PACKETS = 10
"""Full packets that a modem's buffer holds at least, as a rule. Source: our choice."""


def about_the_buffers(wanted: Simulated, recorded: Recorded | None = None) -> Iterator[str]:
    """Yield how long the line's own buffers are, why so, and which are so small that few are."""
    if wanted.policed:
        return
    lengths = dict(zip(DIRECTIONS, wanted.buffers, strict=True))
    times = {name: f"{1e3 * seconds:.0f} ms" for name, seconds in lengths.items()}
    reasons = {name: _reason(recorded, name) for name in DIRECTIONS}
    each = [f"{times[name]} ({_PLACES[name]}: {reasons[name]})" for name in DIRECTIONS]
    if len({*times.values()}) == len({*reasons.values()}) == 1:
        each = [f"{times['down']}: {reasons['down']}"]
    yield f"The buffers in front of the line hold {' and '.join(each)}."
    rates: dict[Direction, float] = {"down": wanted.down_bps, "up": wanted.up_bps}
    for name, bps in rates.items():
        packets = bps * lengths[name] / 8 / 1500
        if packets < FEW_PACKETS and reasons[name] != _RECORDED:
            yield (
                f"The {_PLACES[name]}'s buffer of {times[name]} holds {packets:.1f} full packets "
                "at this rate. Most hold more, and then packets wait longer on the line as it is: "
                "--buffer sets it."
            )


_RECORDED = "as recorded"


def _reason(recorded: Recorded | None, name: Direction) -> str:
    """Return where the size of a buffer comes from."""
    seconds = None
    if recorded is not None:
        seconds = recorded.down_buffer_s if name == "down" else recorded.up_buffer_s
    if recorded is None or seconds is None:
        return "assumed; a recording of the line would tell"
    if bound := recorded.bound(f"{name}_buffer"):
        return f"assumed; the recording says {bound} {1e3 * seconds:.0f} ms"
    return _RECORDED


def about_the_divisor(wanted: Simulated) -> Iterator[str]:
    """Yield what a line is that is too fast to be simulated."""
    if wanted.divisor > 1:
        yield (
            f"The line is too fast to be simulated in a minute: its rates and its people were "
            f"divided by {wanted.divisor:.3g}, its round trip was not. On the line itself a packet "
            "takes less time, so that delays and page times are lower."
        )


def about_the_windows(line: Line, wanted: Simulated) -> Iterator[str]:
    """Yield which directions the load's connections could not fill on the line itself."""
    if WINDOW_B / wanted.divisor >= LEAST_WINDOW_B:
        return  # the results show it, because windows are divided as the rates are
    directions: tuple[tuple[Direction, float], ...] = (("down", line.down_bps), ("up", line.up_bps))
    for direction, bps in directions:
        flows = most_flows(wanted.loads, direction)
        most = flows * WINDOW_B * 8 / line.rtt_s
        if any(direction in load.full for load in wanted.loads) and most < bps:
            yield (
                f"{flows} connections of Linux carry at most {rate(most)} over {1e3 * line.rtt_s:g}"
                f" ms ({size(WINDOW_B)} each under way), less than the line has {direction}. Such "
                "small windows were not simulated: the divided line was full, and the line itself "
                "is only with more connections."
            )
