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
    "AdaptiveRed",
    "Airtime",
    "AnyGrowth",
    "AnyPolicer",
    "AnyQueue",
    "AnySlowStart",
    "AnyTraffic",
    "Arrivals",
    "Avq",
    "Batches",
    "Bbr3GoogleGrowth",
    "Bbr3Growth",
    "BbrGrowth",
    "BicGrowth",
    "Blue",
    "Bottleneck",
    "Bulk",
    "Cake",
    "Call",
    "Cbr",
    "Chain",
    "Choke",
    "Cobalt",
    "Codel",
    "CopaDefaultGrowth",
    "CopaGrowth",
    "CubicGrowth",
    "DelayChange",
    "DerivedMetric",
    "DocsisPie",
    "Drr",
    "DrrClass",
    "Dualpi2",
    "DynamicThresholdRed",
    "Endpoint",
    "Events",
    "Expectation",
    "Experiment",
    "Fq",
    "FqCodel",
    "FqPie",
    "Game",
    "GilbertElliott",
    "Gsp",
    "Handovers",
    "HeadDrop",
    "HighspeedGrowth",
    "Hop",
    "Hosts",
    "Htb",
    "HtbClass",
    "HtcpGrowth",
    "HyblaGrowth",
    "HyblaSlowStart",
    "HystartPlusPlusSlowStart",
    "HystartSlowStart",
    "IllinoisGrowth",
    "LedbatGrowth",
    "Link",
    "LinkOverhead",
    "LinuxCubicGrowth",
    "LinuxRenoGrowth",
    "Measure",
    "OnOff",
    "PfifoFast",
    "Pi",
    "Pi2",
    "Pie",
    "Plugin",
    "PragueGrowth",
    "Prio",
    "PrioClass",
    "Profile",
    "Program",
    "RateChange",
    "RateLaw",
    "RateSine",
    "RateWalk",
    "Red",
    "RedTail",
    "Rem",
    "RenoGrowth",
    "Reorder",
    "Report",
    "Root",
    "Rule",
    "ScalableGrowth",
    "SelfConfiguringRed",
    "Series",
    "Sfb",
    "Sfq",
    "SrTcm",
    "Sred",
    "StandardSlowStart",
    "StartupSlowStart",
    "Step",
    "StopRule",
    "TailDrop",
    "Tbf",
    "Tcp",
    "TokenBucket",
    "TrTcm",
    "Trace",
    "Transactions",
    "Transfer",
    "VegasGrowth",
    "VegasSlowStart",
    "VenoGrowth",
    "Video",
    "Voip",
    "Web",
    "WestwoodGrowth",
    "Wfq",
    "WfqClass",
    "Wire",
    "Wred",
    "YeahGrowth",
]


@dataclass(kw_only=True)
class StopRule(Part):
    """Replications until intervals are narrow enough.

    Attributes:
        until: Condition under which a case needs no more runs, such as `"queue_delay_p99 within 5
            %"`: half the width of the metric's 95 % interval is at most this share of its mean.
            `"difference of queue_delay_p99 between A and B within 5 %"` is about the paired
            difference of two settings of a factor, by their labels: half the width of its interval
            is at most this share of B's mean. In a list, all conditions must hold. A text, or a
            list of these.
        at_least: Number of runs of each case before the condition is tested for the first time; 2
            or more. With fewer than 10, the final interval covers the mean in fewer than 95 % of
            cases. A whole number, at least 2; default 10.
        at_most: Largest number of runs of a case, whether or not the condition holds then; up to
            1000000. A whole number from 2 to 1e+06; default 50.
    """

    until: str | Sequence[str]
    at_least: int | None = None
    at_most: int | None = None


@dataclass(kw_only=True)
class TailDrop(Part):
    """First-in first-out; an arrival that does not fit is dropped.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "tail-drop"

    limit: str | Sequence[str]
    label: str | None = None


@dataclass(kw_only=True)
class Red(Part):
    """Random Early Detection (Floyd and Jacobson 1993), with gentle, byte mode and ECN.

    Attributes:
        tune: Compute `limit`, `min_th`, `max_th`, `max_p` and `w_q` from the link and the flows
            that cross it; given values are kept. "ziegler".
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. Required without `tune`. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these.
        min_th: Average below which no packet is dropped, in packets, bytes or time at the link's
            rate; with packets the average counts packets, otherwise bytes. Required without `tune`.
            A queue size with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_th: Average at which the drop probability reaches `max_p`, in the unit of `min_th`.
            Required without `tune`. A queue size with its unit, for example "300 packets", "64 kB"
            or "20 ms".
        max_p: Drop probability when the average reaches `max_th`; with `tune`, computed unless
            given. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average; with `tune`, computed unless
            given. A number; default 0.002.
        gentle: Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every
            packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"`
            at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit"; default
            false.
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "wait".
        flavour: Which implementation's details apply where the paper specifies none: those of the
            paper's text, of ns-2 or of Linux. "paper" or "ns-2" or "linux"; default "paper".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: measures idle periods in packets and scales `byte_mode`. A
            number of bytes with its unit, for example "1500 B"; default "500 B".
        idle_decay: Let the average decay while the link is idle. With `false`, only arrivals change
            it, and an average above `max_th` can keep the queue empty. True or false; default true.
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "red"

    tune: Literal["ziegler"] | None = None
    limit: str | Sequence[str] | None = None
    min_th: str | None = None
    max_th: str | None = None
    max_p: float | None = None
    w_q: float | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    flavour: Literal["paper", "ns-2", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    idle_decay: bool | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class AdaptiveRed(Part):
    """RED that adapts max_p to keep the average between the thresholds (Floyd, Gummadi, Shenker 2001).

    Keys that are left out are computed from the link.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        min_th: Average below which no packet is dropped, in packets, bytes or time at the link's
            rate. Left out, half of `target_delay` at the link's rate, and at least 5 packets. A
            queue size with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_th: Average at which the drop probability reaches max_p, in the unit of `min_th`. Left
            out, three times `min_th`. A queue size with its unit, for example "300 packets", "64
            kB" or "20 ms".
        target_delay: Queueing delay halfway between the thresholds, from which `min_th` is computed
            when it is left out. A time with its unit, for example "100 ms"; default "5 ms".
        max_p: Initial drop probability at `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. Left out, 1 - exp(-1/C), with the
            link's rate C in packets per second. A number.
        alpha: Largest amount added to max_p in one step; never more than a quarter of max_p. A
            number; default 0.01.
        beta: Factor by which max_p is reduced. A number; default 0.9.
        bottom: max_p is reduced only while it is at least this. Left out, the smaller of 0.01 and
            one drop in 100 ms of packets of 1000 B. A number.
        top: max_p is increased only while it is at most this. A number; default 0.5.
        interval: Time between two changes of max_p. A time with its unit, for example "100 ms";
            default "500 ms".
        adapt: Whether max_p changes. With `false` it stays where it starts: RED with this queue's
            other parameters, and what `tc red adaptive` makes of a Linux kernel. True or false;
            default true.
        gentle: Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every
            packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"`
            at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit"; default
            "twice-max-th".
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "wait".
        flavour: Which implementation's details apply where the paper specifies none: those of the
            paper's text, of ns-2 or of Linux. With `"ns-2"`, the gentle slope always starts from
            the initial `max_p`. "paper" or "ns-2" or "linux"; default "paper".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: used for values that are computed from the link's rate,
            for idle periods and for `byte_mode`. Left out, the largest packet that crosses the
            link, or 500 B if none is known. A number of bytes with its unit, for example "1500 B".
        idle_decay: Let the average decay while the link is idle. With `false`, only arrivals change
            it, and an average above `max_th` can keep the queue empty. True or false; default true.
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "adaptive-red"

    limit: str | Sequence[str]
    min_th: str | None = None
    max_th: str | None = None
    target_delay: str | None = None
    max_p: float | None = None
    w_q: float | None = None
    alpha: float | None = None
    beta: float | None = None
    bottom: float | None = None
    top: float | None = None
    interval: str | None = None
    adapt: bool | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    flavour: Literal["paper", "ns-2", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    idle_decay: bool | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class SelfConfiguringRed(Part):
    """RED that changes max_p when the average leaves the range between the thresholds.

    (Feng, Kandlur, Saha, Shin 1999).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        min_th: Average below which no packet is dropped, in packets, bytes or time at the link's
            rate; when the average falls below it, max_p is divided by `alpha`. A queue size with
            its unit, for example "300 packets", "64 kB" or "20 ms".
        max_th: Average at which the drop probability reaches max_p, in the unit of `min_th`; when
            the average rises above it, max_p is multiplied by `beta`. A queue size with its unit,
            for example "300 packets", "64 kB" or "20 ms".
        max_p: Initial drop probability at `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. A number; default 0.002.
        alpha: Divisor of max_p when the average falls below `min_th`. A number; default 3.0.
        beta: Factor of max_p when the average rises above `max_th`; max_p stays at 1 at most. A
            number; default 2.0.
        gentle: Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every
            packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"`
            at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit"; default
            false.
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "wait".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: measures idle periods in packets and scales `byte_mode`. A
            number of bytes with its unit, for example "1500 B"; default "500 B".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "self-configuring-red"

    limit: str | Sequence[str]
    min_th: str
    max_th: str
    max_p: float | None = None
    w_q: float | None = None
    alpha: float | None = None
    beta: float | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class DynamicThresholdRed(Part):
    """RED that moves its thresholds to keep the drop probability within bounds.

    (Jou and Baras 2003).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. In the unit of the thresholds it bounds `max_th`. A queue size with its
            unit, for example "300 packets", "64 kB" or "20 ms", or a list of these.
        min_th: Initial and smallest value of the average below which no packet is dropped, in
            packets, bytes or time at the link's rate. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms".
        max_th: Initial value of the average at which the drop probability reaches `max_p`, in the
            unit of `min_th`; its difference from `min_th` is constant. A queue size with its unit,
            for example "300 packets", "64 kB" or "20 ms".
        p_upper: Average drop probability above which the thresholds rise. A number; default 0.02.
        p_lower: Average drop probability below which the thresholds fall. A number; default 0.01.
        gamma: Step of `min_th`, as a share of `min_th`. A number; default 0.05.
        interval: Time between two steps of the thresholds. A time with its unit, for example "100
            ms"; default "500 ms".
        w_p: Weight of one arrival in the average drop probability. A number; default 0.002.
        max_p: Drop probability when the average reaches `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. A number; default 0.002.
        gentle: Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every
            packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"`
            at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit"; default
            "twice-max-th".
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "wait".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: measures idle periods in packets and scales `byte_mode`. A
            number of bytes with its unit, for example "1500 B"; default "500 B".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "dynamic-threshold-red"

    limit: str | Sequence[str]
    min_th: str
    max_th: str
    p_upper: float | None = None
    p_lower: float | None = None
    gamma: float | None = None
    interval: str | None = None
    w_p: float | None = None
    max_p: float | None = None
    w_q: float | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class RedTail(Part):
    """RED+Tail: a drop-tail queue for short flows and UDP beside an Adaptive RED for long ones, in one buffer.

    (Jou and Baras 2003).

    Attributes:
        limit: Limit on the waiting packets of both queues together: in packets, in bytes, in time
            at the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these; default "160 kB".
        long_after: Number of packets after which a TCP flow counts as long (N). A whole number;
            default 64.
        idle_timeout: Time without packets after which a flow is forgotten; when it sends again, it
            counts as short (T). A time with its unit, for example "100 ms"; default "5 s".
        flows: Number of flows that are remembered at the same time; for a further flow, the one of
            eight flows that has been silent for longest is forgotten. A whole number from 1 to
            1.67772e+07; default 16384.
        short_min_th: Backlog of the short queue above which its share of the link grows in
            proportion to the backlog (minth1), in packets, bytes or time at the link's rate. A
            queue size with its unit, for example "300 packets", "64 kB" or "20 ms"; default "2 kB".
        short_max_th: Backlog of the short queue at which its share would be the whole link
            (maxth1), in the unit of `short_min_th`; divided by the link's rate, it is the target
            delay of the short queue. A queue size with its unit, for example "300 packets", "64 kB"
            or "20 ms"; default "30 kB".
        short_share_min: Share of the link for the short queue while its backlog is below
            `short_min_th` (C1min). Left out, `short_min_th` divided by `short_max_th`, and at most
            `short_share_max`: the share then has no step at `short_min_th`. A number.
        short_share_max: Largest share of the link for the short queue (C1max), so that long flows
            do not time out. A number; default 0.9.
        min_th: Average of the long queue below which no packet is dropped, in packets, bytes or
            time at the link's rate. A queue size with its unit, for example "300 packets", "64 kB"
            or "20 ms"; default "20 kB".
        max_th: Average at which the drop probability reaches max_p, in the unit of `min_th`. A
            queue size with its unit, for example "300 packets", "64 kB" or "20 ms"; default "80
            kB".
        max_p: Initial drop probability at `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. Left out, 1 - exp(-1/C), with the
            link's rate C in packets per second. A number.
        alpha: Largest amount added to max_p in one step; never more than a quarter of max_p. A
            number; default 0.01.
        beta: Factor by which max_p is reduced. A number; default 0.9.
        bottom: max_p is reduced only while it is at least this. Left out, the smaller of 0.01 and
            one drop in 100 ms of packets of 1000 B. A number.
        top: max_p is increased only while it is at most this. A number; default 0.5.
        interval: Time between two changes of max_p. A time with its unit, for example "100 ms";
            default "500 ms".
        gentle: Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every
            packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"`
            at the queue's limit (ISCC 2001). True or false or "twice-max-th" or "limit"; default
            "twice-max-th".
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "wait".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: used for values that are computed from the link's rate,
            for idle periods and for `byte_mode`. Left out, the largest packet that crosses the
            link, or 500 B if none is known. A number of bytes with its unit, for example "1500 B".
        ecn: Mark ECN-capable packets of the long queue instead of dropping them early. True or
            false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "red-tail"

    limit: str | Sequence[str] | None = None
    long_after: int | None = None
    idle_timeout: str | None = None
    flows: int | None = None
    short_min_th: str | None = None
    short_max_th: str | None = None
    short_share_min: float | None = None
    short_share_max: float | None = None
    min_th: str | None = None
    max_th: str | None = None
    max_p: float | None = None
    w_q: float | None = None
    alpha: float | None = None
    beta: float | None = None
    bottom: float | None = None
    top: float | None = None
    interval: str | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Profile(Part):
    """RED's parameters for packets of some classes.

    Attributes:
        min_th: Average below which no packet of the profile is dropped, in packets, bytes or time
            at the link's rate. A queue size with its unit, for example "300 packets", "64 kB" or
            "20 ms".
        max_th: Average at which the drop probability of the profile's packets reaches `max_p`, in
            the unit of `min_th`. A queue size with its unit, for example "300 packets", "64 kB" or
            "20 ms".
        dscp: The classes of the profile, such as `["AF11", "EF"]`; left out, all classes that no
            other profile names. A list, each a text, or a whole number from 0 to 63.
        max_p: Drop probability when the average reaches `max_th`. A number; default 0.1.
    """

    min_th: str
    max_th: str
    dscp: Sequence[str | int] | None = None
    max_p: float | None = None


@dataclass(kw_only=True)
class Wred(Part):
    """RED with thresholds for each drop precedence: WRED, RIO (Clark and Fang 1998), Linux's gred.

    Attributes:
        limit: Limit on the waiting packets of all profiles together: in packets, in bytes, in time
            at the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these.
        profiles: Thresholds by class, from the packets to drop last to the packets to drop first; a
            profile without `dscp` is for all other packets. A list, each a table with dscp, min_th,
            max_th, max_p.
        average: Which packets are counted in the average that decides about a packet. "total" or
            "rio" or "own"; default "total".
        w_q: Weight of one arrival's sample in the moving average. A number; default 0.002.
        gentle: Above a profile's `max_th`, let the probability rise from its `max_p` to 1 instead
            of dropping every packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd
            2000), `"limit"` at the queue's limit (ISCC 2001). True or false or "twice-max-th" or
            "limit"; default false.
        spacing: How early drops of a profile are spaced among its arrivals. "uniform" or "wait" or
            "none" or "linux"; default "wait".
        byte_mode: Multiply a packet's drop probability by its size divided by `mean_packet`. True
            or false; default false.
        mean_packet: Typical packet size: measures idle periods in packets and scales `byte_mode`. A
            number of bytes with its unit, for example "1500 B"; default "500 B".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        above_max_th: With `ecn`, what happens to ECN-capable packets that are chosen while the
            average is at `max_th` or above, with or without `gentle`. "drop" or "mark"; default
            "drop".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "wred"

    limit: str | Sequence[str]
    profiles: Sequence[Profile]
    average: Literal["total", "rio", "own"] | None = None
    w_q: float | None = None
    gentle: Literal[True, False, "twice-max-th", "limit"] | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    above_max_th: Literal["drop", "mark"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Pi(Part):
    """The PI controller holds the length at a reference (Hollot, Misra, Towsley and Gong 2001).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        q_ref: Backlog to hold, in packets, bytes or time at the link's rate. A queue size with its
            unit, for example "300 packets", "64 kB" or "20 ms"; default "50 packets".
        a: Gain of the present deviation from `q_ref`, per packet. Without `a` and `b`, both are
            computed as `tune` says. A number.
        b: Gain of the deviation from `q_ref` at the update before, per packet; given together with
            `a`. A number.
        tune: How `a` and `b` are computed when they are not given. "hollot".
        flows: For `tune`: smallest number of flows for which the loop must be stable; without it,
            the number of TCP flows that cross the link. A whole number.
        rtt: For `tune`: longest round-trip time, without queueing, for which the loop must be
            stable; without it, the longest of the TCP flows that cross the link. A time with its
            unit, for example "100 ms".
        sampling: How often the probability is updated: a frequency or the time between updates. A
            frequency or a time with its unit, for example "170 Hz" or "10 ms"; default "170 Hz".
        mean_packet: Typical packet size, to express the link's rate in packets for `tune`, and the
            backlog in packets if `q_ref` is in bytes or time. Without it, the largest packet that
            is known to cross the link, else 1500 B. A number of bytes with its unit, for example
            "1500 B".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "pi"

    limit: str | Sequence[str]
    q_ref: str | None = None
    a: float | None = None
    b: float | None = None
    tune: Literal["hollot"] | None = None
    flows: int | None = None
    rtt: str | None = None
    sampling: str | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Pie(Part):
    """PIE holds the queueing delay at a target (RFC 8033).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        target: Queueing delay to hold. A time with its unit, for example "100 ms"; default "15 ms".
        update: Time between updates of the probability; at least "1 us", the unit in which Linux
            counts it. A time with its unit, for example "100 ms"; default "15 ms".
        alpha: Gain of the deviation from the target, in 1/s. A number; default 0.125.
        beta: Gain of the delay's change, in 1/s. A number; default 1.25.
        max_burst: Burst that passes without drops after a time without congestion; "0 s" for none.
            A time with its unit, for example "100 ms"; default "150 ms".
        derandomize: Derandomize drops: prevent drops that follow each other closely and long times
            without drops (RFC 8033, section 5.4). True or false; default true.
        delay: How the queueing delay is determined. "timestamps" or "departure-rate"; default
            "timestamps".
        decay: At which delays the probability decays, in addition to the change by the controller.
            "no-delay" or "half-target"; default "no-delay".
        byte_mode: Multiply the probability by a packet's size divided by `mean_packet`, for packets
            up to that size. True or false; default false.
        mean_packet: Size of a typical packet: no packet is dropped while no more than two of them
            wait. Without it, the largest packet that is known to cross the link, else 1500 B. A
            number of bytes with its unit, for example "1500 B".
        activation: Keep PIE inactive until the backlog is a third of the limit. True or false;
            default false.
        flavour: Which implementation's details apply where RFC 8033 and Linux differ: those of the
            RFC or those of Linux. "rfc" or "linux"; default "rfc".
        ecn: Mark ECN-capable packets instead of dropping them early, while the probability is below
            `max_ecn`. True or false; default false.
        max_ecn: Probability at and above which ECN-capable packets are dropped like all other
            packets. A number; default 0.1.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "pie"

    limit: str | Sequence[str]
    target: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    max_burst: str | None = None
    derandomize: bool | None = None
    delay: Literal["timestamps", "departure-rate"] | None = None
    decay: Literal["no-delay", "half-target"] | None = None
    byte_mode: bool | None = None
    mean_packet: str | None = None
    activation: bool | None = None
    flavour: Literal["rfc", "linux"] | None = None
    ecn: bool | None = None
    max_ecn: float | None = None
    label: str | None = None


@dataclass(kw_only=True)
class DocsisPie(Part):
    """PIE for DOCSIS cable modems, with the modem's shaper (RFC 8034).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        rate: Maximum sustained traffic rate that the modem shapes to. A rate with its unit, for
            example "10 Mbit/s".
        burst: With `rate`, maximum traffic burst: the bytes that may leave at the peak traffic rate
            before `rate` applies. A number of bytes with its unit, for example "1500 B"; default
            "3044 B".
        peak_rate: With `rate`, peak traffic rate, which is not exceeded even in a burst. A rate
            with its unit, for example "10 Mbit/s".
        target: Queueing delay to hold. A time with its unit, for example "100 ms"; default "10 ms".
        update: Time between updates of the probability; at least "1 us", the unit in which Linux
            counts it. A time with its unit, for example "100 ms"; default "16 ms".
        alpha: Gain of the deviation from the target, in 1/s. A number; default 0.25.
        beta: Gain of the delay's change, in 1/s. A number; default 2.5.
        max_burst: Burst that passes without further drops after the first drop; "0 s" for none. A
            time with its unit, for example "100 ms"; default "142 ms".
        burst_reset: Time without congestion after which the law becomes inactive until the backlog
            is a third of the limit. A time with its unit, for example "100 ms"; default "1 s".
        mean_packet: Size of a packet that is dropped with the law's probability; other packets have
            a probability in proportion to their size, at most 0.85. No packet is dropped while no
            more than two of this size wait. A number of bytes with its unit, for example "1500 B";
            default "1024 B".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "docsis-pie"

    limit: str | Sequence[str]
    rate: str | None = None
    burst: str | None = None
    peak_rate: str | None = None
    target: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    max_burst: str | None = None
    burst_reset: str | None = None
    mean_packet: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Pi2(Part):
    """PI2 holds the queueing delay at a target.

    The drop probability of classic senders is the square of the controlled probability (De
    Schepper et al. 2016).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        target: Queueing delay to hold. A time with its unit, for example "100 ms"; default "15 ms".
        rtt_max: Longest round-trip time for which the loop must be stable: `update`, `alpha` and
            `beta` are computed from it. A time with its unit, for example "100 ms"; default "100
            ms".
        update: Time between updates, at least "1 us". Without it the smaller of `target` and a
            third of `rtt_max` (RFC 9332, appendix A.1). A time with its unit, for example "100 ms".
        alpha: Gain of the deviation from the target, in 1/s. Without it 0.1 `update` divided by the
            square of `rtt_max` (RFC 9332, appendix A.1). A number.
        beta: Gain of the delay's change, in 1/s. Without it 0.3 divided by `rtt_max` (RFC 9332,
            appendix A.1). A number.
        ecn: Mark ECN-capable packets instead of dropping them. True or false; default false.
        coupling: With `ecn`, mark ECT(1) packets with p' times this factor, for scalable senders;
            without this key ECT(1) packets are treated as classic. A number.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "pi2"

    limit: str | Sequence[str]
    target: str | None = None
    rtt_max: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    ecn: bool | None = None
    coupling: float | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Dualpi2(Part):
    """DualPI2: a low-latency queue for L4S senders, coupled to a classic one (RFC 9332).

    Attributes:
        flavour: Which implementation's details and defaults apply where RFC 9332 and Linux differ:
            those of the RFC or those of Linux. "rfc" or "linux"; default "rfc".
        limit: Limit on the waiting packets of both queues together: in packets, in bytes, in time
            at the link's rate, or a list of these. Without it 250 ms (RFC 9332, appendix A.1),
            10,000 packets in Linux. A queue size with its unit, for example "300 packets", "64 kB"
            or "20 ms", or a list of these.
        target: Queueing delay to hold in the classic queue. A time with its unit, for example "100
            ms"; default "15 ms".
        rtt_max: Longest round-trip time for which the loop must be stable: `update`, `alpha` and
            `beta` are computed from it. Without it 100 ms (RFC 9332, appendix A.1); Linux has none.
            A time with its unit, for example "100 ms".
        update: Time between updates, at least "1 us". Without it the smaller of `target` and a
            third of `rtt_max` (RFC 9332, appendix A.1), 16 ms in Linux. A time with its unit, for
            example "100 ms".
        alpha: Gain of the deviation from the target, in 1/s. Without it 0.1 `update` divided by the
            square of `rtt_max` (RFC 9332, appendix A.1), 41/256 in Linux. A number.
        beta: Gain of the delay's change, in 1/s. Without it 0.3 divided by `rtt_max` (RFC 9332,
            appendix A.1), 819/256 in Linux. A number.
        coupling: Mark probability of the low-latency queue divided by the square root of the
            classic drop probability. A number; default 2.0.
        min_th: Queueing delay above which the low-latency queue marks packets by its own ramp.
            Without it 800 us (RFC 9332, appendix A.1, minTh), 1 ms in Linux (`step_thresh`). A time
            with its unit, for example "100 ms".
        range: Width of the ramp above `min_th`, over which the mark probability of the low-latency
            queue rises to 1; "0 s" makes a step. Without it 400 us (RFC 9332, appendix A.1, range),
            a step in Linux. A time with its unit, for example "100 ms".
        th_len: The ramp marks no packet while the low-latency queue has no more than this number of
            packets, the leaving one included. Without it 1 (RFC 9332, appendix A.1, Th_len), 0 in
            Linux (`min_qlen_step`). A whole number.
        scheduler: Which queue is served next while packets wait in both. "wrr" or "time-shifted";
            default "wrr".
        classic_share: For `scheduler = "wrr"`: smallest share of the bytes for the classic queue
            while packets wait in both. Without it 1/16 (RFC 9332, its example of a weighted round
            robin), 0.1 in Linux (`c_protection_wc`). A number.
        time_shift: For `scheduler = "time-shifted"`: time that is added to the queueing delay of
            the low-latency queue. Without it twice `target`, as in the first implementation for
            Linux. A time with its unit, for example "100 ms".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "dualpi2"

    flavour: Literal["rfc", "linux"] | None = None
    limit: str | Sequence[str] | None = None
    target: str | None = None
    rtt_max: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    coupling: float | None = None
    min_th: str | None = None
    range: str | None = None
    th_len: int | None = None
    scheduler: Literal["wrr", "time-shifted"] | None = None
    classic_share: float | None = None
    time_shift: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class HeadDrop(Part):
    """First-in first-out; for an arrival that does not fit, the oldest packets are dropped.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "head-drop"

    limit: str | Sequence[str]
    label: str | None = None


@dataclass(kw_only=True)
class Step(Part):
    """Marks every ECN-capable packet above a threshold, the simple AQM of L4S and DCTCP.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        threshold: In packets or bytes: the largest backlog at which an arrival is not marked; in
            time: the longest queueing delay at which a leaving packet is not marked. A queue size
            with its unit, for example "300 packets", "64 kB" or "20 ms"; default "1 ms".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "step"

    limit: str | Sequence[str]
    threshold: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Rem(Part):
    """REM marks with a probability that depends exponentially on a price for the load.

    (Athuraliya, Li, Low and Yin 2001).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        target: Backlog to hold, in packets, bytes or time at the link's rate. A queue size with its
            unit, for example "300 packets", "64 kB" or "20 ms"; default "20 packets".
        gamma: Step of the price. A number; default 0.001.
        alpha: Weight of the backlog's deviation relative to that of the rate. A number; default
            0.1.
        phi: Base phi of the probability 1 - phi^-price. A number; default 1.001.
        sampling: How often the price is updated: a frequency or the time between updates. A
            frequency or a time with its unit, for example "170 Hz" or "10 ms"; default "2 ms".
        mean_packet: Typical packet size, to express the link's rate in packets. Without it, the
            largest packet that is known to cross the link, else 1500 B. A number of bytes with its
            unit, for example "1500 B".
        ecn: Mark ECN-capable packets as they leave instead of dropping them as they arrive. True or
            false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "rem"

    limit: str | Sequence[str]
    target: str | None = None
    gamma: float | None = None
    alpha: float | None = None
    phi: float | None = None
    sampling: str | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Blue(Part):
    """BLUE raises its probability at a loss and lowers it while the link is idle.

    (Feng, Shin, Kandlur and Saha 2002).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        increment: Amount added to the probability at a loss. A number; default 0.0025.
        decrement: Amount subtracted from the probability when the link is idle. A number; default
            0.00025.
        freeze_time: Smallest time between two changes of the probability. A time with its unit, for
            example "100 ms"; default "100 ms".
        threshold: Backlog above which an arrival counts as a loss; without it only losses count
            (Feng et al. 2002, section III). A queue size with its unit, for example "300 packets",
            "64 kB" or "20 ms".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "blue"

    limit: str | Sequence[str]
    increment: float | None = None
    decrement: float | None = None
    freeze_time: str | None = None
    threshold: str | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Sred(Part):
    """Stabilised RED estimates the number of flows from a list of recently seen packets.

    (Ott, Lakshman and Wong 1999).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. The drop probability depends on the backlog as a share of the limit. A
            queue size with its unit, for example "300 packets", "64 kB" or "20 ms", or a list of
            these.
        max_p: Drop probability at a backlog of a third of the limit or more. A number; default
            0.15.
        zombies: Number of entries in the list of recently seen packets (zombies). A whole number;
            default 1000.
        overwrite: Probability that a zombie of another flow is overwritten. A number; default 0.25.
        full: Drop packets that match a zombie with a higher probability; these belong to flows with
            more than their share (full SRED). True or false; default true.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "sred"

    limit: str | Sequence[str]
    max_p: float | None = None
    zombies: int | None = None
    overwrite: float | None = None
    full: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Avq(Part):
    """AVQ marks the packets that overflow a virtual queue slower than the link.

    (Kunniyur and Srikant 2001).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        virtual_limit: Limit of the virtual queue, which is counted in the unit of this limit.
            Without it the limit in packets, else in bytes (ns-2.35, `buflim_` 1). A queue size with
            its unit, for example "300 packets", "64 kB" or "20 ms".
        gamma: Desired utilisation of the link. A number; default 0.98.
        alpha: Gain of the adaptation of the virtual capacity, in 1/s. A number; default 0.15.
        mean_packet: Typical packet size, to express the link's rate in packets. Without it, the
            largest packet that is known to cross the link, else 1500 B. A number of bytes with its
            unit, for example "1500 B".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "avq"

    limit: str | Sequence[str]
    virtual_limit: str | None = None
    gamma: float | None = None
    alpha: float | None = None
    mean_packet: str | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Choke(Part):
    """CHOKe: RED that drops an arrival with a waiting packet of its own flow.

    (Pan, Prabhakar and Psounis 2000).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        min_th: Average below which no packet is dropped or compared, in packets, bytes or time at
            the link's rate; with packets the average counts packets, otherwise bytes. A queue size
            with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_th: Average at which the drop probability reaches `max_p` and jumps to 1, in the unit of
            `min_th`. A queue size with its unit, for example "300 packets", "64 kB" or "20 ms".
        max_p: Drop probability when the average reaches `max_th`. A number; default 0.1.
        w_q: Weight of one arrival's sample in the moving average. A number; default 0.002.
        spacing: How early drops are spaced among the arrivals. "uniform" or "wait" or "none" or
            "linux"; default "uniform".
        candidates: Number of waiting packets with which an arrival is compared. A whole number;
            default 1.
        mean_packet: Typical packet size, to express idle periods in packets. A number of bytes with
            its unit, for example "1500 B"; default "500 B".
        idle_decay: Let the average decay while the link is idle. With `false`, only arrivals change
            it, and an average above `max_th` can keep the queue empty. True or false; default true.
        flavour: Details that the paper leaves open, and the arithmetic of the average: the paper's
            or Linux's. "paper" or "ns-2" or "linux"; default "paper".
        ecn: Mark ECN-capable packets that RED chooses while the average is below `max_th`; packets
            that match a waiting packet of their own flow are dropped. True or false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "choke"

    limit: str | Sequence[str]
    min_th: str
    max_th: str
    max_p: float | None = None
    w_q: float | None = None
    spacing: Literal["uniform", "wait", "none", "linux"] | None = None
    candidates: int | None = None
    mean_packet: str | None = None
    idle_decay: bool | None = None
    flavour: Literal["paper", "ns-2", "linux"] | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Gsp(Part):
    """GSP drops one packet each time a threshold is crossed (Lautenschlaeger 2014).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these.
        threshold: Backlog above which an arrival may be dropped, in packets, bytes or time at the
            link's rate. A queue size with its unit, for example "300 packets", "64 kB" or "20 ms".
        interval: Time without drops after a drop; with `adaptive`, the longest such time. About one
            round-trip time or more. A time with its unit, for example "100 ms"; default "200 ms".
        adaptive: Shorten the interval while the queue is above the threshold for longer than below.
            True or false; default true.
        alpha: Weight of the time above the threshold relative to that of the time below it. A
            number; default 2.0.
        tau: Time constant of the adaptation. Without it five times `interval` (Lautenschlaeger and
            Francini 2015). A time with its unit, for example "100 ms".
        least_interval: Shortest length of the interval. Without it a hundredth of `interval`, which
            is our choice: the paper has a bound and does not give its value. A time with its unit,
            for example "100 ms".
        ecn: Mark ECN-capable packets instead of dropping them early. True or false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "gsp"

    limit: str | Sequence[str]
    threshold: str
    interval: str | None = None
    adaptive: bool | None = None
    alpha: float | None = None
    tau: str | None = None
    least_interval: str | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Codel(Part):
    """Controlled Delay (RFC 8289): signals while the queueing delay stays above a target.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these; default "1000 packets".
        target: Acceptable standing queueing delay. A time with its unit, for example "100 ms";
            default "5 ms".
        interval: Time that the delay must stay at or above `target` before the first signal; about
            the round-trip time of most flows. A time with its unit, for example "100 ms"; default
            "100 ms".
        ecn: Mark ECN-capable packets instead of dropping them. True or false; default false.
        ce_threshold: Mark every ECN-capable packet that has waited longer than this, independently
            of the law's decision and of `ecn`. A time with its unit, for example "100 ms".
        mtu: No packet is dropped when no more than this waits behind it. A number of bytes with its
            unit, for example "1500 B"; default "1500 B".
        inverse_sqrt: How the gaps between signals are computed. "exact" or "newton"; default
            "exact".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "codel"

    limit: str | Sequence[str] | None = None
    target: str | None = None
    interval: str | None = None
    ecn: bool | None = None
    ce_threshold: str | None = None
    mtu: str | None = None
    inverse_sqrt: Literal["exact", "newton"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class FqCodel(Part):
    """Flow queueing with CoDel (RFC 8290).

    Attributes:
        limit: Limit on the waiting packets of all queues together: in packets, in bytes, in time at
            the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these; default ["10240 packets", "33554432
            B"].
        flows: Number of queues that flows are hashed into. A whole number from 1 to 65536; default
            1024.
        quantum: Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's
            `sch_fq_codel`. A number of bytes with its unit, for example "1500 B"; default "1500 B".
        target: Acceptable standing queueing delay of each queue. A time with its unit, for example
            "100 ms"; default "5 ms".
        interval: Time that the delay must stay at or above `target` before the first signal; about
            the round-trip time of most flows. A time with its unit, for example "100 ms"; default
            "100 ms".
        ecn: Mark ECN-capable packets instead of dropping them. True or false; default true.
        ce_threshold: Mark every ECN-capable packet that has waited longer than this, independently
            of the law's decision and of `ecn`. A time with its unit, for example "100 ms".
        mtu: No packet is dropped when no more than this waits in all queues. A number of bytes with
            its unit, for example "1500 B"; default "1500 B".
        drop_batch: Largest number of packets dropped at the same time from the queue with the
            largest backlog when the limit is exceeded. A whole number; default 64.
        inverse_sqrt: How the gaps between signals are computed. "exact" or "newton"; default
            "exact".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "fq-codel"

    limit: str | Sequence[str] | None = None
    flows: int | None = None
    quantum: str | None = None
    target: str | None = None
    interval: str | None = None
    ecn: bool | None = None
    ce_threshold: str | None = None
    mtu: str | None = None
    drop_batch: int | None = None
    inverse_sqrt: Literal["exact", "newton"] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Fq(Part):
    """Linux's fq: flows served in turn with preference for new ones, a limit for each flow, and pacing.

    (

    Attributes:
        limit: Limit on the waiting packets of all queues together: in packets, in bytes, in time at
            the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these; default "10000 packets".
        flow_limit: Largest number of packets in one queue. A whole number; default 100.
        flows: Number of queues that flows are hashed into. A whole number from 1 to 65536; default
            1024.
        quantum: Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's
            `sch_fq_codel`. A number of bytes with its unit, for example "1500 B"; default "3 kB".
        initial_quantum: Bytes that a queue may send in the first turn after its creation; up to
            2^31 - 1, as in Linux. A number of bytes with its unit, for example "1500 B"; default
            "15 kB".
        flow_refill_delay: Time for which a queue must have been empty to get a whole `quantum`
            again at its next packet. A time with its unit, for example "100 ms"; default "40 ms".
        flow_max_rate: Rate to which each queue is paced. A rate with its unit, for example "10
            Mbit/s".
        low_rate_threshold: With a `flow_max_rate` up to this rate every packet is paced separately,
            above it every `quantum`. A rate with its unit, for example "10 Mbit/s"; default "550
            kbit/s".
        ce_threshold: Mark every ECN-capable packet that leaves more than this time after its
            earliest departure; the time for which pacing holds it back does not count. A time with
            its unit, for example "100 ms".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "fq"

    limit: str | Sequence[str] | None = None
    flow_limit: int | None = None
    flows: int | None = None
    quantum: str | None = None
    initial_quantum: str | None = None
    flow_refill_delay: str | None = None
    flow_max_rate: str | None = None
    low_rate_threshold: str | None = None
    ce_threshold: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Sfq(Part):
    """Stochastic Fairness Queueing (McKenney 1990).

    Attributes:
        limit: Limit on the waiting packets of all queues together: in packets, in bytes, in time at
            the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these; default "127 packets".
        depth: Largest number of packets in one queue. A whole number; default 127.
        divisor: Number of queues that flows are hashed into. A whole number from 1 to 65536;
            default 1024.
        quantum: Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's
            `sch_fq_codel`. A number of bytes with its unit, for example "1500 B"; default "1500 B".
        perturb: Time between two changes of the hash function. A time with its unit, for example
            "100 ms".
        head_drop: Drop the oldest packet of a queue that is too long instead of the latest. True or
            false; default false.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "sfq"

    limit: str | Sequence[str] | None = None
    depth: int | None = None
    divisor: int | None = None
    quantum: str | None = None
    perturb: str | None = None
    head_drop: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Cobalt(Part):
    """The combination of CoDel and BLUE that CAKE uses.

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these; default "1.5 MB".
        target: Acceptable queueing delay; also the smallest time between changes of BLUE's
            probability. A time with its unit, for example "100 ms"; default "5 ms".
        interval: Time for which the delay must exceed `target` before the first signal; about the
            round-trip time of most flows. A time with its unit, for example "100 ms"; default "100
            ms".
        ecn: Mark ECN-capable packets that CoDel would drop; BLUE still drops them. True or false;
            default true.
        increment: Amount added to BLUE's drop probability when the queue overflows. A number;
            default 0.00390625.
        decrement: Amount subtracted from BLUE's drop probability when the queue is empty. A number;
            default 0.000244140625.
        blue_threshold: A packet that has waited longer than this raises BLUE's drop probability by
            one `increment`, at most once per `target`. A time with its unit, for example "100 ms".
        first_gap: Time from the first moment at which the delay exceeds the target to the first
            signal. "interval" or "none"; default "interval".
        mtu: Size of a large packet: a delay of less than the transmission time of four such packets
            does not count as queueing delay. A number of bytes with its unit, for example "1500 B";
            default "1500 B".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "cobalt"

    limit: str | Sequence[str] | None = None
    target: str | None = None
    interval: str | None = None
    ecn: bool | None = None
    increment: float | None = None
    decrement: float | None = None
    blue_threshold: str | None = None
    first_gap: Literal["interval", "none"] | None = None
    mtu: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Cake(Part):
    """A shaper with flow queueing that is fair to hosts, with classes by DSCP and the law COBALT.

    Attributes:
        rate: Rate to shape to. A rate with its unit, for example "10 Mbit/s".
        overhead: Bytes that the link behind the shaper adds to each packet; up to "256 B". A number
            of bytes with its unit, for example "1500 B"; default "0 B".
        mpu: Smallest packet on the link behind the shaper, `overhead` included; up to "256 B". A
            number of bytes with its unit, for example "1500 B"; default "0 B".
        framing: How the link behind the shaper frames packets. "none" or "atm" or "ptm"; default
            "none".
        diffserv: How DSCPs are mapped to tins. "besteffort" or "precedence" or "diffserv3" or
            "diffserv4" or "diffserv8"; default "diffserv3".
        isolation: Which hosts and flows share the link equally. "flowblind" or "srchost" or
            "dsthost" or "hosts" or "flows" or "dual-srchost" or "dual-dsthost" or "triple-isolate";
            default "triple-isolate".
        rtt: Round-trip time of most flows: it is the interval of the law, and the target is a
            twentieth of it. A time with its unit, for example "100 ms"; default "100 ms".
        ecn: Mark ECN-capable packets that CoDel would drop; BLUE still drops them. True or false;
            default true.
        first_gap: Time from the first moment at which the delay exceeds the target to the first
            signal, in each queue. "interval" or "none"; default "none".
        wash: Set the DSCP of all packets to best effort after the tin has been chosen. True or
            false; default false.
        ingress: Shape traffic that has already crossed a bottleneck: the shaper also counts dropped
            packets. True or false; default false.
        ack_filter: Drop waiting acknowledgements that a later one makes redundant. "off" or "on" or
            "aggressive"; default "off".
        limit: Limit on the waiting packets of all queues together: in packets, in bytes, in time at
            the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these.
        follow_after: The shaper follows the link: `rate` is multiplied by the link's present rate
            divided by the link's `rate`, this long after each change of that, by `rate_changes` or
            a `rate_trace` (of which the present rate is the mean of the last whole 100 ms). "0 s"
            follows at once. Only with `rate`; the limit stays. A time with its unit, for example
            "100 ms".
        follow_hop: With `follow_after`, the number of the hop of a chain whose link it follows, in
            its own direction: such as the modem's, while the shaper stands in the router before it.
            A whole number, at least 1.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "cake"

    rate: str | None = None
    overhead: str | None = None
    mpu: str | None = None
    framing: Literal["none", "atm", "ptm"] | None = None
    diffserv: Literal["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"] | None = (
        None
    )
    isolation: (
        Literal[
            "flowblind",
            "srchost",
            "dsthost",
            "hosts",
            "flows",
            "dual-srchost",
            "dual-dsthost",
            "triple-isolate",
        ]
        | None
    ) = None
    rtt: str | None = None
    ecn: bool | None = None
    first_gap: Literal["interval", "none"] | None = None
    wash: bool | None = None
    ingress: bool | None = None
    ack_filter: Literal["off", "on", "aggressive"] | None = None
    limit: str | Sequence[str] | None = None
    follow_after: str | None = None
    follow_hop: int | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Sfb(Part):
    """Stochastic Fair BLUE (Feng et al. 2001).

    Attributes:
        limit: Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a
            list of these. A queue size with its unit, for example "300 packets", "64 kB" or "20
            ms", or a list of these; default "1000 packets".
        bin_size: Number of waiting packets of a bin at and above which its probability rises. A
            whole number; default 20.
        max: Number of waiting packets of a flow's smallest bin at and above which its arrivals are
            dropped. A whole number; default 25.
        increment: Amount added to a bin's probability by an arrival that finds the bin full. A
            number; default 0.001.
        decrement: Amount subtracted from a bin's probability by an arrival that finds the bin
            empty. A number; default 0.00016666666666666666.
        rehash: Time for which one hash function is used. A time with its unit, for example "100
            ms"; default "600 s".
        warmup: Time before a change of the hash function at which the bins of the next function
            also start to count the flows that do not respond. A time with its unit, for example
            "100 ms"; default "60 s".
        penalty_rate: Packets per second that all flows that do not respond may send; 0 for none. A
            whole number; default 10.
        penalty_burst: Packets that all flows that do not respond may send in a burst; 0 for none. A
            whole number; default 20.
        ecn: Mark ECN-capable packets instead of dropping them. True or false; default true.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "sfb"

    limit: str | Sequence[str] | None = None
    bin_size: int | None = None
    max: int | None = None
    increment: float | None = None
    decrement: float | None = None
    rehash: str | None = None
    warmup: str | None = None
    penalty_rate: int | None = None
    penalty_burst: int | None = None
    ecn: bool | None = None
    label: str | None = None


@dataclass(kw_only=True)
class FqPie(Part):
    """Flow queueing with PIE.

    Attributes:
        limit: Limit on the waiting packets of all queues together: in packets, in bytes, in time at
            the link's rate, or a list of these. A queue size with its unit, for example "300
            packets", "64 kB" or "20 ms", or a list of these; default ["10240 packets", "33554432
            B"].
        flows: Number of queues that flows are hashed into. A whole number from 1 to 65536; default
            1024.
        quantum: Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's
            `sch_fq_codel`. A number of bytes with its unit, for example "1500 B"; default "1500 B".
        target: Queueing delay to hold in each queue. A time with its unit, for example "100 ms";
            default "15 ms".
        update: Time between updates of a probability; at least "1 us", the unit in which Linux
            counts it. A time with its unit, for example "100 ms"; default "15 ms".
        alpha: Gain of the deviation from the target, in 1/s. A number; default 0.125.
        beta: Gain of the delay's change, in 1/s. A number; default 1.25.
        max_burst: Burst that passes without drops after a time without congestion; "0 s" for none.
            A time with its unit, for example "100 ms"; default "150 ms".
        mean_packet: Size of a typical packet: no packet is dropped while less than two of them wait
            in its queue. A number of bytes with its unit, for example "1500 B"; default "1500 B".
        delay: How the queueing delay is determined. "timestamps" or "departure-rate"; default
            "timestamps".
        ecn: Mark ECN-capable packets instead of dropping them early, up to a probability of
            `max_ecn`. True or false; default false.
        max_ecn: Probability above which ECN-capable packets are dropped like all other packets. A
            number; default 0.1.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "fq-pie"

    limit: str | Sequence[str] | None = None
    flows: int | None = None
    quantum: str | None = None
    target: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    max_burst: str | None = None
    mean_packet: str | None = None
    delay: Literal["timestamps", "departure-rate"] | None = None
    ecn: bool | None = None
    max_ecn: float | None = None
    label: str | None = None


@dataclass(kw_only=True)
class PfifoFast(Part):
    """Linux's pfifo_fast: three first-in first-out bands in strict priority, by the TOS octet.

    Attributes:
        limit: Limit on the waiting packets of each of the three bands: in packets, in bytes, in
            time at the link's rate, or a list of these. A queue size with its unit, for example
            "300 packets", "64 kB" or "20 ms", or a list of these; default "1000 packets".
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "pfifo-fast"

    limit: str | Sequence[str] | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Rule(Part):
    """Conditions that a packet must meet to belong to a class; all given conditions must hold.

    Attributes:
        dscp: DSCP of the packet, or a list of which it must be one. A text, or a whole number from
            0 to 63, or a list of these.
        protocol: The protocol of the packet. "tcp" or "udp".
        port: The `port` of the packet's traffic group, or a list of which it must be one. A whole
            number from 0 to 65535, or a list of these.
        group: Name of the packet's traffic group, or a list of which it must be one. A text, or a
            list of these.
        host: Number of the host of that group on which the packet's flow sits, counted from 0 as
            flows take hosts in turn, or a list of which it must be one: what the queue of a
            subscriber matches. A whole number, or a list of these.
    """

    dscp: str | int | Sequence[str | int] | None = None
    protocol: Literal["tcp", "udp"] | None = None
    port: int | Sequence[int] | None = None
    group: str | Sequence[str] | None = None
    host: int | Sequence[int] | None = None


@dataclass(kw_only=True)
class PrioClass(Part):
    """A class of `prio`.

    Attributes:
        name: Name of the class, put in front of its metrics and used in keys. A text.
        queue: Queue of the class, of any kind. A table with kind = "tail-drop" or "red" or
            "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or "red-tail" or
            "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or "head-drop" or "step"
            or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or "codel" or "fq-codel" or
            "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or "pfifo-fast" or "prio" or
            "drr" or "wfq" or "tbf" or "htb" or "plugin".
        match: Packets of the class: a rule, or a list of rules of which one must fit. A table with
            dscp, protocol, port, group, host, or a list of these.
    """

    name: str
    queue: AnyQueue
    match: Rule | Sequence[Rule] | None = None


@dataclass(kw_only=True)
class Prio(Part):
    """Strict priority between classes, each with a queue of any kind.

    Attributes:
        class_: The classes in the order of their priority, the highest first. A packet goes to the
            first class whose `match` fits it. A list, each a table with name, match, queue.
        default: Name of the class for packets that no `match` fits. A text.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "prio"

    class_: Sequence[PrioClass]
    default: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class DrrClass(Part):
    """A class of `drr`.

    Attributes:
        name: Name of the class, put in front of its metrics and used in keys. A text.
        queue: Queue of the class, of any kind. Queue sizes that are given as times are converted to
            bytes with the class's share of the link's rate. A table with kind = "tail-drop" or
            "red" or "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or
            "red-tail" or "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or
            "head-drop" or "step" or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or
            "codel" or "fq-codel" or "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or
            "pfifo-fast" or "prio" or "drr" or "wfq" or "tbf" or "htb" or "plugin".
        match: Packets of the class: a rule, or a list of rules of which one must fit. A table with
            dscp, protocol, port, group, host, or a list of these.
        quantum: Bytes that the class may send in a turn; the shares of the classes are in
            proportion to their quanta. A number of bytes with its unit, for example "1500 B";
            default "1500 B".
    """

    name: str
    queue: AnyQueue
    match: Rule | Sequence[Rule] | None = None
    quantum: str | None = None


@dataclass(kw_only=True)
class Drr(Part):
    """Deficit round robin.

    (Shreedhar and Varghese 1996) between classes, each with a queue of any kind.

    Attributes:
        class_: The classes. A packet goes to the first class whose `match` fits it. A list, each a
            table with name, match, quantum, queue.
        default: Name of the class for packets that no `match` fits. A text.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "drr"

    class_: Sequence[DrrClass]
    default: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class WfqClass(Part):
    """A class of `wfq`.

    Attributes:
        name: Name of the class, put in front of its metrics and used in keys. A text.
        queue: Queue of the class, of any kind. Queue sizes that are given as times are converted to
            bytes with the class's share of the link's rate. A table with kind = "tail-drop" or
            "red" or "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or
            "red-tail" or "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or
            "head-drop" or "step" or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or
            "codel" or "fq-codel" or "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or
            "pfifo-fast" or "prio" or "drr" or "wfq" or "tbf" or "htb" or "plugin".
        match: Packets of the class: a rule, or a list of rules of which one must fit. A table with
            dscp, protocol, port, group, host, or a list of these.
        weight: Share of the class in the link, relative to the weights of the other classes; a
            whole number up to 10000. A whole number from 1 to 10000; default 1.
    """

    name: str
    queue: AnyQueue
    match: Rule | Sequence[Rule] | None = None
    weight: int | None = None


@dataclass(kw_only=True)
class Wfq(Part):
    """Weighted fair queueing between classes, as WF2Q+.

    (Bennett and Zhang 1997), each with a queue of any kind.

    Attributes:
        class_: The classes. A packet goes to the first class whose `match` fits it. A list, each a
            table with name, match, weight, queue.
        default: Name of the class for packets that no `match` fits. A text.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "wfq"

    class_: Sequence[WfqClass]
    default: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Tbf(Part):
    """Token bucket: limits the rate and the bursts at which a queue of any kind sends.

    Attributes:
        rate: Rate at which tokens are added: the largest long-term rate of the departures. A rate
            with its unit, for example "10 Mbit/s".
        burst: Size of the bucket: the largest burst after a pause, at least one packet. A number of
            bytes with its unit, for example "1500 B".
        queue: The queue in which packets wait, of any kind. Queue sizes that are given as times are
            converted to bytes with `rate`. A table with kind = "tail-drop" or "red" or
            "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or "red-tail" or
            "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or "head-drop" or "step"
            or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or "codel" or "fq-codel" or
            "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or "pfifo-fast" or "prio" or
            "drr" or "wfq" or "tbf" or "htb" or "plugin".
        peak_rate: Rate that is not exceeded even in a burst. A rate with its unit, for example "10
            Mbit/s".
        mtu: With `peak_rate`, size of its bucket: the largest burst above this rate, at least one
            packet. A number of bytes with its unit, for example "1500 B".
        follow_after: The shaper follows the link: its rates are multiplied by the link's present
            rate divided by the link's `rate`, this long after each change of that, by
            `rate_changes` or a `rate_trace` (of which the present rate is the mean of the last
            whole 100 ms). "0 s" follows at once. A time with its unit, for example "100 ms".
        follow_hop: With `follow_after`, the number of the hop of a chain whose link it follows, in
            its own direction: such as the modem's, while the shaper stands in the router before it.
            A whole number, at least 1.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "tbf"

    rate: str
    burst: str
    queue: AnyQueue
    peak_rate: str | None = None
    mtu: str | None = None
    follow_after: str | None = None
    follow_hop: int | None = None
    label: str | None = None


@dataclass(kw_only=True)
class HtbClass(Part):
    """A class of `htb`: with a queue, or with classes below it.

    Attributes:
        name: Name of the class, put in front of its metrics and used in keys. A text.
        rate: Guaranteed rate of the class, which it has without borrowing. A rate with its unit,
            for example "10 Mbit/s".
        match: Packets of the class: a rule, or a list of rules of which one must fit. Only with a
            `queue`. A table with dscp, protocol, port, group, host, or a list of these.
        ceil: Ceiling of the class: the largest rate that it reaches by borrowing from its parent. A
            rate with its unit, for example "10 Mbit/s".
        prio: Priority, 0 to 7: the class with the lowest number borrows first. Only with a `queue`.
            A whole number from 0 to 7; default 0.
        quantum: Bytes that the class sends in its turn among the classes of the same priority. Only
            with a `queue`. A number of bytes with its unit, for example "1500 B".
        burst: Largest burst at the rate of the class after a pause. A number of bytes with its
            unit, for example "1500 B"; default "1600 B".
        cburst: Largest burst at the ceiling of the class after a pause. A number of bytes with its
            unit, for example "1500 B"; default "1600 B".
        queue: Queue of the class, of any kind, unless it has classes. Queue sizes that are given as
            times are converted to bytes with `rate`. A table with kind = "tail-drop" or "red" or
            "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or "red-tail" or
            "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or "head-drop" or "step"
            or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or "codel" or "fq-codel" or
            "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or "pfifo-fast" or "prio" or
            "drr" or "wfq" or "tbf" or "htb" or "plugin".
        class_: Classes below this class, which share its rate, unless it has a queue. A list, each
            a table with name, match, rate, ceil, prio, ….
    """

    name: str
    rate: str
    match: Rule | Sequence[Rule] | None = None
    ceil: str | None = None
    prio: int | None = None
    quantum: str | None = None
    burst: str | None = None
    cburst: str | None = None
    queue: AnyQueue | None = None
    class_: Sequence[HtbClass] | None = None


@dataclass(kw_only=True)
class Htb(Part):
    """Hierarchical token bucket: a tree of classes with rates, ceilings and borrowing, after Linux.

    (

    Attributes:
        class_: The classes at the top. A packet goes to the first class in the file that has a
            queue and whose `match` fits it. A list, each a table with name, match, rate, ceil,
            prio, ….
        default: Name of the class for packets that no `match` fits; the class must have a queue. A
            text.
        follow_after: The shaper follows the link: its rates are multiplied by the link's present
            rate divided by the link's `rate`, this long after each change of that, by
            `rate_changes` or a `rate_trace` (of which the present rate is the mean of the last
            whole 100 ms). "0 s" follows at once. A time with its unit, for example "100 ms".
        follow_hop: With `follow_after`, the number of the hop of a chain whose link it follows, in
            its own direction: such as the modem's, while the shaper stands in the router before it.
            A whole number, at least 1.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "htb"

    class_: Sequence[HtbClass]
    default: str | None = None
    follow_after: str | None = None
    follow_hop: int | None = None
    label: str | None = None


@dataclass(kw_only=True)
class Plugin(Part):
    """A queue written by the user, in Python or Rust.

    Attributes:
        class_: The queue: in Python `"my_queue.py:MyQueue"`, a file in the experiment's folder and
            a class in it, or `"package.module:MyQueue"`; compiled `"my_queue.wasm"`, a WebAssembly
            module, or `"my_queue.wasm:NAME"` if there are several in it; in Rust the name under
            which it was registered. `redtail run` executes this code; Python outside the
            experiment's folder needs `--allow-code`. A text.
        limit: Limit on the waiting packets. The queue is given this limit and must keep to it; the
            run fails if it does not. Without it the queue has only its own limit. A queue size with
            its unit, for example "300 packets", "64 kB" or "20 ms", or a list of these.
        params: Parameters of the queue; a class in Python gets each key as an argument of that
            name. A table.
        source: Hash of the source of a class in Python, which is part of the key of results; filled
            in when the file is read. If it is given, the source of the class must have this hash. A
            text.
        label: Name of this queue in tables and legends; it does not affect the run. A text.
    """

    _kind: ClassVar[str | None] = "plugin"

    class_: str | type[Any]
    limit: str | Sequence[str] | None = None
    params: Mapping[str, Any] | None = None
    source: str | None = None
    label: str | None = None


@dataclass(kw_only=True)
class TokenBucket(Part):
    """One rate and one burst: packets conform or exceed.

    Attributes:
        rate: Rate at which tokens are added: the largest long-term rate of the packets that
            conform. A rate with its unit, for example "10 Mbit/s".
        burst: Size of the bucket, which is full at first: the largest burst that conforms, at least
            one packet. A number of bytes with its unit, for example "1500 B".
        conform: What is done with packets that conform: `"pass"`, `"drop"`, or a DSCP that they
            get. "pass" or "drop", or a text, or a whole number from 0 to 63; default "pass".
        exceed: What is done with the others. "pass" or "drop", or a text, or a whole number from 0
            to 63; default "drop".
    """

    _kind: ClassVar[str | None] = "token-bucket"

    rate: str
    burst: str
    conform: Literal["pass", "drop"] | str | int | None = None
    exceed: Literal["pass", "drop"] | str | int | None = None


@dataclass(kw_only=True)
class SrTcm(Part):
    """Single-rate three-colour marker (RFC 2697).

    Attributes:
        cir: Committed information rate: the rate at which tokens are added. A rate with its unit,
            for example "10 Mbit/s".
        cbs: Committed burst size: the bucket of green packets, which is full at first. A number of
            bytes with its unit, for example "1500 B".
        ebs: Excess burst size: the bucket of yellow packets, which is full at first. It gets the
            tokens for which the other has no room. A number of bytes with its unit, for example
            "1500 B".
        colour_aware: Whether a packet that has a colour keeps it or gets a worse one. Packets of AF
            have the colour of their drop precedence: AFx1 green, AFx2 yellow, AFx3 red; all others
            are green. True or false; default false.
        green: What is done with green packets: `"pass"`, `"drop"`, or a DSCP that they get. "pass"
            or "drop", or a text, or a whole number from 0 to 63; default "pass".
        yellow: What is done with yellow packets. "pass" or "drop", or a text, or a whole number
            from 0 to 63; default "pass".
        red: What is done with red packets. "pass" or "drop", or a text, or a whole number from 0 to
            63; default "drop".
    """

    _kind: ClassVar[str | None] = "sr-tcm"

    cir: str
    cbs: str
    ebs: str
    colour_aware: bool | None = None
    green: Literal["pass", "drop"] | str | int | None = None
    yellow: Literal["pass", "drop"] | str | int | None = None
    red: Literal["pass", "drop"] | str | int | None = None


@dataclass(kw_only=True)
class TrTcm(Part):
    """Two-rate three-colour marker (RFC 2698).

    Attributes:
        cir: Committed information rate: that of green packets. A rate with its unit, for example
            "10 Mbit/s".
        cbs: Committed burst size: the bucket of green packets, which is full at first. A number of
            bytes with its unit, for example "1500 B".
        pir: Peak information rate, at least `cir`: that of green and yellow packets together. A
            rate with its unit, for example "10 Mbit/s".
        pbs: Peak burst size: the bucket of green and yellow packets together, which is full at
            first. A number of bytes with its unit, for example "1500 B".
        colour_aware: Whether a packet that has a colour keeps it or gets a worse one. Packets of AF
            have the colour of their drop precedence: AFx1 green, AFx2 yellow, AFx3 red; all others
            are green. True or false; default false.
        green: What is done with green packets: `"pass"`, `"drop"`, or a DSCP that they get. "pass"
            or "drop", or a text, or a whole number from 0 to 63; default "pass".
        yellow: What is done with yellow packets. "pass" or "drop", or a text, or a whole number
            from 0 to 63; default "pass".
        red: What is done with red packets. "pass" or "drop", or a text, or a whole number from 0 to
            63; default "drop".
    """

    _kind: ClassVar[str | None] = "tr-tcm"

    cir: str
    cbs: str
    pir: str
    pbs: str
    colour_aware: bool | None = None
    green: Literal["pass", "drop"] | str | int | None = None
    yellow: Literal["pass", "drop"] | str | int | None = None
    red: Literal["pass", "drop"] | str | int | None = None


@dataclass(kw_only=True)
class Airtime(Part):
    """A link on which packets of one station share a transmission, as in 802.11.

    A traffic group is a station.

    Attributes:
        overhead: Time that each frame takes besides its packets: contention, preamble, the gap
            before the acknowledgement, and the acknowledgement. A time with its unit, for example
            "100 ms"; default "185.5 us".
        packet_overhead: Bytes that each packet has in a frame besides the IP packet. A number of
            bytes with its unit, for example "1500 B"; default "42 B".
        aggregate_packets: The most packets of a frame. A whole number, at least 1; default 64.
        aggregate_bytes: The most bytes of a frame, `packet_overhead` included. A single packet may
            be larger. A number of bytes with its unit, for example "1500 B"; default "65535 B".
        aggregate_time: The longest time of a frame's packets, without `overhead`. A single packet
            may take longer. A time with its unit, for example "100 ms"; default "4 ms".
        rates: Rates by the name of the group: `{ far = "6.5 Mbit/s", near = "130 Mbit/s" }`. Other
            groups have the link's `rate`. A table; default {  }.
    """

    overhead: str | None = None
    packet_overhead: str | None = None
    aggregate_packets: int | None = None
    aggregate_bytes: str | None = None
    aggregate_time: str | None = None
    rates: Mapping[str, str] | None = None


@dataclass(kw_only=True)
class GilbertElliott(Part):
    """Losses of the Gilbert-Elliott model.

    It has a good and a bad state, which may change after each packet. The first state is drawn:
    bad with probability p / (p + r).

    Attributes:
        p: Probability with which the bad state follows the good one; 0 to 1. netem's `p`. A number
            from 0 to 1.
        r: Probability with which the good state follows the bad one; above 0, at most 1. The bad
            state lasts 1 / r packets in the mean. netem's `r`. A number.
        h: Probability with which a packet arrives in the bad state; 0 to 1. netem has 1 - h. A
            number from 0 to 1; default 0.0.
        k: Probability with which a packet arrives in the good state; 0 to 1. netem has 1 - k. A
            number from 0 to 1; default 1.0.
    """

    p: float
    r: float
    h: float | None = None
    k: float | None = None


@dataclass(kw_only=True)
class Reorder(Part):
    """Reordering. A packet that is chosen takes a time more, and no packet waits for it.

    The packets that others overtake are what RFC 4737 calls reordered.

    Attributes:
        share: Probability with which a packet is chosen, independently of all others; 0 to 1.
            `reorder` of netem is the opposite: it sends a share at once, and delays all others. A
            number from 0 to 1.
        by: The time that a chosen packet takes more, drawn for each; draws above 1 h count as 1 h.
            A value or a law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape
            1.2", or a table with cdf.
    """

    share: float
    by: str | Mapping[str, Any]


@dataclass(kw_only=True)
class DelayChange(Part):
    """A change of the propagation delay.

    Attributes:
        at: Time of the change, from the start of the run. A time with its unit, for example "100
            ms".
        delay: Propagation delay from this time on. A time with its unit, for example "100 ms".
        gap: An interruption that begins with the change: packets that the transmitter sends within
            this time wait at its end of the wire until it is over. A time with its unit, for
            example "100 ms".
    """

    at: str
    delay: str
    gap: str | None = None


@dataclass(kw_only=True)
class Handovers(Part):
    """Handovers: the propagation delay changes each time a period has passed.

    Attributes:
        every: The period; 1 ms or more. The first handover is one period after the start of the
            run. A time with its unit, for example "100 ms".
        delay: Propagation delay from a handover to the next, drawn for each; up to 1 h. A value or
            a law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a
            table with cdf.
        gap: An interruption that begins with each handover, shorter than the period: packets that
            the transmitter sends within this time wait at its end of the wire until it is over. A
            time with its unit, for example "100 ms".
    """

    every: str
    delay: str | Mapping[str, Any]
    gap: str | None = None


@dataclass(kw_only=True)
class Batches(Part):
    """Packets are released together.

    Attributes:
        every: Time between two releases, which are at its multiples from the start of the run; 1 us
            or more. A packet that is sent at such a time goes with this release. A time with its
            unit, for example "100 ms".
        packets: The most packets of one release; what is left waits for the next. A whole number,
            at least 1.
    """

    every: str
    packets: int | None = None


@dataclass(kw_only=True)
class Wire(Part):
    """What happens to packets after the transmitter of a link.

    Without a key of it, each packet arrives once, in order, after `delay`.

    Attributes:
        loss: Losses: the probability with which each packet is lost, independently of all others (0
            or more, below 1), or a table for the Gilbert-Elliott model, which loses packets in
            bursts. A lost packet has used its transmission time. A number, or a table with p, r, h,
            k.
        duplicate: Probability with which a packet arrives twice (RFC 5560); 0 to 1. The copy
            follows the packet, and takes its own `jitter` and `reorder`. A number from 0 to 1.
        reorder: Reordering: a share of the packets takes a time more, in which others overtake
            them. A table with share, by.
        jitter: A random time that each packet takes in addition to the delay, drawn for each
            packet; draws above 1 h count as 1 h. With `order = "kept"` a packet then waits for
            those before it. A value or a law, such as "50 s", "exponential mean 50 s" or "pareto
            mean 50 s shape 1.2", or a table with cdf.
        order: With `jitter`, `delay_changes` or `delay_trace`: whether a packet with a shorter
            delay overtakes those before it ("free"), or arrives with the last of them at the
            earliest ("kept"). "kept" or "free".
        delay_changes: Changes of the propagation delay. A list, each a time and the delay from then
            on; or a table for handovers, which come in a period and draw the delay. A packet has
            the delay of the time at which it enters the delay line. A list, each a table with at,
            delay, gap, or a table with every, delay, gap.
        delay_trace: A trace of the propagation delay: a file of which each line is a time and the
            delay from then on, both in milliseconds, such as `1500 23.4`. Before the first line the
            delay is `delay`; after the last it stays. The name of the file is relative to the
            experiment file, and its content is part of the scenario. A text.
        limit: The most packets on the delay line, those that `jitter`, `reorder` or `batches` hold
            included; a packet that finds so many is dropped and counted as lost on the wire. It is
            the `limit` of netem. A whole number, at least 1.
        batches: Packets are released together, as links do that wait for an opportunity to send:
            802.11, DOCSIS, LTE. It is the `slot` of netem. On a return link it makes aggregated
            acknowledgements (draft-ietf-ccwg-bbr, "Estimating ACK aggregation"). A table with
            every, packets.
    """

    loss: float | GilbertElliott | None = None
    duplicate: float | None = None
    reorder: Reorder | None = None
    jitter: str | Mapping[str, Any] | None = None
    order: Literal["kept", "free"] | None = None
    delay_changes: Sequence[DelayChange] | Handovers | None = None
    delay_trace: str | None = None
    limit: int | None = None
    batches: Batches | None = None


@dataclass(kw_only=True)
class RateChange(Part):
    """A change of the rate of a link.

    Attributes:
        at: Time of the change, from the start of the run. A time with its unit, for example "100
            ms".
        rate: Transmission rate from this time; "0 bit/s" begins an outage. A rate with its unit,
            for example "10 Mbit/s".
    """

    at: str
    rate: str


@dataclass(kw_only=True)
class RateSine(Part):
    """A sine between two rates.

    Attributes:
        low: Least rate. A rate with its unit, for example "10 Mbit/s".
        high: Largest rate. A rate with its unit, for example "10 Mbit/s".
        period: Time from one maximum to the next. A time with its unit, for example "100 ms".
    """

    low: str
    high: str
    period: str


@dataclass(kw_only=True)
class RateWalk(Part):
    """A random walk between two rates, which begins at the link's `rate`. Each step is uniform between `-step` and `step`.

    What would leave the interval is mirrored at its end.

    Attributes:
        low: Least rate. A rate with its unit, for example "10 Mbit/s".
        high: Largest rate. A rate with its unit, for example "10 Mbit/s".
        step: Largest step, up or down; at most `high` less `low`. A rate with its unit, for example
            "10 Mbit/s".
    """

    low: str
    high: str
    step: str


@dataclass(kw_only=True)
class RateLaw(Part):
    """Changes of a link's rate at regular times, by one of the laws `rates`, `rate`, `sine` and `walk`.

    (

    Attributes:
        every: Time from one change to the next. A run has at most 1 million changes of a link. A
            time with its unit, for example "100 ms".
        from_: Time of the first change, from the start of the run. Until then the link has its
            `rate`. A time with its unit, for example "100 ms"; default "0 s".
        until: Time from which the link has its `rate` again. A time with its unit, for example "100
            ms".
        rates: Law: these rates in turn, and again from the first. "0 bit/s" is an outage. A list,
            each a rate with its unit, for example "10 Mbit/s".
        rate: Law: each rate is drawn from this distribution, independently of those before, with a
            random stream of the link's own. The distribution must have a largest value: `"uniform
            5..20 Mbit/s"`, `"exponential mean 10 Mbit/s max 50 Mbit/s"`. A value or a law, such as
            "10 Mbit/s", "exponential mean 10 Mbit/s" or "pareto mean 10 Mbit/s shape 1.2", or a
            table with cdf.
        sine: Law: a sine between two rates, which begins in the middle and rises. A table with low,
            high, period.
        walk: Law: a random walk between two rates, with a random stream of the link's own. A table
            with low, high, step.
    """

    every: str
    from_: str | None = None
    until: str | None = None
    rates: Sequence[str] | None = None
    rate: str | Mapping[str, Any] | None = None
    sine: RateSine | None = None
    walk: RateWalk | None = None


@dataclass(kw_only=True)
class LinkOverhead(Part):
    """What a link adds to each packet.

    Attributes:
        bytes: Bytes that the link adds to each IP packet; up to "256 B". A number of bytes with its
            unit, for example "1500 B"; default "0 B".
        mpu: Smallest packet on the link, `bytes` included; up to "256 B". A number of bytes with
            its unit, for example "1500 B"; default "0 B".
        framing: How the link frames packets. "none" or "atm" or "ptm"; default "none".
    """

    bytes: str | None = None
    mpu: str | None = None
    framing: Literal["none", "atm", "ptm"] | None = None


@dataclass(kw_only=True)
class Link(Part):
    """A link in one direction: a queue, a transmitter and a propagation delay.

    Attributes:
        delay: Propagation delay, one way. A time with its unit, for example "100 ms".
        queue: The queue in front of the transmitter. A table with kind = "tail-drop" or "red" or
            "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or "red-tail" or
            "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or "head-drop" or "step"
            or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or "codel" or "fq-codel" or
            "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or "pfifo-fast" or "prio" or
            "drr" or "wfq" or "tbf" or "htb" or "plugin".
        rate: Transmission rate, up to "8000 Gbit/s". Left out with `rate_trace`, it is the trace's
            mean. A rate with its unit, for example "10 Mbit/s".
        policer: A policer in front of the queue: packets above a rate are dropped or get another
            DSCP, which the queue then sees. Without it no packet is policed. A table with kind =
            "token-bucket" or "sr-tcm" or "tr-tcm".
        airtime: Packets of a station share a transmission with a fixed overhead, as in 802.11.
            Without it each packet is a transmission of its own, and takes its size divided by the
            rate. A table with overhead, packet_overhead, aggregate_packets, aggregate_bytes,
            aggregate_time, ….
        wire: What happens to packets after their transmission: losses, duplicates, reordering,
            jitter, a delay that changes. Without it each packet arrives once, in order, after
            `delay`. A table with loss, duplicate, reorder, jitter, order, ….
        rate_changes: Times at which the rate changes, or a table with a period and a law, the keys
            of a [rate law](#rate-law); the packet in transmission continues at the new rate. "0
            bit/s" is an outage: nothing is sent, and packets wait. Queues keep the parameters that
            they computed from `rate`; a shaper with `follow_after` follows. A list, each a table
            with at, rate, or a table with every, from, until, rates, rate, …; default [].
        rate_trace: A trace of delivery opportunities in place of a rate, in the format of
            mahimahi's mm-link: each line is the millisecond of an opportunity to send 1500 bytes,
            and the trace repeats at its end. A path is relative to the experiment's file. A text.
        overhead: What the link adds to each packet, which makes its transmission longer: words of
            tc-cake ("atm", "pppoe-vcmux", "pppoe-ptm", "ethernet ether-vlan", "docsis"), or a table
            with the keys of an [link overhead](#link-overhead). Queues do not count it. A text, or
            a table with bytes, mpu, framing.
    """

    delay: str
    queue: AnyQueue
    rate: str | None = None
    policer: AnyPolicer | None = None
    airtime: Airtime | None = None
    wire: Wire | None = None
    rate_changes: Sequence[RateChange] | RateLaw | None = None
    rate_trace: str | None = None
    overhead: str | LinkOverhead | None = None


@dataclass(kw_only=True)
class Hop(Part):
    """A bottleneck: a link, and if `return` is given another one for the opposite direction.

    Attributes:
        delay: Propagation delay, one way. A time with its unit, for example "100 ms".
        queue: The queue in front of the transmitter. A table with kind = "tail-drop" or "red" or
            "adaptive-red" or "self-configuring-red" or "dynamic-threshold-red" or "red-tail" or
            "wred" or "pi" or "pie" or "docsis-pie" or "pi2" or "dualpi2" or "head-drop" or "step"
            or "rem" or "blue" or "sred" or "avq" or "choke" or "gsp" or "codel" or "fq-codel" or
            "fq" or "sfq" or "cobalt" or "cake" or "sfb" or "fq-pie" or "pfifo-fast" or "prio" or
            "drr" or "wfq" or "tbf" or "htb" or "plugin".
        name: Name of a hop of a chain, in keys and in results; letters, digits, `_` and `-`. It
            changes no random number. A text.
        rate: Transmission rate, up to "8000 Gbit/s". Left out with `rate_trace`, it is the trace's
            mean. A rate with its unit, for example "10 Mbit/s".
        policer: A policer in front of the queue: packets above a rate are dropped or get another
            DSCP, which the queue then sees. Without it no packet is policed. A table with kind =
            "token-bucket" or "sr-tcm" or "tr-tcm".
        airtime: Packets of a station share a transmission with a fixed overhead, as in 802.11.
            Without it each packet is a transmission of its own, and takes its size divided by the
            rate. A table with overhead, packet_overhead, aggregate_packets, aggregate_bytes,
            aggregate_time, ….
        wire: What happens to packets after their transmission: losses, duplicates, reordering,
            jitter, a delay that changes. Without it each packet arrives once, in order, after
            `delay`. A table with loss, duplicate, reorder, jitter, order, ….
        medium: With `"shared"`, this link and its `return` share one transmitter: one of them sends
            at a time. "shared".
        return_: The link of the opposite direction, which can be congested too. Without it that
            direction takes no time and never drops; the groups' `return_delay` can give it a delay.
            A table with rate, delay, queue, policer, airtime, ….
        rate_changes: Times at which the rate changes, or a table with a period and a law, the keys
            of a [rate law](#rate-law); the packet in transmission continues at the new rate. "0
            bit/s" is an outage: nothing is sent, and packets wait. Queues keep the parameters that
            they computed from `rate`; a shaper with `follow_after` follows. A list, each a table
            with at, rate, or a table with every, from, until, rates, rate, …; default [].
        rate_trace: A trace of delivery opportunities in place of a rate, in the format of
            mahimahi's mm-link: each line is the millisecond of an opportunity to send 1500 bytes,
            and the trace repeats at its end. A path is relative to the experiment's file. A text.
        overhead: What the link adds to each packet, which makes its transmission longer: words of
            tc-cake ("atm", "pppoe-vcmux", "pppoe-ptm", "ethernet ether-vlan", "docsis"), or a table
            with the keys of an [link overhead](#link-overhead). Queues do not count it. A text, or
            a table with bytes, mpu, framing.
    """

    delay: str
    queue: AnyQueue
    name: str | None = None
    rate: str | None = None
    policer: AnyPolicer | None = None
    airtime: Airtime | None = None
    wire: Wire | None = None
    medium: Literal["shared"] | None = None
    return_: Link | None = None
    rate_changes: Sequence[RateChange] | RateLaw | None = None
    rate_trace: str | None = None
    overhead: str | LinkOverhead | None = None


@dataclass(kw_only=True)
class Chain(Part):
    """Several bottlenecks in a row.

    Attributes:
        hop: The bottlenecks, in the order in which forward traffic meets them. A list, each a table
            with name, rate, delay, queue, policer, ….
    """

    hop: Sequence[Hop]


@dataclass(kw_only=True)
class Hosts(Part):
    """Hosts that several groups share, named as the table. The keys are those of a group in forward direction.

    In a group of the opposite direction the hosts that receive send.

    Attributes:
        number: Number of hosts at each end. Flow `i` of each group sits on host `i` modulo this. A
            whole number from 1 to 1e+06.
        access_rate: Rate of the sending hosts' access links; dealt out to the hosts, as all that
            follows. A rate with its unit, for example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links. A time with its
            unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for so many in
            equal steps.
        exit_rate: Rate of the receiving hosts' access links. A rate with its unit, for example "10
            Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links. A time with its
            unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for so many in
            equal steps.
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links. A time with its unit, for example "100 ms", or a list of these, or "16..240 ms in
            57" for so many in equal steps.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from
            1. A whole number, at least 1, or a text.
    """

    number: int | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None


@dataclass(kw_only=True)
class StandardSlowStart(Part):
    """One segment for each acknowledgement; ends with a loss."""

    _kind: ClassVar[str | None] = "standard"


@dataclass(kw_only=True)
class HystartPlusPlusSlowStart(Part):
    """As the standard one.

    Slower when round-trip times grow, and ended if they stay larger (RFC 9406).

    Attributes:
        min_rtt_thresh: MIN_RTT_THRESH: least growth of the round-trip time that begins conservative
            slow start. A time with its unit, for example "100 ms"; default "4 ms".
        max_rtt_thresh: MAX_RTT_THRESH: greatest growth of the round-trip time that is waited for. A
            time with its unit, for example "100 ms"; default "16 ms".
        min_rtt_divisor: MIN_RTT_DIVISOR: growth of the round-trip time that begins conservative
            slow start, as one part in so many. A whole number from 1 to 1000; default 8.
        n_rtt_sample: N_RTT_SAMPLE: number of samples of a round before it is judged. A whole number
            from 1 to 1000; default 8.
        css_growth_divisor: CSS_GROWTH_DIVISOR: growth of conservative slow start is that of slow
            start divided by this. A number from 1 to 1000; default 4.0.
        css_rounds: CSS_ROUNDS: number of rounds of conservative slow start. A whole number from 1
            to 1000; default 5.
    """

    _kind: ClassVar[str | None] = "hystart-plus-plus"

    min_rtt_thresh: str | None = None
    max_rtt_thresh: str | None = None
    min_rtt_divisor: int | None = None
    n_rtt_sample: int | None = None
    css_growth_divisor: float | None = None
    css_rounds: int | None = None


@dataclass(kw_only=True)
class HystartSlowStart(Part):
    """As the standard one.

    Ended by trains of acknowledgements or growing round-trip times (Ha and Rhee 2011, Linux).

    Attributes:
        low_window: Least window at which it can end slow start, in segments. A number from 0 to
            1e+06; default 16.0.
        ack_delta: Largest gap between acknowledgements of one train. A time with its unit, for
            example "100 ms"; default "2 ms".
        min_samples: Number of round-trip samples that it takes in a round. A whole number from 1 to
            1000; default 8.
        delay_min: Least growth of the round-trip time that ends slow start. A time with its unit,
            for example "100 ms"; default "4 ms".
        delay_max: Greatest growth of the round-trip time that is waited for. A time with its unit,
            for example "100 ms"; default "16 ms".
        delay_divisor: Growth of the round-trip time that ends slow start, as one part in so many. A
            whole number from 1 to 1000; default 8.
        trains: End slow start at a long train of acknowledgements. True or false; default true.
        delays: End slow start when round-trip times grow. True or false; default true.
    """

    _kind: ClassVar[str | None] = "hystart"

    low_window: float | None = None
    ack_delta: str | None = None
    min_samples: int | None = None
    delay_min: str | None = None
    delay_max: str | None = None
    delay_divisor: int | None = None
    trains: bool | None = None
    delays: bool | None = None


@dataclass(kw_only=True)
class VegasSlowStart(Part):
    """Doubles every second round trip, until segments wait in queues (Brakmo and Peterson 1995).

    Attributes:
        gamma: gamma: with more segments than this waiting in queues slow start ends. A number from
            0 to 10000; default 1.0.
    """

    _kind: ClassVar[str | None] = "vegas"

    gamma: float | None = None


@dataclass(kw_only=True)
class HyblaSlowStart(Part):
    """As fast as the standard one with a round-trip time of `rtt0`.

    Also the initial window (Caini and Firrincieli 2004).

    Attributes:
        rtt0: RTT_0: round-trip time of the Reno flow whose rate it has. A time with its unit, for
            example "100 ms"; default "25 ms".
        max_window: Largest window, in segments. A whole number from 2 to 1e+06; default 65535.
    """

    _kind: ClassVar[str | None] = "hybla"

    rtt0: str | None = None
    max_window: int | None = None


@dataclass(kw_only=True)
class StartupSlowStart(Part):
    """The model's own start."""

    _kind: ClassVar[str | None] = "startup"


@dataclass(kw_only=True)
class RenoGrowth(Part):
    """Grows by one segment per round trip; a loss halves the window (RFC 5681).

    Attributes:
        beta: Factor of a reduction. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "reno"

    beta: float | None = None


@dataclass(kw_only=True)
class CubicGrowth(Part):
    """A cubic function of the time since the last reduction.

    A loss reduces the window to 0.7 (RFC 9438).

    Attributes:
        c: C: scale of the cubic function, in segments/s^3. A number from 0.0001 to 10000; default
            0.4.
        beta: beta_cubic: factor of a reduction. A number from 0.05 to 0.95; default 0.7.
        fast_convergence: Release more bandwidth when the window at a loss is smaller than at the
            one before. True or false; default true.
        reno_friendly: Grow at least as fast as Reno would. True or false; default true.
    """

    _kind: ClassVar[str | None] = "cubic"

    c: float | None = None
    beta: float | None = None
    fast_convergence: bool | None = None
    reno_friendly: bool | None = None


@dataclass(kw_only=True)
class LinuxCubicGrowth(Part):
    """CUBIC as Linux computes it, in whole segments (Linux 6.1, tcp_cubic.c).

    Attributes:
        c: C: scale of the cubic function, in segments/s^3; in 1/1024. A number from 0.01 to 100;
            default 0.4.
        beta: beta: factor of a reduction; in 1/1024. A number from 0.05 to 0.95; default 0.7.
        fast_convergence: Release more bandwidth when the window at a loss is smaller than at the
            one before. True or false; default true.
        reno_friendly: Grow at least as fast as Reno would (tcp_friendliness). True or false;
            default true.
        plateau: Beyond the target, most windows to be acknowledged for one segment of growth. A
            whole number from 1 to 10000; default 100.
        unknown_ceiling: While no window of a loss is known, most segments to be acknowledged for
            one of growth. A whole number from 1 to 10000; default 20.
        fastest: Least number of segments to be acknowledged for one of growth. A whole number from
            1 to 10000; default 2.
    """

    _kind: ClassVar[str | None] = "linux-cubic"

    c: float | None = None
    beta: float | None = None
    fast_convergence: bool | None = None
    reno_friendly: bool | None = None
    plateau: int | None = None
    unknown_ceiling: int | None = None
    fastest: int | None = None


@dataclass(kw_only=True)
class LinuxRenoGrowth(Part):
    """Reno as Linux computes it, in whole segments (Linux 6.1, tcp_cong.c).

    Attributes:
        beta: Factor of a reduction. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "linux-reno"

    beta: float | None = None


@dataclass(kw_only=True)
class VegasGrowth(Part):
    """Keeps two to four segments in the bottleneck's queue, estimated from round-trip times.

    A loss halves the window (Brakmo and Peterson 1995).

    Attributes:
        alpha: alpha: with fewer segments than this waiting in queues the window grows. A number
            from 0 to 10000; default 2.0.
        beta: beta: with more segments than this waiting in queues the window shrinks. A number from
            0 to 10000; default 4.0.
        loss_factor: Factor of a reduction by a loss. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "vegas"

    alpha: float | None = None
    beta: float | None = None
    loss_factor: float | None = None


@dataclass(kw_only=True)
class LedbatGrowth(Part):
    """Keeps 100 ms of queueing delay, measured from round-trip times, and so yields to other traffic.

    A loss halves the window (RFC 6817).

    Attributes:
        target: TARGET: queueing delay aimed at. A time with its unit, for example "100 ms"; default
            "100 ms".
        gain: GAIN: response of the window to the distance from the target, in windows of Reno's
            growth. A number from 0.001 to 100; default 1.0.
        base_history: BASE_HISTORY: number of minutes over which the base delay is the least. A
            whole number from 1 to 10; default 10.
        current_filter: CURRENT_FILTER: number of samples of which the current delay is the least. A
            whole number from 1 to 8; default 4.
        allowed_increase: ALLOWED_INCREASE: number of segments by which the window may lead what is
            in flight. A number from 0 to 1000; default 1.0.
        min_cwnd: MIN_CWND: least window, in segments. A number from 1 to 1000; default 2.0.
        beta: Factor of a reduction. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "ledbat"

    target: str | None = None
    gain: float | None = None
    base_history: int | None = None
    current_filter: int | None = None
    allowed_increase: float | None = None
    min_cwnd: float | None = None
    beta: float | None = None


@dataclass(kw_only=True)
class PragueGrowth(Part):
    """As Reno, for data that arrives unmarked, and slower with round-trip times below 25 ms after `rtt_transition` round trips.

    A loss halves the window (draft-briscoe-iccrg-prague-congestion-control).

    Attributes:
        least_round: Shortest virtual round trip. A time with its unit, for example "100 ms";
            default "25 ms".
        beta: Factor of a reduction by a loss. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "prague"

    least_round: str | None = None
    beta: float | None = None


@dataclass(kw_only=True)
class WestwoodGrowth(Part):
    """As Reno in whole segments.

    After a reduction the window is the estimated bandwidth times the least round trip
    (Westwood+, Mascolo et al. 2001 and Grieco and Mascolo 2004, as in Linux 6.1,
    tcp_westwood.c).

    Attributes:
        least_interval: Shortest interval of an estimate of the bandwidth; in whole ticks of 4 ms. A
            time with its unit, for example "100 ms"; default "50 ms".
        initial_rtt: Round-trip time before the first sample; in whole ticks of 4 ms. A time with
            its unit, for example "100 ms"; default "20 s".
        filter: Each of the two filters gives a new value this part of the weight. A whole number
            from 1 to 1000; default 8.
        beta: Factor of a reduction during fast recovery, before the estimate sets the window. A
            number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "westwood"

    least_interval: str | None = None
    initial_rtt: str | None = None
    filter: int | None = None
    beta: float | None = None


@dataclass(kw_only=True)
class BicGrowth(Part):
    """A binary search between the window after a loss and the window at the last loss.

    A loss reduces the window to 0.8 (BIC, Xu, Harfoush and Rhee 2004, as in Linux 6.1,
    tcp_bic.c).

    Attributes:
        s_max: S_max: most segments that the window grows in a round trip. A whole number from 1 to
            10000; default 16.
        low_window: Window up to which it grows and is reduced as Reno, in segments. A whole number
            from 0 to 1e+06; default 14.
        b: B: a step of the search takes this part of the distance. A whole number from 2 to 1000;
            default 4.
        smooth_part: Number of round trips that the last B segments of the search take. A whole
            number from 1 to 10000; default 20.
        beta: Factor of a reduction; in 1/1024. A number from 0.05 to 0.95; default 0.8.
        fast_convergence: Release more bandwidth when the window at a loss is smaller than at the
            one before. True or false; default true.
        unknown_ceiling: While no window of a loss is known, most segments to be acknowledged for
            one of growth. A whole number from 1 to 10000; default 20.
    """

    _kind: ClassVar[str | None] = "bic"

    s_max: int | None = None
    low_window: int | None = None
    b: int | None = None
    smooth_part: int | None = None
    beta: float | None = None
    fast_convergence: bool | None = None
    unknown_ceiling: int | None = None


@dataclass(kw_only=True)
class HtcpGrowth(Part):
    """Grows faster with the time since the last loss.

    A loss multiplies the window by the ratio of the least to the greatest round-trip time
    (H-TCP, Leith and Shorten 2004, as in Linux 6.1, tcp_htcp.c).

    Attributes:
        beta_min: Least factor of a reduction; in 1/128. A number from 0.05 to 0.95; default 0.5.
        beta_max: Greatest factor of a reduction; in 1/128. A number from 0.05 to 0.95; default 0.8.
        delta_l: Delta_L: time since the last congestion event up to which the growth is Reno's. A
            time with its unit, for example "100 ms"; default "1 s".
        reference_rtt: Round-trip time to which the growth is scaled. A time with its unit, for
            example "100 ms"; default "100 ms".
        rtt_scaling: Scale the growth with the round-trip time. True or false; default true.
        bandwidth_switch: Reduce by `beta_min` when the bandwidth has changed. True or false;
            default true.
        bandwidth_change: Change of the bandwidth between reductions that counts, as a share. A
            number from 0 to 1; default 0.2.
        rtt_step: Largest excess over the greatest round-trip time by which a round trip raises it.
            A time with its unit, for example "100 ms"; default "20 ms".
        least_rtt: Least round-trip time above which the factor follows the round trips. A time with
            its unit, for example "100 ms"; default "10 ms".
        rtt_decay: Share by which a reduction lowers the distance of the greatest round-trip time to
            the least. A number from 0 to 1; default 0.05.
    """

    _kind: ClassVar[str | None] = "htcp"

    beta_min: float | None = None
    beta_max: float | None = None
    delta_l: str | None = None
    reference_rtt: str | None = None
    rtt_scaling: bool | None = None
    bandwidth_switch: bool | None = None
    bandwidth_change: float | None = None
    rtt_step: str | None = None
    least_rtt: str | None = None
    rtt_decay: float | None = None


@dataclass(kw_only=True)
class HyblaGrowth(Part):
    """As Reno with a round-trip time of 25 ms, for every round-trip time.

    A loss halves the window (Hybla, Caini and Firrincieli 2004, as in Linux 6.1, tcp_hybla.c).

    Attributes:
        rtt0: RTT_0: round-trip time of the Reno flow whose rate it has. A time with its unit, for
            example "100 ms"; default "25 ms".
        max_window: Largest window, in segments. A whole number from 2 to 1e+06; default 65535.
        beta: Factor of a reduction. A number from 0.05 to 0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "hybla"

    rtt0: str | None = None
    max_window: int | None = None
    beta: float | None = None


@dataclass(kw_only=True)
class IllinoisGrowth(Part):
    """Grows by 10 segments per round trip with empty queues, and by down to 0.3 with long ones.

    A loss reduces the window by an eighth to a half (Illinois, Liu, Başar and Srikant 2008, as
    in Linux 6.1, tcp_illinois.c).

    Attributes:
        alpha_min: alpha_min: least increase of a round trip, in segments; in 1/128. A number from
            0.01 to 1; default 0.3.
        alpha_max: alpha_max: greatest increase of a round trip, in segments; in 1/128. A number
            from 1 to 1000; default 10.0.
        beta_min: beta_min: least share by which a loss reduces; in 1/64. A number from 0.02 to
            0.95; default 0.125.
        beta_max: beta_max: greatest share by which a loss reduces; in 1/64. A number from 0.02 to
            0.95; default 0.5.
        win_thresh: win_thresh: window below which alpha is 1 and beta is beta_max, in segments. A
            whole number from 0 to 1e+06; default 15.
        theta: theta: number of rounds near no delay after which alpha is alpha_max again. A whole
            number from 1 to 1000; default 5.
        d1: d_1: queueing delay up to which alpha is alpha_max, as a share of the greatest. A number
            from 0 to 1; default 0.01.
        d2: d_2: queueing delay up to which beta is beta_min, as a share of the greatest. A number
            from 0 to 1; default 0.1.
        d3: d_3: queueing delay from which beta is beta_max, as a share of the greatest. A number
            from 0 to 1; default 0.8.
    """

    _kind: ClassVar[str | None] = "illinois"

    alpha_min: float | None = None
    alpha_max: float | None = None
    beta_min: float | None = None
    beta_max: float | None = None
    win_thresh: int | None = None
    theta: int | None = None
    d1: float | None = None
    d2: float | None = None
    d3: float | None = None


@dataclass(kw_only=True)
class HighspeedGrowth(Part):
    """Grows faster and is reduced by less with a larger window.

    (HighSpeed TCP, RFC 3649, as in Linux 6.1, tcp_highspeed.c).
    """

    _kind: ClassVar[str | None] = "highspeed"


@dataclass(kw_only=True)
class ScalableGrowth(Part):
    """Grows by one segment for each hundred acknowledged.

    A loss reduces the window by an eighth (Scalable TCP, Kelly 2003, as in Linux 6.1,
    tcp_scalable.c).

    Attributes:
        a: a: increase for each segment acknowledged, in segments; 1/a is rounded to a whole number.
            A number from 0.0001 to 1; default 0.01.
        b: b: share by which a loss reduces. A number from 0.05 to 0.95; default 0.125.
    """

    _kind: ClassVar[str | None] = "scalable"

    a: float | None = None
    b: float | None = None


@dataclass(kw_only=True)
class VenoGrowth(Part):
    """As Reno, and half as fast while three segments or more wait in queues.

    With fewer, a loss reduces the window by a fifth (Veno, Fu and Liew 2003, as in Linux 6.1,
    tcp_veno.c).

    Attributes:
        beta: beta: number of segments waiting in queues from which the path counts as congested;
            counted in halves. A number from 0.5 to 10000; default 3.0.
        random_factor: Factor of a reduction by a loss that is taken for a random one. A number from
            0.05 to 0.95; default 0.8.
        congested_factor: Factor of a reduction by a loss of a congested path. A number from 0.05 to
            0.95; default 0.5.
    """

    _kind: ClassVar[str | None] = "veno"

    beta: float | None = None
    random_factor: float | None = None
    congested_factor: float | None = None


@dataclass(kw_only=True)
class YeahGrowth(Part):
    """As Scalable TCP while few segments wait in queues, otherwise as Reno.

    (YeAH, Baiocchi, Castellani and Vacirca 2007, as in Linux 6.1, tcp_yeah.c).

    Attributes:
        q_max: Q_max: most segments that may wait in queues in fast mode. A whole number from 1 to
            100000; default 80.
        gamma: gamma: an early decongestion takes Q / gamma. A whole number from 1 to 1000; default
            1.
        delta: delta: a loss takes w / 2^delta at least. A whole number from 1 to 16; default 3.
        epsilon: epsilon: an early decongestion takes at most w / 2^epsilon. A whole number from 1
            to 16; default 1.
        phi: phi: the queueing delay of fast mode is at most BaseRTT / phi. A whole number from 1 to
            10000; default 8.
        rho: rho: number of rounds of slow mode from which a loss takes half. A whole number from 0
            to 1e+06; default 16.
        zeta: zeta: number of rounds of fast mode after which the estimate of a competing Reno
            starts anew. A whole number from 0 to 1e+06; default 50.
        each: Number of segments to be acknowledged for one segment of growth in fast mode. A whole
            number from 1 to 10000; default 100.
    """

    _kind: ClassVar[str | None] = "yeah"

    q_max: int | None = None
    gamma: int | None = None
    delta: int | None = None
    epsilon: int | None = None
    phi: int | None = None
    rho: int | None = None
    zeta: int | None = None
    each: int | None = None


@dataclass(kw_only=True)
class BbrGrowth(Part):
    """BBR version 1: a model of the path instead of a growth law, with the path's greatest delivery rate and least round-trip time (Cardwell et al., ACM Queue 14(5), 2016.

    Draft-cardwell-iccrg-bbr-congestion-control-00; Linux).

    Attributes:
        high_gain: Pacing gain in STARTUP and window gain in STARTUP and DRAIN: 2/ln 2, with which
            the rate doubles each round. A number from 1 to 100; default 2.88671875.
        drain_gain: Pacing gain in DRAIN. A number from 0.01 to 1; default 0.34375.
        up_gain: Pacing gain of the phase of PROBE_BW that probes for bandwidth. A number from 1 to
            100; default 1.25.
        down_gain: Pacing gain of the phase of PROBE_BW that drains the queue. A number from 0.01 to
            1; default 0.75.
        cwnd_gain: Window gain in PROBE_BW. A number from 0.1 to 100; default 2.0.
        pacing_margin: Share of the rate at which segments are paced. A number from 0.1 to 2;
            default 0.99.
        bw_rounds: Number of rounds over which BtlBw is the greatest delivery rate. A whole number
            from 1 to 16; default 10.
        min_rtt_window: Time over which RTprop is the least round trip. A time with its unit, for
            example "100 ms"; default "10 s".
        probe_rtt_duration: Shortest time in PROBE_RTT. A time with its unit, for example "100 ms";
            default "200 ms".
        min_cwnd: Least window, which is that of PROBE_RTT, in segments. A number from 1 to 10000;
            default 4.0.
        full_bw_growth: Growth of BtlBw by which the path is not full, as a factor. A number from 1
            to 100; default 1.25.
        full_bw_rounds: Number of rounds without this growth after which the path is full. A whole
            number from 1 to 1000; default 3.
        lone_segment_rate: Pacing rate below which the quantum is one segment. A rate with its unit,
            for example "10 Mbit/s"; default "1.2 Mbit/s".
        most_quantum: Largest quantum. A number of bytes with its unit, for example "1500 B";
            default "65536 B".
        short_path_quantum: Added to the quantum of a flow with a short least round trip. A number
            of bytes with its unit, for example "1500 B"; default "65536 B".
        short_path_halving: Least round trip by which `short_path_quantum` is halved. A time with
            its unit, for example "100 ms"; default "512 us".
        extra_rounds: Least number of rounds for which a maximum of extra_acked is kept. A whole
            number from 1 to 1000; default 5.
        max_extra_acked: Largest extra_acked that is added to the window, as a time at BtlBw. A time
            with its unit, for example "100 ms"; default "100 ms".
        lt_rounds: With `lt_bw`, least number of rounds of an interval. A whole number from 1 to
            1000; default 4.
        lt_loss: With `lt_bw`, share of losses that ends an interval. A number from 0 to 1; default
            0.1953125.
        lt_ratio: With `lt_bw`, allowed difference of two intervals as a share. A number from 0 to
            1; default 0.125.
        lt_difference: With `lt_bw`, allowed difference of two intervals as a rate. A rate with its
            unit, for example "10 Mbit/s"; default "4 kbit/s".
        lt_use_rounds: With `lt_bw`, number of rounds for which the rate of a policer is used. A
            whole number from 1 to 100000; default 48.
    """

    _kind: ClassVar[str | None] = "bbr"

    high_gain: float | None = None
    drain_gain: float | None = None
    up_gain: float | None = None
    down_gain: float | None = None
    cwnd_gain: float | None = None
    pacing_margin: float | None = None
    bw_rounds: int | None = None
    min_rtt_window: str | None = None
    probe_rtt_duration: str | None = None
    min_cwnd: float | None = None
    full_bw_growth: float | None = None
    full_bw_rounds: int | None = None
    lone_segment_rate: str | None = None
    most_quantum: str | None = None
    short_path_quantum: str | None = None
    short_path_halving: str | None = None
    extra_rounds: int | None = None
    max_extra_acked: str | None = None
    lt_rounds: int | None = None
    lt_loss: float | None = None
    lt_ratio: float | None = None
    lt_difference: str | None = None
    lt_use_rounds: int | None = None


@dataclass(kw_only=True)
class Bbr3Growth(Part):
    """BBR version 3: the same model with bounds learnt from losses (draft-ietf-ccwg-bbr-06).

    Attributes:
        startup_gain: Pacing gain in Startup, 4 ln 2: the least with which the rate doubles each
            round. A number from 1 to 100; default 2.77.
        drain_gain: Pacing gain in Drain. A number from 0.01 to 1; default 0.5.
        down_gain: Pacing gain in ProbeBW_DOWN. A number from 0.01 to 1; default 0.9.
        up_gain: Pacing gain in ProbeBW_UP. A number from 1 to 100; default 1.25.
        cwnd_gain: Window gain in all states but ProbeBW_UP and ProbeRTT. A number from 0.1 to 100;
            default 2.0.
        up_cwnd_gain: Window gain in ProbeBW_UP. A number from 0.1 to 100; default 2.25.
        probe_rtt_cwnd_gain: Window gain in ProbeRTT. A number from 0.01 to 100; default 0.5.
        pacing_margin: Share of the rate at which segments are paced. A number from 0.1 to 2;
            default 0.99.
        initial_margin: Share of the rate at which the initial window is paced. A number from 0.1 to
            2; default 1.0.
        drain_rounds: Number of rounds after which Drain ends, regardless of the bytes in flight. A
            whole number from 1 to 4.29497e+09; default 3.
        loss_thresh: Share of losses that is too much. A number from 0 to 0.9; default 0.02.
        beta: Factor of a reduction of the bounds by losses. A number from 0.05 to 1; default 0.7.
        headroom: Share of inflight_longterm that is left to others. A number from 0 to 0.95;
            default 0.15.
        min_pipe: Least window, in segments. A number from 1 to 10000; default 4.0.
        full_bw_growth: Growth of the delivery rate by which the path is not full, as a factor. A
            number from 1 to 100; default 1.25.
        full_bw_rounds: Number of rounds without this growth after which the path is full. A whole
            number from 1 to 1000; default 3.
        startup_loss_ranges: Number of discontiguous ranges lost in a round that end Startup;
            Google's code counts acknowledgements. A whole number from 1 to 100000; default 6.
        min_rtt_filter: Time over which min_rtt is the least round trip. A time with its unit, for
            example "100 ms"; default "10 s".
        probe_rtt_interval: Time without a lower round trip after which ProbeRTT begins. A time with
            its unit, for example "100 ms"; default "5 s".
        probe_rtt_duration: Shortest time in ProbeRTT. A time with its unit, for example "100 ms";
            default "200 ms".
        probe_wait: Least time between probes for bandwidth. A time with its unit, for example "100
            ms"; default "2 s".
        probe_wait_random: Most time that is added to it at random. A time with its unit, for
            example "100 ms"; default "1 s".
        max_probe_rounds: Most rounds between probes, for fairness to Reno and CUBIC. A number from
            1 to 1e+06; default 63.0.
        most_quantum: Largest quantum. A number of bytes with its unit, for example "1500 B";
            default "65536 B".
        quantum: Quantum as a time at the pacing rate; Google's code has 2^-10 s. A time with its
            unit, for example "100 ms"; default "1 ms".
        extra_rounds: Number of rounds over which extra_acked is the greatest; in Google's code the
            least number. A whole number from 1 to 16; default 10.
        max_extra_acked: With `bbr3-google`, largest extra_acked that is added to the window, as a
            time at the estimated rate. A time with its unit, for example "100 ms"; default "100
            ms".
        short_path_quantum: With `bbr3-google`, added to the quantum of a flow with a short least
            round trip. A number of bytes with its unit, for example "1500 B"; default "65536 B".
        short_path_halving: With `bbr3-google`, least round trip by which `short_path_quantum` is
            halved. A time with its unit, for example "100 ms"; default "512 us".
        ecn_gain: With `bbr3-google` and marks, gain of the estimated share of marked data. A number
            from 0.0001 to 1; default 0.0625.
        ecn_factor: With `bbr3-google` and marks, factor of the estimated share by which
            inflight_shortterm is lowered. A number from 0 to 1; default 0.33203125.
        ecn_thresh: With `bbr3-google` and marks, share of marked data that is too much. A number
            from 0 to 1; default 0.5.
        ecn_startup_rounds: With `bbr3-google` and marks, number of rounds with too many that end
            Startup. A whole number from 1 to 1000; default 2.
        ecn_reprobe_gain: With `bbr3-google` and marks, share of inflight_longterm by which a probe
            begins when marks cease. A number from 0 to 1; default 0.5.
    """

    _kind: ClassVar[str | None] = "bbr3"

    startup_gain: float | None = None
    drain_gain: float | None = None
    down_gain: float | None = None
    up_gain: float | None = None
    cwnd_gain: float | None = None
    up_cwnd_gain: float | None = None
    probe_rtt_cwnd_gain: float | None = None
    pacing_margin: float | None = None
    initial_margin: float | None = None
    drain_rounds: int | None = None
    loss_thresh: float | None = None
    beta: float | None = None
    headroom: float | None = None
    min_pipe: float | None = None
    full_bw_growth: float | None = None
    full_bw_rounds: int | None = None
    startup_loss_ranges: int | None = None
    min_rtt_filter: str | None = None
    probe_rtt_interval: str | None = None
    probe_rtt_duration: str | None = None
    probe_wait: str | None = None
    probe_wait_random: str | None = None
    max_probe_rounds: float | None = None
    most_quantum: str | None = None
    quantum: str | None = None
    extra_rounds: int | None = None
    max_extra_acked: str | None = None
    short_path_quantum: str | None = None
    short_path_halving: str | None = None
    ecn_gain: float | None = None
    ecn_factor: float | None = None
    ecn_thresh: float | None = None
    ecn_startup_rounds: int | None = None
    ecn_reprobe_gain: float | None = None


@dataclass(kw_only=True)
class CopaGrowth(Part):
    """A target rate in inverse proportion to the queueing delay, so that about two and a half of its own segments wait.

    Beside traffic that fills queues, in proportion to 1/delta, which changes with losses (Copa,
    Arun and Balakrishnan 2018; the velocity as in the authors' code, genericCC).

    Attributes:
        delta: delta: weight of delay against rate in the default mode, in 1/segments; in the
            competitive mode the greatest. A number from 0.001 to 10; default 0.5.
        rtt_min_window: Time over which RTTmin is the least. A time with its unit, for example "100
            ms"; default "10 s".
        rtt_max_rounds: Number of round trips over which RTTmax is the greatest. A whole number from
            1 to 1000; default 4.
        empty_rounds: Number of round trips without a nearly empty queue after which competing flows
            are assumed to fill it. A whole number from 1 to 1000; default 5.
        nearly_empty: Share of RTTmax - RTTmin below which the queue counts as nearly empty. A
            number from 0 to 1; default 0.1.
        steady_rounds: Number of round trips in one direction after which the velocity doubles; with
            `copa-default`. A whole number from 0 to 1000; default 3.
        min_cwnd: Least window, in segments. A number from 1 to 10000; default 2.0.
        pacing_gain: Rate at which segments are paced, in windows per standing round-trip time. A
            number from 0.1 to 100; default 2.0.
    """

    _kind: ClassVar[str | None] = "copa"

    delta: float | None = None
    rtt_min_window: str | None = None
    rtt_max_rounds: int | None = None
    empty_rounds: int | None = None
    nearly_empty: float | None = None
    steady_rounds: int | None = None
    min_cwnd: float | None = None
    pacing_gain: float | None = None


@dataclass(kw_only=True)
class CopaDefaultGrowth(Part):
    """Copa without its competitive mode (the velocity as in the paper and in mvfst).

    Attributes:
        delta: delta: weight of delay against rate in the default mode, in 1/segments; in the
            competitive mode the greatest. A number from 0.001 to 10; default 0.5.
        rtt_min_window: Time over which RTTmin is the least. A time with its unit, for example "100
            ms"; default "10 s".
        rtt_max_rounds: Number of round trips over which RTTmax is the greatest. A whole number from
            1 to 1000; default 4.
        empty_rounds: Number of round trips without a nearly empty queue after which competing flows
            are assumed to fill it. A whole number from 1 to 1000; default 5.
        nearly_empty: Share of RTTmax - RTTmin below which the queue counts as nearly empty. A
            number from 0 to 1; default 0.1.
        steady_rounds: Number of round trips in one direction after which the velocity doubles; with
            `copa-default`. A whole number from 0 to 1000; default 3.
        min_cwnd: Least window, in segments. A number from 1 to 10000; default 2.0.
        pacing_gain: Rate at which segments are paced, in windows per standing round-trip time. A
            number from 0.1 to 100; default 2.0.
    """

    _kind: ClassVar[str | None] = "copa-default"

    delta: float | None = None
    rtt_min_window: str | None = None
    rtt_max_rounds: int | None = None
    empty_rounds: int | None = None
    nearly_empty: float | None = None
    steady_rounds: int | None = None
    min_cwnd: float | None = None
    pacing_gain: float | None = None


@dataclass(kw_only=True)
class Bbr3GoogleGrowth(Part):
    """BBR version 3 as in Google's code, on which published measurements are based, with a response to marks.

    (github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c).

    Attributes:
        startup_gain: Pacing gain in Startup, 4 ln 2: the least with which the rate doubles each
            round. A number from 1 to 100; default 2.7734375.
        drain_gain: Pacing gain in Drain. A number from 0.01 to 1; default 0.34375.
        down_gain: Pacing gain in ProbeBW_DOWN. A number from 0.01 to 1; default 0.90625.
        up_gain: Pacing gain in ProbeBW_UP. A number from 1 to 100; default 1.25.
        cwnd_gain: Window gain in all states but ProbeBW_UP and ProbeRTT. A number from 0.1 to 100;
            default 2.0.
        up_cwnd_gain: Window gain in ProbeBW_UP. A number from 0.1 to 100; default 2.25.
        probe_rtt_cwnd_gain: Window gain in ProbeRTT. A number from 0.01 to 100; default 0.5.
        pacing_margin: Share of the rate at which segments are paced. A number from 0.1 to 2;
            default 0.99.
        initial_margin: Share of the rate at which the initial window is paced. A number from 0.1 to
            2; default 0.99.
        drain_rounds: Number of rounds after which Drain ends, regardless of the bytes in flight. A
            whole number from 1 to 4.29497e+09; default 4294967296.
        loss_thresh: Share of losses that is too much. A number from 0 to 0.9; default 0.02.
        beta: Factor of a reduction of the bounds by losses. A number from 0.05 to 1; default 0.7.
        headroom: Share of inflight_longterm that is left to others. A number from 0 to 0.95;
            default 0.15.
        min_pipe: Least window, in segments. A number from 1 to 10000; default 4.0.
        full_bw_growth: Growth of the delivery rate by which the path is not full, as a factor. A
            number from 1 to 100; default 1.25.
        full_bw_rounds: Number of rounds without this growth after which the path is full. A whole
            number from 1 to 1000; default 3.
        startup_loss_ranges: Number of discontiguous ranges lost in a round that end Startup;
            Google's code counts acknowledgements. A whole number from 1 to 100000; default 6.
        min_rtt_filter: Time over which min_rtt is the least round trip. A time with its unit, for
            example "100 ms"; default "10 s".
        probe_rtt_interval: Time without a lower round trip after which ProbeRTT begins. A time with
            its unit, for example "100 ms"; default "5 s".
        probe_rtt_duration: Shortest time in ProbeRTT. A time with its unit, for example "100 ms";
            default "200 ms".
        probe_wait: Least time between probes for bandwidth. A time with its unit, for example "100
            ms"; default "2 s".
        probe_wait_random: Most time that is added to it at random. A time with its unit, for
            example "100 ms"; default "1 s".
        max_probe_rounds: Most rounds between probes, for fairness to Reno and CUBIC. A number from
            1 to 1e+06; default 63.0.
        most_quantum: Largest quantum. A number of bytes with its unit, for example "1500 B";
            default "65536 B".
        quantum: Quantum as a time at the pacing rate; Google's code has 2^-10 s. A time with its
            unit, for example "100 ms"; default "1 ms".
        extra_rounds: Number of rounds over which extra_acked is the greatest; in Google's code the
            least number. A whole number from 1 to 16; default 5.
        max_extra_acked: With `bbr3-google`, largest extra_acked that is added to the window, as a
            time at the estimated rate. A time with its unit, for example "100 ms"; default "100
            ms".
        short_path_quantum: With `bbr3-google`, added to the quantum of a flow with a short least
            round trip. A number of bytes with its unit, for example "1500 B"; default "65536 B".
        short_path_halving: With `bbr3-google`, least round trip by which `short_path_quantum` is
            halved. A time with its unit, for example "100 ms"; default "512 us".
        ecn_gain: With `bbr3-google` and marks, gain of the estimated share of marked data. A number
            from 0.0001 to 1; default 0.0625.
        ecn_factor: With `bbr3-google` and marks, factor of the estimated share by which
            inflight_shortterm is lowered. A number from 0 to 1; default 0.33203125.
        ecn_thresh: With `bbr3-google` and marks, share of marked data that is too much. A number
            from 0 to 1; default 0.5.
        ecn_startup_rounds: With `bbr3-google` and marks, number of rounds with too many that end
            Startup. A whole number from 1 to 1000; default 2.
        ecn_reprobe_gain: With `bbr3-google` and marks, share of inflight_longterm by which a probe
            begins when marks cease. A number from 0 to 1; default 0.5.
    """

    _kind: ClassVar[str | None] = "bbr3-google"

    startup_gain: float | None = None
    drain_gain: float | None = None
    down_gain: float | None = None
    up_gain: float | None = None
    cwnd_gain: float | None = None
    up_cwnd_gain: float | None = None
    probe_rtt_cwnd_gain: float | None = None
    pacing_margin: float | None = None
    initial_margin: float | None = None
    drain_rounds: int | None = None
    loss_thresh: float | None = None
    beta: float | None = None
    headroom: float | None = None
    min_pipe: float | None = None
    full_bw_growth: float | None = None
    full_bw_rounds: int | None = None
    startup_loss_ranges: int | None = None
    min_rtt_filter: str | None = None
    probe_rtt_interval: str | None = None
    probe_rtt_duration: str | None = None
    probe_wait: str | None = None
    probe_wait_random: str | None = None
    max_probe_rounds: float | None = None
    most_quantum: str | None = None
    quantum: str | None = None
    extra_rounds: int | None = None
    max_extra_acked: str | None = None
    short_path_quantum: str | None = None
    short_path_halving: str | None = None
    ecn_gain: float | None = None
    ecn_factor: float | None = None
    ecn_thresh: float | None = None
    ecn_startup_rounds: int | None = None
    ecn_reprobe_gain: float | None = None


@dataclass(kw_only=True)
class Tcp(Part):
    """A preset with the parameters that differ from it.

    Attributes:
        preset: The set of parameters to start from. "sack" or "newreno" or "reno" or "tahoe" or
            "cubic" or "dctcp" or "prague" or "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or
            "westwood" or "bic" or "htcp" or "hybla" or "illinois" or "highspeed" or "scalable" or
            "veno" or "yeah" or "copa" or "bbr3-google" or "linux-2000" or "ns2-sack" or
            "ns2-newreno" or "ns2-reno" or "ns2-tahoe"; default "sack".
        mss: Payload bytes of a full-sized segment. A number of bytes with its unit, for example
            "1500 B".
        header: Bytes that network and transport headers add to each segment. A number of bytes with
            its unit, for example "1500 B".
        slow_start: How the window grows until the first congestion event. "standard" or
            "hystart-plus-plus" or "hystart" or "vegas" or "hybla" or "startup", or a table with the
            constants of one of these and perhaps its kind.
        growth: How the window grows in congestion avoidance, and by how much it is reduced. "reno"
            or "cubic" or "linux-cubic" or "linux-reno" or "vegas" or "ledbat" or "prague" or
            "westwood" or "bic" or "htcp" or "hybla" or "illinois" or "highspeed" or "scalable" or
            "veno" or "yeah" or "bbr" or "bbr3" or "copa" or "copa-default" or "bbr3-google", or a
            table with the constants of one of these and perhaps its kind.
        byte_counting: Grow the window with the number of acknowledged bytes instead of the number
            of acknowledgements (RFC 3465; Linux, there without a limit in slow start). True or
            false.
        pacing: Space segments in time: at the rate of a model, or at twice the window each round
            trip in slow start and `pacing_ca_ratio` times after it (Linux's tcp_pacing_ss_ratio and
            tcp_pacing_ca_ratio). True or false.
        pacing_ca_ratio: With `pacing`, rate at which a window-based sender is paced after slow
            start, in windows per round-trip time. A number.
        unpaced_segments: With `pacing`, number of data segments at the start of a connection that
            are not paced. A whole number.
        lt_bw: With growth `bbr`, assume a policer after two intervals of similar rates in which a
            fifth is lost, and use its rate as the rate of the path for 48 rounds. True or false.
        bbr_ecn_max_rtt: With growth `bbr3-google` and `ecn`, largest minimum round-trip time at
            which the sender responds to marks; 0 for any. A time with its unit, for example "100
            ms".
        kernel_control: The congestion control of a Linux kernel, in place of `growth`, `slow_start`
            and what marks do to the window: its name there (tcp_available_congestion_control), such
            as "cdg". Only the backends with a kernel's TCP have it. A text.
        recovery: How losses are detected and repaired. "tahoe" or "reno" or "newreno" or
            "ns2-tahoe" or "ns2-reno" or "ns2-newreno" or "sack" or "rack-tlp" or "linux" or
            "sack-1996".
        prr: Reduce the data in flight in proportion to the data delivered during recovery (RFC
            9937); with selective acknowledgements. With recovery `linux` in whole segments, from
            the window before the reduction (Linux 6.1, `tcp_cwnd_reduction`). True or false.
        halving: Quantity that a reduction is a share of; the laws with a reduction of their own
            (`westwood` to `yeah`) take it of the window. "flight-size" or "window" or
            "linux-window".
        initial_window: Segments that may be sent before the first acknowledgement. A whole number.
        initial_ssthresh: Window at which slow start ends if no loss has ended it before; with at
            most `initial_window` there is no slow start. Without it there is no such window. A
            model of the path (growth `bbr`, `copa` and the like) and a `class` have none. A whole
            number.
        dup_thresh: Number of duplicate acknowledgements that indicate a loss (DupThresh). A whole
            number.
        limited_transmit: Send new data on the first two duplicate acknowledgements (RFC 3042). True
            or false.
        delayed_ack: Acknowledge every second full-sized segment, or after `delayed_ack_timeout`;
            when off, each segment is acknowledged. True or false.
        delayed_ack_timeout: Longest delay of an acknowledgement; with `adaptive_acks`, the
            shortest. A time with its unit, for example "100 ms".
        adaptive_acks: With `delayed_ack`, acknowledge as Linux's receiver does: a delay that
            follows the time between segments, doubles when it runs out and is at most 200 ms and
            the round trip; pushed and short segments at once unless this side sends too; segments
            that let the receive window grow at once; and at once again for a while after a
            duplicate, a gap longer than the retransmission timeout or a first mark. The sender
            pushes the end of what is written, and with recovery `linux` the last of the segments
            that leave together (net/ipv4/tcp_input.c, tcp_event_data_recv, tcp_grow_window,
            __tcp_ack_snd_check, __tcp_ecn_check_ce; tcp_output.c, tcp_send_delayed_ack,
            __tcp_transmit_skb; tcp_timer.c, tcp_delack_timer_handler). True or false.
        quick_acks: Number of segments at the start of a connection that are acknowledged at once in
            spite of `delayed_ack`; with `adaptive_acks`, number of acknowledgements that are sent
            at once there, and after a duplicate or a long gap. A whole number.
        timestamps: Measure a round trip with every acknowledgement by timestamps (RFC 7323); their
            12 bytes are part of `header`. True or false.
        receive_window: Size of the receiver's buffer: the largest number of outstanding bytes. The
            announced window is a multiple of the window scale (RFC 7323, section 2.3), the least
            power of two with which it fits 16 bits. With `receive_autotuning` the largest window; a
            value without that key turns it off. A number of bytes with its unit, for example "1500
            B".
        receive_autotuning: With `adaptive_acks` and `timestamps`, begin with a window of 64 kB and
            let it grow with what arrives up to `receive_window`, as Linux 6.1 tunes its buffer
            (tcp_rmem; net/ipv4/tcp_input.c, tcp_grow_window, tcp_rcv_space_adjust); otherwise the
            window is `receive_window` from the start. True or false.
        send_buffer: Size of the sender's buffer: data that the application has written stays in it
            until it is acknowledged, so the sender has no more than this outstanding. Without it
            nothing limits the sender. A number of bytes with its unit, for example "1500 B".
        read_rate: Rate at which the receiving application reads; unread data reduces the receive
            window. Without it the application reads at once. A rate with its unit, for example "10
            Mbit/s".
        syn_loss: With `handshake`, effects of a lost SYN or SYN-ACK on the start of data
            transmission. "first" or "second".
        handshake: Open with a three-way handshake, whose segments can be lost, and close with FINs;
            when off, a connection starts with data and ends without FINs, as with ns-2's one-way
            agents. True or false.
        bare_handshake_ack: Acknowledge the SYN-ACK with a segment without data, before the first
            data, as Linux does (net/ipv4/tcp_input.c, tcp_rcv_synsent_state_process); RFC 9293,
            section 3.10.7.3, lets the first data acknowledge it. True or false.
        idle_restart: After an idle time longer than the retransmission timeout, continue with at
            most the initial window (RFC 5681, section 4.1), or as `idle_decay` says. True or false.
        idle_decay: How `idle_restart` reduces the window. "restart" or "halving".
        fin_beyond_window: Send the FIN as Linux does: its segment leaves even if the congestion
            window is full, one segment beyond it (tcp_cwnd_test), and data that can be sent when
            the application closes leaves before it, so that it goes alone (tcp_send_fin). True or
            false.
        initial_rto: Retransmission timeout before the first round-trip sample; at least "1 us". A
            time with its unit, for example "100 ms".
        min_rto: Smallest retransmission timeout; at least "1 us". A time with its unit, for example
            "100 ms".
        rto_floor: Quantity that `min_rto` bounds. "timeout" or "deviation".
        max_rto: Largest retransmission timeout, back-off included. A time with its unit, for
            example "100 ms".
        clock_granularity: Tick of the clock that measures round-trip times; zero is an exact clock.
            A time with its unit, for example "100 ms".
        rtt_sampling: Which segments give round-trip samples. "every-ack" or "every-delivery" or
            "one-per-window".
        rtt_deviation: Which deviation of round-trip times the retransmission timeout uses. "mean"
            or "peak".
        rto_alpha: alpha: weight of a round-trip sample in the smoothed round-trip time. A number.
        rto_beta: beta: weight of a round-trip sample in the mean deviation, with `rtt_deviation =
            "mean"`. A number.
        rto_k: K: number of mean deviations in the timeout. A number.
        rack_window_divisor: With recovery `rack-tlp` and `linux`, step of RACK's reordering window,
            as one part in so many of the least round-trip time. A whole number.
        rack_persist: With recovery `rack-tlp` and `linux`, number of recoveries for which RACK's
            widened reordering window is kept. A whole number.
        tlp_round_trips: With recovery `rack-tlp` and `linux`, number of smoothed round-trip times
            after which a tail loss probe is sent. A whole number.
        tlp_max_ack_delay: With recovery `rack-tlp` and `linux`, time by which a tail loss probe is
            sent later if one segment is outstanding. A time with its unit, for example "100 ms".
        timer_restart: What restarts the retransmission timer. "acks" or "head".
        timer_tick: Tick of the clock that drives timers: a timeout ends at the first tick after it,
            and, if it is 63 ticks long or longer, at a multiple of 8 ticks (64 from 504 ticks on,
            and so on), as in Linux's timer wheel; zero is an exact clock. Linux counts 250 ticks a
            second (Debian) and widens tail loss probe and reordering timers by 2 ms for them. A
            time with its unit, for example "100 ms".
        frto: After a timeout, send new data before more old data, and undo the timeout if segments
            sent before it still arrive (F-RTO, RFC 5682: section 3.1 with selective
            acknowledgements, otherwise section 2.1; with recovery `linux` as in
            `tcp_process_loss`). True or false.
        dsack: Report data that arrives twice (RFC 2883), undo a reduction when all its
            retransmissions were reported in this way, and widen RACK's reordering window with the
            reports (RFC 8985, section 6.2); with selective acknowledgements. True or false.
        ecn: Use ECN (RFC 3168): negotiate it, send ECN-capable data, respond to marks. True or
            false.
        ecn_feedback: How the receiver reports marks. "echo" or "dctcp" or "accecn".
        ecn_reduction: By how much marks reduce the window. "loss" or "abe" or "dctcp" or "prague"
            or "bbr".
        abe_beta: With `ecn_reduction = "abe"`, factor by which a mark multiplies the window.
            Without it 0.8, and 0.85 with growth `cubic` and `linux-cubic`. A number.
        dctcp_g: g: gain of the estimated share of marked data, for a reduction in proportion to it.
            A number.
        alpha_start: Initial value of the estimated share of marked data, for a reduction in
            proportion to it. "decaying" or "held" or "zero".
        rtt_transition: Number of round trips after slow start after which Prague's growth and
            reduction no longer depend on a round-trip time below 25 ms. A whole number.
        ecn_codepoint: The codepoint of ECN-capable data. "ect0" or "ect1".
        ecn_syn_ack: Make the SYN-ACK ECN-capable too (RFC 5562). True or false.
        ecn_fallback: Disable ECN when the SYN that requests it has to be repeated (RFC 3168,
            section 6.1.1.1; Linux). True or false.
        ecn_retransmissions: With `ecn`, make retransmissions ECN-capable and let them carry CWR, as
            ns-2 does; RFC 3168, section 6.1.5, forbids this. True or false.
        class_: A congestion controller of your own in place of `slow_start` and `growth`: in Python
            `"my_controller.py:MyController"`, a file in the experiment's folder and a class in it,
            or `"package.module:MyController"`; compiled `"my_controller.wasm"`, a WebAssembly
            module; in Rust the name under which it was registered. It is paced at the rate that it
            gives; if it gives none, as `pacing` says. Reductions are its own too: `prr` is off.
            `redtail run` executes this code; Python outside the experiment's folder needs
            `--allow-code`. A text.
        params: With `class`, parameters of the controller; a class in Python gets each key as an
            argument of that name. A table.
        source: With `class`, hash of the source of a class in Python, which is part of the key of
            results; filled in when the file is read. If it is given, the source of the class must
            have this hash. A text.
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
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
    slow_start: (
        Literal["standard", "hystart-plus-plus", "hystart", "vegas", "hybla", "startup"]
        | AnySlowStart
        | None
    ) = None
    growth: (
        Literal[
            "reno",
            "cubic",
            "linux-cubic",
            "linux-reno",
            "vegas",
            "ledbat",
            "prague",
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "bbr",
            "bbr3",
            "copa",
            "copa-default",
            "bbr3-google",
        ]
        | AnyGrowth
        | None
    ) = None
    byte_counting: bool | None = None
    pacing: bool | None = None
    pacing_ca_ratio: float | None = None
    unpaced_segments: int | None = None
    lt_bw: bool | None = None
    bbr_ecn_max_rtt: str | None = None
    kernel_control: str | None = None
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
            "linux",
            "sack-1996",
        ]
        | None
    ) = None
    prr: bool | None = None
    halving: Literal["flight-size", "window", "linux-window"] | None = None
    initial_window: int | None = None
    initial_ssthresh: int | None = None
    dup_thresh: int | None = None
    limited_transmit: bool | None = None
    delayed_ack: bool | None = None
    delayed_ack_timeout: str | None = None
    adaptive_acks: bool | None = None
    quick_acks: int | None = None
    timestamps: bool | None = None
    receive_window: str | None = None
    receive_autotuning: bool | None = None
    send_buffer: str | None = None
    read_rate: str | None = None
    syn_loss: Literal["first", "second"] | None = None
    handshake: bool | None = None
    bare_handshake_ack: bool | None = None
    idle_restart: bool | None = None
    idle_decay: Literal["restart", "halving"] | None = None
    fin_beyond_window: bool | None = None
    initial_rto: str | None = None
    min_rto: str | None = None
    rto_floor: Literal["timeout", "deviation"] | None = None
    max_rto: str | None = None
    clock_granularity: str | None = None
    rtt_sampling: Literal["every-ack", "every-delivery", "one-per-window"] | None = None
    rtt_deviation: Literal["mean", "peak"] | None = None
    rto_alpha: float | None = None
    rto_beta: float | None = None
    rto_k: float | None = None
    rack_window_divisor: int | None = None
    rack_persist: int | None = None
    tlp_round_trips: int | None = None
    tlp_max_ack_delay: str | None = None
    timer_restart: Literal["acks", "head"] | None = None
    timer_tick: str | None = None
    frto: bool | None = None
    dsack: bool | None = None
    ecn: bool | None = None
    ecn_feedback: Literal["echo", "dctcp", "accecn"] | None = None
    ecn_reduction: Literal["loss", "abe", "dctcp", "prague", "bbr"] | None = None
    abe_beta: float | None = None
    dctcp_g: float | None = None
    alpha_start: Literal["decaying", "held", "zero"] | None = None
    rtt_transition: int | None = None
    ecn_codepoint: Literal["ect0", "ect1"] | None = None
    ecn_syn_ack: bool | None = None
    ecn_fallback: bool | None = None
    ecn_retransmissions: bool | None = None
    class_: str | type[Any] | None = None
    params: Mapping[str, Any] | None = None
    source: str | None = None


@dataclass(kw_only=True)
class Bulk(Part):
    """TCP senders that always have data to send.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        start: When flows start; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these.
        stop: When flows stop: they send no new data, and close when what they have sent is
            acknowledged; dealt out. Left out, they continue to the end of the run. A time from the
            start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a list of
            these.
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "bulk"

    name: str
    flows: int | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Transfer(Part):
    """TCP transfers of a given size, one for each flow.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        size: Payload of each transfer; dealt out. A number of bytes with its unit, for example
            "1500 B", or a list of these.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        start: When transfers start; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these; default "0 s".
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "transfer"

    name: str
    size: str | Sequence[str]
    flows: int | None = None
    start: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Cbr(Part):
    """UDP sources of constant rate.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        rate: Rate of each source on the link, headers included. A rate with its unit, for example
            "10 Mbit/s".
        packet: Size of each packet on the link, headers included, or a law from which it is drawn
            for each; the gaps are those of the mean. Only the simulator draws sizes. A value or a
            law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape 1.2", or a
            table with cdf.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        dither: Draw each gap between packets uniformly from (1 - dither) to (1 + dither) times the
            nominal one. A number; default 0.0.
        start: When sources start; dealt out. Left out, each starts at a random phase of its first
            gap. A time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for
            each flow, or a list of these.
        stop: When sources stop; dealt out. Left out, they continue to the end of the run. A time
            from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or
            a list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "cbr"

    name: str
    rate: str
    packet: str | Mapping[str, Any]
    flows: int | None = None
    dither: float | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Voip(Part):
    """Telephone calls: voice over UDP, with the quality that the listener gets.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        codec: Codec of the voice, which sets the packets' interval and payload. "g711" or
            "g711-plain" or "g729" or "g723"; default "g711".
        header: Bytes that headers add to each packet on the link. A number of bytes with its unit,
            for example "1500 B"; default "40 B".
        talk: How long a talkspurt lasts, drawn for each, with `silence`; "exponential mean 1.004 s"
            by ITU-T P.59. Left out, the talker never pauses. A value or a law, such as "50 s",
            "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table with cdf.
        silence: How long a pause lasts, drawn for each, with `talk`; "exponential mean 1.587 s" by
            ITU-T P.59. A value or a law, such as "50 s", "exponential mean 50 s" or "pareto mean 50
            s shape 1.2", or a table with cdf.
        jitter_buffer: Time for which the first packet of a talkspurt waits at the receiver, so that
            later packets arrive in time. A time with its unit, for example "100 ms"; default "60
            ms".
        start: When calls start; dealt out. Left out, each starts at a random phase; with pauses, it
            starts talking with the probability that it talks in the long run. A time from the start
            of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a list of
            these.
        stop: When calls stop; dealt out. Left out, they continue to the end of the run. A time from
            the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a
            list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "voip"

    name: str
    flows: int | None = None
    codec: Literal["g711", "g711-plain", "g729", "g723"] | None = None
    header: str | None = None
    talk: str | Mapping[str, Any] | None = None
    silence: str | Mapping[str, Any] | None = None
    jitter_buffer: str | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class OnOff(Part):
    """UDP sources that alternate between sending at a constant rate and pausing.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        rate: Rate of each source on the link while it is on, headers included. A rate with its
            unit, for example "10 Mbit/s".
        packet: Size of each packet on the link, headers included, or a law from which it is drawn
            for each; the times are those of the mean. Only the simulator draws sizes. A value or a
            law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape 1.2", or a
            table with cdf.
        on: Length of a period in which a source is on, drawn for each period; its mean is at least
            1/100000 of the transmission time of a packet at `rate`. A value or a law, such as "50
            s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table with cdf.
        off: Length of a period in which a source is off, drawn for each period. A value or a law,
            such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table with
            cdf.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        start: When sources start, with an on period; dealt out. Left out, each begins on or off at
            random. A time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for
            each flow, or a list of these.
        stop: When sources stop; dealt out. Left out, they continue to the end of the run. A time
            from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or
            a list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "on-off"

    name: str
    rate: str
    packet: str | Mapping[str, Any]
    on: str | Mapping[str, Any]
    off: str | Mapping[str, Any]
    flows: int | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Game(Part):
    """Players of a fast network game: small UDP packets at short intervals.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        sender: Sender of the packets, which sets the defaults of `gap` and `payload`. "server" or
            "client"; default "server".
        gap: Time from one packet to the next, drawn for each; at least "1 ns" on average. A value
            or a law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a
            table with cdf.
        payload: Payload of a packet, drawn for each. A value or a law, such as "12 kB",
            "exponential mean 12 kB" or "pareto mean 12 kB shape 1.2", or a table with cdf.
        header: Bytes that headers add to each packet on the link. A number of bytes with its unit,
            for example "1500 B"; default "28 B".
        start: When flows start; dealt out. Left out, each starts at a random phase of a mean gap. A
            time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each
            flow, or a list of these.
        stop: When flows stop; dealt out. Left out, they continue to the end of the run. A time from
            the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a
            list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "game"

    name: str
    flows: int | None = None
    sender: Literal["server", "client"] | None = None
    gap: str | Mapping[str, Any] | None = None
    payload: str | Mapping[str, Any] | None = None
    header: str | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Transactions(Part):
    """Users who repeatedly send a request and receive a response (netperf's CRR and RR).

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        response: Payload of a response. A value or a law, such as "12 kB", "exponential mean 12 kB"
            or "pareto mean 12 kB shape 1.2", or a table with cdf.
        users: Number of users. A whole number from 1 to 1e+06; default 1.
        request: Payload of a request. A value or a law, such as "12 kB", "exponential mean 12 kB"
            or "pareto mean 12 kB shape 1.2", or a table with cdf; default "1 kB".
        connections: How transactions use connections. "each" or "one"; default "each".
        service: Time between the arrival of a request at the server and its response. A value or a
            law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table
            with cdf; default "0 s".
        think: Time that a user waits between a response and the next request. A value or a law,
            such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table with
            cdf; default "0 s".
        start: When users begin; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these; default "0 s".
        stop: When users send no more requests; dealt out. Left out, they continue to the end of the
            run. A time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for
            each flow, or a list of these.
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "transactions"

    name: str
    response: str | Mapping[str, Any]
    users: int | None = None
    request: str | Mapping[str, Any] | None = None
    connections: Literal["each", "one"] | None = None
    service: str | Mapping[str, Any] | None = None
    think: str | Mapping[str, Any] | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Web(Part):
    """Web users.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        model: The model: distributions, and how connections are used. Each key below replaces a
            parameter of the model. "feldmann" or "request-think" or "empirical" or "http1" or
            "http2".
        users: Number of users. A whole number from 1 to 1e+06; default 1.
        load: Load to offer, in place of a number of users: a share of the rate of the first
            bottleneck link that the data crosses, headers included. How many users offer it is
            found by simulation. A number, or a text.
        think: Time between pages. A value or a law, such as "50 s", "exponential mean 50 s" or
            "pareto mean 50 s shape 1.2", or a table with cdf.
        think_from: Event from which the time between pages is counted. "page-start" or "page-end".
        objects: Objects of a page, rounded up; at least one. A value or a law, such as "4",
            "exponential mean 4" or "pareto mean 4 shape 1.2", or a table with cdf, or a number.
        gap: Time between the launches of a page's objects, if they do not wait for each other. A
            value or a law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2",
            or a table with cdf.
        document: Payload of the first object of a page. A value or a law, such as "12 kB",
            "exponential mean 12 kB" or "pareto mean 12 kB shape 1.2", or a table with cdf.
        object: Payload of the other objects. A value or a law, such as "12 kB", "exponential mean
            12 kB" or "pareto mean 12 kB shape 1.2", or a table with cdf.
        request: Payload of a request. A value or a law, such as "12 kB", "exponential mean 12 kB"
            or "pareto mean 12 kB shape 1.2", or a table with cdf.
        service: Time between the arrival of a request at the server and its response. A value or a
            law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table
            with cdf.
        parallel: Largest number of simultaneous connections of a page; 0 if its objects do not wait
            for each other. A whole number.
        persistent: Share of pages with persistent connections, which serve one object after
            another. A number.
        multiplexed: All objects of a page are requested at once on one connection, and the
            responses are interleaved. True or false.
        keep_alive: Time for which an idle connection is kept for the user's next page. A time with
            its unit, for example "100 ms".
        server: Which host of the group a connection goes to. "own" or "per-page" or
            "per-connection".
        pages_per_server: Number of consecutive pages from the same server, if the server is drawn
            for pages. A value or a law, such as "4", "exponential mean 4" or "pareto mean 4 shape
            1.2", or a table with cdf, or a number.
        start: When users begin their first page; dealt out. Left out, each begins by thinking. A
            time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each
            flow, or a list of these.
        stop: When users begin no more pages; dealt out. Left out, they continue to the end of the
            run. A time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for
            each flow, or a list of these.
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "web"

    name: str
    model: Literal["feldmann", "request-think", "empirical", "http1", "http2"]
    users: int | None = None
    load: float | str | None = None
    think: str | Mapping[str, Any] | None = None
    think_from: Literal["page-start", "page-end"] | None = None
    objects: str | Mapping[str, Any] | float | None = None
    gap: str | Mapping[str, Any] | None = None
    document: str | Mapping[str, Any] | None = None
    object: str | Mapping[str, Any] | None = None
    request: str | Mapping[str, Any] | None = None
    service: str | Mapping[str, Any] | None = None
    parallel: int | None = None
    persistent: float | None = None
    multiplexed: bool | None = None
    keep_alive: str | None = None
    server: Literal["own", "per-page", "per-connection"] | None = None
    pages_per_server: str | Mapping[str, Any] | float | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Video(Part):
    """Users who watch adaptive video (DASH, HLS).

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        users: Number of users. A whole number from 1 to 1e+06; default 1.
        bitrates: Bitrates in which the video is available, in ascending order. A list, each a rate
            with its unit, for example "10 Mbit/s"; default ["145 kbit/s", "365 kbit/s", "730
            kbit/s", "1.1 Mbit/s", "2 Mbit/s", "3 Mbit/s", "4.5 Mbit/s", "6 Mbit/s", "7.8 Mbit/s"].
        segment: Length of a segment, in time of video. A time with its unit, for example "100 ms";
            default "4 s".
        variation: Size of a segment divided by bitrate times length; one draw for each segment, the
            same at every bitrate. A value or a law, such as "4", "exponential mean 4" or "pareto
            mean 4 shape 1.2", or a table with cdf, or a number; default "1".
        buffer: Maximum of buffered video: a segment is requested when it fits. A time with its
            unit, for example "100 ms"; default "30 s".
        startup: Video that must be buffered before playback starts, or resumes after a stall. A
            time with its unit, for example "100 ms".
        algorithm: Algorithm that chooses the bitrate of the next segment. "throughput" or "buffer";
            default "throughput".
        safety: For `throughput`: share of the estimated throughput that a bitrate may take. A
            number.
        window: For `throughput`: number of segments in the estimate. A whole number from 1 to 1000.
        reservoir: For `buffer`: with no more buffered video than this, the lowest bitrate. A time
            with its unit, for example "100 ms".
        cushion: For `buffer`: with this much more than the reservoir, the highest bitrate. A time
            with its unit, for example "100 ms".
        duration: Length of the video. Left out, it does not end. A time with its unit, for example
            "100 ms".
        request: Payload of a request. A value or a law, such as "12 kB", "exponential mean 12 kB"
            or "pareto mean 12 kB shape 1.2", or a table with cdf; default "1 kB".
        start: When users begin to watch; dealt out. A time from the start of the run, such as "5
            s", or "uniform 0..10 s", drawn for each flow, or a list of these; default "0 s".
        stop: When users leave; dealt out. Left out, they stay to the end of the run. A time from
            the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a
            list of these.
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "video"

    name: str
    users: int | None = None
    bitrates: Sequence[str] | None = None
    segment: str | None = None
    variation: str | Mapping[str, Any] | float | None = None
    buffer: str | None = None
    startup: str | None = None
    algorithm: Literal["throughput", "buffer"] | None = None
    safety: float | None = None
    window: int | None = None
    reservoir: str | None = None
    cushion: str | None = None
    duration: str | None = None
    request: str | Mapping[str, Any] | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Arrivals(Part):
    """Connections that arrive independently of users: one request and response each.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        gap: Time from one arrival to the next of a source; exponential makes them Poisson. At least
            "1 ns" on average. A value or a law, such as "50 s", "exponential mean 50 s" or "pareto
            mean 50 s shape 1.2", or a table with cdf.
        size: Payload of a response. A value or a law, such as "12 kB", "exponential mean 12 kB" or
            "pareto mean 12 kB shape 1.2", or a table with cdf.
        users: Number of users. A whole number from 1 to 1e+06; default 1.
        request: Payload of a request. A value or a law, such as "12 kB", "exponential mean 12 kB"
            or "pareto mean 12 kB shape 1.2", or a table with cdf; default "1 kB".
        service: Time between the arrival of a request at the server and its response. A value or a
            law, such as "50 s", "exponential mean 50 s" or "pareto mean 50 s shape 1.2", or a table
            with cdf; default "0 s".
        start: When sources begin; the first arrival follows one gap later. Dealt out. A time from
            the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a
            list of these; default "0 s".
        stop: When arrivals end; dealt out. Left out, they continue to the end of the run. A time
            from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or
            a list of these.
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "arrivals"

    name: str
    gap: str | Mapping[str, Any]
    size: str | Mapping[str, Any]
    users: int | None = None
    request: str | Mapping[str, Any] | None = None
    service: str | Mapping[str, Any] | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Trace(Part):
    """Connections from a table.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        file: The table, a path relative to the experiment file: `.csv` or `.parquet` with the
            columns `start_s` and `size_bytes`, and perhaps `connection`, `direction`, `rtt_s`,
            `request_bytes`, `service_s` and `think_s`; or `.cvec`, connection vectors of tmix. A
            text.
        users: Filled in from the table: one user for each path, that is direction and round-trip
            time. A whole number from 1 to 1e+06; default 1.
        rtt_resolution: Resolution of round-trip times: the values of the table are rounded to a
            multiple of this, and each distinct value has hosts of its own. A time with its unit,
            for example "100 ms"; default "1 ms".
        tcp: The TCP of the flows: a preset, or a table with a preset and the parameters that differ
            from it. "sack" or "newreno" or "reno" or "tahoe" or "cubic" or "dctcp" or "prague" or
            "vegas" or "ledbat" or "linux" or "bbr" or "bbr3" or "westwood" or "bic" or "htcp" or
            "hybla" or "illinois" or "highspeed" or "scalable" or "veno" or "yeah" or "copa" or
            "bbr3-google" or "linux-2000" or "ns2-sack" or "ns2-newreno" or "ns2-reno" or
            "ns2-tahoe", or a table with preset, mss, header, slow_start, growth, …; default "sack".
        packet: Size on the link of a packet with a full segment, headers included: `mss` and
            `header` of `tcp` together, or a law with this mean from which it is drawn for each
            segment. A segment that is sent again keeps its size. Window, sequence numbers and
            goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes. A
            value or a law, such as "12 kB", "exponential mean 12 kB" or "pareto mean 12 kB shape
            1.2", or a table with cdf.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "trace"

    name: str
    file: str
    users: int | None = None
    rtt_resolution: str | None = None
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
            "westwood",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "highspeed",
            "scalable",
            "veno",
            "yeah",
            "copa",
            "bbr3-google",
            "linux-2000",
            "ns2-sack",
            "ns2-newreno",
            "ns2-reno",
            "ns2-tahoe",
        ]
        | Tcp
        | None
    ) = None
    packet: str | Mapping[str, Any] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Call(Part):
    """Video calls that adapt to the network: media over UDP with a rate controller.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        controller: What chooses the rate of the media. "gcc" or "scream"; default "gcc".
        media: Who sends media. "both-ways" or "one-way"; default "both-ways".
        start_rate: Rate of the media of a caller at the beginning, voice and headers included. A
            rate with its unit, for example "10 Mbit/s".
        min_rate: The least rate of the media of a caller, voice and headers included; more than
            voice alone. A rate with its unit, for example "10 Mbit/s"; default "150 kbit/s".
        max_rate: The highest rate of the media of a caller, voice and headers included. A rate with
            its unit, for example "10 Mbit/s"; default "1.5 Mbit/s".
        frame_rate: Frames of video per second; 1 to 240. A number from 1 to 240; default 30.0.
        audio: Voice. "g711" or "g729" or "none"; default "g711".
        jitter_buffer: Time for which the first packet of voice waits at the receiver, so that later
            ones arrive in time. A time with its unit, for example "100 ms"; default "60 ms".
        packet: Largest payload of a packet of video. A number of bytes with its unit, for example
            "1500 B"; default "1200 B".
        header: Bytes that headers add to each packet of media on the link. A number of bytes with
            its unit, for example "1500 B"; default "40 B".
        report_interval: For `gcc`: time between two reports; a fall of the estimate by 3 % is
            reported at once. At least "1 ms". A time with its unit, for example "100 ms".
        ecn: For `scream`: send media as ECN-capable, ECT(0), and reduce the rate when packets are
            marked. True or false; default false.
        start: When calls start; dealt out. Each end sends its first frame at a random phase of its
            frame interval. A time from the start of the run, such as "5 s", or "uniform 0..10 s",
            drawn for each flow, or a list of these; default "0 s".
        stop: When calls stop; dealt out. Left out, they continue to the end of the run. A time from
            the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a
            list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "call"

    name: str
    flows: int | None = None
    controller: Literal["gcc", "scream"] | None = None
    media: Literal["both-ways", "one-way"] | None = None
    start_rate: str | None = None
    min_rate: str | None = None
    max_rate: str | None = None
    frame_rate: float | None = None
    audio: Literal["g711", "g729", "none"] | None = None
    jitter_buffer: str | None = None
    packet: str | None = None
    header: str | None = None
    report_interval: str | None = None
    ecn: bool | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Endpoint(Part):
    """Flows over UDP between endpoints of your own: a program that uses redtail as a library gives them.

    (

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        class_: The name under which the program registered the endpoints. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        params: Parameters that the program gives a meaning. A table.
        header: Bytes that headers add to each datagram on the link. A number of bytes with its
            unit, for example "1500 B"; default "28 B".
        packet: Size on the link of the largest packet that an endpoint may send, headers included;
            a larger one ends the run. A number of bytes with its unit, for example "1500 B";
            default "1500 B".
        start: When flows start; dealt out. Both ends of a flow start at this time. A time from the
            start of the run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a list of
            these; default "0 s".
        stop: When flows stop; dealt out. Both ends are told, and may send what ends their
            connection. Left out, they continue to the end of the run. A time from the start of the
            run, such as "5 s", or "uniform 0..10 s", drawn for each flow, or a list of these.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "endpoint"

    name: str
    class_: str
    flows: int | None = None
    params: Mapping[str, Any] | None = None
    header: str | None = None
    packet: str | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Measure(Part):
    """A number that programs tell, as a metric of the group.

    Attributes:
        unit: The unit in which the programs give the number. Results have it in the SI unit, tables
            and figures in this one, or in Mbit/s and MB/s if it is bit/s or bytes/s. "1" or "%" or
            "s" or "ms" or "us" or "ns" or "bit/s" or "kbit/s" or "Mbit/s" or "Gbit/s" or "bytes/s"
            or "kB/s" or "MB/s" or "bytes" or "kB" or "MB" or "GB" or "packets" or "1/s".
        title: What tables and figures call it. Another title makes no new run. A text.
        from_: Where the number stands: in what the `"client"` or the `"server"` prints, or in the
            files of the client's `{out}` whose names fit a pattern such as `"result.json"` or
            `"*.qlog"`; `"server/*.qlog"` are files of the server's. A text; default "client".
        json: The path of the number in JSON: keys, joined by dots and in quotes if they have signs,
            and places in lists, `[*]` for all of them. A text.
        line: A regular expression with one group, the number, which is looked for in each line. A
            text.
        qlog: The event of a qlog and the path of the number in its data, or the event alone to
            count it. A text.
        statistic: What is made of many numbers. Left out, there has to be one. A text.
        pairs: What is made of the numbers of several pairs of programs. A text; default "mean".
        optional: Whether a run without the number is a run all the same, in which the metric is
            undefined. True or false.
    """

    unit: Literal[
        "1",
        "%",
        "s",
        "ms",
        "us",
        "ns",
        "bit/s",
        "kbit/s",
        "Mbit/s",
        "Gbit/s",
        "bytes/s",
        "kB/s",
        "MB/s",
        "bytes",
        "kB",
        "MB",
        "GB",
        "packets",
        "1/s",
    ]
    title: str | None = None
    from_: str | None = None
    json: str | None = None
    line: str | None = None
    qlog: str | None = None
    statistic: str | None = None
    pairs: str | None = None
    optional: bool | None = None


@dataclass(kw_only=True)
class Program(Part):
    """Pairs of programs of the user, a client and perhaps its server, on a real kernel.

    Attributes:
        name: Name of the group, put in front of its metrics and used in factor keys. A text.
        client: Command line for `sh` on the receiving side, with the words of `server`. The run
            fails if it ends with a code other than 0. A text.
        flows: Number of flows. A whole number from 1 to 1e+06; default 1.
        server: Command line for `sh` on the sending side, started with the run. In it `{server}`
            and `{client}` are the addresses of both sides, `{port}` the port of the pair, `{seed}`
            a number that follows from the seed, the replication, the group and the pair, `{out}` a
            folder for results, `{flow}` the number of the pair from 0, and `{{` a brace. A text.
        start: When clients start; dealt out. A time from the start of the run, such as "5 s", or
            "uniform 0..10 s", drawn for each flow, or a list of these; default "1 s".
        stop: When clients are asked to end (SIGTERM, and SIGKILL two seconds later); dealt out.
            Left out, they end by themselves, and one that runs at the end of the run fails it. A
            time from the start of the run, such as "5 s", or "uniform 0..10 s", drawn for each
            flow, or a list of these.
        longest: The longest time that a client may take; one that takes longer is ended, and fails
            the run. A time with its unit, for example "100 ms".
        environment: Variables of the environment of both programs, which may have the words of
            `server`. Beside them there are PATH, and HOME and TMPDIR, folders of the programs' own.
            A table.
        files: Files and folders that are copied into the folder in which the programs begin,
            relative to the experiment file. A list, each a text.
        measure: What the programs measure, by the name of each metric in the group. A table.
        access_rate: Rate of the sending hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        access_delay: One-way propagation delay of the sending hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        exit_rate: Rate of the receiving hosts' access links; dealt out. A rate with its unit, for
            example "10 Mbit/s", or a list of these.
        exit_delay: One-way propagation delay of the receiving hosts' access links; dealt out. A
            time with its unit, for example "100 ms", or a list of these, or "16..240 ms in 57" for
            so many in equal steps; default "0 s".
        return_delay: One-way propagation delay of the way back, in addition to that of the return
            links; dealt out. A time with its unit, for example "100 ms", or a list of these, or
            "16..240 ms in 57" for so many in equal steps; default "0 s".
        hosts: Number of sending (and of receiving) hosts that the flows share; flow i sits on host
            i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit
            on these hosts, with their links and their delays; if the two groups send in opposite
            directions, the hosts that receive in one send in the other. A whole number from 1 to
            1e+06, or a text.
        host_jitter: Maximum of the random time, uniform from zero, that each packet takes in its
            sending host in addition to the access link; the packets of a flow stay in order; up to
            1 s. "0 s" switches it off. All other random draws stay the same. A time with its unit,
            for example "100 ms".
        trains: One random time of `host_jitter` for all packets of a flow that its host sends at
            one instant, which then leave back to back, as a network card takes a train of segments
            as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the
            presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only
            the simulator has it. True or false.
        direction: Direction in which the data travels. "forward" or "reverse"; default "forward".
        dscp: DSCP of the group's packets, in both directions. A text, or a whole number from 0 to
            63; default "BE".
        port: The port of its servers, for queues that classify traffic by port. A whole number from
            0 to 65535.
        first_hop: First hop of a chain that the data crosses: its name, or its number, counted from
            1 in the chain's order. A whole number, at least 1, or a text.
        last_hop: Last hop of a chain that the data crosses: its name, or its number, counted from 1
            in the chain's order. A whole number, at least 1, or a text.
        repeat: Time from one activation of the group to the next: the group comes and goes.
            Activation k, counted from 0, has new flows (or users), which start and stop k times
            this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by
            themselves; no shorter than from `start` to `stop`. A time with its unit, for example
            "100 ms".
        activations: Number of activations of a group with `repeat`. A whole number from 1 to 1e+06.
    """

    _kind: ClassVar[str | None] = "program"

    name: str
    client: str
    flows: int | None = None
    server: str | None = None
    start: str | Sequence[str] | None = None
    stop: str | Sequence[str] | None = None
    longest: str | None = None
    environment: Mapping[str, str] | None = None
    files: Sequence[str] | None = None
    measure: Mapping[str, Measure] | None = None
    access_rate: str | Sequence[str] | None = None
    access_delay: str | Sequence[str] | None = None
    exit_rate: str | Sequence[str] | None = None
    exit_delay: str | Sequence[str] | None = None
    return_delay: str | Sequence[str] | None = None
    hosts: int | str | None = None
    host_jitter: str | None = None
    trains: bool | None = None
    direction: Literal["forward", "reverse"] | None = None
    dscp: str | int | None = None
    port: int | None = None
    first_hop: int | str | None = None
    last_hop: int | str | None = None
    repeat: str | None = None
    activations: int | None = None


@dataclass(kw_only=True)
class Series(Part):
    """Time series to record. Recording never changes a run.

    Attributes:
        interval: Time between two samples. A run has at most 50 million rows, one for each queue
            and flow at each time. A time with its unit, for example "100 ms".
        queues: Record, for every queue, its length, the average and probability of its control law,
            and since the sample before: arrivals, drops, marks and mean queueing delay. True or
            false; default true.
        windows: Of every flow: congestion window, slow start threshold, data in flight, smoothed
            round-trip time, pacing rate, bytes delivered. True or false; default false.
        goodput: Record the goodput of every group. True or false; default true.
        replications: Number of replications of each case that are recorded, counted from the first.
            A whole number, at least 1; default 1.
    """

    interval: str
    queues: bool | None = None
    windows: bool | None = None
    goodput: bool | None = None
    replications: int | None = None


@dataclass(kw_only=True)
class Events(Part):
    """The event log of each run: why flows and queues did what they did.

    Recording never changes a run.

    Attributes:
        kinds: Which kinds of events; [the events](events.md) says what each means. A list, each
            "start" or "end" or "timeout" or "tail_loss_probe" or "retransmission" or "recovery" or
            "recovery_end" or "loss_end" or "undo" or "spurious" or "mark_answered" or "state" or
            "alpha" or "slow_start_end" or "idle_restart" or "stall" or "drop" or "mark" or
            "wire_loss" or "page" or "response" or "arrival" or "departure" or "log_full".
        groups: Names of the groups whose events are recorded. A list, each a text.
        flows: Numbers of the flows whose events are recorded, counted over all groups in the order
            of the file. A list, each a whole number.
        from_: Events before this time are left out. A time with its unit, for example "100 ms";
            default "0 s".
        to: Events from this time on are left out. A time with its unit, for example "100 ms".
        limit: The most rows of a run; at most 10 million. Later events are counted and left out,
            which results say. A whole number, at least 1; default 200000.
        replications: Number of replications of each case that are recorded, counted from the first.
            A whole number, at least 1.
    """

    kinds: (
        Sequence[
            Literal[
                "start",
                "end",
                "timeout",
                "tail_loss_probe",
                "retransmission",
                "recovery",
                "recovery_end",
                "loss_end",
                "undo",
                "spurious",
                "mark_answered",
                "state",
                "alpha",
                "slow_start_end",
                "idle_restart",
                "stall",
                "drop",
                "mark",
                "wire_loss",
                "page",
                "response",
                "arrival",
                "departure",
                "log_full",
            ]
        ]
        | None
    ) = None
    groups: Sequence[str] | None = None
    flows: Sequence[int] | None = None
    from_: str | None = None
    to: str | None = None
    limit: int | None = None
    replications: int | None = None


@dataclass(kw_only=True)
class Root(Part):
    """The root filesystem of programs in a virtual machine.

    What is in it is a part of what a run is known by.

    Attributes:
        root: A folder, or an archive of tar, that is `/` for the programs; relative to the
            experiment file. It has all that they need, `sh` included. A text.
        add: Without `root`, what is taken from this computer as well: programs by their names, and
            files and folders by their absolute paths. A program of Python has the library of Python
            with it, one of a virtual environment the packages, too. A list, each a text.
    """

    root: str | None = None
    add: Sequence[str] | None = None


@dataclass(kw_only=True)
class Report(Part):
    """What tables and figures show. It changes no run, and is no part of what a run is known by.

    Attributes:
        metrics: Names of metrics, in the order in which they are shown. A name with `*` stands for
            all that fit: `"web.*"`, `"*.one_way_delay_p99"`. `redtail list metrics FILE` has the
            names. The option `--metrics` takes its place. A list, each a text.
    """

    metrics: Sequence[str]


@dataclass(kw_only=True)
class DerivedMetric(Part):
    """A metric that follows from others by a formula.

    Attributes:
        formula: How it is computed from the metrics of a run: numbers, names of metrics, `+ - * /`,
            parentheses, `min(…)` and `max(…)`. A name with `-` in it stands in single quotes:
            `'bbr-1.goodput'`. A text.
        title: Name in figures. A text.
        short: Name at the head of a column. A text.
        unit: Unit in which it is shown, which has to suit the formula: `"%"` or `"1"` of a ratio,
            `"ms"` of a time, `"Mbit/s"` of a rate. A text.
    """

    formula: str
    title: str | None = None
    short: str | None = None
    unit: str | None = None


@dataclass(kw_only=True)
class Expectation(Part):
    """Something that has to hold of the results, which `redtail expect` judges.

    Attributes:
        holds: What has to hold: `"cubic.goodput >= 9 Mbit/s"`, `"share within 5 % of 0.5"`. Each
            side is a formula as of a [derived metric](#derived-metric), of metrics, quantities (`20
            ms`, `2 BDP`) and terms of [time series](../how-to/regression-tests.md#over-time). A
            text.
        cases: The cases that it is about, by the labels of their factors' values; labels of one
            factor are alternatives. A list, each a text.
        of: What has to hold of the replications: their "mean", as all intervals are of, or "each"
            of them. A text.
        source: Where the expectation comes from, for reports. A text.
    """

    holds: str
    cases: Sequence[str] | None = None
    of: str | None = None
    source: str | None = None


@dataclass(kw_only=True)
class Experiment(Whole):
    """An experiment: what runs, how long, how often, and what is compared.

    Attributes:
        name: Name of the experiment; results are stored in a folder of this name. A text.
        duration: How long each run lasts, in simulated time. A time with its unit, for example "100
            ms".
        format: Number of the format of this file. A redtail that does not read the format refuses
            the file and says what reads it. 1; default 1.
        description: A description of the experiment in one sentence or more. A text.
        warmup: Time at the start of each run that no statistics include; less than `duration`. A
            time with its unit, for example "100 ms"; default "0 s".
        replications: Number of runs of each case, with independent random numbers; means and
            intervals are computed over them. Either a number, or a table with a stop rule: `{ until
            = "queue_delay_p99 within 5 %", at_most = 50 }`. A whole number from 1 to 1e+06, or a
            table with until, at_least, at_most; default 10.
        backend: What makes the runs: "sim" simulates them, "live" sends real packets through
            redtail's queues, "live-tc" through the kernel's; "linux" runs a Linux kernel in a
            virtual machine, with its TCP and its queues, "linux-tcp" with its TCP and redtail's
            queues. The option `--backend` takes its place. A text.
        seed: Seed of all random numbers: the same seed gives the same results, byte for byte. A
            whole number; default 1.
        bottleneck: One bottleneck link that all traffic crosses. Give either this or `chain`. A
            table with name, rate, delay, queue, policer, ….
        chain: Several bottleneck links in a row. Give either this or `bottleneck`. A table with
            hop.
        host_jitter: The `host_jitter` of the groups that give none: the maximum of a random time
            that each packet takes in its sending host; up to 1 s. "0 s" switches it off. Backends
            with real senders apply only a value that the file gives. A time with its unit, for
            example "100 ms".
        hosts: Hosts on which several groups sit, by a name of yours: `[hosts.NAME]`, and `hosts =
            "NAME"` in the groups. A table.
        traffic: The groups of flows. A list, each a table with kind = "bulk" or "transfer" or "cbr"
            or "voip" or "on-off" or "game" or "transactions" or "web" or "video" or "arrivals" or
            "trace" or "call" or "endpoint" or "program".
        phases: Times at which results are split: metrics are also reported for each phase from one
            of these times to the next. With "auto", the times are every change of a rate and every
            fixed start and stop of a group. "auto", or a list, each a time with its unit, for
            example "100 ms".
        series: Time series to record; without it there are none. A table with interval, queues,
            windows, goodput, replications.
        events: The event log to record; without it there is none. The option `--events` asks for
            one too. A table with kinds, groups, flows, from, to, ….
        record: What a run measures of each packet beside what it always measures: it takes time, so
            it is measured only where this key asks for it. "one_way_delay": of TCP data the one-way
            delay, and of all groups its variation. "round_trip": from each TCP segment to its
            acknowledgement. "loss_by_class": losses of SYNs, acknowledgements, data and
            retransmissions. It changes nothing else in a result. A list, each "one_way_delay" or
            "round_trip" or "loss_by_class".
        keep_flows: The most flows that a run may have for its table of flows to be kept; 0 keeps
            none. Connections of users count as flows. In an experiment of 1000 runs or more, tables
            are kept only if this key is given. A whole number.
        programs: What the programs of groups of kind `program` find in the virtual machine of the
            backends "linux" and "linux-tcp". Other backends run this computer's programs. A table
            with root, add.
        report: What tables and figures show; without it, what suits the traffic. It changes no run.
            A table with metrics.
        metrics: Metrics that follow from others, each a name with a formula: `share = "bbr.goodput
            / goodput"`, or a table with the keys of a [derived metric](#derived-metric). They are
            computed for each replication and are used like all other metrics. They change no run. A
            table.
        expect: What has to hold of the results, each by a name of yours: `"uses the line" =
            "cubic.goodput >= 9 Mbit/s"`, or a table with the keys of an
            [expectation](#expectation). `redtail expect` judges them. They change no run. A table.
        factors: Keys that take several values in turn; every combination is a case. A key is
            dotted: "bottleneck.queue", "traffic.ftp.flows" (the group named ftp),
            "chain.hop2.rate". Those in a table of [[factors.zip]] take their values in step, as
            many of each. A table.
        case: List of cases, each with a name and the dotted keys that it sets. With factors, every
            case is combined with every combination of their values. A list, each a table with name.
        template: Templates of groups by their names. A [[use]] makes the groups of one many times.
            A table.
        use: Uses of templates: each makes the groups of a template for so many instances, whose
            results stand together as those of NAME-GROUP. A list, each a table with template, name,
            count, set.
    """

    name: str
    duration: str
    format: Literal[1] | None = None
    description: str | None = None
    warmup: str | None = None
    replications: int | StopRule | None = None
    backend: str | None = None
    seed: int | None = None
    bottleneck: Hop | None = None
    chain: Chain | None = None
    host_jitter: str | None = None
    hosts: Mapping[str, Hosts] | None = None
    traffic: Sequence[AnyTraffic] | None = None
    phases: Literal["auto"] | Sequence[str] | None = None
    series: Series | None = None
    events: Events | None = None
    record: Sequence[Literal["one_way_delay", "round_trip", "loss_by_class"]] | None = None
    keep_flows: int | None = None
    programs: Root | None = None
    report: Report | None = None
    metrics: Mapping[str, str | DerivedMetric] | None = None
    expect: Mapping[str, str | Expectation] | None = None
    factors: Mapping[str, Sequence[Any] | Mapping[str, Any]] | None = None
    case: Sequence[Mapping[str, Any]] | None = None
    template: Mapping[str, Mapping[str, Any]] | None = None
    use: Sequence[Mapping[str, Any]] | None = None


AnyQueue: TypeAlias = "TailDrop | Red | AdaptiveRed | SelfConfiguringRed | DynamicThresholdRed | RedTail | Wred | Pi | Pie | DocsisPie | Pi2 | Dualpi2 | HeadDrop | Step | Rem | Blue | Sred | Avq | Choke | Gsp | Codel | FqCodel | Fq | Sfq | Cobalt | Cake | Sfb | FqPie | PfifoFast | Prio | Drr | Wfq | Tbf | Htb | Plugin"
"""One of these."""

AnyPolicer: TypeAlias = "TokenBucket | SrTcm | TrTcm"
"""One of these."""

AnyTraffic: TypeAlias = "Bulk | Transfer | Cbr | Voip | OnOff | Game | Transactions | Web | Video | Arrivals | Trace | Call | Endpoint | Program"
"""One of these."""

AnySlowStart: TypeAlias = "StandardSlowStart | HystartPlusPlusSlowStart | HystartSlowStart | VegasSlowStart | HyblaSlowStart | StartupSlowStart"
"""One of these."""

AnyGrowth: TypeAlias = "RenoGrowth | CubicGrowth | LinuxCubicGrowth | LinuxRenoGrowth | VegasGrowth | LedbatGrowth | PragueGrowth | WestwoodGrowth | BicGrowth | HtcpGrowth | HyblaGrowth | IllinoisGrowth | HighspeedGrowth | ScalableGrowth | VenoGrowth | YeahGrowth | BbrGrowth | Bbr3Growth | CopaGrowth | CopaDefaultGrowth | Bbr3GoogleGrowth"
"""One of these."""

Bottleneck: TypeAlias = Hop
"""The bottleneck of an experiment that has one."""
