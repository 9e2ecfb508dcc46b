"""Typed objects for the experiment file, made by `make generate` from the Rust types; do not edit.

An attribute left at None takes redtail's default. Quantities are texts with a unit, as
in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from redtail._model import Part, Whole

__all__ = [
    "Bottleneck",
    "Bulk",
    "Cbr",
    "Chain",
    "Experiment",
    "Hop",
    "Link",
    "Queue",
    "Red",
    "Series",
    "TailDrop",
    "Tcp",
    "Traffic",
    "Transfer",
]


@dataclass(kw_only=True)
class TailDrop(Part):
    """First-in first-out; an arrival that does not fit is dropped.

    Attributes:
        limit: Most that may wait: in packets, in bytes, in time at the link's rate, or a list of
            these. A queue size with its unit, for example "300 packets", "64 kB" or "20 ms", or a
            list of these.
        label: What tables and legends call this queue; no part of the run. A text.
    """

    _kind: ClassVar[str | None] = "tail-drop"

    limit: str | Sequence[str]
    label: str | None = None


@dataclass(kw_only=True)
class Red(Part):
    """Random Early Detection (Floyd and Jacobson 1993), with gentle, byte mode and ECN.

    Attributes:
        limit: Most that may wait: in packets, in bytes, in time at the link's rate, or a list of
            these. A queue size with its unit, for example "300 packets", "64 kB" or "20 ms", or a
            list of these.
        min_th: Average below which nothing is dropped, in packets, bytes or time at the link's
            rate; the unit decides whether the average is one of packets or of bytes. A queue size
            with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_th: Average at which the drop probability reaches `max_p`, in the unit of `min_th`. A
            queue size with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_p: Drop probability when the average reaches `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. A number; default 0.002.
        gentle: Beyond `max_th`, let the probability rise from `max_p` to 1 instead of dropping
            everything: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000),
            `"limit"` at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit";
            default false.
        spacing: How early drops are spread over arrivals. "uniform" or "wait" or "none"; default
            "wait".
        byte_mode: Make a packet's drop probability proportional to its size over `mean_packet`.
            True or false; default false.
        mean_packet: Typical packet size: measures idle periods in packets and scales `byte_mode`. A
            number of bytes with its unit, for example "1500 B"; default "500 B".
        ecn: Mark ECN-capable packets where an early drop would hit them. True or false; default
            false.
        above_max_th: With `ecn`, what happens to ECN-capable packets chosen while the average is at
            `max_th` or above, gentle or not. "drop" or "mark"; default "drop".
        label: What tables and legends call this queue; no part of the run. A text.
    """

    _kind: ClassVar[str | None] = "red"

    limit: str | Sequence[str]
    min_th: str
    max_th: str
    max_p: float | None = None
    w_q: float | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Link(Part):
    """A link in one direction: a queue that feeds a transmitter, and the way after it.

    Attributes:
        rate: Transmission rate. A rate with its unit, for example "10 Mbit/s".
        delay: Propagation delay, one way. A time with its unit, for example "100 ms".
        queue: The queue in front of it. A table with kind = "tail-drop" or "red".
        random_loss: Probability with which each packet is lost after its transmission,
            independently of all others; 0 or more, below 1. Without it no packet is lost there. A
            number.
    """

    rate: str
    delay: str
    queue: Queue
    random_loss: float | None = None


@dataclass(kw_only=True)
class Hop(Part):
    """A bottleneck: a link, and if `return` is given another one for the opposite direction.

    Attributes:
        rate: Transmission rate. A rate with its unit, for example "10 Mbit/s".
        delay: Propagation delay, one way. A time with its unit, for example "100 ms".
        queue: The queue in front of it. A table with kind = "tail-drop" or "red".
        random_loss: Probability with which each packet is lost after its transmission,
            independently of all others; 0 or more, below 1. Without it no packet is lost there. A
            number.
        return_: The link of the opposite direction, which can be congested too. Without it that
            direction takes no time and never drops; the groups' `return_delay` can give it a delay.
            A table with rate, delay, queue, random_loss.
    """

    rate: str
    delay: str
    queue: Queue
    random_loss: float | None = None
    return_: Link | None = None


@dataclass(kw_only=True)
class Chain(Part):
    """Several bottlenecks in a row.

    Attributes:
        hop: The bottlenecks, in the order in which forward traffic meets them. A list, each a table
            with rate, delay, queue, random_loss, return.
    """

    hop: Sequence[Hop]


@dataclass(kw_only=True)
class Tcp(Part):
    """A preset with the parameters that depart from it.

    Attributes:
        preset: The set of parameters to start from. "sack" or "newreno" or "reno" or "tahoe" or
            "cubic" or "dctcp" or "prague" or "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or
            "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or "ns2-tahoe"; default
            "sack".
        mss: Payload bytes of a full-sized segment. A number of bytes with its unit, for example
            "1500 B".
        header: Bytes that network and transport headers add to each segment. A number of bytes with
            its unit, for example "1500 B".
        slow_start: How the window grows until the first congestion event. "standard" or
            "hystart-plus-plus" or "hystart" or "vegas" or "startup".
        growth: How the window grows in congestion avoidance, and by how much it is reduced. "reno"
            or "cubic" or "vegas" or "ledbat" or "prague" or "bbr" or "bbr3".
        byte_counting: Grow the window with the bytes acknowledged instead of with each
            acknowledgement (RFC 3465; Linux, there without a limit in slow start). True or false.
        pacing: Space segments in time: at the rate of a model, or at twice the window each round
            trip in slow start and 1.2 times after it (Linux's tcp_pacing_ss_ratio and
            tcp_pacing_ca_ratio). True or false.
        recovery: How losses are detected and repaired. "tahoe" or "reno" or "newreno" or
            "ns2-tahoe" or "ns2-reno" or "ns2-newreno" or "sack" or "rack-tlp" or "sack-1996".
        prr: Reduce the flight in proportion to what is delivered during recovery (RFC 9937); with
            selective acknowledgements. True or false.
        halving: What a reduction takes its share of. "flight-size" or "window".
        initial_window: Segments that may be sent before the first acknowledgement. A whole number.
        dup_thresh: Duplicate acknowledgements that mean a loss (DupThresh). A whole number.
        limited_transmit: Send new data on the first two duplicate acknowledgements (RFC 3042). True
            or false.
        delayed_ack: Acknowledge every second full-sized segment, or after `delayed_ack_timeout`;
            off acknowledges each. True or false.
        delayed_ack_timeout: How long an acknowledgement may be delayed. A time with its unit, for
            example "100 ms".
        quick_acks: Segments at the start of a connection that are acknowledged at once in spite of
            `delayed_ack`. A whole number.
        timestamps: Measure a round trip with every acknowledgement by timestamps (RFC 7323); their
            12 bytes are part of `header`. True or false.
        receive_window: Most bytes the receiver lets be outstanding: its buffer. What it announces
            is a multiple of its window scale (RFC 7323, section 2.3), the least power of two with
            which it fits 16 bits. A number of bytes with its unit, for example "1500 B".
        read_rate: How fast the receiving application reads; what it has not read takes up the
            receive window. Without it the application reads at once. A rate with its unit, for
            example "10 Mbit/s".
        handshake: Open with a three-way handshake, whose segments can be lost, and close with FINs;
            off starts with data and just ends, as ns-2's one-way agents do. True or false.
        idle_restart: After nothing was sent for longer than the retransmission timeout, go on with
            no more than the initial window (RFC 5681, section 4.1; Linux halves the window for each
            timeout that passed, down to the same). True or false.
        initial_rto: Retransmission timeout before the first round-trip sample. A time with its
            unit, for example "100 ms".
        min_rto: Least retransmission timeout. A time with its unit, for example "100 ms".
        rto_floor: What `min_rto` is a bound of. "timeout" or "deviation".
        max_rto: Most retransmission timeout, back-off included. A time with its unit, for example
            "100 ms".
        clock_granularity: Tick of the clock that times round trips; zero is an exact clock. A time
            with its unit, for example "100 ms".
        rtt_sampling: Which segments give round-trip samples. "every-ack" or "one-per-window".
        frto: After a timeout send new data before more old data, and take the timeout back if
            segments sent before it still arrive (F-RTO, RFC 5682: section 3.1 with selective
            acknowledgements, otherwise section 2.1). True or false.
        dsack: Report data that arrives twice (RFC 2883), take a reduction back when all its
            retransmissions were reported so, and let RACK's room for reordering grow with the
            reports (RFC 8985, section 6.2); with selective acknowledgements. True or false.
        ecn: Use ECN (RFC 3168): negotiate it, send ECN-capable data, respond to marks. True or
            false.
        ecn_feedback: How the receiver tells of marks. "echo" or "dctcp" or "accecn".
        ecn_reduction: By how much marks reduce the window. "loss" or "abe" or "dctcp" or "prague".
        ecn_codepoint: The codepoint of ECN-capable data. "ect0" or "ect1".
        ecn_syn_ack: Make the SYN-ACK ECN-capable too (RFC 5562). True or false.
        ecn_fallback: Give ECN up when the SYN that asks for it has to be repeated (RFC 3168,
            section 6.1.1.1; Linux). True or false.
        ecn_retransmissions: With `ecn`, make retransmissions ECN-capable and let them carry CWR, as
            ns-2 does; RFC 3168, section 6.1.5, says not to. True or false.
    """

    preset: (
        Literal[
            "sack",
            "newreno",
            "reno",
            "tahoe",
            "cubic",
            "dctcp",
            "prague",
            "vegas",
            "ledbat",
            "linux",
            "bbr",
            "bbr3",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | None
    ) = None
    mss: str | None = None
    header: str | None = None
    slow_start: Literal["standard", "hystart-plus-plus", "hystart", "vegas", "startup"] | None = (
        None
    )
    growth: Literal["reno", "cubic", "vegas", "ledbat", "prague", "bbr", "bbr3"] | None = None
    byte_counting: bool | None = None
    pacing: bool | None = None
    recovery: (
        Literal[
            "tahoe",
            "reno",
            "newreno",
            "ns2-tahoe",
            "ns2-reno",
            "ns2-newreno",
            "sack",
            "rack-tlp",
            "sack-1996",
        ]
        | None
    ) = None
    prr: bool | None = None
    halving: Literal["flight-size", "window"] | None = None
    initial_window: int | None = None
    dup_thresh: int | None = None
    limited_transmit: bool | None = None
    delayed_ack: bool | None = None
    delayed_ack_timeout: str | None = None
    quick_acks: int | None = None
    timestamps: bool | None = None
    receive_window: str | None = None
    read_rate: str | None = None
    handshake: bool | None = None
    idle_restart: bool | None = None
    initial_rto: str | None = None
    min_rto: str | None = None
    rto_floor: Literal["timeout", "deviation"] | None = None
    max_rto: str | None = None
    clock_granularity: str | None = None
    rtt_sampling: Literal["every-ack", "one-per-window"] | None = None
    frto: bool | None = None
    dsack: bool | None = None
    ecn: bool | None = None
    ecn_feedback: Literal["echo", "dctcp", "accecn"] | None = None
    ecn_reduction: Literal["loss", "abe", "dctcp", "prague"] | None = None
    ecn_codepoint: Literal["ect0", "ect1"] | None = None
    ecn_syn_ack: bool | None = None
    ecn_fallback: bool | None = None
    ecn_retransmissions: bool | None = None


@dataclass(kw_only=True)
class Bulk(Part):
    """TCP senders that always have data to send.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        flows: Number of flows. A whole number, at least 1; default 1.
        tcp: The TCP they use: a preset, or a table with a preset and what departs from it. "sack"
            or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or "vegas" or
            "ledbat" or "linux" or "bbr" or "bbr3" or "linux-2000" or "ns2-sack" or "ns2-newreno" or
            "ns2-reno" or "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …;
            default "sack".
        start: When flows start; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these; default "0 s".
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        return_delay: One-way propagation delay that the way back adds to that of the return links;
            dealt out. A time with its unit, for example "100 ms", or a list of these; default "0
            s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. A whole number, at least 1.
        direction: Which way the data travels. "forward" or "reverse"; default "forward".
        dscp: The class that its packets ask for, in both directions. A text, or a whole number;
            default "BE".
        port: The port it is served from, for queues that tell traffic apart by it. A whole number.
        first_hop: First hop of a chain that the data crosses, counted from 1 in the chain's order.
            A whole number.
        last_hop: Last hop of a chain that the data crosses, counted from 1 in the chain's order. A
            whole number.
    """

    _kind: ClassVar[str | None] = "bulk"

    name: str
    flows: int | None = None
    tcp: (
        Literal[
            "sack",
            "newreno",
            "reno",
            "tahoe",
            "cubic",
            "dctcp",
            "prague",
            "vegas",
            "ledbat",
            "linux",
            "bbr",
            "bbr3",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    start: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | None = None
    last_hop: int | None = None


@dataclass(kw_only=True)
class Transfer(Part):
    """TCP transfers of a given size, one for each flow.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        size: Payload to transfer; dealt out. A number of bytes with its unit, for example "1500 B",
            or a list of these.
        flows: Number of flows. A whole number, at least 1; default 1.
        tcp: The TCP they use: a preset, or a table with a preset and what departs from it. "sack"
            or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or "vegas" or
            "ledbat" or "linux" or "bbr" or "bbr3" or "linux-2000" or "ns2-sack" or "ns2-newreno" or
            "ns2-reno" or "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …;
            default "sack".
        start: When transfers start; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these; default "0 s".
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        return_delay: One-way propagation delay that the way back adds to that of the return links;
            dealt out. A time with its unit, for example "100 ms", or a list of these; default "0
            s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. A whole number, at least 1.
        direction: Which way the data travels. "forward" or "reverse"; default "forward".
        dscp: The class that its packets ask for, in both directions. A text, or a whole number;
            default "BE".
        port: The port it is served from, for queues that tell traffic apart by it. A whole number.
        first_hop: First hop of a chain that the data crosses, counted from 1 in the chain's order.
            A whole number.
        last_hop: Last hop of a chain that the data crosses, counted from 1 in the chain's order. A
            whole number.
    """

    _kind: ClassVar[str | None] = "transfer"

    name: str
    size: str | Sequence[str]
    flows: int | None = None
    tcp: (
        Literal[
            "sack",
            "newreno",
            "reno",
            "tahoe",
            "cubic",
            "dctcp",
            "prague",
            "vegas",
            "ledbat",
            "linux",
            "bbr",
            "bbr3",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    start: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | None = None
    last_hop: int | None = None


@dataclass(kw_only=True)
class Cbr(Part):
    """UDP sources of constant rate.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        rate: Rate of each source on the link, headers included. A rate with its unit, for example
            "10 Mbit/s".
        packet: Size of each packet on the link, headers included. A number of bytes with its unit,
            for example "1500 B".
        flows: Number of flows. A whole number, at least 1; default 1.
        dither: Draw each gap between packets uniformly from (1 - dither) to (1 + dither) times the
            nominal one. A number; default 0.0.
        start: When sources start; dealt out. Left out, each starts at a random phase of its first
            gap. A time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for
            each flow, or a list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these; default "0 s".
        return_delay: One-way propagation delay that the way back adds to that of the return links;
            dealt out. A time with its unit, for example "100 ms", or a list of these; default "0
            s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. A whole number, at least 1.
        direction: Which way the data travels. "forward" or "reverse"; default "forward".
        dscp: The class that its packets ask for, in both directions. A text, or a whole number;
            default "BE".
        port: The port it is served from, for queues that tell traffic apart by it. A whole number.
        first_hop: First hop of a chain that the data crosses, counted from 1 in the chain's order.
            A whole number.
        last_hop: Last hop of a chain that the data crosses, counted from 1 in the chain's order. A
            whole number.
    """

    _kind: ClassVar[str | None] = "cbr"

    name: str
    rate: str
    packet: str
    flows: int | None = None
    dither: float | None = None
    start: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | None = None
    last_hop: int | None = None


@dataclass(kw_only=True)
class Series(Part):
    """Time series to record. Recording never changes a run.

    Attributes:
        interval: Time from one sample to the next. A time with its unit, for example "100 ms".
        queues: Of every queue: its length, and the average and probability of its control law. True
            or false; default true.
        windows: Of every flow: congestion window, slow start threshold, data in flight, smoothed
            round-trip time. True or false; default false.
        replications: In how many replications of each case, counted from the first. A whole number,
            at least 1; default 1.
    """

    interval: str
    queues: bool | None = None
    windows: bool | None = None
    replications: int | None = None


@dataclass(kw_only=True)
class Experiment(Whole):
    """An experiment: what runs, how long, how often, and what is compared.

    Attributes:
        name: What the experiment is called; results go to a folder of this name. A text.
        duration: How long each run lasts, in simulated time. A time with its unit, for example "100
            ms".
        traffic: The groups of flows. A list, each a table with kind = "bulk" or "transfer" or
            "cbr".
        description: What it is about, in a sentence or more. A text.
        warmup: How much of the beginning is left out of all statistics; less than `duration`. A
            time with its unit, for example "100 ms"; default "0 s".
        replications: How many runs with independent random numbers each case gets; means and
            intervals are over these. A whole number, at least 1; default 10.
        seed: Where the random numbers start from: the same seed gives the same results, byte for
            byte. A whole number; default 1.
        bottleneck: One bottleneck link that all traffic crosses. Give either this or `chain`. A
            table with rate, delay, queue, random_loss, return.
        chain: Several bottleneck links in a row. Give either this or `bottleneck`. A table with
            hop.
        series: Time series to record; without it there are none. A table with interval, queues,
            windows, replications.
        factors: Keys that take several values in turn; every combination is a case. A key is
            dotted: "bottleneck.queue", "traffic.ftp.flows" (the group named ftp),
            "chain.hop2.rate". A table.
    """

    name: str
    duration: str
    traffic: Sequence[Traffic]
    description: str | None = None
    warmup: str | None = None
    replications: int | None = None
    seed: int | None = None
    bottleneck: Hop | None = None
    chain: Chain | None = None
    series: Series | None = None
    factors: Mapping[str, Sequence[Any] | Mapping[str, Any]] | None = None


Queue: TypeAlias = "TailDrop | Red"
"""One of these."""

Traffic: TypeAlias = "Bulk | Transfer | Cbr"
"""One of these."""

Bottleneck: TypeAlias = Hop
"""The bottleneck of an experiment that has one."""
