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


# What puts packets into the classes of a queue: the module of the kernel that has each, and how it
# is tried, below a queue with classes.
FILTERS = {
    "flower": (
        "cls_flower",
        "filter add dev DEVICE parent 1: protocol ip pref 1 flower ip_proto tcp classid 1:1",
    ),
    "matchall": (
        "cls_matchall",
        "filter add dev DEVICE parent 1: protocol all pref 2 matchall classid 1:1",
    ),
    "clsact": ("sch_ingress", "qdisc add dev DEVICE clsact"),
}

# What `tc` says of a kind that the kernel does not have.
_NO_MODULE = ("kind is unknown", "classifier not found", "No such file or directory")

# A queue in whose place the kernel can have filters, the first of these that it has.
_WITH_CLASSES = ("htb", "prio", "drr")


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


def _tc(*words: str) -> str:
    """Run `tc`; return what it says if it fails, and nothing if it does not.

    Raises:
        OSError: it cannot be started.
    """
    ran = subprocess.run(["tc", *words], capture_output=True, text=True, check=False)
    return (ran.stderr.strip() or "refused") if ran.returncode else ""


def try_queues(device: str) -> dict[str, str]:
    """Return for each kind of queue why the kernel, or `tc`, has not got it; empty if it has."""
    reasons = {}
    for kind, words in QUEUES.items():
        place = ("dev", device, "root")
        try:
            said = _tc("qdisc", "add", *place, "handle", "1:", kind, *words.split())
        except OSError as error:
            return dict.fromkeys(QUEUES, f"the program tc cannot be started ({error.strerror})")
        if not said:
            _tc("qdisc", "del", *place)
            reasons[kind] = ""
        elif any(text in said for text in _NO_MODULE):
            reasons[kind] = "the kernel has no module sch_NAME for these queues, or may not load it"
        elif "Unknown qdisc" in said:
            reasons[kind] = f"{iproute2() or 'iproute2'} does not know it"
        else:
            reasons[kind] = said.splitlines()[-1]
    return reasons


def try_filters(device: str) -> dict[str, str]:
    """Return for each kind of filter why the kernel has not got it; empty if it has."""
    place = ("dev", device, "root")
    try:
        made = any(not _tc("qdisc", "add", *place, "handle", "1:", kind) for kind in _WITH_CLASSES)
        reasons = {}
        for kind, (module, words) in FILTERS.items():
            said = _tc(*words.replace("DEVICE", device).split())
            if not said:
                reasons[kind] = ""
            elif kind != "clsact" and not made:
                reasons[kind] = "the kernel has no queue with classes"
            elif any(text in said for text in _NO_MODULE):
                reasons[kind] = f"the kernel has no module {module}, or may not load it"
            else:
                reasons[kind] = said.splitlines()[-1]
    except OSError as error:
        return dict.fromkeys(FILTERS, f"the program tc cannot be started ({error.strerror})")
    return reasons
