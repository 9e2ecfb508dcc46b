"""Options for the commands of a router, which `redtail advise` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.lines import Advice, Commands, Recorded

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Print the commands for a router, too, and choose from its queues: linux, systemd, "
        "networkd, openwrt, freebsd, opnsense, pfsense, vyos, routeros, ios or junos.",
        autocompletion=completion.devices,
    ),
]
Wan = Annotated[
    str | None,
    typer.Option("--wan", metavar="INTERFACE", help="The router's interface to the line."),
]
Lan = Annotated[
    str | None,
    typer.Option(
        "--lan",
        metavar="INTERFACE",
        help="Its interface to the people, where routeros, ios and junos shape the download.",
    ),
]


@dataclass(frozen=True)
class Router:
    """A router that commands are wanted for.

    Attributes:
        device: a name of `redtail.lines.DEVICES`.
        wan: its interface to the line.
        lan: its interface to the people, if it is known.
    """

    device: str
    wan: str
    lan: str | None

    def require_rates(self, recorded: Recorded | None) -> None:
        """Refuse to make commands for a line of which only a bound is known.

        Raises:
            SpecError: a rate is a bound: a shaper of that rate could be far below the line.
        """
        for name in ("down", "up"):
            if recorded is not None and recorded.bound(name):
                raise SpecError(
                    f"--device makes a shaper, and of the {name} rate only a bound is known "
                    f"({recorded.bound(name)}); accepted: the rate with --{name} RATE, a recording "
                    "of the full line, or no --device",
                    key=name,
                )

    def queues(self, named: Sequence[str], *, varies: bool = False) -> Sequence[str]:
        """Return the queues to choose from: those that are named, or else all that it has so.

        Where the line's rate varies these are fewer, if it has them.

        Raises:
            SpecError: it does not have one that is named.
        """
        from redtail.lines import DEVICES, QUEUES
        from redtail.lines.routers import choices, kinds
        from redtail.selection import split

        has = kinds(self.device)
        if not named:
            usual = choices(self.device)
            found = [kind for kind in QUEUES if kind in usual]
            fewer = [kind for kind in found if QUEUES[kind].varied] if varies else []
            return fewer or found
        for name in split(named):
            if name in QUEUES and name not in has:
                both = ", ".join(kind for kind in QUEUES if kind in has)
                raise SpecError(
                    f'queues = "{name}": {DEVICES[self.device].title} does not have it; '
                    f"accepted: {both}",
                    key="queues",
                )
        return named

    @property
    def follows(self) -> bool:
        """Whether it can have a shaper that follows the line's rate."""
        from redtail.lines.routers import FOLLOW

        return self.device in FOLLOW

    def commands(self, advice: Advice) -> Commands:
        """Return the commands for what is advised, and why it may better not be set."""
        from redtail.lines import commands

        made = commands(
            [advice.down, advice.up],
            device=self.device,
            wan=self.wan,
            lan=self.lan,
            alternatives=[
                kind
                for kind in dict.fromkeys(
                    advice.candidate(str(each.key)).kind for each in advice.ranking
                )
                if kind != advice.chosen.kind
            ],
        )
        return replace(made, doubt=_DOUBTS[advice.verdict].format(queue=advice.chosen.label))


_DOUBTS: dict[str, str] = {
    "helps": "",
    "costs": "The advice: {queue} helps only at the cost of much throughput. Decide before you "
    "set it.",
    "undecided": "The advice: the simulations do not tell whether {queue} helps. Decide before you "
    "set it.",
    "nothing": "The advice: leave the line as it is. These commands set {queue} all the same.",
}


def router(device: str | None, wan: str | None, lan: str | None) -> Router | None:
    """Return the router of these options; None if no commands are wanted.

    Raises:
        SpecError: one option lacks another, or a value makes no sense.
    """
    from redtail.lines import DEVICES
    from redtail.lines.routers import kinds, require_interfaces

    if device is None:
        for name, value in (("wan", wan), ("lan", lan)):
            if value is not None:
                raise SpecError(
                    f"--{name} is for the commands of a router; accepted: with --device, "
                    + ", ".join(DEVICES),
                    key=name,
                )
        return None
    kinds(device)
    if wan is None:
        raise SpecError(
            "--device needs --wan, the router's interface to the line, such as eth0", key="wan"
        )
    require_interfaces(wan, lan)
    return Router(device, wan, lan)
