"""Commands for devices that cannot be tried here, by small models of their configurations.

A model knows what the documents say of a device: which statements there are, what each takes, and
what a command does to a configuration. So an undo is tried on a configuration that an operator had
before, and syntax is checked word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from advised import DOCSIS, made, shaped

from redtail.errors import SpecError
from redtail.lines import routers
from redtail.lines.line import Shaped
from redtail.lines.routers import names, table

TWO_LINES = ("ge-0/0/0.100", "ge-0/0/0.101")

# Junos.


class Junos:
    """A configuration of Junos: paths of words, of which some are inactive.

    `set`, `delete`, `deactivate` and `activate` do what Juniper's CLI User Guide says of them. What
    a group has is inherited where the group is applied, unless the configuration has it itself.
    """

    def __init__(self, statements: Iterable[str] = ()) -> None:
        self.paths: set[tuple[str, ...]] = set()
        self.inactive: set[tuple[str, ...]] = set()
        self.enter(f"set {each}" for each in statements)

    def enter(self, lines: Iterable[str]) -> None:
        for line in lines:
            verb, *path = line.split()
            below = tuple(path)
            there = {each for each in self.paths if each[: len(below)] == below}
            match verb:
                case "set":
                    # One value of a leaf takes the place of another one.
                    if below[-2] in ("scheduler-map", "shaping-rate"):
                        self.paths -= {each for each in self.paths if each[:-1] == below[:-1]}
                    self.paths.add(below)
                case "delete":
                    self.paths -= there
                case "deactivate":
                    self.inactive |= {below} if there else set()
                case "activate":
                    self.inactive.discard(below)
                case _:
                    raise AssertionError(line)

    @property
    def state(self) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        return set(self.paths), set(self.inactive)

    def value(self, path: str) -> str | None:
        """What a leaf has that is in force."""
        wanted = tuple(path.split())
        own = [
            each
            for each in self.paths
            if each[:-1] == wanted and not any(each[: len(off)] == off for off in self.inactive)
        ]
        applied = [each[1] for each in sorted(self.paths) if each[0] == "apply-groups"]
        inherited = [
            each
            for group in applied
            for each in self.paths
            if each[:-1] == ("groups", group, *wanted)
        ]
        return (own or inherited or [(None,)])[0][-1]


UNIT = "class-of-service interfaces ge-0/0/0 unit 100"
OPERATOR = [
    "interfaces ge-0/0/0 per-unit-scheduler",
    "interfaces ge-0/0/0 unit 100 vlan-id 100",
    f"{UNIT} scheduler-map OWN",
    f"{UNIT} shaping-rate 5m",
    f"{UNIT} classifiers dscp OWN",
    f"{UNIT} rewrite-rules dscp OWN",
    "class-of-service schedulers OWN transmit-rate percent 50",
    "class-of-service scheduler-maps OWN forwarding-class best-effort scheduler OWN",
    "class-of-service drop-profiles OWN fill-level 50 drop-probability 10",
]


@pytest.mark.parametrize("kind", routers.kinds("junos"))
@pytest.mark.parametrize("before", [[], OPERATOR], ids=["empty", "with scheduler maps"])
def test_the_undo_of_junos_gives_back_what_was_there(kind: str, before: Sequence[str]) -> None:
    found = made(kind, "junos", wan=TWO_LINES[0], lan="ge-0/0/1")
    device, same = Junos(before), Junos(before)
    device.enter(found.set_up)
    ours = device.value(f"{UNIT} scheduler-map")
    assert ours is not None and ours.startswith("redtail-up-"), "it is in force"
    assert device.value(f"{UNIT} shaping-rate") not in (None, "5m")
    if before:
        assert device.value(f"{UNIT} classifiers dscp") == "OWN", "the classifier is kept"
    device.enter(found.set_up)  # again
    device.enter(found.undo)
    assert device.state == same.state


def test_each_line_of_junos_has_a_group_of_its_own() -> None:
    first, second = (made("red", "junos", wan=wan, lan="ge-0/0/1") for wan in TWO_LINES)
    device, alone = Junos(OPERATOR), Junos(OPERATOR)
    device.enter([*first.set_up, *second.set_up, *first.undo])
    alone.enter([*second.set_up, *first.undo])
    assert device.state == alone.state
    ours = device.value("class-of-service interfaces ge-0/0/0 unit 101 scheduler-map")
    assert ours is not None and ours.startswith("redtail-up-")


# Names.


@pytest.mark.parametrize("device", [each for each in routers.DEVICES if each != "freebsd"])
def test_two_lines_of_a_router_share_no_name(device: str) -> None:
    """FreeBSD has numbers, which must be free: its notices say so."""
    kind = "red" if device in ("ios", "junos") else "fq-codel"
    wans = ("eth1.100", "eth1.101")
    first, second = ("\n".join(made(kind, device, wan=wan).undo) for wan in wans)
    for wan, text in zip(wans, (first, second), strict=True):
        assert wan in text or names.short_hash(wan) in text
    # What both undo is what the people's interface has, and what concerns no name.
    both = set(first.splitlines()) & set(second.splitlines())
    assert not [
        line for line in both if "redtail" in line.lower() and not re.search("LAN|[$]here", line)
    ]


def test_names_of_interfaces_stay_apart() -> None:
    devices = ["ge-0/0/0", "ge-0-0-0", "ge-0.0.0", "ge_0_0_0", *TWO_LINES, "a" * 20, "a" * 21]
    for sign in "-_":
        tags = [names.tag(device, sign) for device in devices]
        assert len(set(tags)) == len(devices)
        assert all(re.fullmatch(rf"[A-Za-z0-9{sign}]{{1,25}}", tag) for tag in tags)


# VyOS: docs.vyos.io, Traffic Policy.

VYOS = [
    r"qos policy cake (\S+) bandwidth \d+kbit",
    r"qos policy cake \S+ rtt \d+",
    r"qos policy cake \S+ flow-isolation "
    r"(blind|dst-host|dual-dst-host|dual-src-host|flow|host|src-host|triple-isolate)",
    r"qos policy cake \S+ flow-isolation-nat",
    r"qos policy cake \S+ ack-filter( aggressive)?",
    r"qos policy shaper \S+ bandwidth \d+kbit",
    r"qos policy shaper \S+ default bandwidth \d+kbit",
    r"qos policy shaper \S+ default queue-type (fq-codel|fair-queue|drop-tail|priority)",
    r"qos policy shaper \S+ default (codel-quantum|flows|interval|queue-limit|target) \d+",
    r"qos interface \S+ egress \S+",
    r"interfaces input ifb\d+",
    r"interfaces (ethernet|pppoe|bonding) \S+( vif \d+)? redirect ifb\d+",
]


@pytest.mark.parametrize("kind", routers.kinds("vyos"))
@pytest.mark.parametrize("wan", ["eth0", "eth0.100", "pppoe0"])
def test_vyos_gets_statements_that_are_documented(kind: str, wan: str) -> None:
    keys = {"ack_filter": "aggressive", "ingress": True} if kind == "cake" else {}
    found = made(kind, "vyos", wan=wan, keys=keys)
    for line in found.set_up:
        verb, _, statement = line.partition(" ")
        assert verb == "set" and any(re.fullmatch(each, statement) for each in VYOS), line
    # Names of interfaces are those of Linux.
    used = {word for line in found.set_up for word in line.split() if word.startswith("ifb")}
    assert all(len(name) <= 15 for name in used)
    deleted = [line.removeprefix("delete ") for line in found.undo]
    left = {
        line
        for line in found.set_up
        if not any(line.removeprefix("set ").startswith(each) for each in deleted)
    }
    assert left == set()
    assert found.set_up[-2].startswith("set interfaces input ifb"), "after the policy, says VyOS"


def test_vyos_tells_what_it_has_no_setting_for() -> None:
    keys = {"diffserv": "besteffort", "wash": True, "ingress": True}
    told = {(each.key, each.made) for each in made("cake", "vyos", keys=keys).changes}
    assert {("diffserv", "not set"), ("wash", "not set"), ("ingress", "false")} <= told
    told = {(each.key, each.made) for each in made("fq-codel", "vyos", keys={"ecn": True}).changes}
    assert ("ecn", "false") in told


# RouterOS: the CLI reference of /queue/type and /queue/tree.

NUMBER, TIME, BOOL = r"\d+", r"\d+us", "yes|no"
TYPE = {
    "name": r"[A-Za-z0-9-]+",
    "kind": "bfifo|pfifo|red|sfq|pcq|mq-pfifo|none|codel|fq-codel|cake",
    "pfifo-limit": NUMBER,
    **{f"{kind}-limit": NUMBER for kind in ("codel", "fq-codel")},
    **{f"{kind}-interval": TIME for kind in ("codel", "fq-codel")},
    **{f"{kind}-target": TIME for kind in ("codel", "fq-codel")},
    **{f"{kind}-ecn": BOOL for kind in ("codel", "fq-codel")},
    "fq-codel-flows": NUMBER,
    "fq-codel-quantum": NUMBER,
    "cake-rtt": TIME,
    "cake-diffserv": "diffserv3|diffserv4|diffserv8|besteffort|precedence",
    "cake-flowmode": "flowblind|srchost|dsthost|hosts|flows|dual-srchost|dual-dsthost|"
    "triple-isolate",
    "cake-nat": BOOL,
    "cake-wash": BOOL,
    "cake-ack-filter": "none|filter|aggressive",
}
TREE = {
    "name": r"[A-Za-z0-9-]+",
    "parent": r"\S+",
    "packet-mark": "no-mark",
    "queue": r"\S+",
    "max-limit": NUMBER,
}


@pytest.mark.parametrize("kind", routers.kinds("routeros"))
def test_routeros_gets_arguments_that_are_documented(kind: str) -> None:
    keys = {"ack_filter": "on", "wash": True, "ingress": True} if kind == "cake" else {}
    found = made(kind, "routeros", wan="pppoe-out1", lan="bridge", keys=keys)
    made_here, removed = [], []
    for line in [*found.set_up, *found.undo]:
        if gone := re.fullmatch(r'/queue (type|tree) remove \[find name="(\S+)"\]', line):
            removed.append(gone.groups())
            continue
        added = re.fullmatch(r"/queue (type|tree) add (.*)", line)
        assert added, line
        known = TYPE if added[1] == "type" else TREE
        given = dict(word.split("=", 1) for word in added[2].split())
        for name, value in given.items():
            assert re.fullmatch(known[name], value), line
        assert set(TREE) <= set(given) or added[1] == "type"
        made_here.append((added[1], given["name"]))
    # All that is made is removed: before, so that the commands can be given again, and by the undo.
    assert len(made_here) == 4
    assert sorted(removed) == sorted(2 * made_here)
    parents = [line for line in found.set_up if "parent=" in line]
    assert "parent=pppoe-out1 " in parents[0] and "parent=bridge " in parents[1]


def test_routeros_shapes_once() -> None:
    """By the tree; a rate of CAKE's own would be a second shaper."""
    assert "cake-bandwidth" not in made("cake", "routeros").text()
    rate = 9_500_000 * 1514 / 1518
    assert f"max-limit={int(rate)}" in made("cake", "routeros").text()


# pfSense: Netgate, Configuring CoDel Limiters for Bufferbloat.

FIELDS = {
    *("Enable", "Name", "Bandwidth", "Mask", "Queue Management Algorithm", "Scheduler"),
    *("Queue Length", "ECN", "target", "interval", "quantum", "limit", "flows", "tupdate", "alpha"),
    *("beta", "max_burst", "max_ecnth"),
}


@pytest.mark.parametrize("kind", routers.kinds("pfsense"))
def test_pfsense_gets_fields_of_a_limiter(kind: str) -> None:
    found = made(kind, "pfsense", wan="em0")
    fields = [line.strip().split(" = ") for line in found.set_up if line.startswith("    ")]
    assert {name for name, _ in fields} <= FIELDS
    names_of = [value for name, value in fields if name == "Name"]
    assert names_of == ["redtail_up_em0", "redtail_down_em0"]
    # Of a rule at the way out, "in" is what leaves, as on the page of Netgate.
    (rule,) = (line for line in found.set_up if "Floating" in line)
    assert "In / Out pipe = redtail_up_em0_queue / redtail_down_em0_queue" in rule
    assert all(name in "\n".join(found.undo) for name in names_of)
    up = routers.commands([shaped(kind)], device="pfsense", wan="em0")
    assert "In / Out pipe = redtail_up_em0_queue / none" in "\n".join(up.set_up)


# IOS.


def test_ios_has_a_class_of_voice_and_fair_queues() -> None:
    found = made("prio", "ios", wan="Gi0/0", lan="Gi0/1")
    voice = next(line for line in found.set_up if line.startswith("class-map"))
    name = voice.split()[-1]
    at = found.set_up.index(f" class {name}")
    # 3 of the 9.472 Mbit/s that the shaper has.
    assert list(found.set_up[at : at + 5]) == [
        f" class {name}",
        "  priority percent 32",
        " class class-default",
        "  fair-queue 256",
        "  queue-limit 127 packets",
    ]
    assert list(found.set_up[1:3]) == [" match dscp 46", " match dscp 44"]
    told = {(each.key, each.made) for each in found.changes}
    assert ("class.match.group", "DSCP EF or VA") in told
    assert any("most programs do not" in notice for notice in found.notices)
    # A name has at most 40 letters.
    long = made("prio", "ios", wan="GigabitEthernet0/0/0.1001", lan="TenGigabitEthernet0/1/0")
    policies = {word for line in long.set_up for word in line.split() if word.startswith("REDTAIL")}
    assert max(map(len, policies)) <= 40
    # What is made is what is removed.
    removed = {line.split()[-1] for line in long.undo if line.startswith("no ")}
    assert removed == {word for word in policies}


def test_ios_refuses_classes_that_it_cannot_have() -> None:
    queue = {"kind": "prio", "class": [{"name": "a", "queue": {"kind": "codel"}}]}
    with pytest.raises(SpecError, match=r"first class of kind tbf.*1 classes with codel"):
        routers.commands([Shaped("up", queue, 9.5e6, DOCSIS, 1e7)], device="ios", wan="Gi0/0")


def test_linux_has_the_class_of_voice_by_its_marks() -> None:
    found = made("prio", "linux", wan="wan")
    filters = [line for line in found.set_up if "flower ip_tos" in line]
    assert len(filters) == 4, "EF and VA, in both directions"
    assert ("class.match.group", "DSCP EF or VA") in {
        (each.key, each.made) for each in found.changes
    }


def test_linux_says_where_it_replaces_filters_of_others() -> None:
    assert any("clsact at wan" in notice for notice in made("wred", "linux", wan="wan").notices)
    assert not any("clsact" in notice for notice in made("red", "linux", wan="wan").notices)


# What the shaper takes of the processor.


@pytest.mark.parametrize("device", routers.DEVICES)
def test_every_device_says_how_to_see_whether_its_processor_keeps_up(device: str) -> None:
    kind = "red" if device in ("ios", "junos") else "fq-codel"
    notice = made(kind, device).notices[-1]
    assert "processor" in notice and "OpenWrt, SQM" in notice
    assert not re.search(r"\d ?%|Mbit|Gbit", notice), "no number that was not measured"


def test_every_device_of_the_table_has_rows_or_tc() -> None:
    rows = {row.device for row in table.ROWS}
    assert set(routers.DEVICES) - rows == {"linux", "systemd", "openwrt"}
