"""Commands for Linux with systemd: units that systemd accepts, and files that networkd reads.

The script of the unit runs in a network namespace, and systemd-networkd in one with folders of its
own. Where root or a program is missing, tests are skipped with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from advised import ADSL, DOCSIS, UNSHARED, VDSL2, in_a_namespace, made, shaped, without_ifb

from redtail.lines import Overhead, routers
from redtail.lines.routers import linux, networkd, systemd, tc

NETWORKD = Path("/usr/lib/systemd/systemd-networkd")
NEWER = ("RTTSec", "AckFilter")
"""Keys of systemd 253 and later: NEWS of systemd 253."""


def without(*programs: str) -> str:
    """Why a test cannot run here; empty if it can."""
    missing = [program for program in programs if shutil.which(program) is None]
    return f"without {', '.join(missing)}" if missing else ""


def installed(lines: Sequence[str], folder: Path) -> None:
    """Give the commands to a shell, with folders below another one and without systemd itself."""
    stub = [
        "set -e",
        "systemctl() { :; }",
        'networkctl() { [ "$1" != status ] || '
        "echo '  Network File: /usr/lib/systemd/network/10-wan.network'; }",
    ]
    text = "\n".join([*stub, *lines])
    for path in (systemd.SCRIPTS, systemd.UNITS, networkd.FOLDER):
        (folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        text = text.replace(path, f"{folder}{path}")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def left(folder: Path) -> list[str]:
    """The files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("device", ["eth0", "enp0s31f6.100", "pppoe-wan", "wan@if3"])
def test_names_of_units_are_escaped_as_systemd_does(device: str) -> None:
    if shutil.which("systemd-escape") is None:
        pytest.skip(without("systemd-escape"))
    path = f"/sys/subsystem/net/devices/{device}"
    done = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True)
    assert systemd.escaped(path) == done.stdout.strip()


@pytest.mark.parametrize("device", ["systemd", "networkd"])
@pytest.mark.parametrize("wan", ["eth0", "pppoe-wan", "enp0s31f6.100"])
def test_systemd_accepts_the_unit(device: str, wan: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip(without("systemd-analyze"))
    installed(made("tail-drop", device, wan=wan).set_up, tmp_path)
    (unit,) = (tmp_path / systemd.UNITS.lstrip("/")).glob("*.service")
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if unit.name in line or str(unit) in line]
    assert done.returncode == 0, done.stderr
    assert own == []
    # The check notices a key that is none.
    unit.write_text(unit.read_text().replace("Type=oneshot", "Tipe=oneshot"))
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert "Tipe" in done.stderr


@pytest.mark.skipif(bool(UNSHARED), reason=UNSHARED)
def test_the_script_of_the_unit_starts_and_stops_what_linux_gets(tmp_path: Path) -> None:
    found = made("tail-drop", "systemd", wan="wan")
    installed(found.set_up, tmp_path)
    (script,) = (tmp_path / systemd.SCRIPTS.lstrip("/")).iterdir()
    assert os.access(script, os.X_OK)
    script.write_text("\n".join(without_ifb(script.read_text().splitlines())))
    show = ["for dev in wan rtifb-wan; do tc qdisc show dev $dev; done; echo ="]
    show += ["tc filter show dev wan ingress; echo ="]
    at_once = without_ifb(made("tail-drop", "linux", wan="wan").set_up)
    add = "ip tuntap add dev wan mode tap"
    after = "tc qdisc show dev wan; ip link show | grep rtifb || true"
    by_hand = in_a_namespace(["set -e", add, *at_once, *show])
    by_unit = in_a_namespace(
        ["set -e", add, f"{script} start", f"{script} start", *show, f"{script} stop", after]
    )
    *started, stopped = by_unit.split("=\n")
    assert started == by_hand.split("=\n")[:2]
    assert "htb" not in stopped and "rtifb" not in stopped and "ingress" not in stopped
    installed(found.undo, tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("kind", routers.kinds("networkd"))
@pytest.mark.parametrize("overhead", [DOCSIS, VDSL2, ADSL])
def test_files_of_networkd_are_removed_by_the_undo(
    kind: str, overhead: Overhead, tmp_path: Path
) -> None:
    found = made(kind, "networkd", wan="wan", overhead=overhead)
    installed(found.set_up, tmp_path)
    below = networkd.FOLDER.lstrip("/")
    assert left(tmp_path) == [
        f"{below}/10-wan.network.d/redtail.conf",
        f"{below}/90-rtifb-wan.netdev",
        f"{below}/90-rtifb-wan.network",
        f"{systemd.UNITS.lstrip('/')}/redtail-wan.service",
    ]
    undo = [line for line in found.undo if not line.startswith(("tc ", "ip "))]
    installed(undo, tmp_path)
    assert left(tmp_path) == []


def test_networkd_counts_what_the_line_adds_with_each_packet() -> None:
    # 64 of 65 bytes of PTM; the class counts 30 B, of which 14 are Ethernet's.
    ways = [shaped("fq-codel", overhead=VDSL2)]
    text = routers.commands(ways, device="networkd", wan="wan").text()
    assert f"Rate={int(9_500_000 * 64 / 65) // 8 * 8}\n" in text
    assert "OverheadBytes=16\n" in text
    cake = routers.commands([shaped("cake", overhead=ADSL)], device="networkd", wan="wan").text()
    assert "Bandwidth=9500000\nOverheadBytes=40\nCompensationMode=atm\n" in cake


def networkd_here() -> str:
    """Why networkd cannot be run here; empty if it can: it gives up root for a user of its own."""
    if os.geteuid() != 0 or not NETWORKD.exists():
        return "systemd-networkd needs root, and is not there" if os.geteuid() else "no networkd"
    done = subprocess.run(["unshare", "-nmp", "--fork", "true"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


NO_NETWORKD = networkd_here()

READ = """
mount -t tmpfs none /run
mkdir -p /run/systemd
mount --bind {folder} /etc/systemd/network
mount -t sysfs -o ro none /sys
for device in {devices}; do ip tuntap add dev $device mode tap; done
SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console {networkd} > /run/log 2>&1 &
for try in $(seq 100); do
    [ $(grep -c -e '{until}' -e '-> failed' /run/log) -ge {number} ] && break
    sleep 0.1
done
kill $!; wait $! || true
cat /run/log
for device in {devices}; do echo =; {show}; done
"""


def networkd_of(folder: Path, devices: Sequence[str], until: str) -> tuple[str, list[str]]:
    """What networkd says of files until it has said something of each device, and what it set."""
    script = READ.format(
        folder=folder,
        devices=" ".join(devices),
        number=len(devices),
        until=until,
        networkd=NETWORKD,
        show="tc -j -d qdisc show dev $device; echo; echo =; tc -d class show dev $device",
    )
    done = subprocess.run(
        ["unshare", "-nmp", "--fork", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    said, *shown = done.stdout.split("=\n") if "=\n" in done.stdout else (done.stdout,)
    return said, shown


def not_taken(said: str) -> list[str]:
    """What networkd complains of in the files that were made."""
    about = re.compile(r"(redtail\.conf|90-rtifb)[^:]*:\d*:? ?(.*)")
    found = (about.search(line) for line in said.splitlines())
    return [each[2] for each in found if each and re.search(r"gnor|nvalid|ailed", each[2])]


@pytest.mark.skipif(bool(NO_NETWORKD), reason=NO_NETWORKD)
@pytest.mark.parametrize("kind", routers.kinds("networkd"))
def test_networkd_takes_every_key(kind: str, tmp_path: Path) -> None:
    keys = {"ack_filter": "on", "wash": True, "ingress": True} if kind == "cake" else {}
    found = made(kind, "networkd", wan="wan", overhead=DOCSIS, keys=keys)
    installed(found.set_up, tmp_path)
    folder = tmp_path / networkd.FOLDER.lstrip("/")
    (folder / "10-wan.network").write_text("[Match]\nName=wan\n")
    said, _ = networkd_of(folder, ["wan"], "Setting traffic control")
    assert "found matching network '/etc/systemd/network/10-wan.network'" in said
    newer = [text for text in not_taken(said) if any(f"'{key}'" in text for key in NEWER)]
    assert sorted(not_taken(said)) == sorted(newer), said
    # A key that is none is complained of.
    drop_in = folder / "10-wan.network.d" / networkd.DROP_IN
    drop_in.write_text(drop_in.read_text() + "Nonsense=1\n")
    said, _ = networkd_of(folder, ["wan"], "Setting traffic control")
    assert any("'Nonsense'" in text for text in not_taken(said))


@pytest.mark.skipif(bool(NO_NETWORKD), reason=NO_NETWORKD)
def test_networkd_sets_what_was_advised(tmp_path: Path) -> None:
    """Tail drop below HTB, which the kernel of the tests has."""
    found = made("tail-drop", "networkd", wan="wan", overhead=DOCSIS)
    installed(found.set_up, tmp_path)
    folder = tmp_path / networkd.FOLDER.lstrip("/")
    (folder / "10-wan.network").write_text("[Match]\nName=wan\n")
    # Another kind of device stands in for the one that the kernel of the tests lacks.
    (folder / "90-rtifb-wan.netdev").unlink()
    _, shown = networkd_of(folder, ["wan", "rtifb-wan"], "Traffic control configured")
    assert len(shown) == 4
    for queues, classes in (shown[:2], shown[2:]):
        assert '"kind":"htb","handle":"1:","root":true' in queues
        assert '"kind":"pfifo"' in queues and '"limit":100' in queues
        assert re.search(
            r"class htb 1:1 root leaf \S+ .*rate 9500Kbit overhead 4 ceil 9500Kbit", classes
        )


def test_a_line_without_a_shaper_is_the_queue_alone() -> None:
    one = shaped("fq-codel", rate=None)
    text = routers.commands([one], device="networkd", wan="wan").text()
    assert "[FairQueueingControlledDelay]\nParent=root\n" in text
    assert "HierarchyTokenBucket" not in text
    assert linux.tree(one, tc.Kernel()).queue.keys() == {"fq-codel"}
