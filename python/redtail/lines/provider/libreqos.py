"""Files for LibreQoS that set what is advised.

Formats: LibreQoS 1.5, `docs/v1.5/Quickstart/configuration.md` (ShapedDevices.csv, network.json) and
`src/lqos.example` (the section `[queues]` of /etc/lqos.conf).
"""

from __future__ import annotations

import csv
import io
import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redtail.errors import SpecError
from redtail.files import path_of
from redtail.lines.provider.plans import Plan
from redtail.lines.provider.simulated import Way, guaranteed

COLUMNS = (
    *(
        "Circuit ID",
        "Circuit Name",
        "Device ID",
        "Device Name",
        "Parent Node",
        "MAC",
        "IPv4",
        "IPv6",
    ),
    *("Download Min Mbps", "Upload Min Mbps", "Download Max Mbps", "Upload Max Mbps", "Comment"),
)
"""The head of ShapedDevices.csv."""

LEAST_MBPS = 0.1
"""The least guaranteed rate. Source: LibreQoS 1.5, src/ShapedDevices.example.csv."""

_ADDRESSES = ipaddress.IPv4Network("100.64.0.0/10")  # RFC 6598

_SQM = {"cake": "cake diffserv4", "fq-codel": "fq_codel"}


@dataclass(frozen=True)
class Exported:
    """Files for LibreQoS.

    Attributes:
        files: their paths, by name.
        notices: what they leave to do, a sentence or two each.
    """

    files: Mapping[str, Path]
    notices: tuple[str, ...]


def files(plans: Sequence[Plan], down_bps: float, up_bps: float, way: Way) -> dict[str, str]:
    """Return the files by their names.

    Args:
        plans: the plans.
        down_bps: the line's rate towards the subscribers, in bit/s.
        up_bps: the same from them.
        way: what is to be set.

    Raises:
        SpecError: LibreQoS does not have what is advised.
    """
    leaf = way.leaf
    sqm = _SQM.get(str(leaf["kind"])) if leaf is not None else None
    if sqm is None:
        raise SpecError(
            f'export: LibreQoS does not have "{way.label}"; accepted: {", ".join(_SQM.values())}',
            key="export",
        )
    down, up = (_mbps(rate) for rate in (down_bps, up_bps))
    return {
        "ShapedDevices.csv": _shaped_devices(plans, down_bps, up_bps),
        "network.json": json.dumps({}) + "\n",
        "lqos.conf.queues": (
            "# Made by redtail advise: what to set in the section [queues] of /etc/lqos.conf.\n"
            "[queues]\n"
            f'default_sqm = "{sqm}"\n'
            f"downlink_bandwidth_mbps = {down}\n"
            f"uplink_bandwidth_mbps = {up}\n"
            f"generated_pn_download_mbps = {down}\n"
            f"generated_pn_upload_mbps = {up}\n"
        ),
    }


NOTICES = (
    "The addresses in ShapedDevices.csv are of the shared space 100.64.0.0/10 (RFC 6598), one for "
    "each subscriber in turn: put the real ones in their place, and names.",
    "network.json is that of a flat network. With access points or sites of less than the line's "
    "rate, write these into it, and their names as Parent Node.",
    "The file lqos.conf.queues has what to set in /etc/lqos.conf; the rest stays as it is. Then: "
    "sudo systemctl restart lqosd lqos_scheduler",
    "LibreQoS recommends a maximum of 1.15 times the advertised rate; here it is the rate itself.",
)
"""What the files leave to do. Source: LibreQoS 1.5, Configure LibreQoS."""


def _shaped_devices(plans: Sequence[Plan], down_bps: float, up_bps: float) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    number = 0
    for plan in plans:
        both = (
            guaranteed(plans, plan, down_bps, "down"),
            guaranteed(plans, plan, up_bps, "up"),
        )
        least = [max(LEAST_MBPS, _mbps(rate)) for rate in both]
        most = [_mbps(plan.down_bps), _mbps(plan.up_bps)]
        for nth in range(1, plan.number + 1):
            number += 1
            name = f"{plan.name} {nth}"
            address = str(_ADDRESSES.network_address + number)
            rows.writerow([number, name, number, name, "", "", address, "", *least, *most, ""])
    return text.getvalue()


def _mbps(bps: float) -> float | int:
    """Return a rate in Mbit/s, to two digits behind the point and no more than it is.

    >>> _mbps(1e9), _mbps(5.559e6)
    (1000, 5.55)
    """
    found = int(bps / 1e4) / 100
    return int(found) if found == int(found) else found


def write(made: Mapping[str, str], folder: str | os.PathLike[str]) -> Exported:
    """Write files into a folder, which is made.

    Raises:
        SpecError: a file of this name is there, or it cannot be written.
    """
    place = require_exportable(folder)
    written = {}
    try:
        place.mkdir(exist_ok=True)
        for name, text in made.items():
            path = place / name
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written[name] = path
    except OSError as error:
        raise SpecError(f"{place}: cannot be written: {error.strerror}", key="export") from None
    return Exported(written, NOTICES)


def require_exportable(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that files can be written into.

    Raises:
        SpecError: it is no folder, has one of the files, or none can be made there.
    """
    place = path_of(folder)
    if not place.parent.is_dir():
        raise SpecError(f"export {place}: there is no folder {place.parent}", key="export")
    if place.exists() and not place.is_dir():
        raise SpecError(f"export {place}: is a file; accepted: a folder", key="export")
    for name in ("ShapedDevices.csv", "network.json", "lqos.conf.queues"):
        if (place / name).exists():
            raise SpecError(
                f"export {place}: has a file {name}; accepted: a folder without it", key="export"
            )
    return place
