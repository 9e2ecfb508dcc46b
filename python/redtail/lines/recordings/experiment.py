"""The experiment file that a recording becomes: commented, to be edited and run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from redtail import escape
from redtail.engine import plans
from redtail.errors import SpecError
from redtail.experiment import FORMAT, toml_value
from redtail.files import path_of
from redtail.lines.course import trace_text
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.rates import PACKET_B
from redtail.lines.recordings.values import Estimated, quantity

DURATION_S, WARMUP_S = 60.0, 10.0

TXQUEUELEN = 1000
"""Packets in the queue of a network interface where nothing else is set: Linux, ip-link(8)."""

QUEUES = (
    ("tail drop", None),
    ("CoDel", '{ kind = "codel", limit = "1000 packets" }'),
    ("FQ-CoDel", '{ kind = "fq-codel" }'),
    ("CAKE", '{ kind = "cake" }'),
)
"""What the file compares with the buffer that was found."""


def experiment_text(
    found: Found, trace: str = "line.trace", back: str = "line.return.trace"
) -> str:
    """Return an experiment of the line as a file.

    Args:
        found: what a recording tells of the line.
        trace: name of the file with the trace, where the rate varies all the time.
        back: name of the file with that of the other direction.

    Raises:
        SpecError: the recording does not tell the rate or the round trip, or what it tells is no
            experiment; the text says what gives it.
    """
    made = _text(found, trace, back)
    main, other = _directions(found)
    try:
        plans.plan(made, given={trace: trace_text(main.trace_ms), back: trace_text(other.trace_ms)})
    except SpecError as error:
        raise SpecError(
            f"{found.file}: what it tells makes no experiment; --down, --up and --rtt give other "
            f"values: {error}"
        ) from None
    return made


def _directions(found: Found) -> tuple[Direction, Direction]:
    """Return the direction that is the bottleneck of the experiment, and the other one."""
    main = found.main
    return found.direction(main), found.direction("up" if main == "down" else "down")


def _text(found: Found, trace: str, back: str) -> str:
    main = found.main
    way, other = _directions(found)
    _require(found, way, main)
    assert found.rtt.value is not None
    half = found.rtt.value / 2
    lines = [
        *_head(found, main),
        "",
        *_comment(_side(main)),
        "[bottleneck]",
        *_rate(way, trace),
        *_explained("base round trip", found.rtt),
        f'delay = "{quantity(half, "s")}" # half of it',
        *_queue(way),
        "",
        *_return(other, half, "up" if main == "down" else "down", back),
        *_traffic(found, main),
        *_cases(way, other),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def write_experiment(
    found: Found, out: str | os.PathLike[str], *, force: bool = False
) -> list[Path]:
    """Write the experiment, and beside it the traces that it names.

    Args:
        found: what a recording tells of the line.
        out: the file.
        force: replace files that exist.

    Returns:
        The files, the experiment first.

    Raises:
        SpecError: the recording does not tell enough, a file exists (then none is written), or one
            cannot be written.
    """
    file = path_of(out)
    beside = file.with_suffix(".trace")
    if beside == file:
        raise SpecError(
            f"{file}: is the name of the trace, which is written beside the experiment; accepted: "
            "a name such as line.toml"
        )
    if beside.name != escape.name(beside.name):
        raise SpecError(
            f"{file}: has characters that cannot be seen; accepted: a name such as line.toml"
        )
    back = file.with_suffix(".return.trace")
    contents = {file: experiment_text(found, beside.name, back.name)}
    main, other = _directions(found)
    traces = {beside: trace_text(main.trace_ms)}
    if _is_link(other):
        traces[back] = trace_text(other.trace_ms)
    contents |= {path: trace for path, trace in traces.items() if trace}
    for path in contents:
        if path.exists() and not force:
            raise SpecError(
                f"{path} exists; accepted: another name with --save FILE, or --force to replace it"
            )
    try:
        for path, content in contents.items():
            part = path.with_name(f".{path.name}.part")
            try:
                part.write_text(content, encoding="utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise SpecError(f"{error.filename or file}: cannot be written: {error.strerror}") from None
    return list(contents)


def _require(found: Found, way: Direction, main: str) -> None:
    if not way.rate.known:
        raise SpecError(
            f"{found.file}: {way.rate.basis}; an experiment needs the rate: give it with "
            f"--{main} RATE, such as --{main} 50mbit"
        )
    if not found.rtt.known:
        raise SpecError(
            f"{found.file}: {found.rtt.basis}; an experiment needs the base round trip: give it "
            "with --rtt TIME, such as --rtt 30ms"
        )


def _head(found: Found, main: str) -> Iterator[str]:
    name = escape.name(found.file.name)
    yield f"# The line of {name}, as redtail estimates it: what the recording tells stands beside"
    yield "# each value. Change what you know better."
    yield "#"
    yield from _comment(found.about)
    for caution in found.cautions:
        yield from _comment(caution)
    yield ""
    yield f"format = {FORMAT}"
    yield f"name = {toml_value(f'Line of {name}')}"
    duration = DURATION_S
    timed = any(flows.kind == "downloads" for flows in found.flows)
    if len(found.direction(main).steps) > 1 or timed:
        duration = max(duration, WARMUP_S + found.duration_s)
    yield f'duration = "{quantity(duration, "s")}"'
    yield f'warmup = "{quantity(WARMUP_S, "s")}"'
    yield "replications = 5"


def _comment(sentence: str, width: int = 98) -> Iterator[str]:
    line = "#"
    # What others named may have characters that end the line, or that act on a terminal.
    for word in escape.name(sentence).split():
        if len(line) + 1 + len(word) > width and line != "#":
            yield line
            line = "#"
        line += f" {word}"
    yield line


def _explained(name: str, value: Estimated) -> Iterator[str]:
    yield from _comment(f"{name}: {value.text}; {value.basis}")


def _side(name: str) -> str:
    return "Down: to the people at the line." if name == "down" else "Up: from the people."


def _rate(way: Direction, trace: str) -> Iterator[str]:
    yield from _explained("rate", way.rate)
    assert way.rate.value is not None
    if way.trace_ms:
        yield f"rate_trace = {toml_value(trace)}"
        return
    if len(way.steps) < 2:
        yield f'rate = "{_whole(way.rate.value, "bit/s")}"'
        return
    first = way.steps[0]
    yield f'rate = "{_whole(first[2], "bit/s")}"'
    yield "rate_changes = ["
    for begin, _, bps in way.steps[1:]:
        at = quantity(WARMUP_S + begin - first[0], "s")
        yield f'    {{ at = "{at}", rate = "{_whole(bps, "bit/s")}" }},'
    yield "]"


def _whole(value: float, unit: str) -> str:
    """Return a rate or a size as the file has it: of whole bits per second or bytes, at least 1."""
    return quantity(max(round(value), 1), unit)


def _limit(way: Direction) -> str:
    if way.buffer.value is None or way.buffer.value < PACKET_B:
        return f"{TXQUEUELEN} packets"
    return _whole(way.buffer.value, "B")


def _queue(way: Direction) -> Iterator[str]:
    yield from _explained("buffer", way.buffer)
    if way.buffer.value is None:
        yield "# In its place: the queue of a network interface under Linux (ip-link(8))."
    yield f'queue = {{ kind = "tail-drop", limit = "{_limit(way)}" }}'


def _is_link(other: Direction) -> bool:
    """Return whether the other direction is a link of the experiment."""
    return other.rate.known and other.rate.bound != "at least"


def _return(other: Direction, half: float, name: str, back: str) -> Iterator[str]:
    if not _is_link(other):
        yield from _comment(
            f"{name.capitalize()}: {other.rate.text}; {other.rate.basis}. It is left out: that "
            f"direction takes its time and never fills. With --{name} RATE it is a link."
        )
        yield ""
        return
    yield from _comment(_side(name))
    yield "[bottleneck.return]"
    yield from _rate(other, back)
    yield f'delay = "{quantity(half, "s")}"'
    yield from _queue(other)
    yield ""


def _traffic(found: Found, main: str) -> Iterator[str]:
    assert found.rtt.value is not None
    other = found.direction("up" if main == "down" else "down")
    linked = _is_link(other)
    base = 0.0 if linked else found.rtt.value / 2
    names: set[str] = set()
    count = 0
    for flows in found.flows:
        if flows.direction != main and not linked:
            yield from _comment(f"Left out, for its direction is no link: {flows.text}")
            yield ""
            continue
        name = flows.kind if flows.kind not in names else f"{flows.kind}-{flows.direction}"
        names.add(name)
        count += 1
        yield from _comment(flows.text[:1].upper() + flows.text[1:] + ".")
        yield "[[traffic]]"
        yield f'name = "{name}"'
        yield from _group(flows, base, found.rtt.value)
        if flows.direction != main:
            yield 'direction = "reverse"'
        yield ""
    if not count:
        yield "# The recording does not tell who sent. In its place: four downloads."
        yield "[[traffic]]"
        yield 'name = "bulk"'
        yield 'kind = "bulk"'
        yield "flows = 4"
        yield 'tcp = "linux"'
        yield 'start = "uniform 0..2 s"'
        if base:
            yield f'return_delay = "{quantity(base, "s")}"'
        yield ""


def _group(flows: Flows, base: float, rtt: float) -> Iterator[str]:
    if flows.kind in ("steady", "udp"):
        yield 'kind = "cbr"'
        yield f"flows = {flows.count}"
        yield f'rate = "{_whole(flows.bps / flows.count, "bit/s")}"'
        yield f'packet = "{max(flows.packet_b, 29)} B"'
        if flows.kind == "udp":
            yield "dither = 1.0 # its gaps vary"
        return
    if flows.kind == "bulk":
        yield 'kind = "bulk"'
        yield f"flows = {flows.count}"
        yield 'start = "uniform 0..2 s"'
    elif flows.kind == "downloads":
        yield 'kind = "transfer"'
        yield f"flows = {flows.count}"
        sizes = ", ".join(f'"{_whole(float(size), "B")}"' for size in flows.payloads_b)
        yield f"size = [{sizes}]"
        starts = ", ".join(f'"{quantity(WARMUP_S + at, "s")}"' for at in flows.starts_s)
        yield f"start = [{starts}]"
    else:
        assert flows.gap_s is not None and flows.size_b is not None
        if flows.sizes_b is not None:
            quartiles = ", ".join(quantity(size, "B", 3) for size in flows.sizes_b)
            yield f"# Quartiles of the sizes: {quartiles}."
        yield 'kind = "arrivals"'
        yield f'gap = "exponential mean {quantity(max(flows.gap_s, 1e-9), "s")}"'
        yield f'size = "exponential mean {_whole(flows.size_b, "B")}"'
    yield f'tcp = "{flows.tcp}"'
    delays = [base + max(each - rtt, 0.0) for each, count in flows.rtts_s for _ in range(count)]
    delays = delays or [base]
    if max(delays) <= 0:
        return
    if max(delays) - min(delays) < 0.1 * rtt:
        middle = sorted(delays)[len(delays) // 2]
        if middle > 0:
            yield f'return_delay = "{quantity(middle, "s")}"'
        return
    listed = ", ".join(f'"{quantity(delay, "s")}"' for delay in delays)
    yield f"return_delay = [{listed}]"


def _cases(way: Direction, other: Direction) -> Iterator[str]:
    yield "# What is compared: the buffer as it is, and queues that a router can have instead."
    yield "[factors]"
    yield '"bottleneck.queue" = ['
    for label, queue in QUEUES:
        made = queue or f'{{ kind = "tail-drop", limit = "{_limit(way)}" }}'
        yield f'    {made[:-2]}, label = "{label}" }},'
    yield "]"
