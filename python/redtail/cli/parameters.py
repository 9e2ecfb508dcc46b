"""`redtail parameters`."""

from __future__ import annotations

from typing import Annotated

import typer

from redtail.cli.output import complain, print_wide, say


def parameters(
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="For instance 10Mbit/s.")],
    rtt: Annotated[
        str,
        typer.Option("--rtt", metavar="TIME", help="Round trip without queueing; the shortest."),
    ],
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", help="TCP flows that send all the time.")
    ],
    rtt_max: Annotated[
        str | None,
        typer.Option("--rtt-max", metavar="TIME", help="The longest; default: the same."),
    ] = None,
    packet: Annotated[
        str, typer.Option("--packet", metavar="SIZE", help="A TCP packet on the link.")
    ] = "1500 B",
    delayed_acks: Annotated[
        bool,
        typer.Option(
            "--delayed-acks/--no-delayed-acks",
            help="Whether receivers acknowledge every second segment.",
        ),
    ] = True,
    udp_rate: Annotated[
        str, typer.Option("--udp-rate", metavar="RATE", help="UDP traffic that arrives.")
    ] = "0 bit/s",
    udp_packet: Annotated[
        str, typer.Option("--udp-packet", metavar="SIZE", help="A UDP packet on the link.")
    ] = "1500 B",
    queue: Annotated[
        str,
        typer.Option("--queue", metavar="KIND", help="red, pi, codel, fq-codel, pie or tail-drop."),
    ] = "red",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the parameters as JSON and nothing else.")
    ] = False,
) -> None:
    """Compute parameters for one queue on one link by published rules, each with its source."""
    from redtail.lines import queue_parameters

    found = queue_parameters(
        rate,
        rtt,
        flows=flows,
        rtt_max=rtt_max,
        packet=packet,
        delayed_acks=delayed_acks,
        udp_rate=udp_rate,
        udp_packet=udp_packet,
        queue=queue,
    )
    if as_json:
        say(found.to_json())
        return
    for text in found.cautions:
        complain(text, "warning")
    say(found.model)
    print_wide(found.table())
    say(found.queue)
