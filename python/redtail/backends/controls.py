"""Which kernels have a congestion control, as far as is known without a run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from redtail.errors import RedtailError

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""The congestion controls that this computer's kernel has loaded (ip-sysctl.rst of Linux)."""


def of_this_computer() -> list[str]:
    """Return the congestion controls that this computer's kernel has loaded, sorted."""
    try:
        return sorted(AVAILABLE.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return []


def where(name: str) -> list[str]:
    """Return a line for each kernel at hand that says whether it has a congestion control."""
    from redtail.backends.virtual import kernels

    own = of_this_computer()
    lines = []
    if own:
        advice = f"; `modprobe tcp_{name}` as root loads it, if there is such a module"
        lines.append(
            f"backends live and live-tc, Linux {platform.release()}: "
            + _answer(name, own, advice, "it is not loaded")
        )
    try:
        kept = kernels.known()
    except RedtailError as error:
        return [*lines, f"backends linux and linux-tcp: {error}"]
    for kernel in kept:
        lines.append(
            f"backends linux and linux-tcp, kernel {kernel.name}: "
            + _answer(name, kernel.controls(), "", "it is not there")
        )
    return lines or ["no kernel is at hand; " + kernels.GET_ONE]


def _answer(name: str, has: Sequence[str], advice: str, absent: str) -> str:
    return "it is there" if name in has else f"{absent} (there are {', '.join(has)}){advice}"
