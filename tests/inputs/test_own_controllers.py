"""Congestion controllers written in Python: right, used in every way, stopped when they fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail import cli, templates
from redtail.errors import SpecError
from redtail.experiment import prepare

pytestmark = pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")

SCENARIO = """\
name = "Own"
duration = "6 s"
warmup = "1 s"
replications = 2

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "20 packets" }}

[[traffic]]
name = "mine"
kind = "bulk"
flows = 2
tcp = {tcp}
start = "uniform 0..100 ms"
{more}
"""

RENO = (Path(redtail.__file__).parent / "templates" / "my_controller.py.txt").read_text("utf-8")

TWO = """
[factors]
"traffic.mine.tcp" = [
    { preset = "sack", label = "built in" },
    { preset = "sack", class = "own.py:Reno", params = { beta = 0.5 }, label = "own" },
]
"""

OWN = '{ preset = "sack", class = "own.py:Reno" }'


class Reno:
    """A window that is halved, as an object to be passed."""

    def __init__(self, context: redtail.ControllerContext, beta: float = 0.5) -> None:
        self.cwnd, self.mss, self.beta = context.initial_cwnd, context.mss, beta

    def on_ack(self, sample: redtail.RateSample) -> None:
        self.cwnd += self.mss * sample.newly_acked / self.cwnd

    def on_recovery(self, event: redtail.CongestionEvent) -> None:
        self.cwnd = max(self.beta * self.cwnd, 2.0 * self.mss)


# For type checkers: the class has the form of the protocol.
_checked: type[redtail.Controller] = Reno


def experiment(folder: Path, tcp: str = OWN, source: str = RENO, more: str = "") -> Path:
    (folder / "own.py").write_text(source)
    path = folder / "own.toml"
    path.write_text(SCENARIO.format(tcp=tcp, more=more))
    return path


def metrics(case: redtail.CaseResult) -> dict[int, dict[str, float]]:
    """What the runs have measured, without the controller's own figures."""
    return {
        number: {name: value for name, value in run.metrics.items() if ".controller." not in name}
        for number, run in case.runs.items()
    }


def command(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> redtail.Results:
    """Results of the experiment with both."""
    folder = tmp_path_factory.mktemp("both")
    return redtail.run(experiment(folder, '"sack"', more=TWO), out=folder / "runs")


def test_reno_in_python_is_the_built_in_reno_to_the_bit(stored: redtail.Results) -> None:
    built_in, own = stored.cases
    assert metrics(built_in) == metrics(own)
    assert own.metric("mine.fast_recoveries").mean > 4


def test_its_own_figures_are_metrics_and_series(tmp_path: Path) -> None:
    more = '[series]\ninterval = "500 ms"\nwindows = true\n'
    results = redtail.run(experiment(tmp_path, more=more), out=tmp_path / "runs")
    table = results.series("controllers").to_pydict()
    assert set(table["figure"]) == {"reductions"} and set(table["group"]) == {"mine"}
    assert table["flow"][:2] == [0, 1] and table["time_s"][:2] == [0.0, 0.0]
    last = table["value"][-2:]
    assert sorted(table["value"][::2]) == table["value"][::2]
    # The metric is the mean over the flows at the end of the run.
    found = results.cases[0].runs[0].metrics["mine.controller.reductions"]
    assert min(last) <= found <= max(last) + 2


def test_a_class_can_be_given_as_such(tmp_path: Path) -> None:
    tcp = {"preset": "linux", "class": Reno, "params": {"beta": 0.7}}
    file = experiment(tmp_path, '"linux"')
    own = redtail.run(file, set={"traffic.mine.tcp": tcp}, out=tmp_path / "runs")
    typed = redtail.Experiment(
        name="Own",
        duration="6 s",
        warmup="1 s",
        bottleneck=redtail.Bottleneck(
            rate="5 Mbit/s", delay="10 ms", queue=redtail.TailDrop(limit="20 packets")
        ),
        traffic=[
            redtail.Bulk(
                name="mine",
                flows=2,
                tcp=redtail.Tcp(preset="linux", class_=Reno, params={"beta": 0.7}),
                start="uniform 0..100 ms",
            )
        ],
        replications=2,
    )
    again = redtail.run(typed, out=tmp_path / "typed")
    assert metrics(own.cases[0]) == metrics(again.cases[0])


def test_a_class_that_has_changed_is_run_anew(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    first = redtail.run(file, out=tmp_path / "runs")
    assert redtail.run(file, out=tmp_path / "runs").reused == 2
    (tmp_path / "own.py").write_text(RENO.replace("beta=0.5", "beta=0.8"))
    second = redtail.run(file, out=tmp_path / "runs")
    assert second.reused == 0
    assert metrics(first.cases[0]) != metrics(second.cases[0])


def test_check_lists_the_code_and_executes_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    file = experiment(
        tmp_path, source=f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n{RENO}"
    )
    code, text = command("check", file)
    assert code == 0
    assert f"would run code: traffic.mine.tcp: class Reno of {tmp_path / 'own.py'}\n" in text
    assert not mark.exists()
    redtail.run(file, replications=1, out=tmp_path / "runs")
    assert mark.exists()


def test_code_elsewhere_needs_permission(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "own.py").write_text(RENO)
    inner = tmp_path / "inner"
    inner.mkdir()
    file = experiment(inner, '{ preset = "sack", class = "../elsewhere/own.py:Reno" }')
    with pytest.raises(SpecError, match=r"traffic\.mine\.tcp\.class = .*--allow-code"):
        redtail.run(file, out=tmp_path / "runs")
    allowed = redtail.run(
        file, allow_code=tmp_path / "elsewhere", replications=1, out=tmp_path / "runs"
    )
    assert allowed.run_count == 1


def test_results_are_compared_told_apart_and_reported(
    stored: redtail.Results, tmp_path: Path
) -> None:
    file = stored.folder.parent.parent / "own.toml"
    runs = ("--out", stored.folder.parent)
    arguments = ("--metric", "mine.goodput", "--by", "traffic.mine.tcp", "--baseline", "built in")
    code, text = command("compare", file, *arguments, *runs)
    assert code == 0 and "own" in text, text
    code, text = command("report", stored.folder, "--output", tmp_path / "page.html")
    assert code == 0 and "own.py:Reno" in (tmp_path / "page.html").read_text("utf-8"), text
    code, text = command("diff", stored.folder, stored.folder, "--exact")
    assert code == 0, text


def test_an_archive_has_the_code_and_is_repeated_from_it(
    stored: redtail.Results, tmp_path: Path
) -> None:
    archive = tmp_path / "own.zip"
    code, text = command("pack", stored.folder, "--output", archive)
    assert code == 0, text
    code, text = command("run", archive, "--verify", "--allow-code", archive)
    assert code == 0 and "4 runs repeated: every byte of what they measured agrees" in text, text


def test_a_study_has_it(tmp_path: Path) -> None:
    experiment(tmp_path, '"sack"', more=TWO + '"traffic.mine.flows" = [2, 3]\n')
    (tmp_path / "study.toml").write_text("""\
title = "A controller of one's own"

[[comparison]]
name = "both"
about = "the same law twice"
queue = "traffic.mine.tcp"
load = "traffic.mine.flows"
files = ["own.toml"]

[[comparison.scale]]
name = "quick"
about = "2 replications"

[[finding]]
id = "SAME"
statement = "The class sends as much as the built-in law."
[[finding.check]]
comparison = "both"
test = "ratio"
metric = "mine.goodput"
queues = ["own"]
to = ["built in"]
at_least = 0.99
""")
    code, text = command("reproduce", tmp_path, "--out", tmp_path / "runs")
    assert code == 0 and "SAME" in text, text


def test_a_campaign_and_a_search_have_it(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    done = redtail.Campaign([file]).run(out=tmp_path / "campaign", replications=1)
    assert done["Own"].cases[0].metric("mine.controller.reductions").mean > 0
    found = redtail.tune(
        file,
        queue={"kind": "red", "limit": "20 packets", "max_th": "15 packets"},
        vary="min_th=2..10packets",
        objective="min queue_delay_p95",
        trials=2,
        sampler="random",
        replications=1,
        out=tmp_path / "search",
    )
    assert found.queue.table["kind"] == "red"


FAULTS = {
    "raises": ("raise KeyError('cubic')", "on_ack failed at 2.0", "KeyError: 'cubic'"),
    "no number": ("self.cwnd = 'much'", "on_ack failed", "cwnd is 'much'; accepted: a number of"),
    "nan": ("self.cwnd = float('nan')", "cwnd failed", "the window is NaN; accepted: bytes"),
    "negative": ("self.cwnd = -1", "cwnd failed", "the window is -1; accepted: bytes from 0"),
    "absurd": ("self.cwnd = 1e300", "cwnd failed", "accepted: bytes from 0 to 1 TiB"),
    "deleted": ("del self.cwnd", "on_ack failed", "AttributeError"),
    "rate": ("self.pacing_rate = 0.0", "pacing_rate failed", "the pacing rate is 0; accepted"),
    "rate of a kind": ("self.pacing_rate = 'fast'", "on_ack failed", "pacing_rate is 'fast'"),
    "quantum": ("self.send_quantum = -5", "on_ack failed", "send_quantum is -5; accepted: bytes"),
    "figure": (
        "self.figure = float('inf')",
        "report failed",
        "accepted: at most 64 finite numbers",
    ),
    "figures": ("self.figure = None", "report failed", "accepted: numbers by name, as a dict"),
}

FAULTY = """\
class Faulty:
    pacing_rate, send_quantum, figure = None, 0, 1.0

    def __init__(self, context):
        self.cwnd = 10.0 * context.mss

    def on_ack(self, sample):
        if sample.now > 2:
            {fault}

    def report(self, now):
        return {{"figure": self.figure}}
"""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_controller_that_fails_stops_the_run_and_says_where(tmp_path: Path, fault: str) -> None:
    line, method, problem = FAULTS[fault]
    file = experiment(
        tmp_path, '{ preset = "linux", class = "own.py:Faulty" }', FAULTY.format(fault=line)
    )
    with pytest.raises(redtail.ControllerError) as caught:
        redtail.run(file, out=tmp_path / "runs")
    text = str(caught.value)
    assert f'{file}:15: traffic.mine.tcp.class = "own.py:Faulty": ' in text, text
    assert method in text and problem in text, text
    assert re.search(r" at \d\.\d{6} s", text), text
    assert f"To repeat this run alone: redtail run {file} --replications" in text, text


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "class Own:\n    pass\n",
            "has no method on_ack; accepted: a class with on_ack(self, sample)",
        ),
        (
            "class Own:\n    def __init__(self, context): self.cwnd = 1e4\n"
            "    def on_ack(self): pass\n",
            "has a method on_ack that cannot be called as on_ack(self, sample)",
        ),
        (
            "class Own:\n    def __init__(self, context): self.cwnd = 1e4\n"
            "    def on_ack(self, sample): pass\n    def on_timeout(self): pass\n",
            "has a method on_timeout that cannot be called as on_timeout(self, event)",
        ),
        (
            "class Own:\n    def __init__(self, context, gain): self.cwnd = 1e4\n"
            "    def on_ack(self, sample): pass\n",
            "do not fit Own: missing a required argument: 'gain'",
        ),
        ("Own = 3\n", "is a int and not a class"),
        ("", "has no 'Own' in own.py"),
    ],
)
def test_what_cannot_be_a_controller_is_refused(tmp_path: Path, source: str, problem: str) -> None:
    file = experiment(tmp_path, '{ preset = "sack", class = "own.py:Own" }', source)
    with pytest.raises(SpecError, match=re.escape(problem)) as caught:
        prepare(file)
    assert "traffic.mine.tcp" in str(caught.value)


def test_a_controller_without_a_window_cannot_be_made(tmp_path: Path) -> None:
    source = (
        "class Own:\n    def __init__(self, context): pass\n    def on_ack(self, sample): pass\n"
    )
    file = experiment(tmp_path, '{ preset = "sack", class = "own.py:Own" }', source)
    with pytest.raises(
        redtail.ControllerError, match="it cannot be made: it has no attribute cwnd"
    ):
        redtail.run(file, out=tmp_path / "runs")


@pytest.mark.parametrize(
    ("tcp", "problem"),
    [
        (OWN[:-2] + ', growth = "cubic" }', "is of built-in laws, and the class has its own"),
        ('{ preset = "sack", params = { beta = 1 } }', "is for a class, and there is none"),
        (OWN.replace("sack", "tahoe"), "does not tell a model what was delivered"),
    ],
)
def test_keys_that_do_not_go_with_a_class_are_refused(
    tmp_path: Path, tcp: str, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        prepare(experiment(tmp_path, tcp))


def test_one_class_is_a_queue_or_a_controller(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    text = file.read_text()
    old = '{ kind = "tail-drop", limit = "20 packets" }'
    file.write_text(text.replace(old, '{ kind = "plugin", class = "own.py:Reno" }'))
    with pytest.raises(SpecError, match="is named as a queue too"):
        redtail.check(file)


@pytest.mark.parametrize("backend", ["live", pytest.param("linux", marks=pytest.mark.linux)])
def test_backends_with_a_kernels_tcp_refuse_it_by_name(tmp_path: Path, backend: str) -> None:
    file = experiment(tmp_path)
    with pytest.raises(SpecError, match=r'traffic\.mine\.tcp\.class: is "own\.py:Reno"'):
        redtail.run(file, backend=backend, out=tmp_path / "runs")


def test_workers_get_the_class(tmp_path: Path) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    file = experiment(tmp_path)
    here = redtail.run(file, out=tmp_path / "here")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        there = redtail.run(file, out=tmp_path / "there", executor=pool)
    assert metrics(here.cases[0]) == metrics(there.cases[0])


def test_users_connections_have_controllers_of_their_own(tmp_path: Path) -> None:
    more = f"""
[[traffic]]
name = "web"
kind = "arrivals"
gap = "200 ms"
size = "30 kB"
tcp = {OWN}
"""
    file = experiment(tmp_path, '"sack"', more=more)
    results = redtail.run(file, replications=1, out=tmp_path / "runs")
    assert results.cases[0].metric("web.goodput").mean > 0


def test_the_template_is_tested_by_its_own_test(tmp_path: Path) -> None:
    code, text = command("init", "controller", "--out", tmp_path / "controller.toml")
    assert code == 0, text
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "controller.toml",
        "my_controller.py",
        "test_my_controller.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_controller.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_class_that_names_no_states_has_those_of_a_law(tmp_path: Path) -> None:
    """Slow start and congestion avoidance, by window and threshold, as of the built-in Reno."""
    file = templates.write("controller", tmp_path / "controller.toml")[0]
    series = {"interval": "100 ms", "windows": True, "replications": 1}
    results = redtail.run(file, replications=1, out=tmp_path / "runs", set={"series": series})
    built_in, mine = (
        results.series("flows", case=case).column("state").to_pylist() for case in (0, 1)
    )
    assert built_in == mine and {*mine} == {"slow_start", "congestion_avoidance"}
