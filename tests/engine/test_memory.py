"""Memory is linear in what is there: users, and the connections that are open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import ROOT

USERS = 200_000

SCRIPT = """
import resource, sys
from pathlib import Path
import redtail

TEXT = '''
name = "memory"
duration = "1 s"
warmup = "0 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "web"
kind = "web"
model = "feldmann"
users = {users}
[[traffic]]
name = "arrivals"
kind = "arrivals"
gap = "1 ms"
size = "2 kB"
service = "500 ms"
'''

def peak(users):
    text = redtail.Toml(TEXT.format(users=users))
    redtail.run(text, replications=1, out=Path(sys.argv[1]) / str(users))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

few = peak(1)
print(peak(int(sys.argv[2])) - few)
"""


def test_a_user_takes_less_than_a_kilobyte(tmp_path: Path) -> None:
    """Beside hundreds of open connections: once each user had a number for each of them."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(USERS)],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) / USERS < 800
