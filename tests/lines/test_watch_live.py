"""A router behind a line of known rate, in real time, with the queues of this host's kernel."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from redtail.backends import live

ROOT = Path(__file__).parents[2]

LACKING = [
    *live.missing(),
    *(f"{name} is not installed" for name in ("iperf3", "tc", "ping") if not shutil.which(name)),
]

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING)),
]

ROUTER = """
set -e
tc qdisc add dev hosts root handle 1: tbf rate {up} burst 10k latency 100ms
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev ifb0 root handle 1: tbf rate {down} burst 20k latency 100ms
tc qdisc add dev hosts handle ffff: ingress
tc filter add dev hosts parent ffff: protocol all u32 match u32 0 0 \
    action mirred egress redirect dev ifb0
(sleep 10; exec iperf3 -c $REDTAIL_SERVER -C cubic -t 30 {way} >/dev/null 2>&1) &
{redtail} watch hosts --ping $REDTAIL_SERVER --count 30 --format json >watched
"""

TRIES = 2


def watched(folder: Path, up: str, down: str, way: str) -> list[dict[str, Any]]:
    """What `redtail watch` printed beside 20 s of load, on a line of 20 Mbit/s down and 5 up."""
    redtail = f"{sys.executable} -m redtail"
    script = ROUTER.format(up=up, down=down, way=way, redtail=redtail)
    words = [sys.executable, "-m", "redtail", "shell", str(ROOT / "examples" / "line.toml")]
    words += ["--status", "off", "--server", "iperf3 -s", "--", "sh", "-c", script]
    for _ in range(TRIES):
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
        if "not trust these results" not in ran.stderr:
            break
    else:
        pytest.skip("this machine does not keep up with real time")
    if "Specified qdisc kind is unknown" in ran.stderr or "Unknown device type" in ran.stderr:
        pytest.skip("the kernel has no TBF or no ifb")
    file = folder / "watched"
    assert file.exists(), ran.stderr
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("up", "down", "way", "direction", "states"),
    [
        pytest.param("4500kbit", "19mbit", "", "up", {"not above"}, marks=pytest.mark.weekly),
        ("7mbit", "19mbit", "", "up", {"above"}),
        pytest.param("4500kbit", "30mbit", "-R", "down", {"above"}, marks=pytest.mark.weekly),
    ],
    ids=["below", "above", "above, down"],
)
def test_a_real_shaper_is_seen_above_the_line_or_below_it(
    up: str, down: str, way: str, direction: str, states: set[str], tmp_path: Path
) -> None:
    """The line has 5 Mbit/s up and 20 down; nothing is said that is not so, at any time."""
    found = watched(tmp_path, up, down, way)
    told = [each["shapers"][direction]["state"] for each in found]
    assert set(told) <= {"undecided", *states}, told
    assert states <= set(told), found[-1]["shapers"]
