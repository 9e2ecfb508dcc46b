"""What an agent sends is data: a reply that is none, or is not of this run, is refused."""

from __future__ import annotations

import ast
import io
import os
import pickle
import random
import struct
import time
from pathlib import Path

import pytest

import redtail
from redtail.backends import live
from redtail.backends.agent import Request
from redtail.engine import plans, realtime
from redtail.errors import QueueError, RunError, SpecError
from redtail.outcomes import Outcome

from conftest import some_weekly

TEXT = """
name = "exchange"
duration = "2 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
"""


def scenario() -> str:
    return plans.plan(TEXT).scenario(0, 0)


def number(value: int) -> bytes:
    """A number as postcard writes it (LEB128)."""
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def reply(
    metrics: dict[str, float],
    losses: tuple[tuple[int, ...], ...] = ((),),
    links: tuple[str, ...] = ("bottleneck",),
) -> bytes:
    """A reply of a run without tables: what `Reply::Ran` of crates/live/src/exchange.rs has."""
    result = number(len(metrics))
    for name, value in metrics.items():
        result += text(name) + struct.pack("<d", value)
    result += number(len(losses))
    for counts in losses:
        result += number(len(counts)) + b"".join(map(number, counts))
    for names in (links, ("ftp",)):
        result += number(len(names)) + b"".join(map(text, names))
    # No states of flows, series, names of figures, event log, flows, distributions, transfers or
    # response times: lists, options, and columns.
    result += bytes(1) + bytes(3) + bytes(1) + bytes(3) + bytes(1 + 3) + bytes(9) + bytes(4)
    result += number(1000) + number(5000)
    # No reason why it must not be used, no exit code, no programs.
    return number(0) + result + bytes(3)


def received(data: bytes) -> tuple[Outcome, str | None, int | None]:
    return live.Live().measured(data, scenario(), time.perf_counter())


def test_a_reply_is_read() -> None:
    outcome, invalid, code = received(reply({"loss": 0.25, "achieved_rate": 1e6}))
    assert outcome.metrics == {"loss": 0.25, "achieved_rate": 1e6}
    assert (outcome.bottleneck_packets, outcome.events) == (1000, 5000)
    assert invalid is None and code is None


class Code:
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, ("EXECUTED",)


def test_a_pickle_is_refused_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(RunError, match="this host's answer cannot be read"):
            received(pickle.dumps(Code(), protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (b"", "cannot be read"),
        (reply({"loss": 0.0}) + b"more", "cannot be read"),
        (reply({"loss": 0.0})[:-3], "cannot be read"),
        (reply({"no\x1bmetric": 0.0}), r"metric no\\u001bmetric, which no run"),
        (reply({"web.pages": 1.0}), "metric web.pages, which no run"),
        (reply({}, losses=((1,), (2,))), "loss events of 2 links, and names 1"),
        (number(1) + number(0), "what programs have printed"),
    ],
)
def test_a_reply_of_another_form_or_run_is_refused(forged: bytes, why: str) -> None:
    with pytest.raises(RunError, match=why):
        received(forged)


@pytest.mark.parametrize("seed", some_weekly(range(1, 5), lambda seed: seed > 1))
def test_damaged_replies_are_read_or_refused(seed: int) -> None:
    """Whatever the bytes are, there is a result or a message, and little memory is taken."""
    draw = random.Random(seed)
    whole = reply({"loss": 0.25, "achieved_rate": 1e6, "ftp.goodput": 5e5})
    ends = {True: 0, False: 0}
    for _ in range(5_000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            match draw.randrange(3):
                case 0:
                    data[draw.randrange(len(data))] = draw.randrange(256)
                case 1:
                    place = draw.randrange(len(data))
                    data[place : place + draw.randint(1, 8)] = number(draw.getrandbits(63))
                case _:
                    del data[draw.randrange(len(data)) :]
            data = data or bytearray(b"\0")
        try:
            received(bytes(data))
            ends[True] += 1
        except RunError:
            ends[False] += 1
    assert min(ends.values()) > 100, ends


@pytest.mark.parametrize(
    ("at", "error", "said"),
    [
        ("kernel", RunError, "this host's kernel refused a step: no"),
        ("queue", QueueError, "no"),
        ("experiment", SpecError, "no"),
        ("engine", RunError, "no"),
    ],
)
def test_a_failure_is_raised_as_what_it_is(at: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        received(realtime.failed_reply(at, "no"))
    assert str(raised.value) == said and type(raised.value) is error


def test_a_reply_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LARGEST_REPLY", 1 << 20)
    assert len(live.reply_of(io.BytesIO(bytes(1 << 20)))) == 1 << 20
    with open("/dev/zero", "rb") as endless, pytest.raises(RunError, match="more than 1 MiB"):
        live.reply_of(endless)


def test_a_request_is_the_same_on_the_other_side() -> None:
    from redtail.inputs import queues, traces

    request = Request(
        scenario(),
        {"hash": queues.Located("q.py:Q", "/folder", "hash", "bottleneck.queue")},
        {"other": traces.Located("other", "/folder/a \udcff.csv")},
        realtime.Programs(("sh", "-c", "true"), ("serve",), writable=("/folder",), read_only=True),
        [("bottleneck", "/folder/a.pcap")],
        True,
    )
    line = request.to_bytes()
    assert line.count(b"\n") == 1
    assert Request.from_bytes(line) == request


def test_nothing_in_redtail_unpickles() -> None:
    package = Path(redtail.__file__).parent
    strange = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                names = ["pickle"]
            found = {name.partition(".")[0] for name in names} & strange
            assert not found, f"{path.relative_to(package)}:{node.lineno}: {found}"
