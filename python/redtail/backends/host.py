"""What this computer has of the programs and queues that runs with a real kernel need.

Nothing here knows a backend.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess

# How each kind of queue is tried: the words that it cannot do without.
QUEUES = {
    "pfifo": "",
    "pfifo_head_drop": "",
    "bfifo": "",
    "red": "limit 300000 min 15000 max 45000 avpkt 1500 bandwidth 10mbit",
    "gred": "setup DPs 2 default 0",
    "choke": "limit 200 min 10 max 30 avpkt 1500 bandwidth 10mbit",
    "sfq": "",
    "sfb": "",
    "codel": "",
    "fq_codel": "",
    "pie": "",
    "fq_pie": "",
    "cake": "",
    "dualpi2": "",
    "htb": "",
    "tbf": "rate 10mbit burst 3000 limit 30000",
    "prio": "",
    "drr": "",
    "netem": "",
}


def iproute2(program: str = "ip") -> str:
    """Return the version of iproute2, such as "iproute2-6.1.0"; empty without the program."""
    try:
        found = subprocess.run([program, "-Version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    words = found.stdout.replace(",", " ").split()
    return next((word for word in words if word.startswith("iproute2-")), "")


def not_installed(program: str, fedora: str) -> str:
    """Return that a program of iproute2 is missing, and which package brings it."""
    return (
        f"the program `{program}` is not installed; it is in the package iproute2 (Debian, "
        f"Ubuntu, Arch) or {fedora} (Fedora)"
    )


def qemu() -> str:
    """Return the version of QEMU for x86-64, such as "7.2.22"; empty without the program."""
    path = shutil.which("qemu-system-x86_64")
    return "" if path is None else _version(path, os.stat(path).st_mtime_ns)


@functools.cache
def _version(path: str, _changed_ns: int) -> str:
    """Return the version of a QEMU, which is asked once for each state of its file."""
    try:
        found = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    version = re.search(r"version (\S+)", found.stdout)
    return version[1] if version else ""


def try_queues(device: str) -> dict[str, str]:
    """Return for each kind of queue why the kernel, or `tc`, has not got it; empty if it has."""
    reasons = {}
    for kind, words in QUEUES.items():
        try:
            ran = subprocess.run(
                ["tc", "qdisc", "add", "dev", device, "root", "handle", "1:", kind, *words.split()],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            return dict.fromkeys(QUEUES, f"the program tc cannot be started ({error.strerror})")
        said = ran.stderr.strip()
        if ran.returncode == 0:
            subprocess.run(["tc", "qdisc", "del", "dev", device, "root"], check=False)
            reasons[kind] = ""
        elif "qdisc kind is unknown" in said or "No such file or directory" in said:
            reasons[kind] = "the kernel has no module sch_NAME for these queues, or may not load it"
        elif "Unknown qdisc" in said:
            reasons[kind] = f"{iproute2() or 'iproute2'} does not know it"
        else:
            reasons[kind] = said.splitlines()[-1] if said else "refused"
    return reasons
