"""The qlog file of a connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from redtail.analysis.qlog import recovery
from redtail.analysis.qlog.packets import Packet, Sent, Side, ranges
from redtail.analysis.qlog.recovery import Noted, stream_frame
from redtail.scenario import quantity, seconds

if TYPE_CHECKING:
    from redtail.analysis.story.events import Event

VERSION = "0.3"
"""Of qlog: the latest that qvis reads."""

PACKET_TYPE = "1RTT"
"""Of every packet: a segment of TCP is like none of QUIC's, and this is what qvis takes it for."""

_LOST = ("drop", "wire_loss")
_OF_PACKETS = (*_LOST, "mark")
_CAUSES = ("timeout", "recovery", "tail_loss_probe")


@dataclass(frozen=True)
class Connection:
    """What is known of a connection.

    Attributes:
        title: whose it is, for people.
        opens: whether the side whose log this is opens it.
        protocol: "TCP" or "UDP".
        about: what `summary` of the file says: experiment, case, run.
        tcp: the table `tcp` of its group; None for UDP.
        ends: address and port of the side whose log this is, and of its peer; None if unknown.
        events: its events, in order.
        packets: its packets as this side sees them, in the order of time; none if unknown.
        series: the columns of `series_flows` of its flow; None without.
    """

    title: str
    opens: bool
    protocol: str
    about: Mapping[str, Any]
    tcp: Mapping[str, Any] | None = None
    ends: tuple[tuple[str, int], tuple[str, int]] | None = None
    events: Sequence[Event] = ()
    packets: Iterable[Packet] = ()
    series: Mapping[str, Sequence[float]] | None = None


def file_of(connection: Connection) -> dict[str, Any]:
    """Return the content of the qlog file of a connection."""
    start_s = next((each.time_s for each in connection.events if each.event == "start"), 0.0)
    events = list(_opened(connection, start_s * 1e3))
    packets, numbers = _packets(connection)
    events += packets
    events += recovery.of_events(connection.events, numbers)
    if connection.series is not None:
        events += recovery.sampled(connection.series, start_s)
    # Stable: what happens at the same time stays in the order in which it was told.
    events.sort(key=lambda event: event.time_ms)
    return {
        "qlog_version": VERSION,
        "qlog_format": "JSON",
        "title": connection.title,
        "summary": dict(connection.about),
        "traces": [
            {
                "title": connection.title,
                "vantage_point": {
                    "name": "the side that sends data, in redtail",
                    "type": "client" if connection.opens else "server",
                },
                "common_fields": {
                    "time_format": "relative",
                    "reference_time": 0,
                    "protocol_type": [connection.protocol],
                },
                "events": [
                    {"time": round(each.time_ms, 6), "name": each.name, "data": each.data}
                    for each in events
                ],
            }
        ],
    }


def _opened(connection: Connection, start: float) -> Iterator[Noted]:
    """Yield what is known from the start, and when it closes; `start` is in milliseconds."""
    if connection.ends is not None:
        (address, port), (other, other_port) = connection.ends
        data: dict[str, Any] = {
            "ip_version": "v6" if ":" in address else "v4",
            "src_ip": address,
            "dst_ip": other,
            "protocol": connection.protocol,
            "src_port": port,
            "dst_port": other_port,
        }
        yield Noted(start, "connectivity:connection_started", data)
    if connection.tcp is not None:
        yield Noted(start, "recovery:parameters_set", _parameters(connection.tcp))
    for each in connection.events:
        if each.event == "end":
            yield Noted(each.time_s * 1e3, "connectivity:connection_closed", {"owner": "local"})


def _parameters(tcp: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of recovery and congestion control."""
    granularity_s = seconds(str(tcp.get("clock_granularity", "0 s")))
    data: dict[str, Any] = {"timer_granularity": round(granularity_s * 1e3)}
    if "dup_thresh" in tcp:
        data["reordering_threshold"] = tcp["dup_thresh"]
    mss, _ = quantity(tcp.get("mss"))
    if mss is not None:
        data["max_datagram_size"] = int(mss)
        window = tcp.get("initial_window")
        if isinstance(window, int | float):
            data["initial_congestion_window"] = int(window * mss)
    growth = tcp.get("growth")
    if isinstance(growth, Mapping):
        beta = growth.get("beta")
        if isinstance(beta, int | float):
            data["loss_reduction_factor"] = beta
        data["congestion_control"] = growth.get("kind")
    return data


@dataclass
class _Cause:
    """Why data is sent again: the latest event that lets a sender do so.

    Attributes:
        event: its kind.
        rack: whether losses are detected by time.
    """

    rack: bool
    event: str = ""

    @property
    def of_packet(self) -> str | None:
        """What triggered a packet, in QUIC's words."""
        known = {
            "timeout": "retransmit_timeout",
            "recovery": "retransmit_reordered",
            "tail_loss_probe": "pto_probe",
        }
        return known.get(self.event)

    @property
    def of_loss(self) -> str | None:
        """How a loss was detected, in QUIC's words."""
        by_order = "time_threshold" if self.rack else "reordering_threshold"
        return {"timeout": "pto_expired", "recovery": by_order}.get(self.event)


@dataclass
class _Sides:
    """Both sides of a connection, and what has to be told between its packets."""

    cause: _Cause
    tcp: bool
    ours: Side = field(default_factory=Side)
    theirs: Side = field(default_factory=Side)

    def packet(self, packet: Packet) -> Iterator[Noted]:
        """Yield the events of a packet."""
        side, other = (self.ours, self.theirs) if packet.ours else (self.theirs, self.ours)
        sent = side.send(packet)
        time_ms = packet.at_ns / 1e6
        data: dict[str, Any] = {
            "header": {"packet_type": PACKET_TYPE, "packet_number": sent.number},
            "raw": {"length": packet.size, "payload_length": packet.payload},
        }
        frames = self._frames(sent, other.acknowledge(packet)) if self.tcp else []
        if frames:
            data["frames"] = frames
        again = sent.again if packet.ours else None
        if again is not None:
            yield from self._lost(time_ms, again)
            if self.cause.of_packet is not None:
                data["trigger"] = self.cause.of_packet
        name = "transport:packet_sent" if packet.ours else "transport:packet_received"
        yield Noted(time_ms, name, data)

    def _frames(self, sent: Sent, acknowledged: list[int]) -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        if sent.packet.payload:
            frames.append(stream_frame(sent.start, sent.packet.payload))
        if acknowledged:
            frames.append({"frame_type": "ack", "acked_ranges": ranges(acknowledged)})
        return frames

    def _lost(self, time_ms: float, number: int) -> Iterator[Noted]:
        """Yield that the sender takes a transmission for lost, for it repeats it."""
        if self.cause.event == "tail_loss_probe":
            return  # which looks whether something is lost
        data: dict[str, Any] = {
            "header": {"packet_type": PACKET_TYPE, "packet_number": number},
        }
        if self.cause.of_loss is not None:
            data["trigger"] = self.cause.of_loss
        yield Noted(time_ms, "recovery:packet_lost", data)


def _packets(connection: Connection) -> tuple[list[Noted], dict[int, int]]:
    """Return the packets, and which of them the sender takes for lost.

    What queues dropped is known beside the packets, so that an acknowledgement is not taken for
    that of a packet that never arrived. Returned as well: numbers of our packets, by the rows of
    the events that happened to them.
    """
    recovery_kind = str((connection.tcp or {}).get("recovery", ""))
    # Linux has RACK unless it is a kernel of before (RFC 8985).
    cause = _Cause(rack=recovery_kind in ("rack-tlp", "linux"))
    sides = _Sides(cause, connection.protocol == "TCP")
    told = deque(each for each in connection.events if each.event in (*_OF_PACKETS, *_CAUSES))
    found: list[Noted] = []
    numbers: dict[int, int] = {}
    for packet in connection.packets:
        while told and _is_before(told[0], packet):
            _hear(sides, told.popleft(), numbers)
        found += sides.packet(packet)
    for event in told:
        _hear(sides, event, numbers)
    return found, numbers


def _is_before(event: Event, packet: Packet) -> bool:
    """Return whether an event comes before a packet.

    What happens to a packet when it arrives has its time and comes after it; why a packet is sent
    comes before it. Packets have whole nanoseconds, rounded down.
    """
    ns = event.time_s * 1e9
    return ns < packet.at_ns + 1 if event.event in _CAUSES else ns < packet.at_ns


def _hear(sides: _Sides, event: Event, numbers: dict[int, int]) -> None:
    """Note what happened to a packet, or why data will be sent again."""
    if event.event in _CAUSES:
        sides.cause.event = event.event
    elif event.packet is not None:
        side = sides.theirs if event.back else sides.ours
        sent = side.latest(event.packet)
        if sent is not None and event.event in _LOST:
            sent.lost = True
        if sent is not None and not event.back:
            numbers[event.row] = sent.number
