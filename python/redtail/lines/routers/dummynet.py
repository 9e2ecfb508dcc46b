"""FreeBSD and OPNsense: pipes and schedulers of dummynet.

Source: ipfw(8), section TRAFFIC SHAPER (DUMMYNET) CONFIGURATION; the ranges are those of FreeBSD's
sbin/ipfw/dummynet.c and sys/netpfil/ipfw/dn_sched_fq_pie.c, which FQ-CoDel shares (ipfw(8)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redtail import facts
from redtail.lines.line import Direction, Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import Place, Written

COUNTED = 0
"""Bytes of the link header that dummynet counts: ipfw gives it IP packets."""

NUMBERS: Mapping[Direction, int] = {"up": 1, "down": 2}
"""The number of the pipe, the scheduler and the queue of a direction."""

RULES: Mapping[Direction, int] = {"up": 101, "down": 102}
"""The number of the rule of a direction."""

_SLOTS = 100
"""Packets of a queue without a change of net.inet.ip.dummynet.pipe_slot_limit."""

_FAIR = {"fq-codel": "fq_codel", "fq-pie": "fq_pie"}
_WAY: Mapping[Direction, str] = {"up": "out xmit", "down": "in recv"}


def _written(
    device: str, shaped: Shaped, packet_bytes: int, step_bps: int
) -> tuple[int, dict[str, Written], list[Change]]:
    """Return the rate, the settings of the queue, and what changed."""
    rate, told = rates.for_full_packets(shaped, packet_bytes, COUNTED, step_bps)
    keys = facts.queue_keys(shaped.queue)
    values, changes = table.settings(device, shaped, keys, Place(rate, packet_bytes))
    return rate, values, [*told, *changes]


def commands(shaped: Shaped, wan: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the commands of FreeBSD for a direction, and what is not as it was advised."""
    rate, values, changes = _written("freebsd", shaped, packet_bytes, 1)
    number, kind = NUMBERS[shaped.direction], str(shaped.queue["kind"])
    text = {key: each.text for key, each in values.items()}
    lines = []
    pipe = f"ipfw pipe {number} config bw {rate}bit/s"
    target = "pipe"
    if kind in _FAIR:
        target = "queue"
        scheduler = f"ipfw sched {number} config pipe {number} type {_FAIR[kind]}"
        lines += [
            pipe,
            " ".join([scheduler, *_options(kind, text)]),
            f"ipfw queue {number} config sched {number}",
        ]
    else:
        if int(text["limit"]) > _SLOTS:
            lines.append(f"sysctl net.inet.ip.dummynet.pipe_slot_limit={text['limit']}")
        if kind == "red" and "mean_packet" in text:
            lines.append(f"sysctl net.inet.ip.dummynet.red_avg_pkt_size={text['mean_packet']}")
        lines.append(" ".join([pipe, "queue", text["limit"], *_options(kind, text)]))
    rule = f"ipfw add {RULES[shaped.direction]} {target} {number} ip from any to any"
    lines.append(f"{rule} {_WAY[shaped.direction]} {wan}")
    return lines, changes


def _options(kind: str, text: Mapping[str, str]) -> list[str]:
    """Return the words of a queue's parameters, in the order of ipfw(8)."""
    if kind == "tail-drop":
        return ["droptail"]
    if kind == "red":
        slope = "/".join(text[key] for key in ("w_q", "min_th", "max_th", "max_p"))
        return [word for word in (text["gentle"], slope, text["ecn"]) if word]
    law = "codel" if kind.endswith("codel") else "pie"
    words = [law] if kind == law else []
    for row in table.rows("freebsd", kind):
        if row.key not in text or row.setting == "queue" or not text[row.key]:
            continue
        named = row.key not in ("ecn", "delay", "derandomize", "activation")
        words += [row.setting, text[row.key]] if named else [text[row.key]]
    return words


def undo(directions: Sequence[Shaped]) -> Iterator[str]:
    """Yield the commands of FreeBSD that remove it."""
    for shaped in directions:
        number = NUMBERS[shaped.direction]
        yield f"ipfw delete {RULES[shaped.direction]}"
        if shaped.queue["kind"] in _FAIR:
            yield f"ipfw queue {number} delete"
            yield f"ipfw sched {number} delete"
        yield f"ipfw pipe {number} delete"


def notices() -> Iterator[str]:
    """Yield what to know before the commands of FreeBSD are used."""
    yield (
        "`kldload ipfw dummynet` loads what they need. A new ipfw denies all packets that no rule "
        "accepts: over SSH, load it with net.inet.ip.fw.default_to_accept=1 in /boot/loader.conf"
    )
    yield (
        "while sysctl net.inet.ip.fw.one_pass is 1, a packet that leaves a pipe meets no further "
        "rule: choose numbers for these rules that are behind those of NAT and of the firewall, "
        "or set it to 0"
    )
    yield "pipes, queues and schedulers 1 and 2, and rules 101 and 102, must be free"


SCHEDULERS = {"tail-drop": "FIFO", "codel": "FIFO", "fq-codel": "FlowQueue-CoDel"}
"""The field "Scheduler type" of a pipe in OPNsense."""


def form(shaped: Shaped, wan: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the fields of OPNsense for a direction, and what is not as it was advised."""
    rate, values, changes = _written("opnsense", shaped, packet_bytes, 1000)
    kind, name = str(shaped.queue["kind"]), f"redtail {shaped.direction}"
    fields = {"Bandwidth": f"{rate // 1000} Kbit/s", "Scheduler type": SCHEDULERS[kind]}
    if kind == "codel":
        fields["Enable CoDel"] = "yes"
    units = {"target": " ms", "interval": " ms", "quantum": " bytes"}
    fields |= {
        row.setting: values[row.key].text + units.get(row.key, "")
        for row in table.rows("opnsense", kind)
        if row.key in values and row.setting
    }
    way = "out" if shaped.direction == "up" else "in"
    return [
        f"Pipes > add: Description = {name}",
        *(f"    {field} = {value}" for field, value in fields.items()),
        f"Queues > add: Pipe = {name}, Weight = 100, Description = {name}",
        f"Rules > add: Interface = {wan}, Protocol = ip, Source = any, Destination = any, "
        f"Direction = {way}, Target = queue {name}",
    ], changes
