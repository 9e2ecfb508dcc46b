"""The mapping as data: which setting of a device each key of a queue becomes, and the sources.

`docs/reference/router-commands.md` is made from these tables. The options of `tc` are not here:
they are the table of the native module (`docs/reference/tc.md`), which `linux` and `openwrt` use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redtail import facts
from redtail.lines.line import Shaped
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import (
    BufferTime,
    Count,
    Exponent,
    Fixed,
    OneIn,
    Only,
    Packets,
    Percent,
    Place,
    Size,
    Time,
    Unit,
    Word,
    Written,
    _json,
    parts,
)


@dataclass(frozen=True)
class Device:
    """A device that commands can be made for.

    Attributes:
        name: what it is called on the command line.
        title: what it is.
        where: where the lines are entered.
        sources: the documents that the mapping comes from.
        tested: how the lines are tested.
    """

    name: str
    title: str
    where: str
    sources: tuple[str, ...]
    tested: str


@dataclass(frozen=True)
class Row:
    """A key of a queue and the setting of a device.

    Attributes:
        device: name of the device.
        kind: kind of the queue.
        key: key of the experiment file; `profiles.min_th` is `min_th` of each profile.
        setting: what it is called on the device; empty if there is no setting.
        unit: how the value is written.
        note: what else there is to know.
    """

    device: str
    kind: str
    key: str
    setting: str
    unit: Unit
    note: str = ""


_READ_BACK = (
    "Run in both directions and read back, in virtual machines with Linux 6.1 and 7.2 (iproute2 "
    "6.1 and 7.3): all that is advised but DualPI2, which Debian's kernels do not have. Tail drop "
    "also in a network namespace. Of two VLANs of a port, each has its own, and keeps it when the "
    "other is undone."
)
_NOT_RUN = "Compared with the documents; not tried on a device."

DEVICES = {
    each.name: each
    for each in (
        Device(
            "linux",
            "Linux",
            "in a shell of root on the router",
            (
                "manual pages tc-htb(8), tc-stab(8), tc-cake(8), tc-mirred(8), and of each queue "
                "(iproute2 6.1)",
                "docs/reference/tc.md of redtail",
                "sqm-scripts (June 2024), src/defaults.sh: the shaper's burst of 1 ms",
            ),
            _READ_BACK,
        ),
        Device(
            "systemd",
            "Linux with a unit of systemd",
            "in a shell of root on the router; the queues are set at each boot",
            (
                "systemd.unit(5), systemd.service(5), systemd.device(5) (systemd 252)",
                "the sources of linux",
            ),
            "The unit is checked by `systemd-analyze verify` (systemd 252), and its script is run "
            "in a network namespace. Not tried over a reboot.",
        ),
        Device(
            "networkd",
            "Linux with systemd-networkd",
            "in a shell of root on the router; networkd sets the queues at each boot",
            (
                "systemd.network(5), systemd.netdev(5), networkctl(1) (systemd 252; RTTSec and "
                "AckFilter: 253)",
                "tc-htb(8), tc-mirred(8)",
            ),
            "systemd-networkd 252 reads the files in a namespace: it takes every key but those of "
            "systemd 253, and sets tail drop below HTB, which is read back. CAKE, FQ-CoDel and "
            "CoDel are read, and not set: the kernel of the tests lacks them. Not tried over a "
            "reboot.",
        ),
        Device(
            "openwrt",
            "OpenWrt with SQM",
            "in a shell of root on the router; the package sqm-scripts must be installed",
            (
                "OpenWrt, SQM configuration /etc/config/sqm "
                "(openwrt.org/docs/guide-user/network/traffic-shaping/sqm_configuration)",
                "sqm-scripts (June 2024): src/run-openwrt.sh, src/functions.sh, "
                "src/piece_of_cake.qos, src/simplest.qos",
            ),
            "The commands of `tc` that SQM's scripts make of the settings are run in a virtual "
            "machine with Linux, and give the same queue as the commands for Linux. Not run on "
            "OpenWrt.",
        ),
        Device(
            "freebsd",
            "FreeBSD with ipfw and dummynet",
            "in a shell of root on the router",
            (
                "manual pages ipfw(8) and dummynet(4)",
                "FreeBSD: sbin/ipfw/dummynet.c, and sys/netpfil/ipfw/dn_sched_fq_pie.c for ranges",
            ),
            _NOT_RUN,
        ),
        Device(
            "opnsense",
            "OPNsense",
            "in the web interface, Firewall > Shaper, in advanced mode",
            (
                "OPNsense, Fighting Bufferbloat with FQ_CoDel "
                "(docs.opnsense.org/manual/how-tos/shaper_bufferbloat.html)",
                "manual page ipfw(8)",
            ),
            _NOT_RUN,
        ),
        Device(
            "pfsense",
            "pfSense",
            "in the web interface",
            (
                "Netgate, Configuring CoDel Limiters for Bufferbloat "
                "(docs.netgate.com/pfsense/en/latest/recipes/codel-limiters.html)",
                "manual page ipfw(8)",
            ),
            _NOT_RUN,
        ),
        Device(
            "vyos",
            "VyOS",
            "in configuration mode, followed by `commit` and `save`",
            (
                "VyOS, Traffic Policy "
                "(docs.vyos.io/en/latest/configuration/trafficpolicy/index.html)",
                "vyos-1x: interface-definitions/interfaces_input.xml.in, python/vyos/qos/base.py",
            ),
            _NOT_RUN,
        ),
        Device(
            "routeros",
            "MikroTik RouterOS 7",
            "in a terminal",
            (
                "MikroTik, Queues (help.mikrotik.com/docs/display/ROS/Queues), and CAKE "
                "(help.mikrotik.com/docs/display/ROS/CAKE)",
                "MikroTik, CLI reference of /queue/type "
                "(manual.mikrotik.com/docs/cli-reference/queue/type.md)",
            ),
            _NOT_RUN,
        ),
        Device(
            "ios",
            "Cisco IOS",
            "in global configuration mode (configure terminal)",
            (
                "Cisco IOS Quality of Service Solutions Command Reference: random-detect, "
                "random-detect precedence, random-detect dscp, random-detect ecn, random-detect "
                "exponential-weighting-constant, fair-queue, queue-limit, shape (policy-map class)",
                "Cisco, Low Latency Queueing with Priority Percentage Support (cisco.com/en/US/"
                "docs/ios/ios_xe/qos/configuration/guide/llq_with_pps_xe.html)",
            ),
            _NOT_RUN,
        ),
        Device(
            "junos",
            "Juniper Junos",
            "in configuration mode, followed by `commit`",
            (
                "Junos OS Class of Service: drop-profiles, buffer-size (Schedulers), shaping-rate, "
                "per-unit-scheduler",
                "Junos CLI User Guide: groups, apply-groups, deactivate, activate",
            ),
            _NOT_RUN,
        ),
    )
}

_NO_GENTLE = Only(False)
_ECN = Word({True: "ecn", False: "noecn"})


def _codel(device: str, kind: str) -> list[Row]:
    return [
        Row(device, kind, "target", "target", Time("us", 1, 5_000_000)),
        Row(device, kind, "interval", "interval", Time("us", 1, 5_000_000)),
        Row(device, kind, "ecn", "ecn", _ECN),
        Row(device, kind, "ce_threshold", "", Only(None)),
    ]


def _pie(device: str, kind: str) -> list[Row]:
    gain = Fixed(8192, 7)
    return [
        Row(device, kind, "target", "target", Time("us", 1, 5_000_000)),
        Row(device, kind, "update", "tupdate", Time("us", 1, 5_000_000)),
        Row(device, kind, "alpha", "alpha", gain),
        Row(device, kind, "beta", "beta", gain),
        Row(device, kind, "max_burst", "max_burst", Time("us", 0, 5_000_000)),
        Row(device, kind, "max_ecn", "max_ecnth", Fixed(8192, 1)),
        Row(device, kind, "ecn", "ecn", _ECN),
        Row(
            device,
            kind,
            "delay",
            "dre, ts",
            Word({"timestamps": "ts", "departure-rate": "dre"}),
        ),
    ]


def _fair(device: str, kind: str) -> list[Row]:
    return [
        Row(device, kind, "quantum", "quantum", Size(1, 9000)),
        Row(device, kind, "limit", "limit", Packets(1, 20_480)),
        Row(device, kind, "flows", "flows", Count(1, 65_536)),
    ]


_SLOTS = Packets(2, 20_480)
_SLOT_LIMIT = "Above 100, `net.inet.ip.dummynet.pipe_slot_limit` is raised first."
_THRESHOLD = Packets(1, 4096)

_MS = Time("ms", 1, 10_000, named=False)
_YES = Word({True: "yes", False: "no"})


def _networkd() -> list[Row]:
    flows = {"flowblind": "none", "srchost": "src-host", "dsthost": "dst-host", "hosts": "hosts"}
    flows |= {"flows": "flows", "dual-srchost": "dual-src-host", "dual-dsthost": "dual-dst-host"}
    flows |= {"triple-isolate": "triple"}
    presets = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
    time = Time("us", 1, 5_000_000)
    limit = Packets(1, 4_294_967_294)
    filters = Word({"off": "no", "on": "yes", "aggressive": "aggressive"})
    newer = "From systemd 253 on."
    return [
        Row("networkd", "cake", "rtt", "RTTSec", Time("us", 1, 4_000_000_000), newer),
        Row("networkd", "cake", "diffserv", "PriorityQueueingPreset", _same(presets)),
        Row("networkd", "cake", "isolation", "FlowIsolationMode", Word(flows)),
        Row("networkd", "cake", "wash", "Wash", _YES),
        Row("networkd", "cake", "ack_filter", "AckFilter", filters, newer),
        Row("networkd", "cake", "ingress", "", Only(False)),
        Row("networkd", "fq-codel", "limit", "PacketLimit", limit),
        Row("networkd", "fq-codel", "flows", "Flows", Count(1, 65_536)),
        Row("networkd", "fq-codel", "quantum", "QuantumBytes", Size(1, 1_048_576)),
        Row("networkd", "fq-codel", "target", "TargetSec", time),
        Row("networkd", "fq-codel", "interval", "IntervalSec", time),
        Row("networkd", "fq-codel", "ecn", "ECN", _YES),
        Row("networkd", "codel", "limit", "PacketLimit", limit),
        Row("networkd", "codel", "target", "TargetSec", time),
        Row("networkd", "codel", "interval", "IntervalSec", time),
        Row("networkd", "codel", "ecn", "ECN", _YES),
        Row("networkd", "tail-drop", "limit", "PacketLimit", limit),
    ]


def _same(words: tuple[str, ...]) -> Word:
    return Word({word: word for word in words})


def _pfsense() -> list[Row]:
    limit = Packets(2, 20_480)
    return [
        Row("pfsense", "tail-drop", "limit", "Queue Length", limit),
        Row("pfsense", "codel", "limit", "Queue Length", limit),
        Row("pfsense", "codel", "target", "target", _MS),
        Row("pfsense", "codel", "interval", "interval", _MS),
        Row("pfsense", "codel", "ecn", "ECN", _YES),
        Row("pfsense", "fq-codel", "target", "target", _MS),
        Row("pfsense", "fq-codel", "interval", "interval", _MS),
        Row("pfsense", "fq-codel", "ecn", "ECN", _YES),
        *_fair("pfsense", "fq-codel"),
        Row("pfsense", "fq-pie", "target", "target", _MS),
        Row("pfsense", "fq-pie", "update", "tupdate", _MS),
        Row("pfsense", "fq-pie", "alpha", "alpha", Fixed(8192, 7)),
        Row("pfsense", "fq-pie", "beta", "beta", Fixed(8192, 7)),
        Row("pfsense", "fq-pie", "max_burst", "max_burst", Time("ms", 0, 10_000, named=False)),
        Row("pfsense", "fq-pie", "max_ecn", "max_ecnth", Fixed(8192, 1)),
        Row("pfsense", "fq-pie", "ecn", "ECN", _YES),
        *_fair("pfsense", "fq-pie"),
    ]


def _vyos() -> list[Row]:
    flows = {"flowblind": "blind", "srchost": "src-host", "dsthost": "dst-host", "hosts": "host"}
    flows |= {"flows": "flow", "dual-srchost": "dual-src-host", "dual-dsthost": "dual-dst-host"}
    flows |= {"triple-isolate": "triple-isolate"}
    filters = Word({"off": "", "on": "ack-filter", "aggressive": "ack-filter aggressive"})
    limit = Packets(1, 4_294_967_295)
    return [
        Row("vyos", "cake", "rtt", "rtt", Time("ms", 1, 1_000_000_000, named=False)),
        Row("vyos", "cake", "isolation", "flow-isolation", Word(flows)),
        Row("vyos", "cake", "ack_filter", "ack-filter", filters, "From VyOS 1.5 on."),
        Row("vyos", "cake", "ingress", "", Only(False)),
        Row("vyos", "fq-codel", "target", "target", _MS),
        Row("vyos", "fq-codel", "interval", "interval", _MS),
        Row("vyos", "fq-codel", "quantum", "codel-quantum", Size(1, 1_048_576)),
        Row("vyos", "fq-codel", "flows", "flows", Count(1, 65_536)),
        Row("vyos", "fq-codel", "limit", "queue-limit", limit),
        Row("vyos", "fq-codel", "ecn", "", Only(False), "VyOS always sets `noecn`"),
        Row("vyos", "sfq", "limit", "queue-limit", Packets(1, 127)),
        Row("vyos", "tail-drop", "limit", "queue-limit", limit),
    ]


def _routeros() -> list[Row]:
    presets = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
    flows = (
        *("flowblind", "srchost", "dsthost", "hosts", "flows"),
        *("dual-srchost", "dual-dsthost", "triple-isolate"),
    )
    filters = Word({"off": "none", "on": "filter", "aggressive": "aggressive"})
    time, limit = Time("us", 1, 5_000_000), Packets(1, 4_294_967_295)
    return [
        Row("routeros", "cake", "rtt", "cake-rtt", Time("us", 1, 4_000_000_000)),
        Row("routeros", "cake", "diffserv", "cake-diffserv", _same(presets)),
        Row("routeros", "cake", "isolation", "cake-flowmode", _same(flows)),
        Row("routeros", "cake", "wash", "cake-wash", _YES),
        Row("routeros", "cake", "ack_filter", "cake-ack-filter", filters),
        Row("routeros", "cake", "ingress", "", Only(False)),
        *(
            Row("routeros", kind, key, f"{kind}-{key}", unit)
            for kind in ("fq-codel", "codel")
            for key, unit in (
                ("limit", limit),
                ("target", time),
                ("interval", time),
                ("ecn", _YES),
            )
        ),
        Row("routeros", "fq-codel", "flows", "fq-codel-flows", Count(1, 65_536)),
        Row("routeros", "fq-codel", "quantum", "fq-codel-quantum", Size(1, 1_048_576)),
        Row("routeros", "tail-drop", "limit", "pfifo-limit", limit),
    ]


ROWS: tuple[Row, ...] = (
    *_networkd(),
    *_pfsense(),
    *_vyos(),
    *_routeros(),
    Row("freebsd", "tail-drop", "limit", "queue", _SLOTS, _SLOT_LIMIT),
    Row("freebsd", "red", "limit", "queue", _SLOTS, _SLOT_LIMIT),
    Row("freebsd", "red", "w_q", "w_q", Fixed(65_536, 1)),
    Row("freebsd", "red", "min_th", "min_th", Packets(1, 20_480)),
    Row("freebsd", "red", "max_th", "max_th", Packets(1, 20_480)),
    Row("freebsd", "red", "max_p", "max_p", Fixed(65_536, 1)),
    Row(
        "freebsd",
        "red",
        "gentle",
        "red, gred",
        Word({False: "red", True: "gred", "twice-max-th": "gred"}),
    ),
    Row("freebsd", "red", "ecn", "ecn", Word({True: "ecn", False: ""})),
    Row(
        "freebsd",
        "red",
        "mean_packet",
        "net.inet.ip.dummynet.red_avg_pkt_size",
        Size(1, 65_535),
        "For all pipes of the device.",
    ),
    Row("freebsd", "codel", "limit", "queue", _SLOTS, _SLOT_LIMIT),
    *_codel("freebsd", "codel"),
    Row("freebsd", "pie", "limit", "queue", _SLOTS, _SLOT_LIMIT),
    *_pie("freebsd", "pie"),
    Row(
        "freebsd",
        "pie",
        "derandomize",
        "derand",
        Word({True: "derand", False: "noderand"}),
    ),
    Row("freebsd", "pie", "activation", "onoff", Word({False: "", True: "onoff"})),
    *_codel("freebsd", "fq-codel"),
    *_fair("freebsd", "fq-codel"),
    *_pie("freebsd", "fq-pie"),
    *_fair("freebsd", "fq-pie"),
    Row("opnsense", "tail-drop", "limit", "Queue", Packets(2, 100)),
    Row("opnsense", "codel", "limit", "Queue", Packets(2, 100)),
    Row("opnsense", "codel", "target", "(FQ-)CoDel target", Time("ms", 1, 10_000, named=False)),
    Row("opnsense", "codel", "interval", "(FQ-)CoDel interval", Time("ms", 1, 10_000, named=False)),
    Row("opnsense", "codel", "ecn", "(FQ-)CoDel ECN", Word({True: "yes", False: "no"})),
    Row("opnsense", "fq-codel", "target", "(FQ-)CoDel target", Time("ms", 1, 10_000, named=False)),
    Row(
        "opnsense",
        "fq-codel",
        "interval",
        "(FQ-)CoDel interval",
        Time("ms", 1, 10_000, named=False),
    ),
    Row("opnsense", "fq-codel", "ecn", "(FQ-)CoDel ECN", Word({True: "yes", False: "no"})),
    Row("opnsense", "fq-codel", "quantum", "FQ-CoDel quantum", Size(1, 9000)),
    Row("opnsense", "fq-codel", "limit", "FQ-CoDel limit", Packets(1, 20_480)),
    Row("opnsense", "fq-codel", "flows", "FQ-CoDel flows", Count(1, 65_535)),
    Row("ios", "tail-drop", "limit", "queue-limit", Packets(1, 32_767)),
    Row("ios", "sfq", "limit", "queue-limit", Packets(1, 32_767)),
    Row("ios", "sfq", "divisor", "fair-queue", Count(16, 4096), "IOS takes powers of two."),
    Row("ios", "red", "limit", "queue-limit", Packets(1, 32_767)),
    Row("ios", "red", "min_th", "random-detect precedence", _THRESHOLD, "For all 8 precedences."),
    Row("ios", "red", "max_th", "random-detect precedence", _THRESHOLD),
    Row("ios", "red", "max_p", "random-detect precedence", OneIn(65_535)),
    Row("ios", "red", "w_q", "random-detect exponential-weighting-constant", Exponent(1, 16)),
    Row("ios", "red", "ecn", "random-detect ecn", Word({True: "random-detect ecn", False: ""})),
    Row("ios", "red", "gentle", "", _NO_GENTLE),
    Row("ios", "wred", "limit", "queue-limit", Packets(1, 32_767)),
    Row("ios", "wred", "profiles.dscp", "random-detect dscp", Only(None), "A line for each DSCP."),
    Row("ios", "wred", "profiles.min_th", "random-detect dscp", _THRESHOLD),
    Row("ios", "wred", "profiles.max_th", "random-detect dscp", _THRESHOLD),
    Row("ios", "wred", "profiles.max_p", "random-detect dscp", OneIn(65_535)),
    Row("ios", "wred", "w_q", "random-detect exponential-weighting-constant", Exponent(1, 16)),
    Row("ios", "wred", "average", "", Only("total")),
    Row("ios", "wred", "ecn", "random-detect ecn", Word({True: "random-detect ecn", False: ""})),
    Row("ios", "wred", "gentle", "", _NO_GENTLE),
    Row("ios", "prio", "class.match", "class-map, match dscp", Only(None), "Of the first class."),
    Row("ios", "prio", "class.queue.rate", "priority percent", Percent(), "Of the shaper's rate."),
    Row("ios", "prio", "class.queue.limit", "queue-limit", Packets(1, 32_767), "Of the other one."),
    Row("ios", "prio", "class.queue.divisor", "fair-queue", Count(16, 4096), "Of the other one."),
    Row("junos", "tail-drop", "limit", "buffer-size temporal", BufferTime(200_000)),
    Row("junos", "red", "limit", "buffer-size temporal", BufferTime(200_000)),
    Row(
        "junos",
        "red",
        "min_th",
        "fill-level",
        Percent(),
        "Of the limit. The probability is 0 there.",
    ),
    Row("junos", "red", "max_th", "fill-level", Percent(), "Of the limit."),
    Row("junos", "red", "max_p", "drop-probability", Percent()),
    Row(
        "junos",
        "red",
        "gentle",
        "fill-level, drop-probability",
        Word({False: "100 % above max_th", True: "to 2 max_th", "twice-max-th": "to 2 max_th"}),
    ),
    Row("junos", "red", "w_q", "", Only(None), "there is no setting for the average's weight"),
    Row("junos", "red", "ecn", "", Only(False)),
)
"""Every key that has a setting, or of which the device knows one value."""

UNTOLD = (
    "label",
    "mtu",
    "mean_packet",
    "drop_batch",
    "inverse_sqrt",
    "flavour",
    "decay",
    "spacing",
)
"""Keys that only say how redtail models the queue, or what a device finds out by itself."""


def kinds(device: str) -> tuple[str, ...]:
    """Return the kinds that a device has, in the order of the table."""
    return tuple(dict.fromkeys(row.kind for row in rows(device)))


def rows(device: str, kind: str | None = None) -> Iterator[Row]:
    """Yield the rows of a device, of one kind or of all."""
    for row in ROWS:
        if row.device == device and kind in (None, row.kind):
            yield row


OF_SHAPER = ("rate", "overhead", "mpu", "framing")
"""Keys of CAKE that are not the queue's but its shaper's."""


def keys_of(shaped: Shaped) -> dict[str, Any]:
    """Return all keys of what was advised, with defaults, without those of CAKE's shaper."""
    queue = dict(shaped.queue)
    if queue["kind"] == "cake":
        # What it does with a shaper is asked of the table of a queue that has one.
        queue["rate"] = f"{round(shaped.shaper_bps or shaped.line_bps)} bit/s"
    keys = facts.queue_keys(queue)
    return {key: value for key, value in keys.items() if key not in OF_SHAPER}


def settings(
    device: str, shaped: Shaped, keys: Mapping[str, Any], place: Place, prefix: str = ""
) -> tuple[dict[str, Written], list[Change]]:
    """Return what each key becomes, and which values the device does not have as advised.

    Args:
        device: name of the device.
        shaped: what was advised.
        keys: all keys of the queue with their values, or those of a profile.
        place: what conversions depend on.
        prefix: in front of a key in the table, such as "profiles.".
    """
    written: dict[str, Written] = {}
    changes: list[Change] = []
    known = {row.key: row for row in rows(device, str(shaped.queue["kind"]))}
    for key, value in keys.items():
        row = known.get(prefix + key)
        advised = key in shaped.queue or bool(prefix)
        if row is None:
            if advised and key not in (*UNTOLD, "kind", "profiles"):
                why = "the device has no setting for it"
                changes.append(Change(shaped.direction, key, shown(value), "not set", why))
            continue
        if value is None:
            continue
        each = row.unit.write(value, place)
        written[key] = each
        if each.kept is not None and (advised or row.setting):
            why = row.unit.words if row.setting else row.note or "what the device always does"
            changes.append(Change(shaped.direction, prefix + key, shown(value), each.kept, why))
    return written, changes


def shown(value: Any) -> str:
    """Return a value as a sentence has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " and ".join(parts(value))
    return f"{value:.6g}" if isinstance(value, float) else _json(value)
