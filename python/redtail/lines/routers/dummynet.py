"""FreeBSD, OPNsense and pfSense: pipes and schedulers of dummynet.

The web interface of OPNsense calls them pipes, that of pfSense limiters: what is returned for
these two are its fields (docs.opnsense.org/manual/how-tos/shaper_bufferbloat.html;
docs.netgate.com/pfsense/en/latest/recipes/codel-limiters.html).

Source: ipfw(8), section TRAFFIC SHAPER (DUMMYNET) CONFIGURATION; the ranges are those of FreeBSD's
sbin/ipfw/dummynet.c and sys/netpfil/ipfw/dn_sched_fq_pie.c, which FQ-CoDel shares (ipfw(8)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redtail import facts
from redtail.lines.line import Direction, Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import tag
from redtail.lines.routers.tc import Kernel
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


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the commands of FreeBSD."""
    found = Made(check=["ipfw pipe show", "ipfw sched show", "ipfw -a list"])
    for shaped in directions:
        lines, changes = commands(shaped, wan, kernel.mtu)
        found.changes += changes
        found.set_up += [line for line in lines if line not in found.set_up or _is_used(line)]
    found.undo = [*undo(directions)]
    found.notices = [*notices(), *rates.notices(directions, COUNTED)]
    return found


def _is_used(line: str) -> bool:
    """Return whether a line counts each time; a setting of the system is set once."""
    return not line.startswith("sysctl")


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


def forms(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the fields of OPNsense's web interface."""
    found = Made(
        check=["Firewall > Shaper > Status"], notices=[*rates.notices(directions, COUNTED)]
    )
    for shaped in directions:
        lines, changes = form(shaped, wan, kernel.mtu)
        found.set_up += lines
        found.changes += changes
    found.set_up.append("Apply")
    names = " and ".join(f'"{_name(shaped, wan)}"' for shaped in directions)
    found.undo = [f"delete the rules, queues and pipes that are called {names}", "Apply"]
    return found


def _name(shaped: Shaped, wan: str) -> str:
    return f"redtail {shaped.direction} {wan}"


SCHEDULERS = {"tail-drop": "FIFO", "codel": "FIFO", "fq-codel": "FlowQueue-CoDel"}
"""The field "Scheduler type" of a pipe in OPNsense."""


def form(shaped: Shaped, wan: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the fields of OPNsense for a direction, and what is not as it was advised."""
    rate, values, changes = _written("opnsense", shaped, packet_bytes, 1000)
    kind, name = str(shaped.queue["kind"]), _name(shaped, wan)
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
        f"Direction = {way}, Target = queue {name}, Description = {name}",
    ], changes


ALGORITHMS = {"tail-drop": ("Tail Drop", "FIFO"), "codel": ("CoDel", "FIFO")}
ALGORITHMS |= {"fq-codel": ("Tail Drop", "FQ_CODEL"), "fq-pie": ("Tail Drop", "FQ_PIE")}
"""The fields "Queue Management Algorithm" and "Scheduler" of a limiter in pfSense."""


def limiters(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the fields of pfSense's web interface."""
    found = Made(
        check=[
            "Diagnostics > Limiter Info",
            "Diagnostics > Command Prompt: dnctl pipe show; dnctl sched show",
        ]
    )
    queues = {}
    for shaped in directions:
        name = _limiter(shaped, wan)
        queues[shaped.direction] = f"{name}_queue"
        lines, changes = _fields(shaped, name, kernel.mtu)
        found.set_up += lines
        found.changes += changes
    up, down = (queues.get(way, "none") for way in ("up", "down"))
    rule = f"redtail {wan}"
    found.set_up += [
        f"Firewall > Rules, Floating > Add: Action = Match, Interface = {wan}, Direction = out, "
        f"Address Family = IPv4+IPv6, Protocol = Any, Gateway = that of {wan}, "
        f"In / Out pipe = {up} / {down}, Description = {rule}",
        "Apply Changes",
    ]
    limiters = " and ".join(queue.removesuffix("_queue") for queue in queues.values())
    found.undo = [
        f'Firewall > Rules, Floating: delete the rule "{rule}"',
        f"Firewall > Traffic Shaper, Limiters: delete {limiters} with their queues",
        "Apply Changes",
    ]
    found.notices = [
        "with both families in one rule pfSense takes no gateway of one of them: where it refuses, "
        "make the rule twice, for IPv4 and for IPv6",
        "connections that stand keep their rule: Diagnostics > States, Reset States",
        *rates.notices(directions, COUNTED),
    ]
    return found


def _limiter(shaped: Shaped, wan: str) -> str:
    """Return a name for pfSense, which takes letters, digits, - and _."""
    return f"redtail_{shaped.direction}_{tag(wan, '_')}"


def _fields(shaped: Shaped, name: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the fields of a limiter and its queue, and what is not as it was advised."""
    rate, values, changes = _written("pfsense", shaped, packet_bytes, 1000)
    algorithm, scheduler = ALGORITHMS[str(shaped.queue["kind"])]
    fields = {"Enable": "yes", "Name": name, "Bandwidth": f"{rate // 1000} Kbit/s", "Mask": "None"}
    fields |= {"Queue Management Algorithm": algorithm, "Scheduler": scheduler}
    fields |= {
        row.setting: values[row.key].text
        for row in table.rows("pfsense", str(shaped.queue["kind"]))
        if row.key in values and row.setting
    }
    return [
        "Firewall > Traffic Shaper, Limiters > New Limiter; the values of the scheduler are shown "
        "once it is saved:",
        *(f"    {field} = {value}" for field, value in fields.items()),
        f"{name} > Add New Queue: Enable = yes, Name = {name}_queue, Mask = None, "
        "Queue Management Algorithm = Tail Drop",
    ], changes
