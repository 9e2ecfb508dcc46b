"""Linux with systemd: a unit that sets the queues whenever the interface appears.

The commands are those of `linux`, in a script that a unit runs: at a boot, and when a device such
as that of PPP is made anew. The unit is bound to the device's own unit, which exists for every
interface but the loopback (systemd, rules.d/99-systemd.rules).

Sources: systemd.unit(5), BindsTo= and "String escaping for inclusion in unit names";
systemd.service(5), Type=oneshot and RemainAfterExit=; systemd.device(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redtail.lines.line import Shaped
from redtail.lines.routers import linux
from redtail.lines.routers.model import Made
from redtail.lines.routers.names import tag
from redtail.lines.routers.tc import Kernel

SCRIPTS, UNITS = "/usr/local/sbin", "/etc/systemd/system"
"""Folders for what an administrator adds: hier(7), systemd.unit(5)."""

_END = "END_OF_REDTAIL"


def name(device: str) -> str:
    """Return the name of the script, and of the unit without its suffix."""
    return f"redtail-{tag(device)}"


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the commands that install the unit."""
    found = linux.made(directions, wan, lan, kernel)
    here = name(wan)
    script_file, unit_file = f"{SCRIPTS}/{here}", f"{UNITS}/{here}.service"
    return Made(
        [
            *written(script_file, script(found)),
            f"chmod 755 {script_file}",
            *written(unit_file, unit(wan)),
            "systemctl daemon-reload",
            f"systemctl enable {here}.service",
            f"systemctl restart {here}.service",
        ],
        [f"systemctl --no-pager status {here}.service", *found.check],
        [
            f"systemctl disable --now {here}.service",
            f"rm -f {script_file} {unit_file}",
            "systemctl daemon-reload",
        ],
        found.changes,
        [*linux.notices(directions, wan, kernel)],
    )


def written(file: str, lines: Sequence[str]) -> list[str]:
    """Return the lines for a shell that write a file."""
    return [f"cat > {file} << '{_END}'", *lines, _END]


def script(found: Made) -> list[str]:
    """Return a script for a shell with the commands of `linux`, as `start` and `stop`."""
    return [
        "#!/bin/sh",
        "# Made by redtail advise.",
        'case "$1" in',
        "start)",
        "set -e",
        *found.set_up,
        ";;",
        "stop)",
        *found.undo,
        "true",
        ";;",
        "esac",
    ]


def unit(device: str) -> list[str]:
    """Return the unit."""
    of_device = f"{escaped(f'/sys/subsystem/net/devices/{device}')}.device"
    here = f"{SCRIPTS}/{name(device)}"
    return [
        "# Made by redtail advise.",
        "[Unit]",
        f"Description=Queues at {device}",
        f"BindsTo={of_device}",
        f"After={of_device}",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStart={here} start",
        f"ExecStop={here} stop",
        "",
        "[Install]",
        f"WantedBy={of_device}",
    ]


def escaped(path: str) -> str:
    r"""Return a path as a part of a unit's name (systemd.unit(5), systemd-escape --path).

    >>> escaped("/sys/subsystem/net/devices/pppoe-wan")
    'sys-subsystem-net-devices-pppoe\\x2dwan'
    """
    return "-".join(
        re.sub(r"[^A-Za-z0-9:_.]", lambda sign: f"\\x{ord(sign[0]):02x}", part)
        for part in path.strip("/").split("/")
    )
