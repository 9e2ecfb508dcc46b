"""What is uncertain about how a line is sold, a sentence or two each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redtail.lines.advice.access import ACCESS, could_be_own_port, own_port
from redtail.lines.advice.loads import LEAST_WINDOW_B, WINDOW_B, most_flows
from redtail.lines.advice.simulated import Simulated
from redtail.lines.advice.sold import BURST_S, port_of
from redtail.lines.advice.words import rate, size
from redtail.lines.line import Direction, Line


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


def about_the_buffers(wanted: Simulated) -> Iterator[str]:
    """Yield which buffers are so small that modems have larger ones."""
    for rate_bps, seconds, whose in (
        (wanted.down_bps, wanted.buffers[0], "provider"),
        (wanted.up_bps, wanted.buffers[1], "modem"),
    ):
        packets = rate_bps * seconds / 8 / 1500
        if packets < FEW_PACKETS and not wanted.policed:
            yield (
                f"The {whose}'s buffer of {1e3 * seconds:.0f} ms holds {packets:.1f} full packets "
                "at this rate. Most hold more, and then packets wait longer on the line as it is: "
                "--buffer sets it."
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


def about_the_load(not_filled: Sequence[tuple[str, Direction]]) -> Iterator[str]:
    """Yield which directions no load has filled."""
    if not_filled:
        where = "; ".join(f"{load}: {direction}" for load, direction in not_filled)
        yield (
            f"Senders did not fill the line where they are meant to ({where}): their windows (of "
            f"Linux, {size(WINDOW_B)} a connection) or the time were not enough. Little waits "
            "there, and the queue is not tested."
        )


def about_the_rate(line: Line) -> Iterator[str]:
    """Yield what is uncertain about a rate that changes by itself."""
    if ACCESS[line.access].varies:
        yield HOW_TO_RECORD


HOW_TO_RECORD = (
    "How the rate of this line changes is not known. A recording tells: a transfer that fills the "
    "line for some minutes, at the times at which it matters, such as iperf3 -c SERVER -R -t 300 "
    "-i 0.1 --json > down.json for the download and the same without -R for the upload, or a trace "
    "of mahimahi. redtail estimate reads both and says how far the rate goes down, which is where "
    "a fixed shaper belongs; redtail advise --from takes them in the place of the rates."
)
