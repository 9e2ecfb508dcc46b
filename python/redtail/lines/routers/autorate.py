"""cake-autorate: a program that makes CAKE's shaper follow the rate of a line.

It changes the rate of a CAKE that is there. So its settings come behind the commands that make the
queues, whose shapers have the rates without load.

Source: cake-autorate, version 3.2.1 (stable) and master of August 2026 (commit 94238be, behind
3.5.0): config.primary.sh (settings), setup.sh (folders, service), cake-autorate@.service. The
settings here have one name and meaning in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redtail.lines.line import Shaped
from redtail.lines.routers.model import Made

LETTERS = {"down": "dl", "up": "ul"}


@dataclass(frozen=True)
class Place:
    """Where the program is on a device.

    Attributes:
        file: its settings for this line.
        start: the command that starts it with them.
        again: the command that starts it with others.
        stop: the command that stops it, once they are gone.
        log: what shows what it does.
    """

    file: str
    start: str
    again: str
    stop: str
    log: str


def openwrt(section: str) -> Place:
    """Return where it is on OpenWrt; it runs once for each file with settings."""
    restart = "service cake-autorate restart"
    return Place(
        f"/root/cake-autorate/config.{section}.sh",
        f"service cake-autorate enable; {restart}",
        restart,
        restart,
        f"tail /var/log/cake-autorate.{section}.log",
    )


def debian(device: str) -> Place:
    """Return where it is on Debian and Ubuntu; systemd runs it for an interface."""
    unit = f'"cake-autorate@$(systemd-escape {device}).service"'
    return Place(
        f"/etc/cake-autorate/config.{device}.sh",
        f"systemctl enable {unit}; systemctl restart {unit}",
        f"systemctl restart {unit}",
        f"systemctl disable --now {unit}",
        f"journalctl -n 20 -u {unit}",
    )


def added(
    made: Made, directions: Sequence[Shaped], place: Place, interfaces: dict[str, str]
) -> Made:
    """Return what a device gets, with the program where a shaper follows the line.

    Args:
        made: the commands without it.
        directions: what is advised.
        place: where the program is.
        interfaces: the device with the CAKE of each direction.
    """
    if all(each.follows is None for each in directions):
        return made
    keep = f"{place.file}.before"
    return Made(
        [
            *made.set_up,
            f"test ! -e {place.file} || test -e {keep} || cp {place.file} {keep}",
            f"cat > {place.file} << 'END'",
            *settings(directions, interfaces),
            "END",
            place.start,
        ],
        [*made.check, place.log],
        [
            f"if test -e {keep}; then mv {keep} {place.file}; {place.again}; "
            f"else rm -f {place.file}; {place.stop}; fi",
            *made.undo,
        ],
        made.changes,
        [
            "cake-autorate has to be installed (github.com/lynxthecat/cake-autorate), and bash and "
            "fping with it. An instance of it for the same interfaces, such as config.primary.sh, "
            "must not run beside this one; settings that it has from UCI take the place of files",
            "cake-autorate sends 20 pings in a second to public servers while the line is used",
            *made.notices,
        ],
    )


ACTIVE_KBPS = 2000
"""connection_active_thr_kbps, below which a direction counts as idle. Source: defaults.sh."""


def settings(directions: Sequence[Shaped], interfaces: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the file with settings."""
    by_name: dict[str, Shaped] = {each.direction: each for each in directions}
    # A line whose rates are lower would count as idle while it is full, and pings would end.
    least = [each.follows.least_bps for each in directions if each.follows is not None]
    yield f"connection_active_thr_kbps={min(ACTIVE_KBPS, int(min(least) / 2000))}"
    for name, letters in LETTERS.items():
        yield f"{letters}_if={interfaces[name]}"
    for name, letters in LETTERS.items():
        shaped = by_name.get(name)
        follows = None if shaped is None else shaped.follows
        yield f"adjust_{letters}_shaper_rate={int(follows is not None)}"
        if shaped is None:
            continue
        fixed = shaped.shaper_bps or shaped.line_bps
        rates = (
            (fixed, fixed, fixed)
            if follows is None
            else (follows.least_bps, follows.base_bps, follows.most_bps)
        )
        for word, bps in zip(("min", "base", "max"), rates, strict=True):
            yield f"{word}_{letters}_shaper_rate_kbps={int(bps // 1000)}"
