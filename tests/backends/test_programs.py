"""Groups of kind `program`: what they say, and what their programs leave in real time."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import example_programs
import pytest
from test_live import TAIL_DROP, link, measured, on_this_host

import redtail
from redtail.analysis.results import Results
from redtail.engine import plans
from redtail.errors import RunError, SpecError
from redtail.outcomes import Program
from redtail.store import programs as kept

from conftest import some_weekly

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "programs"

pytestmark = [
    pytest.mark.live,
    # Of runs that find themselves invalid, and are made again.
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
]


def group(client: str, **keys: object) -> str:
    lines = [f"{key} = {redtail.experiment.toml_value(value)}" for key, value in keys.items()]
    text = redtail.experiment.toml_value(client)
    return "\n".join(["[[traffic]]", 'name = "p"', 'kind = "program"', f"client = {text}", *lines])


def experiment(folder: Path, client: str, duration: str = "2 s", **keys: object) -> Path:
    file = folder / "programs.toml"
    file.write_text(link(TAIL_DROP, duration, "0 s") + group(client, **keys))
    return file


def test_the_simulator_refuses_programs_with_their_line(tmp_path: Path) -> None:
    file = experiment(tmp_path, "true")
    line = file.read_text().split("\n").index('kind = "program"') + 1
    with pytest.raises(SpecError) as error:
        redtail.run(file, out=tmp_path, backend="sim")
    assert (error.value.line, error.value.key) == (line, "traffic.p.kind")
    assert str(error.value).startswith(f"{file}:{line}: ")
    assert "accepted: backend live" in str(error.value)


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "page" / "inner").mkdir(parents=True)
    (tmp_path / "page" / "inner" / "a").write_text("one")
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh")
    file = experiment(tmp_path, "true", files=["page", "tool"])
    before = redtail.check(file)
    assert before.inputs == ("page/inner/a", "tool")
    tool.chmod(0o755)
    executable = redtail.check(file).example(0)
    assert executable != before.example(0)
    (tmp_path / "page" / "inner" / "a").write_text("two")
    assert redtail.check(file).example(0) != executable


@pytest.mark.parametrize("name", ["up", "missing"])
def test_files_that_are_not_beside_the_experiment_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "up").symlink_to("/etc/hostname")
    file = experiment(tmp_path, "true", files=[name])
    with pytest.raises(SpecError, match=rf'traffic\.p\.files = .* has "{name}"') as error:
        redtail.check(file)
    assert error.value.line == file.read_text().split("\n").index(f'files = ["{name}"]') + 1


def test_programs_of_an_experiment_from_elsewhere_need_permission(tmp_path: Path) -> None:
    file = experiment(tmp_path, "true", server="cat")
    nowhere = tmp_path / "nowhere"

    def plan(refuse: bool, *allowed: Path) -> plans.Plan:
        text = file.read_text()
        return plans.plan(text, file=str(file), refuse=refuse, allow_code=allowed, within=nowhere)

    (lines,) = plan(refuse=False).programs
    assert lines.text == f"traffic.p: `cat`, `true`; needs --allow-code {tmp_path}"
    with pytest.raises(SpecError, match=f"--allow-code {tmp_path}"):
        plan(refuse=True)
    assert plan(True, tmp_path).programs[0].needs is None


def test_what_programs_left_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = [
        Program("g", 0, "server", None, 15, True, 0.0, 2.0, b"", 0, b"\xff", {}),
        Program(
            "g", 0, "client", 0, None, False, 1.0, 1.5, b"out", 7, b"", {"d/x": b"\0"}, ("l", "m")
        ),
    ]
    for name, data in kept.tables(given).items():
        (tmp_path / name).write_bytes(data)
    assert kept.read(tmp_path) == given
    assert kept.tables([]) == {} and kept.read(tmp_path / "none") == []


CLIENT = """
until curl -sS --fail -o {out}/got http://{server}:{port}/hello; do sleep 0.05; done
mkdir {out}/d; ln -s /etc/hostname {out}/d/link; echo {flow} > {out}/d/flow
echo {seed} $GREETING $REDTAIL_SECRET {client}
ls /proc/self/fd | wc -l
touch /etc/redtail-was-here mine /tmp/mine || echo read-only
cat /proc/1/environ || echo hidden
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two pairs of programs: a server, and a client that looks around."""
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "hello").write_text("hello\n" * 1000)
    file = experiment(
        folder,
        CLIENT,
        "4 s",
        server="trap 'echo asked >&2; exit 3' TERM; "
        "python3 -m http.server --bind {server} {port} & wait",
        flows=2,
        files=["hello"],
        environment={"GREETING": "greeting-{flow}"},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDTAIL_SECRET", "secret")
        patch.chdir(folder)
        return measured(file.read_text(), folder)


@on_this_host
def test_pairs_of_programs_run_between_the_hosts(ran: Results) -> None:
    found = ran.programs()
    assert [(each.role, each.flow) for each in found] == [
        ("server", 0),
        ("client", 0),
        ("server", 1),
        ("client", 1),
    ]
    seeds = set()
    for client in found[1::2]:
        assert client.code == 0 and not client.ended
        assert 1.0 <= client.started_s < client.ended_s < 4
        seed, greeting, address, *files = client.output.decode().split()
        seeds.add(int(seed))
        assert (greeting, address[:3]) == (f"greeting-{client.flow}", "10.")
        # Standard input, output and error, and the folder that `ls` reads.
        assert files == ["4", "read-only", "hidden"]
        assert client.files == {
            "d/flow": f"{client.flow}\n".encode(),
            "got": b"hello\n" * 1000,
        }
        assert client.left_out == ("d/link",)
        assert b"Read-only file system" in client.errors
    assert len(seeds) == 2


@on_this_host
def test_a_server_that_is_asked_to_end_has_time_and_fails_no_run(ran: Results) -> None:
    for server in ran.programs()[::2]:
        assert (server.code, server.ended) == (3, True)
        assert server.errors.endswith(b"asked\n")
        assert server.ended_s >= 4


@on_this_host
def test_nothing_stays_of_programs(ran: Results) -> None:
    assert not Path("/etc/redtail-was-here").exists()
    assert not Path("/tmp/mine").exists() and not Path("/tmp/redtail/0.0").exists()
    assert set(os.listdir(ran.cases[0].runs[0].folder)) >= {kept.PROGRAMS, kept.FILES}


@on_this_host
@pytest.mark.parametrize(
    ("client", "keys", "words"),
    [
        ("echo from {port} >&2; exit 7", {}, ["exit code 7", "from 5000"]),
        ("sleep 60", {"longest": "200 ms"}, ['took longer than longest = "200 ms"']),
        ("sleep 60", {}, ["still ran at the end of the run", "or `stop`"]),
        ("sleep 60", {"server": "exit 4"}, ["the server of pair 0", "exit code 4"]),
    ],
)
def test_a_program_that_fails_fails_the_run_with_its_words(
    tmp_path: Path, client: str, keys: dict[str, str], words: list[str]
) -> None:
    file = experiment(tmp_path, client, "500 ms", start="100 ms", **keys)
    with pytest.raises(RunError) as error:
        redtail.run(file, out=tmp_path, backend="live")
    for word in ["traffic.p: the ", *words]:
        assert word in str(error.value)


@on_this_host
def test_a_client_that_is_stopped_fails_no_run(tmp_path: Path) -> None:
    text = link(TAIL_DROP, "600 ms", "0 s") + group(
        "trap '' TERM; sleep 60", start="100 ms", stop="200 ms"
    )
    (client,) = measured(text, tmp_path).programs()
    # It heeds no SIGTERM, and the run ends before its time to end does.
    assert (client.code, client.signal, client.ended) == (None, 9, True)


def sleeping(mark: str) -> list[str]:
    """Return the processes whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found


def until(what: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if what():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within ten minutes")


@on_this_host
def test_programs_end_with_a_killed_command(tmp_path: Path) -> None:
    mark = f"600.1{os.getpid()}"
    file = experiment(tmp_path, f"(sleep {mark} &) ; exec sleep {mark}", "60 s", start="0 s")
    words = [sys.executable, "-m", "redtail", "run", str(file), "--backend", "live"]
    command = subprocess.Popen(
        [*words, "--out", str(tmp_path / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: len(sleeping(mark)) == 2 or command.poll() is not None)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    until(lambda: not sleeping(mark))


@on_this_host
@pytest.mark.parametrize("name", some_weekly(example_programs.NAMES, lambda name: name == "quinn"))
def test_an_example_measures_what_its_programs_tell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = example_programs.require(name, monkeypatch)
    monkeypatch.chdir(file.parent)
    results = measured(file.read_text(), tmp_path, replications=1)
    for case in results.cases:
        (run,) = case.runs.values()
        if name == "http":
            assert 0.2 < run.metrics["web.measured.download_time"] < 3
            assert (
                0
                < run.metrics["web.measured.first_byte"]
                < run.metrics["web.measured.download_time"]
            )
        else:
            # Below the rate of the link, and well above what a stalled transfer has.
            group = "iperf" if name == "iperf3" else "quic"
            assert 2e6 < run.metrics[f"{group}.measured.goodput"] < 1e7
        if name in ("quic", "quinn"):
            # Two ways of 10 ms, and at most what the queue holds: 50 packets of 1.5 kB.
            assert 0.02 < run.metrics["quic.measured.rtt"] < 0.1
        assert results.programs(case=results.cases.index(case))[-1].code == 0
