"""Queues of the Linux kernel: the words of `tc` for a queue, and what a kernel made of them.

It must not know where a queue stands: it is told the rate of its link and the name of the device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redtail import native


def tc_table() -> list[dict[str, str]] | None:
    """Return the keys of queues with their options of `tc`; None where the module lacks them."""
    table = getattr(native.module(), "tc_table", None)
    if table is None:
        return None
    found: list[dict[str, str]] = json.loads(table())
    return found


@dataclass(frozen=True)
class TcQueue:
    """A queue of the Linux kernel at the root of a device.

    Attributes:
        commands: the words after `tc`, in the order in which the commands must be given.
        kept: by key of the inmost queue, what the kernel keeps of a value that it cannot hold.
        words: by key of the inmost queue, the words of `tc`; under "" those without a key.
    """

    commands: tuple[tuple[str, ...], ...]
    kept: Mapping[str, str]
    words: Mapping[str, tuple[str, ...]]


def has_tc() -> bool:
    """Return whether the native module knows the options of `tc`: it does on Linux only."""
    return hasattr(native.module(), "tc_queue")


def tc_queue(queue: Mapping[str, Any], *, rate_bps: int, mtu: int, hz: int, device: str) -> TcQueue:
    """Return the kernel's queue for a queue.

    Args:
        queue: `{kind: {key: value}}`, inner queues in the same form.
        rate_bps: rate of the link, in bit/s.
        mtu: largest IP packet of the device, in bytes.
        hz: ticks of the kernel's clock in a second.
        device: the name of the device.

    Raises:
        SpecError: it is no queue, or the kernel cannot have it; `key` says where.
    """
    with native.translated():
        text = native.module().tc_queue(json.dumps(queue), rate_bps, mtu, hz, device)
    found = json.loads(text)
    settings = found["queues"][-1]["settings"]
    words: dict[str, tuple[str, ...]] = {}
    for each in settings:
        words[each["key"]] = (*words.get(each["key"], ()), *each["words"])
    return TcQueue(
        commands=tuple(tuple(command) for command in found["commands"]),
        kept={each["key"]: each["kept"] for each in settings if each["kept"] is not None},
        words=words,
    )


def tc_differs(
    queue: Mapping[str, Any], shown: str, *, rate_bps: int, mtu: int, hz: int
) -> list[str]:
    """Return the differences between a queue and what a kernel has, in words.

    Args:
        queue: as for `tc_queue`.
        shown: the output of `tc -j -d qdisc show dev DEVICE`.
        rate_bps: as for `tc_queue`.
        mtu: as for `tc_queue`.
        hz: as for `tc_queue`.
    """
    with native.translated():
        return list(native.module().tc_differs(json.dumps(queue), rate_bps, mtu, hz, shown))
