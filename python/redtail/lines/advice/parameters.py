"""Parameters for a queue on a link, with the model behind each of them.

    >>> import redtail
    >>> found = redtail.queue_parameters("10 Mbit/s", "100 ms", flows=64, queue="tail-drop")
    >>> found.queue
    'queue = { kind = "tail-drop", limit = "84 packets" }'

The numbers are computed by the Rust core; here they are given types and a table.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redtail import escape, facts

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class QueueParameter:
    """One number of a rule for a queue.

    Attributes:
        name: the queue's key, or what the model calls a figure that is no key.
        symbol: its symbol in the model.
        value: the number, in `unit`.
        unit: its unit; empty for a pure number.
        toml: the value as the experiment file has it; None where it is no key.
        source: where it comes from, in a sentence.
    """

    name: str
    symbol: str
    value: float
    unit: str
    toml: str | None
    source: str

    @property
    def text(self) -> str:
        """The value with its unit, to four digits."""
        if self.toml is not None and self.toml.startswith('"'):
            return self.toml.strip('"')
        scale, unit = (1e3, "ms") if self.unit == "s" else (1.0, self.unit)
        return f"{self.value * scale:.4g} {unit}".rstrip()


@dataclass(frozen=True)
class QueueParameters:
    """Parameters for a queue.

    Attributes:
        kind: the queue's kind.
        model: the model behind the numbers, in a sentence.
        parameters: the keys, then what else the model says.
        cautions: where the model is used beyond what it was checked for.
        queue: the line of the experiment file.
    """

    kind: str
    model: str
    parameters: tuple[QueueParameter, ...]
    cautions: tuple[str, ...]
    queue: str

    def __getitem__(self, name: str) -> QueueParameter:
        for one in self.parameters:
            if one.name == name:
                return one
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"format": 1, **asdict(self)}

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def table(self) -> Table:
        """Return it as a table for the terminal."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in ("key", "symbol", "value"):
            table.add_column(head, no_wrap=True)
        table.add_column("source")
        for one, after in zip(self.parameters, (*self.parameters[1:], None), strict=True):
            last_key = one.toml is not None and (after is None or after.toml is None)
            cells = (one.name, one.symbol, one.text, one.source)
            table.add_row(
                *(escape.plain(escape.name(cell)) for cell in cells), end_section=last_key
            )
        return table


def queue_parameters(
    rate: str,
    rtt: str,
    *,
    flows: int,
    rtt_max: str | None = None,
    packet: str = "1500 B",
    delayed_acks: bool = True,
    udp_rate: str = "0 bit/s",
    udp_packet: str = "1500 B",
    queue: str = "red",
) -> QueueParameters:
    """Compute parameters for a queue on a link.

    Args:
        rate: the link's rate, such as "10 Mbit/s".
        rtt: the round-trip time without queueing, the shortest where they differ.
        flows: number of TCP flows that send all the time.
        rtt_max: the longest round-trip time; by default the same as `rtt`.
        packet: size of a TCP packet on the link.
        delayed_acks: whether receivers acknowledge every second segment.
        udp_rate: rate of all UDP traffic that arrives.
        udp_packet: size of its packets on the link.
        queue: "red", "pi", "codel", "fq-codel", "pie" or "tail-drop".

    Raises:
        SpecError: a value makes no sense, or the queue has no rule to advise by.
    """
    found = facts.advise(
        queue=queue,
        rate=rate,
        rtt=rtt,
        rtt_max=rtt if rtt_max is None else rtt_max,
        flows=flows,
        packet=packet,
        delayed_acks=delayed_acks,
        udp_rate=udp_rate,
        udp_packet=udp_packet,
    )
    parameters = tuple(QueueParameter(**one) for one in found.pop("parameters"))
    cautions = tuple(found.pop("cautions"))
    return QueueParameters(parameters=parameters, cautions=cautions, **found)
