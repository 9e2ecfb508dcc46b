"""Everything a user can get wrong is refused before anything runs, with file, line and key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import redtail
from redtail.errors import SpecError

GOOD = """\
name = "Good"
duration = "10 s"
warmup = "2 s"
replications = 2

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = "sack"
"""

RED = 'queue = { kind = "red", limit = "100 packets", min_th = "%s", max_th = "%s" }'
QUEUE = 'queue = { kind = "tail-drop", limit = "100 packets" }'


def test_the_file_these_tests_spoil_is_good() -> None:
    assert redtail.check(redtail.Toml(GOOD)).runs == 2


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        pytest.param(
            'rate = "10 Mbit/s"',
            'rate = "10 Mbit/s"\nspeed = 3',
            8,
            ["speed", "rate"],
            id="unknown key",
        ),
        pytest.param(
            "flows = 4", "flow = 4", 14, ["flow", "flows"], id="unknown key of a traffic group"
        ),
        pytest.param('"10 Mbit/s"', "10", 7, ["rate", "10", "Mbit/s"], id="missing unit"),
        pytest.param('"10 Mbit/s"', '"10"', 7, ["rate", '"10"', "Mbit/s"], id="text without unit"),
        pytest.param('"10 Mbit/s"', '"10 Mbyte/s"', 7, ["Mbyte/s", "Mbit/s"], id="not a unit"),
        pytest.param(
            '"10 Mbit/s"', '"100 ms"', 7, ["rate", "100 ms", "time"], id="unit of another quantity"
        ),
        pytest.param('delay = "20 ms"', 'delay = "-20 ms"', 8, ["delay", "-20 ms"], id="negative"),
        pytest.param('"10 Mbit/s"', '"0 bit/s"', 7, ["rate", "0 bit/s"], id="rate of zero"),
        pytest.param('"10 Mbit/s"', '"-1 Mbit/s"', 7, ["rate", "-1"], id="negative rate"),
        pytest.param(
            QUEUE,
            RED % ("65 packets", "15 packets"),
            9,
            ["min_th", "max_th", "65 packets"],
            id="min_th above max_th",
        ),
        pytest.param(
            QUEUE, RED % ("65 packets", "65 packets"), 9, ["min_th"], id="min_th equal to max_th"
        ),
        pytest.param('kind = "tail-drop"', 'kind = "bleu"', 9, ["bleu", "red"], id="unknown kind"),
        pytest.param('warmup = "2 s"', 'warmup = "10 s"', 3, ["warmup"], id="warm-up of all of it"),
        pytest.param('duration = "10 s"', 'duration = "1 s"', None, ["warmup", "2 s"], id="short"),
        pytest.param('tcp = "sack"', 'tcp = "cubik"', 15, ["cubik", "sack"], id="unknown preset"),
        pytest.param("flows = 4", "flows = 0", 14, ["flows", "0"], id="no flows"),
        pytest.param('name = "Good"\n', "", None, ["name"], id="no name"),
        pytest.param("flows = 4", "flows = ", 14, [], id="not TOML"),
        pytest.param("flows = 4", "flows = 4\nflows = 5", 15, ["flows"], id="key given twice"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, line: int | None, parts: list[str]
) -> None:
    assert old in GOOD
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        redtail.check(path)
    message = str(caught.value)
    assert str(path) in message
    if line is not None:
        assert f"{path}:{line}" in message
        assert caught.value.line == line
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"


@pytest.mark.parametrize(
    ("factors", "parts"),
    [
        pytest.param('"traffic.ftp.flows" = []', ["traffic.ftp.flows"], id="empty factor"),
        pytest.param('"traffic.ftp.flws" = [1]', ["flws", "flows"], id="no such key"),
        pytest.param('"traffic.web.flows" = [1]', ["web", "ftp"], id="no such group"),
        pytest.param('"bottleneck.rate" = ["1 s"]', ["bottleneck.rate", "1 s"], id="bad value"),
        pytest.param('"traffic.ftp.flows" = 4', ["traffic.ftp.flows"], id="not a list"),
    ],
)
def test_a_bad_factor_is_named(factors: str, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        redtail.check(redtail.Toml(f"{GOOD}\n[factors]\n{factors}\n", "bad.toml"))
    assert "bad.toml:18" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_an_override_is_named_as_such() -> None:
    with pytest.raises(SpecError, match="10 Mbyte/s") as caught:
        redtail.check(redtail.Toml(GOOD), set={"bottleneck.rate": "10 Mbyte/s"})
    assert "bottleneck.rate" in str(caught.value)
    with pytest.raises(SpecError, match="bottleneck"):
        redtail.check(redtail.Toml(GOOD), set=["bottleneck.speed=3"])
    with pytest.raises(SpecError):
        redtail.check(redtail.Toml(GOOD), set=["no equals sign"])


def test_overrides_take_quoted_and_bare_values() -> None:
    for text in ("bottleneck.rate='20 Mbit/s'", "bottleneck.rate=20 Mbit/s"):
        assert '"20 Mbit/s"' in redtail.check(redtail.Toml(GOOD), set=[text]).scenario(0, 0)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        pytest.param("100 packets", "5 packets", "bandwidth-delay", id="buffer below one product"),
        pytest.param('warmup = "2 s"', 'warmup = "10 ms"', "warm", id="short warm-up"),
        pytest.param(
            '"100 packets"', '["100 packets", "1 kB"]', "holds no packet", id="packet above limit"
        ),
    ],
)
def test_a_degenerate_set_up_warns(old: str, new: str, part: str) -> None:
    assert redtail.check(redtail.Toml(GOOD)).warnings == ()
    warnings = redtail.check(redtail.Toml(GOOD.replace(old, new, 1))).warnings
    assert any(part in text for text in warnings), warnings


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from redtail.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        **options,  # type: ignore[call-overload]
    )


def test_the_command_line_refuses_with_one_message_and_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace("10 Mbit/s", "10 Mbyte/s", 1))
    done = command("run", str(path), "--out", str(tmp_path / "runs"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {path}:7: bottleneck.rate")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("subcommand", ["check", "run"])
def test_a_file_whose_endpoints_another_program_has_is_refused(
    tmp_path: Path, subcommand: str
) -> None:
    path = tmp_path / "own.toml"
    group = '[[traffic]]\nname = "own"\nkind = "endpoint"\nclass = "quic"\n'
    path.write_text(f"{GOOD}{group}")
    done = command(subcommand, str(path))
    assert done.returncode == 2
    assert done.stderr == (
        f'error: {path}:18: traffic.own.kind = "endpoint" is for programs of your own, which '
        "bring the endpoints and run the experiment themselves (docs/how-to/own-endpoint.md); "
        "accepted: another kind of traffic\n"
    )


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    """A real Ctrl-C to a real process; the next run goes on from what it kept."""
    import signal
    import time

    path = tmp_path / "long.toml"
    text = GOOD.replace('duration = "10 s"', 'duration = "100 s"')
    path.write_text(text.replace("replications = 2", "replications = 900"))
    arguments = ["run", str(path), "--out", str(tmp_path / "runs"), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from redtail.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = tmp_path / "runs" / "good"
    while len(list(folder.glob("*/manifest.json"))) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    kept = len(list(folder.glob("?" * 16 + "/manifest.json")))
    assert f"{kept} of 900 runs are finished and kept" in errors
    assert not list(folder.glob(".tmp-*"))
    # Workers make batches of neighbours, so those that are kept have gaps between them.
    again = redtail.run(path, out=tmp_path / "runs", replications=min(900, 8 * kept + 50))
    assert again.reused == kept


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (
            QUEUE,
            'queue = { kind = "plugin", class = "\\u0000a.py:Q", limit = "9 packets" }',
            "names a file that cannot be read",
        ),
        ('rate = "10 Mbit/s"', 'rate_trace = "\\u0000x"', "cannot be read"),
        (
            'kind = "bulk"\nflows = 4\ntcp = "sack"',
            'kind = "trace"\nfile = "\\u0000x.csv"',
            "cannot be read: embedded null byte",
        ),
    ],
    ids=["class", "trace of rates", "table"],
)
def test_a_file_name_with_a_null_byte_is_refused(old: str, new: str, part: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError, match=part):
        redtail.check(redtail.Toml(GOOD.replace(old, new, 1)))
    with pytest.raises(SpecError, match="cannot be read: embedded null byte"):
        redtail.check("\0.toml")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    text = GOOD.replace("10 Mbit/s", "10 Mbyte/s", 1)
    path.write_text(text.replace('"tail-drop"', '"DropTail"').replace("flows = 4", "flow = 4"))
    done = command("check", str(path))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert f"{path}:7: bottleneck.rate" in lines[0]
    assert f'{path}:9: bottleneck.queue.kind = "DropTail" is not known' in lines[1]
    assert lines[1].endswith('did you mean "tail-drop" ("DropTail" in ns-2)?')
    assert f"{path}:14: traffic.ftp.flow: unknown key" in lines[2]
    assert len(lines) == 3


def test_metrics_and_backends_that_are_none_are_told_together() -> None:
    text = GOOD.replace(
        "replications = 2",
        'replications = { until = "no within 5 %" }\nbackend = "none"\nreport.metrics = ["none"]',
    )
    with pytest.raises(SpecError) as refused:
        redtail.check(redtail.Toml(text))
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    parts = ("no run has the metric no", "report.metrics", '"none"')
    for line, part in zip(lines, parts, strict=True):
        assert part in line


LINE = [
    "--down",
    "9Mbit/s",
    "--up",
    "9Mbit/s",
    "--rtt",
    "20ms",
    "--access",
    "fibre",
    "--use",
    "calls",
]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("list", "queues", "FqCoDelQueueDisc"), "fq-codel"),
        (("list", "tcp", "TcpCubic"), "cubic"),
        (("list", "traffic", "BulkSendApplication"), "bulk"),
        (
            ("parameters", "--rate", "1Mbit/s", "--rtt", "9ms", "--flows", "1", "--queue", "pfifo"),
            "tail-drop",
        ),
        (("advise", *LINE, "--queues", "fq_codel"), "fq-codel"),
    ],
)
def test_words_of_other_programs_get_ours(arguments: tuple[str, ...], meant: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    word = arguments[-1]
    assert f'did you mean "{meant}" ("{word}" in ' in done.stderr
