"""Commands for routers: what they say, and what a kernel makes of those of Linux.

Some tests need user namespaces, and those marked `linux` QEMU and a kernel (`redtail kernel
fetch`); without them they are skipped with the reason.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advised import ADSL, DOCSIS, QUEUES, UNSHARED, VDSL2, in_a_namespace, made, shaped, without_ifb
from typer.testing import CliRunner

from redtail import facts
from redtail.backends import linux as backend
from redtail.backends.virtual import kernels, machine
from redtail.catalog import Catalog
from redtail.cli import app
from redtail.cli.routers import Router
from redtail.errors import RedtailError, SpecError
from redtail.lines import Overhead, Shaped, routers
from redtail.lines.routers import linux, table, tc


def changes(commands: routers.Commands, key: str) -> set[tuple[str, str]]:
    return {(each.advised, each.made) for each in commands.changes if each.key == key}


EACH = [
    (device, kind) for device in routers.DEVICES for kind in QUEUES if kind in routers.kinds(device)
]


@pytest.mark.parametrize(("device", "kind"), EACH)
def test_every_device_has_lines_to_set_up_and_to_undo(device: str, kind: str) -> None:
    found = made(kind, device, lan="lan0")
    text = found.text()
    assert found.set_up and found.undo and found.sources
    assert "None" not in text.replace("Mask = None", "") and "{" not in text.replace("${here", "")
    assert found.check and text.index("# Check") < text.index("# Undo")
    assert any("wan0" in line for line in found.set_up)
    assert json.loads(found.to_json())["set_up"] == list(found.set_up)
    if device in ("ios", "junos", "routeros"):
        assert any("lan0" in line for line in found.set_up), "what arrives is shaped there"


def test_every_device_is_asked_for() -> None:
    assert {device for device, _ in EACH} == set(routers.DEVICES)
    assert {kind for _, kind in EACH} == set(QUEUES)


def test_rows_are_keys_of_the_experiment_file() -> None:
    catalog = Catalog(facts.schema())
    known: dict[str, Mapping[str, Any]] = {}
    for kind in catalog.kinds(catalog.resolve({"$ref": "#/$defs/QueueSpec"})):
        known[str(kind.kind)] = {parameter.key: parameter for parameter in kind.parameters}
    for row in table.ROWS:
        key = row.key.partition(".")[0]
        assert key in known[row.kind], row
    told = [(row.device, row.kind, row.key) for row in table.ROWS]
    assert len(set(told)) == len(told), "a key has two rows"


# Values that a device does not have.


@pytest.mark.parametrize(
    ("device", "kind", "key", "advised", "kept"),
    [
        ("linux", "codel", "target", "7 ms", "6999.04 us"),
        ("linux", "pie", "alpha", "0.13", "0.125"),
        ("linux", "red", "w_q", "0.0022", "0.00195312"),
        ("linux", "red", "min_th", "20 packets", "30000 B"),
        ("openwrt", "fq-codel", "interval", "120 ms", "119999.488 us"),
        ("freebsd", "red", "w_q", "0.0022", "0.00219727"),
        ("opnsense", "codel", "limit", "1000 packets", "100 packets"),
        ("ios", "red", "max_p", "0.07", "0.0714286"),
        ("ios", "red", "w_q", "0.0022", "0.00195312"),
        ("ios", "wred", "profiles.min_th", "30 kB", "20 packets"),
        ("junos", "red", "min_th", "20 packets", None),
        ("junos", "red", "ecn", "true", "false"),
        ("ios", "sfq", "limit", "127 packets", None),
    ],
)
def test_what_a_device_has_otherwise_is_told(
    device: str, kind: str, key: str, advised: str, kept: str | None
) -> None:
    found = changes(made(kind, device), key)
    if kept is not None:
        assert (advised, kept) in found
    elif device == "junos":
        assert len(found) == 1, "20 of 120 packets are 16.67 % of the buffer"
    else:
        assert not found


@pytest.mark.parametrize(("device", "kind"), EACH)
def test_what_was_advised_stays_as_it_is(device: str, kind: str) -> None:
    one = shaped(kind)
    before = json.dumps(one.queue)
    first = routers.commands([one], device=device, wan="wan0")
    assert json.dumps(one.queue) == before
    assert routers.commands([one], device=device, wan="wan0") == first


def test_dualpi2_and_adaptive_red_get_what_tc_has_no_defaults_for() -> None:
    found = made("dualpi2", "linux")
    (words,) = {line.partition(" dualpi2 ")[2] for line in found.set_up if " dualpi2 " in line}
    # RFC 9332, appendix A.1: 0.1 * 15 ms / (100 ms)^2 and 0.3 / 100 ms.
    assert "target 15000us tupdate 15000us alpha 0.1484375 beta 3" in words
    assert changes(found, "rtt_max") == {("100 ms", "update = 15000 us, alpha = 0.15, beta = 3")}
    found = made("adaptive-red", "linux")
    # 1 - exp(-1/C) with C = 9.5e6 / 8 / 1500 packets a second is 0.00126.
    assert changes(found, "w_q") == {("0.00126236", "0.000976562")}
    assert changes(found, "adapt") == {("true", "false")}


def test_a_value_that_fits_is_not_told() -> None:
    ways = [shaped("fq-codel", way, rate=8_000_000, target="5 ms") for way in ("down", "up")]
    found = routers.commands(ways, device="freebsd", wan="em0")
    assert {change.key for change in found.changes} == {"shaper"}, "dummynet counts IP packets"
    assert "target 5000us interval 120000us noecn" not in found.text()
    assert "quantum 300 limit 10240 flows 1024" in found.text()


def test_a_key_without_a_setting_is_told() -> None:
    found = made("pie", "freebsd", keys={"byte_mode": True})
    assert changes(found, "byte_mode") == {("true", "not set")}


def test_what_the_kernel_always_does_is_told() -> None:
    found = made("red", "linux", keys={"gentle": True})
    assert changes(found, "gentle") == {("true", "false")}
    assert any(" red limit 180000 " in line for line in found.set_up)


@pytest.mark.parametrize("device", [device for device, kind in EACH if kind == "tail-drop"])
def test_a_limit_in_bytes_or_in_time_becomes_what_the_device_counts(device: str) -> None:
    in_bytes = made("tail-drop", device, keys={"limit": "150 kB"})
    in_time = made("tail-drop", device, keys={"limit": "120 ms"})
    expected = {"linux": "bfifo limit 150000", "freebsd": "queue 100", "opnsense": "Queue = 100"}
    expected |= {"ios": "queue-limit 100 packets"}
    if device in expected:
        assert expected[device] in in_bytes.text()
    assert in_time.set_up


# Refusals.


@pytest.mark.parametrize(
    ("alternatives", "says"),
    [
        (
            (),
            r'queue "cake": Cisco IOS does not have it; accepted: tail-drop, sfq, red, wred, prio',
        ),
        (("fq-codel", "red"), r"of what is advised as well, it has red"),
        (("fq-codel", "pie"), r"none of what is advised as well \(fq-codel, pie\), but tail-drop"),
    ],
)
def test_a_queue_that_a_device_lacks_is_refused(alternatives: Sequence[str], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        made("cake", "ios", alternatives=alternatives)


def test_what_makes_no_sense_is_refused() -> None:
    up = shaped("codel")
    for options, says in [
        (
            {"device": "ios-xr"},
            r'device = "ios-xr": .*; accepted: linux, systemd, networkd, openwrt',
        ),
        ({"wan": "eth0; reboot"}, r'wan = "eth0; reboot" is no name of an interface'),
        ({"wan": "$(reboot)"}, r"is no name of an interface"),
        ({"lan": "a b", "device": "ios"}, r"is no name|does not have it"),
        ({"mtu": 100}, r"mtu = 100; accepted: 576 to 65535"),
    ]:
        with pytest.raises(SpecError, match=says):
            routers.commands([up], **{"device": "linux", "wan": "eth0", **options})
    with pytest.raises(SpecError, match="one or two directions, each once"):
        routers.commands([up, up], device="linux", wan="eth0")
    with pytest.raises(SpecError, match="one or two directions"):
        routers.commands([], device="linux", wan="eth0")
    with pytest.raises(SpecError, match=r'SQM has one kind .* "codel" and "pie"'):
        routers.commands([up, shaped("pie", "down")], device="openwrt", wan="wan")
    with pytest.raises(SpecError, match=r'up: queue "codel" on Linux: .*target'):
        routers.commands([shaped("codel", target="0.1 us")], device="linux", wan="eth0")


# How the bytes of a line are counted.


@pytest.mark.parametrize(
    ("overhead", "wan", "words"),
    [
        (DOCSIS, "eth0", "stab mtu 2048 tsize 2048 mpu 64 overhead 4 linklayer ethernet"),
        (VDSL2, "eth0", "stab overhead 16"),
        (VDSL2, "pppoe-wan", "stab overhead 30"),
        (ADSL, "eth0", "stab overhead 26 linklayer atm"),
        (Overhead(14, 0, "none"), "eth0", ""),
    ],
)
def test_linux_counts_what_the_line_adds_to_each_packet(
    overhead: Overhead, wan: str, words: str
) -> None:
    found = made("codel", "linux", overhead=overhead, wan=wan)
    roots = [line for line in found.set_up if " root " in line and " add " in line]
    assert len(roots) == 2, "one in each direction"
    for line in roots:
        before, _, _ = line.partition(" htb ")
        assert before.endswith(f"handle 1: {words}".rstrip())


def test_the_rate_without_a_setting_for_overhead_is_that_of_full_packets() -> None:
    # 1500 B take (1500 + 30) * 65 / 64 B on the line.
    found = made("codel", "freebsd", overhead=VDSL2)
    rate = 9_500_000 * 1500 / ((1500 + 30) * 65 / 64)
    assert f"config bw {int(rate)}bit/s" in found.text()
    assert any("64 B takes" in notice for notice in found.notices)
    # IOS counts the header of 14 B, and takes multiples of 8000 bit/s.
    found = made("red", "ios")
    rate = 9_500_000 * 1514 / 1518 // 8000 * 8000
    assert f"  shape average {int(rate)}" in found.set_up
    assert any("multiples of 8000" in change.why for change in found.changes)


def test_cake_shapes_and_looks_up_hosts_behind_nat() -> None:
    found = made("cake", "linux", overhead=VDSL2)
    (line, *_) = (line for line in found.set_up if "dev wan0 root" in line and "add" in line)
    assert "cake bandwidth 9500000bit" in line
    assert " overhead 30 mpu 0" in line and " ptm" in line and " nat " in line
    assert "htb" not in found.text()
    assert " nonat " in made("cake", "linux", nat=False).text()


def test_a_direction_without_a_shaper_is_the_queue_alone() -> None:
    alone = replace(shaped("codel"), shaper_bps=None)
    found = routers.commands([alone], device="linux", wan="eth0")
    assert [line for line in found.set_up if "add" in line] == [
        "tc qdisc add dev eth0 root handle 1: codel limit 1000 target 7000us interval 120000us ecn"
    ]
    found = routers.commands([alone], device="freebsd", wan="em0")
    assert changes(found, "shaper") >= {("none", "10000000 bit/s")}


def test_sqm_gets_settings_and_the_rest_as_options_of_tc() -> None:
    lines = made("fq-codel", "openwrt").set_up
    for setting in (
        "script='simplest.qos'",
        "qdisc='fq_codel'",
        "upload='9500'",
        "overhead='4'",
        "tcMPU='64'",
        "etarget='7000us'",
        "elimit='10240'",
        "egress_ecn='ECN'",
    ):
        assert f"uci set sqm.redtail_wan0.{setting}" in lines
    (options,) = (line for line in lines if "eqdisc_opts" in line)
    assert "interval 120000us" in options and "quantum 300" in options
    assert "target" not in options
    cake = made("cake", "openwrt", overhead=VDSL2).text()
    assert "overhead='30'" in cake and "piece_of_cake.qos" in cake
    assert re.search(r"eqdisc_opts='rtt 50000us besteffort dual-srchost nat .* ptm'", cake)
    assert "bandwidth" not in cake


def test_red_of_junos_follows_the_slope() -> None:
    text = made("red", "junos").text()
    assert "fill-level [ 17 50 51 ] drop-probability [ 0 7 100 ]" in text
    gentle = made("red", "junos", keys={"gentle": True}).text()
    assert "fill-level [ 17 50 100 ] drop-probability [ 0 7 100 ]" in gentle


def test_wred_of_ios_has_a_line_for_each_dscp() -> None:
    profiles = [
        {"dscp": ["EF", "AF11"], "min_th": "40 packets", "max_th": "60 packets", "max_p": 0.05},
        {"min_th": "20 packets", "max_th": "60 packets", "max_p": 0.1},
    ]
    lines = made("wred", "ios", keys={"profiles": profiles, "limit": "100 packets"}).set_up
    assert "  random-detect dscp 46 40 60 20" in lines
    assert "  random-detect dscp 10 40 60 20" in lines
    assert "  random-detect dscp 0 20 60 10" in lines
    up = [line for line in lines if line.startswith("  random-detect dscp ")]
    assert len(up) == 2 * 64


# What a kernel makes of the commands of Linux.


MAY_FAIL = " 2> /dev/null || true"


def programs(lines: Sequence[str]) -> list[list[str]]:
    """The commands as programs where nothing is there yet: those that remove it are left out."""
    return [
        shlex.split(line.removesuffix(MAY_FAIL))
        for line in lines
        if not (line.endswith(MAY_FAIL) and " del " in line)
    ]


def check_shaper(shown: str, rate: int) -> None:
    """`tc class show` cuts a rate of 1 Mbit/s and more to whole kbit/s."""
    found = re.search(
        r"class htb 1:1 root leaf 2: .*rate (\d+)(K|M)?bit ceil (\d+)(K|M)?bit", shown
    )
    assert found, shown
    factors = {None: 1, "K": 1e3, "M": 1e6}
    assert int(found[1]) * factors[found[2]] == int(found[3]) * factors[found[4]]
    assert int(found[1]) * factors[found[2]] == rate // 1000 * 1000


def test_devices_for_what_arrives_have_names_of_their_own() -> None:
    devices = ["eth0", "eth1", "enp0s31f6", *(f"enp0s31f6.{vlan}" for vlan in range(1, 4095))]
    names = [linux.ifb(device) for device in devices]
    assert len(set(names)) == len(devices)
    assert max(len(name.encode()) for name in names) <= 15, "IFNAMSIZ"
    # That of SQM, which would be removed first.
    assert not any(linux.ifb(device) == f"ifb4{device}"[:15] for device in devices)


@pytest.mark.skipif(bool(UNSHARED), reason=UNSHARED)
def test_two_lines_at_one_port_stand_side_by_side_and_are_undone_alone() -> None:
    wans = ["enp0s31f6.100", "enp0s31f6.101"]
    both = [made("tail-drop", "linux", wan=wan) for wan in wans]
    script = ["set -e", *(f"ip tuntap add dev {wan} mode tap" for wan in wans)]
    script += [line for each in both for line in without_ifb(each.set_up)]
    shown = [f"tc filter show dev {wan} ingress; echo =" for wan in wans]
    script += [*shown, *without_ifb(both[0].undo), *shown, "ip -o link show"]
    first, second, undone, kept, links = in_a_namespace(script).split("=\n")
    for wan, text in zip(wans, (first, second), strict=True):
        assert f"Egress Redirect to device {linux.ifb(wan)}" in text
    assert undone == ""
    assert kept == second
    assert linux.ifb(wans[0]) not in links
    assert linux.ifb(wans[1]) in links


@pytest.mark.skipif(bool(UNSHARED), reason=UNSHARED)
@pytest.mark.parametrize("qdisc", ["ingress", "clsact"])
def test_filters_of_others_stay(qdisc: str) -> None:
    """For what arrives there is one qdisc, which others use as well."""
    found = made("tail-drop", "linux", wan="wan")
    theirs = "tc filter add dev wan ingress pref 10 protocol ip u32 match u32 0 0 action "
    theirs += "mirred egress redirect dev lo"
    script = ["set -e", "ip tuntap add dev wan mode tap", f"tc qdisc add dev wan {qdisc}", theirs]
    show = ["tc qdisc show dev wan; tc filter show dev wan ingress; echo ="]
    script += [*show, *without_ifb(found.set_up), *without_ifb(found.set_up), *show]
    script += [*without_ifb(found.undo), *show]
    before, between, after, _ = in_a_namespace(script).split("=\n")
    assert between.count("rtifb-wan") == 1, "the commands can be given again"
    theirs_before, theirs_after = (
        [line for line in text.splitlines() if qdisc in line or "pref 10" in line]
        for text in (before, after)
    )
    assert len(theirs_before) > 1
    assert theirs_before == theirs_after
    assert "rtifb" not in after


@pytest.mark.skipif(bool(UNSHARED), reason=UNSHARED)
def test_the_undo_leaves_a_root_of_others() -> None:
    """Such as the kernel's default after a restart, or that of another program."""
    found = routers.commands([shaped("tail-drop")], device="linux", wan="wan")
    script = ["ip tuntap add dev wan mode tap", "tc qdisc add dev wan root handle 7: pfifo"]
    script += [*found.undo, "tc qdisc show dev wan"]
    assert "qdisc pfifo 7: root" in in_a_namespace(script)


@pytest.mark.skipif(bool(UNSHARED), reason=UNSHARED)
def test_this_kernel_has_what_was_advised() -> None:
    """Tail drop below a shaper, which every kernel with HTB has, at two devices in a namespace."""
    kernel = tc.Kernel(nat=False)
    ways = [shaped("tail-drop", way, keys) for way, keys in (("down", VDSL2), ("up", DOCSIS))]
    found = routers.commands(ways, device="linux", wan="wan")
    script = ["set -e", "ip tuntap add dev wan mode tap", *without_ifb(found.set_up)]
    for device in ("rtifb-wan", "wan"):
        script += [
            f"tc -j -d qdisc show dev {device}; echo; echo =",
            f"tc -d class show dev {device}; echo =",
        ]
        script += [f"tc -d qdisc show dev {device} root; echo ="]
    script += ["tc filter show dev wan ingress; echo ="]
    script += [*found.check, "echo =", *without_ifb(found.undo)]
    script += ["tc -j qdisc show dev wan; ip link show | grep rtifb || true"]
    *shown, filters, checked, after = in_a_namespace(script).split("=\n")
    for way, (queues, classes, sizes) in zip(ways, (shown[:3], shown[3:]), strict=True):
        tree = linux.tree(way, kernel)
        assert tree.differs(queues, kernel) == []
        check_shaper(classes, tree.rate_bps)
        assert ("mpu 64" in sizes) == (way.direction == "up")
        assert f"overhead {4 if way.direction == 'up' else 16}" in sizes
    assert "mirred (Egress Redirect to device rtifb-wan)" in filters
    assert "mirred (Egress Redirect to device rtifb-wan)" in checked
    assert checked.count("qdisc htb 1: root") == 2, "one in each direction"
    assert not [queue for queue in json.loads(after) if queue["kind"] in ("htb", "ingress")]
    # The comparison notices another value.
    other = linux.tree(shaped("tail-drop", "up", DOCSIS, limit="101 packets"), kernel)
    assert other.differs(shown[3], kernel) == [
        "pfifo 2: limit was asked for as 101, and the kernel has 100"
    ]


def lacking() -> list[str]:
    try:
        return backend.missing() or ([] if kernels.known() else [kernels.GET_ONE])
    except RedtailError as error:
        return [str(error)]


LACKING = lacking()
KERNELS = [None] if LACKING else [kernel.name for kernel in kernels.known()]

_OTHER_NAMES = ("tail_drop", "adaptive_red", "wred")
"""Kinds that Linux has by another name, and always."""

BY_TC = [kind for kind in QUEUES if kind in routers.kinds("linux")]


@pytest.mark.linux
@pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_what_was_advised(name: str | None) -> None:
    """Every kind that is advised, in both directions, one after the other in one machine."""
    guest = backend._guest(name, None)
    with_ifb = {"ifb", "act_mirred"} <= {path.stem for path in guest.kernel.to_load()}
    kernel = tc.Kernel()
    asked = [["ip", "tuntap", "add", "dev", "wan", "mode", "tap"]]
    asked += [["ip", "link", "set", "dev", "wan", "up"]]
    places, undone = {}, {}
    for kind in BY_TC:
        if kind.replace("-", "_") not in (*guest.kernel.queues(), *_OTHER_NAMES):
            continue  # dualpi2
        overhead = ADSL if kind == "codel" else VDSL2 if kind in ("cake", "pie") else DOCSIS
        ways = [shaped(kind, "up", overhead), shaped(kind, "down", overhead, rate=47_500_003)]
        found = routers.commands(ways, device="linux", wan="wan")
        begin = len(asked)
        given = programs(found.set_up)
        if ["tc", "qdisc", "add", "dev", "wan", "clsact"] in given:
            given.remove(["tc", "qdisc", "add", "dev", "wan", "handle", "ffff:", "ingress"])
        for words in given:
            if not with_ifb and words[-2:] == ["type", "ifb"]:
                words = ["ip", "tuntap", "add", "dev", "rtifb-wan", "mode", "tap"]
            if with_ifb or "filter" not in words:
                asked.append(words)
        places[kind] = (ways, begin, len(asked))
        for device in ("wan", "rtifb-wan"):
            asked.append(["tc", "-j", "-d", "qdisc", "show", "dev", device])
            asked.append(["tc", "-d", "class", "show", "dev", device])
            asked.append(["tc", "-d", "qdisc", "show", "dev", device, "root"])
        *undo, unless_used = found.undo
        qdisc = "clsact" if kind == "wred" else "ingress"
        assert f"|| tc qdisc del dev wan {qdisc} " in unless_used, "which needs a shell"
        asked += [words for words in programs(undo) if with_ifb or "filter" not in words]
        asked.append(["tc", "filter", "show", "dev", "wan", "ingress"])
        asked.append(["tc", "qdisc", "del", "dev", "wan", qdisc])
        undone[kind] = len(asked)
        asked.append(["tc", "-j", "qdisc", "show"])
        asked.append(["ip", "-j", "link", "show"])
    printed = machine.run_programs(guest, asked)
    assert len(printed) == len(asked)
    for words, each in zip(asked, printed, strict=True):
        assert each.code == 0, f"{shlex.join(words)}: {each.errors}"
    for kind, (ways, _, at) in places.items():
        for way, number in zip(ways, (at, at + 3), strict=True):
            queues, classes, sizes = (each.output for each in printed[number : number + 3])
            tree = linux.tree(way, kernel)
            assert tree.differs(queues, kernel) == [], kind
            if kind == "cake":
                assert '"nat":true' in queues.replace(" ", "")
                continue
            check_shaper(classes, tree.rate_bps)
            assert " ".join(tree.stab[1:]) in " ".join(sizes.split()) or tree.stab[1] in sizes
        assert printed[undone[kind] - 2].output == "", kind
        left = json.loads(printed[undone[kind]].output)
        assert not [
            queue for queue in left if queue["kind"] in ("htb", "cake", "ingress", "clsact")
        ], kind
        links = json.loads(printed[undone[kind] + 1].output)
        assert "rtifb-wan" not in [link["ifname"] for link in links], kind


@pytest.mark.linux
@pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))
@pytest.mark.parametrize("name", KERNELS)
def test_two_lines_of_a_port_have_cake_each_in_a_kernel_with_ifb(name: str | None) -> None:
    guest = backend._guest(name, None)
    if not {"ifb", "act_mirred"} <= {path.stem for path in guest.kernel.to_load()}:
        pytest.skip("the kernel has no ifb")
    wans = ["enp0s31f6.100", "enp0s31f6.101"]
    both = [made("cake", "linux", wan=wan) for wan in wans]
    asked = [["ip", "tuntap", "add", "dev", wan, "mode", "tap"] for wan in wans]
    asked += [words for each in both for words in programs(each.set_up)]
    show = [
        words
        for wan in wans
        for words in (
            ["tc", "filter", "show", "dev", wan, "ingress"],
            ["tc", "-j", "qdisc", "show", "dev", linux.ifb(wan)],
        )
    ]
    *undo, _ = both[0].undo  # the last line needs a shell
    asked += [*show, *programs(undo), *show[2:], ["ip", "-j", "link", "show"]]
    printed = machine.run_programs(guest, asked)
    for words, each in zip(asked, printed, strict=True):
        assert each.code == 0, f"{shlex.join(words)}: {each.errors}"
    links = {link["ifname"]: link for link in json.loads(printed[-1].output)}
    assert linux.ifb(wans[0]) not in links and linux.ifb(wans[1]) in links
    before = [each.output for each in printed[-len(undo) - 7 : -len(undo) - 3]]
    after = [each.output for each in printed[-3:-1]]
    for wan, filters, queue in zip(wans, before[::2], before[1::2], strict=True):
        assert f"Egress Redirect to device {linux.ifb(wan)}" in filters
        assert json.loads(queue)[0]["kind"] == "cake"
    assert after == before[2:], "the other line is as it was"


def as_sqm(lines: Sequence[str]) -> list[list[str]]:
    """The commands for the upload that SQM makes of its settings.

    As sqm-scripts (June 2024) do: piece_of_cake.qos and simplest.qos, functions `egress`, with
    get_cake_lla_string, get_stab_string, get_limit, get_target, get_ecn and get_flows.
    """
    found = (re.fullmatch(r"uci set sqm\.redtail_wan0?\.(\w+)='(.*)'", line) for line in lines)
    at = {each[1]: each[2] for each in found if each}
    add = ["tc", "qdisc", "add", "dev", at["interface"]]
    rate, options = f"{at['upload']}kbit", at["eqdisc_opts"].split()
    if at["script"] == "piece_of_cake.qos":
        line = ["atm"] if at["linklayer"] == "atm" else []
        line += ["overhead", at["overhead"], "mpu", at["tcMPU"]]
        usual = ["diffserv3", "nat", "besteffort"]
        return [[*add, "root", "cake", "bandwidth", rate, *line, *usual, *options]]
    sizes = ["mtu", at["tcMTU"], "tsize", at["tcTSIZE"], "mpu", at["tcMPU"]]
    sizes += ["overhead", at["overhead"], "linklayer", at["linklayer"]]
    shaper = ["htb", "quantum", "1514", "rate", rate, "ceil", rate, "burst", "1518"]
    of_class = ["tc", "class", "add", "dev", at["interface"], "parent"]
    leaf = [at["qdisc"], "limit", at["elimit"], "target", at["etarget"]]
    leaf += [{"ECN": "ecn", "NOECN": "noecn"}[at["egress_ecn"]]]
    leaf += ["flows", "1024"] if at["qdisc"].endswith("fq_codel") else []
    return [
        [*add, "root", "handle", "1:", "stab", *sizes, "htb", "default", "10"],
        [*of_class, "1:", "classid", "1:1", *shaper],
        [*of_class, "1:1", "classid", "1:10", *shaper, "prio", "0"],
        [*add, "parent", "1:10", "handle", "110:", *leaf, *options],
    ]


@pytest.mark.linux
@pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))
def test_what_sqm_makes_of_its_settings_is_the_same_queue() -> None:
    show = ["tc", "-j", "-d", "qdisc", "show", "dev", "wan"]
    asked = [["ip", "tuntap", "add", "dev", "wan", "mode", "tap"]]
    kinds = {"cake": VDSL2, "fq-codel": DOCSIS, "codel": ADSL, "pie": VDSL2, "fq-pie": DOCSIS}
    assert set(kinds) == set(routers.kinds("openwrt"))
    for kind, overhead in kinds.items():
        up = [shaped(kind, "up", overhead)]
        hz = tc.Kernel.hz  # that of the kernel here
        on_linux = routers.commands(up, device="linux", wan="wan", hz=hz)
        on_openwrt = routers.commands(up, device="openwrt", wan="wan", hz=hz)
        for commands in (programs(on_linux.set_up), as_sqm(on_openwrt.set_up)):
            asked += [*commands, show, ["tc", "qdisc", "del", "dev", "wan", "root"]]
    printed = machine.run_programs(backend._guest(None, None), asked)
    for words, each in zip(asked, printed, strict=True):
        assert each.code == 0, f"{shlex.join(words)}: {each.errors}"
    shown = [
        json.loads(each.output)[-1]
        for words, each in zip(asked, printed, strict=True)
        if words == show
    ]
    for kind, one, other in zip(kinds, shown[::2], shown[1::2], strict=True):
        assert one["kind"] == other["kind"] == kind.replace("-", "_")
        assert one["options"] == other["options"], kind


# The command line.

LINE = [
    "advise",
    "--down",
    "50mbit",
    "--up",
    "10mbit",
    "--rtt",
    "30ms",
    "--access",
    "docsis",
    "--use",
    "calls",
]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--device nokia --wan a", 'device = "nokia": no commands can be made for it; accepted'),
        ("--device linux", "--device needs --wan, the router's interface to the line"),
        ("--wan eth0", "--wan is for the commands of a router; accepted: with --device"),
        ("--device linux --wan a;b", 'wan = "a;b" is no name of an interface'),
        (
            "--device ios --wan Gi0/0 --queues cake",
            'queues = "cake": Cisco IOS does not have it; accepted: red, wred, tail-drop',
        ),
    ],
)
def test_options_of_a_router_are_refused_before_anything_is_simulated(
    options: str, says: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, [*LINE, *options.split(), "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_advise_prints_the_commands_for_what_it_advises(tmp_path: Path) -> None:
    quick = [*LINE, "--effort", "quick", "--queues", "codel", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*quick, "--device", "linux", "--wan", "wan0", "--json"])
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["queue"] == "codel"
    ways = [
        Shaped(
            way,
            answer[way]["queue"],
            answer[way]["shaper_bps"],
            Overhead(18, 64, "none"),
            answer[way]["line_bps"],
        )
        for way in ("down", "up")
    ]
    made = routers.commands(ways, device="linux", wan="wan0")
    assert answer["commands"] == json.loads(made.to_json())
    done = CliRunner().invoke(app, [*quick, "--device", "linux", "--wan", "wan0"])
    assert done.stdout.endswith(f"\n\n{made.text()}\n")


def test_only_the_queues_of_a_router_are_compared() -> None:
    assert Router("ios", "Gi0/0", None).queues(()) == ["red", "tail-drop", "sfq", "prio"]
    assert Router("routeros", "ether1", None).queues(()) == [
        *("cake", "fq-codel", "codel", "tail-drop")
    ]
    assert Router("openwrt", "wan", None).queues(()) == [
        *("cake", "fq-codel", "fq-pie", "codel", "pie")
    ]
    assert Router("ios", "Gi0/0", None).queues(["wred"]) == ["wred"]
    for kind in ("adaptive-red", "dualpi2", "wred", "sfq", "prio"):
        assert kind in routers.kinds("linux")
        assert kind not in Router("linux", "eth0", None).queues(())
        assert Router("linux", "eth0", None).queues([kind]) == [kind]
