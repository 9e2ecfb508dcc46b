"""Names of link types that are not read, and the way out.

Source of the numbers: the list of link-layer header types of tcpdump.org.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = {
    6: "Token Ring",
    7: "ARCNET",
    8: "SLIP",
    10: "FDDI",
    107: "frame relay",
    109: "OpenBSD's enc",
    117: "OpenBSD's pflog",
    119: "802.11 with a header of Prism",
    138: "IP over IEEE 1394",
    163: "802.11 with a header of AVS",
    187: "Bluetooth HCI H4",
    189: "USB of Linux",
    195: "IEEE 802.15.4",
    201: "Bluetooth HCI H4 with its direction",
    220: "USB of Linux",
    227: "CAN of Linux",
    230: "IEEE 802.15.4 without FCS",
    247: "InfiniBand",
    249: "USB of Windows",
    251: "Bluetooth Low Energy",
    252: "protocol data units that Wireshark exported",
    253: "netlink of Linux",
    256: "Bluetooth Low Energy with its radio",
    266: "USB of Darwin",
}

WAY_OUT = (
    "capture on an interface with IP, or, where IP begins after the same number of bytes in each "
    "packet, `editcap -C BYTES -L -T rawip FILE NEW` cuts them off"
)

MOST_NAMED = 5


def named(counts: Mapping[int, int]) -> str:
    """Return link types, each with its number of packets, and the way out.

    >>> named({195: 2}).split("; ")[0]
    '2 packets of link type 195 (IEEE 802.15.4)'
    """
    common = sorted(counts.items(), key=lambda item: -item[1])
    told = [
        f"{count} packet{'s' if count != 1 else ''} of link type {link}"
        + (f" ({_NAMES[link]})" if link in _NAMES else "")
        for link, count in common[:MOST_NAMED]
    ]
    more = len(common) - MOST_NAMED
    rest = f", and of {more} other types" if more > 0 else ""
    return f"{', '.join(told)}{rest}; {WAY_OUT}"
