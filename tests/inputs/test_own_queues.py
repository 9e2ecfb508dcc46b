"""Queues written in Python: right, found, told apart, and stopped cleanly when they fail."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import redtail
from redtail.errors import SpecError
from redtail.experiment import prepare

pytestmark = pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")

SCENARIO = """\
name = "Own"
duration = "4 s"
warmup = "1 s"
replications = 2

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {queue}

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = {{ preset = "sack", ecn = true }}
start = "0 s"
host_jitter = "0 s"

[[traffic]]
name = "udp"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
"""

TAIL_DROP = """\
from collections import deque


class TailDrop:
    def __init__(self, context):
        self.context, self.packets = context, deque()

    def enqueue(self, packet, now):
        if not self.context.admits(packet):
            return False
        self.packets.append(packet)
        return True

    def dequeue(self, now):
        return self.packets.popleft()
"""


class TailDrop:
    """As above, as an object to be passed."""

    def __init__(self, context: redtail.QueueContext, limit: int = 20) -> None:
        self.context, self.limit = context, limit
        self.packets: deque[redtail.Packet] = deque()

    def enqueue(self, packet: redtail.Packet, now: float) -> bool:
        if len(self.packets) >= self.limit:
            return False
        self.packets.append(packet)
        return True

    def dequeue(self, now: float) -> redtail.Packet | None:
        return self.packets.popleft()


def experiment(folder: Path, queue: str, source: str = TAIL_DROP) -> Path:
    (folder / "own.py").write_text(source)
    path = folder / "own.toml"
    path.write_text(SCENARIO.format(queue=queue))
    return path


def plugin(name: str = "TailDrop", more: str = "") -> str:
    return f'{{ kind = "plugin", class = "own.py:{name}"{more} }}'


def metrics(results: redtail.Results) -> list[dict[int, dict[str, float]]]:
    return [{n: run.metrics for n, run in case.runs.items()} for case in results.cases]


@pytest.mark.parametrize("limit", ["20 packets", "15 kB", "25 ms"])
def test_tail_drop_in_python_is_tail_drop_to_the_bit(tmp_path: Path, limit: str) -> None:
    file = experiment(tmp_path, plugin(more=f', limit = "{limit}"'))
    own = redtail.run(file, out=tmp_path / "runs")
    built_in = f'{{ kind = "tail-drop", limit = "{limit}" }}'
    file.write_text(SCENARIO.format(queue=built_in))
    theirs = redtail.run(file, out=tmp_path / "runs")
    assert own.reused == theirs.reused == 0
    assert metrics(own) == metrics(theirs)
    assert metrics(own)[0][0]["loss"] > 0


def test_a_class_can_be_given_as_such(tmp_path: Path) -> None:
    queue = {"kind": "plugin", "class": TailDrop, "params": {"limit": 20}}
    file = experiment(tmp_path, '{ kind = "tail-drop", limit = "20 packets" }')
    theirs = redtail.run(file, out=tmp_path / "runs")
    own = redtail.run(file, set={"bottleneck.queue": queue}, out=tmp_path / "runs")
    assert metrics(own) == metrics(theirs)
    typed = redtail.Experiment(
        name="Typed",
        duration="4 s",
        warmup="1 s",
        replications=1,
        bottleneck=redtail.Bottleneck(
            rate="5 Mbit/s",
            delay="10 ms",
            queue=redtail.Plugin(class_=TailDrop, params={"limit": 20}),
        ),
        traffic=[redtail.Bulk(name="ftp", flows=4)],
    )
    assert redtail.run(typed, out=tmp_path / "runs").cases[0].metric("goodput").mean > 4e6


def test_a_class_that_cannot_be_found_again_is_refused(tmp_path: Path) -> None:
    class Local(TailDrop):
        pass

    file = experiment(tmp_path, plugin())
    with pytest.raises(SpecError, match="cannot be found again by its name"):
        redtail.check(file, set={"bottleneck.queue": {"kind": "plugin", "class": Local}})


def test_results_are_the_same_with_any_number_of_threads_and_processes(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "20 packets"'))
    one = redtail.run(file, replications=4, jobs=1, out=tmp_path / "one")
    four = redtail.run(file, replications=4, jobs=4, out=tmp_path / "four")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        apart = redtail.run(file, replications=4, executor=pool, out=tmp_path / "apart")
    assert metrics(one) == metrics(four) == metrics(apart)


def test_a_class_that_has_changed_is_run_anew(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "20 packets"'))
    assert redtail.run(file, out=tmp_path / "runs").reused == 0
    assert redtail.run(file, out=tmp_path / "runs").reused == 2
    changed = TAIL_DROP.replace("self.packets.popleft()", "self.packets.pop()")
    experiment(tmp_path, plugin(more=', limit = "20 packets"'), changed)
    assert redtail.run(file, out=tmp_path / "runs").reused == 0
    experiment(tmp_path, plugin(more=', limit = "20 packets"'))
    assert redtail.run(file, out=tmp_path / "runs").reused == 2


def test_a_class_it_inherits_from_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "own_base_of_test.py").write_text(TAIL_DROP)
    source = "from own_base_of_test import TailDrop\nclass Mine(TailDrop): pass\n"
    file = experiment(tmp_path, plugin("Mine", ', limit = "9 packets"'), source)
    before = prepare(file).scenario(0, 0)
    script = f"from redtail.experiment import prepare\nprint(prepare({str(file)!r}).scenario(0, 0))"

    def anew() -> str:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        return done.stdout.strip()

    assert anew() == before
    (tmp_path / "own_base_of_test.py").write_text(TAIL_DROP + "# changed\n")
    assert anew() != before
    assert prepare(file).scenario(0, 0) == anew()


# Of a class that drops with the probability of a law, and a law; the files below the folder.
DROPS = TAIL_DROP.replace(
    "if not self.context.admits(packet):",
    "if self.context.uniform() < self.p() or not self.context.admits(packet):",
)


def with_law(top: str, law: str, **more: str) -> dict[str, str]:
    """Return the files of a class whose method `p` returns what `law` says."""
    return {"own.py": f"{top}\n{DROPS}\n    def p(self):\n        {law}\n", **more}


LAW = "P = 0.2\n"
WAYS: dict[str, dict[str, str]] = {
    "import": with_law("import law", "return law.P", **{"law.py": LAW}),
    "from a module": with_law("from law import P", "return P", **{"law.py": LAW}),
    "of the same folder": with_law("from .law import P", "return P", **{"law.py": LAW}),
    "while it runs": with_law("", "import law; return law.P", **{"law.py": LAW}),
    "by importlib": with_law(
        "import importlib\nlaw = importlib.import_module('law')", "return law.P", **{"law.py": LAW}
    ),
    "by way of another": with_law(
        "import one", "return one.two.law.P", **{"one.py": "import two", "two.py": "import law"}
    )
    | {"law.py": LAW},
    "of a package": with_law(
        "import laws.deep.law as law",
        "return law.P",
        **{"laws/__init__.py": "", "laws/deep/__init__.py": "", "laws/deep/law.py": LAW},
    ),
    "a package's own": with_law(
        "from laws import P",
        "return P",
        **{"laws/__init__.py": "from .inner.law import P", "laws/inner/__init__.py": ""},
    )
    | {"laws/inner/law.py": LAW},
    "in a plain folder": with_law("from laws import law", "return law.P", **{"laws/law.py": LAW}),
    "all of a package": with_law(
        "from laws import *",
        "return law.P",
        **{"laws/__init__.py": "__all__ = ['law']", "laws/law.py": LAW},
    ),
    "one that hides Python's": with_law(
        "from fractions import P", "return P", **{"fractions.py": LAW}
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_a_class_imports_counts_as_well(tmp_path: Path, way: str) -> None:
    files = WAYS[way]
    (law,) = (name for name, text in files.items() if text == LAW)
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO.format(queue=plugin(more=', limit = "99 packets"')))
    before = set(sys.modules)
    heavy = redtail.run(file, out=tmp_path / "runs")
    assert (tmp_path / law) in redtail.check(file).code[0].files
    (tmp_path / law).write_text("P = 0.01\n")
    light = redtail.run(file, out=tmp_path / "runs")
    assert light.reused == 0, "the old numbers come back"
    losses = [each.cases[0].metric("loss").mean for each in (heavy, light)]
    # 0.2 and 0.01 of packets are dropped at random.
    assert 0.1 < losses[0] < 0.3 and losses[1] < 0.05
    (tmp_path / law).write_text(LAW)
    assert redtail.run(file, out=tmp_path / "runs").reused == 2
    # Nothing is left behind by which another program's modules could be taken for these.
    ours = {name for name in set(sys.modules) - before if "redtail" not in name}
    assert not ours & {Path(name).with_suffix("").name for name in files}


def test_two_experiments_do_not_share_a_module(tmp_path: Path) -> None:
    files = []
    for name, p in (("one", "0.2"), ("two", "0.01")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "law.py").write_text(f"P = {p}\n")
        files.append(experiment(tmp_path / name, plugin(), WAYS["import"]["own.py"]))
    plans = [prepare(file) for file in files]
    losses = [
        redtail.run(file, out=tmp_path / "runs" / file.parent.name).cases[0].metric("loss").mean
        for file in reversed(files)
    ]
    assert losses[0] < 0.05 and losses[1] > 0.1
    assert plans[0].scenario(0, 0) != plans[1].scenario(0, 0)
    # The same files in another folder are the same, so that an archive repeats its runs.
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "law.py").write_text("P = 0.2\n")
    third = experiment(tmp_path / "three", plugin(), WAYS["import"]["own.py"])
    assert prepare(third).scenario(0, 0) == plans[0].scenario(0, 0)


@pytest.mark.parametrize(
    "top",
    [
        "import importlib\nlaw = importlib.import_module('l' + 'aw')",
        "law = __import__('l' + 'aw')",
        "import sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, str(Path(__file__).parent))\n"
        "import pkgutil\nlaw = pkgutil.resolve_name('law')",
    ],
)
def test_a_module_that_could_not_be_seen_is_refused(
    tmp_path: Path, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "law.py").write_text(LAW)
    source = with_law(top, "return law.P")["own.py"]
    with pytest.raises(SpecError, match="law") as refused:
        prepare(experiment(tmp_path, plugin(), source))
    assert "import law" in str(refused.value) and refused.value.line == 9
    assert "law" not in sys.modules


def test_a_module_that_could_not_be_seen_is_refused_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "law.py").write_text(LAW)
    source = with_law("", "return __import__('l' + 'aw').P")["own.py"]
    with pytest.raises(
        redtail.QueueError, match=r"imports law .*accepted: the statement `import law`"
    ):
        redtail.run(experiment(tmp_path, plugin(), source), out=tmp_path / "runs")


def test_installed_packages_count_by_their_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from redtail.inputs import imports

    file = experiment(tmp_path, plugin(), f"import numpy as np\n{TAIL_DROP}")
    plan = prepare(file)
    assert plan.packages == {"numpy": np.__version__}
    assert plan.inputs == ("own.py",)
    results = redtail.run(file, out=tmp_path / "runs")
    assert redtail.load(results.folder).provenance.packages == {"numpy": np.__version__}
    monkeypatch.setattr(imports, "version", lambda name: (name, "0"))
    assert prepare(file).scenario(0, 0) != plan.scenario(0, 0)


def test_a_missing_module_is_named_as_it_was_written(tmp_path: Path) -> None:
    source = f"import no_such_law\n{TAIL_DROP}"
    with pytest.raises(SpecError, match="No module named 'no_such_law'"):
        prepare(experiment(tmp_path, plugin(), source))
    (tmp_path / "laws").mkdir()
    (tmp_path / "laws" / "__init__.py").touch()
    source = f"import laws.none\n{TAIL_DROP}"
    with pytest.raises(SpecError, match=r"No module named 'laws\.none'"):
        prepare(experiment(tmp_path, plugin(), source))


EVERYTHING = """\
class Everything:
    '''Marks the ECN-capable, drops an old packet for a new one, and sends at half the rate.'''

    def __init__(self, context, size=3):
        assert context.rate == 5e6 and context.groups == ["ftp", "udp"]
        assert context.limit_packets is None and context.limit_bytes is None
        self.context, self.size, self.free, self.marks = context, size, 0.0, 0
        self.packets = []

    def enqueue(self, packet, now):
        assert packet.enqueued == now and packet.size in (40, 500, 1500), packet
        assert packet.protocol == {"ftp": "tcp", "udp": "udp"}[packet.group]
        assert (packet.port, packet.dscp) == (0, 0)
        assert 0 <= packet.flow < 5 and packet.sender != packet.receiver
        assert self.context.waiting_packets == len(self.packets)
        assert self.context.waiting_bytes == sum(each.size for each in self.packets)
        assert 0 <= self.context.uniform() < 1
        capable = packet.ecn != "not-ect"
        assert packet.mark() == capable and (packet.ecn == "ce") == capable
        self.marks += capable
        if len(self.packets) == self.size:
            self.packets.pop(0).drop()
        self.packets.append(packet)
        return True

    def dequeue(self, now):
        if now < self.free:
            return None
        packet = self.packets.pop(0)
        self.free = now + 2 * 8 * packet.size / self.context.rate
        return packet

    def next_wakeup(self, now):
        return self.free if self.packets else None

    def on_wakeup(self, now):
        assert now >= self.free

    def internals(self):
        return float(len(self.packets)), 0.25

    def start_measuring(self, now):
        assert now == 1.0
        self.marks = 0

    def report(self, now):
        assert now == 4.0
        return {"marks": self.marks}
"""


def test_a_queue_may_do_all_that_ours_can(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin("Everything", ", params = { size = 5 }"), EVERYTHING)
    series = {"interval": "100 ms", "queues": True}
    results = redtail.run(file, set={"series": series}, out=tmp_path / "runs")
    run = results.cases[0].runs[0].metrics
    assert 0.45 < run["utilization"] < 0.51
    assert run["queue.marks"] > 100 and run["mark"] > 0.1 and run["loss"] > 0
    assert run["queue_length_mean"] <= 5


def test_a_class_stands_within_classes_and_on_a_way_back(tmp_path: Path) -> None:
    inner = plugin(more=', limit = "20 packets"')
    other = '{ kind = "tail-drop", limit = "20 packets" }'

    def nested(queue: str) -> Path:
        outer = (
            '{ kind = "prio", class = [ { name = "a", match = { protocol = "udp" }, queue = '
            + other
            + ' }, { name = "b", queue = { kind = "tbf", rate = "4 Mbit/s", burst = "3 kB", '
            + f"queue = {queue} }} }} ] }}"
        )
        file = experiment(tmp_path, outer)
        back = f'return = {{ rate = "1 Mbit/s", delay = "10 ms", queue = {queue} }}\n'
        text = file.read_text().replace("[[traffic]]", f"{back}\n[[traffic]]", 1)
        file.write_text(text)
        return file

    # Not to the bit: a shaper takes the head out of a queue that cannot promise what it will be.
    own = redtail.run(nested(inner), out=tmp_path / "runs").cases[0].runs[0].metrics
    theirs = redtail.run(nested(other), out=tmp_path / "runs").cases[0].runs[0].metrics
    assert own["loss"] > 0
    assert own["goodput"] == pytest.approx(theirs["goodput"], rel=0.05)

    with pytest.raises(SpecError) as refused:
        prepare(nested(plugin("Missing")))
    assert refused.value.key == "bottleneck.queue.class.b.queue.queue.class"


@pytest.mark.parametrize(
    ("queue", "source", "says"),
    [
        ('{ kind = "plugin", class = "" }', "", ['class = ""', "my_queue.py:MyQueue"]),
        ('{ kind = "plugin", class = "Mine" }', "", ['"Mine"', "accepted", "my_queue.py:MyQueue"]),
        (
            '{ kind = "plugin", class = "other.py:Mine" }',
            "",
            ['"other.py:Mine"', "cannot be read", "other.py"],
        ),
        (
            '{ kind = "plugin", class = "no_such_module:Mine" }',
            "",
            ["not found: no_such_module", "accepted"],
        ),
        (plugin("TailDrp"), TAIL_DROP, ["has no 'TailDrp' in own.py", "accepted: TailDrop"]),
        (plugin("mine"), "def mine(): pass", ["is a function and not a class", "accepted"]),
        (
            plugin("Mine"),
            "class Mine:\n    def enqueue(self, packet, now): return True",
            ["has no method dequeue", "enqueue(self, packet, now) and dequeue(self, now)"],
        ),
        (
            plugin("Mine"),
            "class Mine:\n    def enqueue(self, packet): pass\n    def dequeue(self, now): pass",
            ["cannot be called as enqueue(self, packet, now)", "accepted"],
        ),
        (
            plugin("Mine"),
            TAIL_DROP + "class Mine(TailDrop):\n    def __init__(self): pass",
            ["cannot be made: too many positional", "__init__(self, context)"],
        ),
        (plugin("Mine"), "x = 1\n1 / 0\n", ["own.py", "line 2", "ZeroDivisionError"]),
        (plugin("Mine"), "def (:\n", ["own.py", "line 1", "SyntaxError"]),
        (plugin(more=', source = "0"'), TAIL_DROP, ["source", '"0"', "accepted"]),
        (plugin(more=', limit = "0 packets"'), TAIL_DROP, ["limit", "at least"]),
        (plugin(more=", params = { a = inf }"), TAIL_DROP, ["params.a", "finite"]),
        (
            plugin(more=", params = { a = 1979-05-27 }"),
            TAIL_DROP,
            ["params", "1979", "a list or table of these"],
        ),
        (plugin(more=", parms = 3"), TAIL_DROP, ["parms", 'did you mean "params"']),
        (
            plugin(more=", params = { lim = 3 }"),
            TAIL_DROP.replace("context):", "context, limit=20):"),
            ["queue.params = { lim = 3 }", "unexpected keyword argument 'lim'", "limit=20"],
        ),
        (
            plugin(),
            TAIL_DROP.replace("context):", "context, limit):"),
            ["queue.params", "missing a required argument: 'limit'"],
        ),
    ],
)
def test_what_cannot_be_a_queue_is_refused(
    tmp_path: Path, queue: str, source: str, says: list[str]
) -> None:
    with pytest.raises(SpecError) as refused:
        prepare(experiment(tmp_path, queue, source))
    text = str(refused.value)
    assert text.startswith(f"{tmp_path / 'own.toml'}:9: bottleneck.queue."), text
    assert refused.value.line == 9
    for part in says:
        assert part in text


FAULTS: dict[str, tuple[str, str, list[str]]] = {
    "returns nothing": (
        "enqueue",
        "pass",
        ["enqueue failed at 0.", "it returned None", "True (the packet waits) or False"],
    ),
    "returns a number": (
        "dequeue",
        "return 3",
        ["it returned 3", "a packet that enqueue was given"],
    ),
    "forgets": ("dequeue", "return None", ["packet", "lost", "next_wakeup"]),
    "returns twice": (
        "dequeue",
        "self.kept = getattr(self, 'kept', None) or self.packets.popleft(); return self.kept",
        ["not in this queue any more"],
    ),
    "keeps what it dropped": (
        "enqueue",
        "packet.drop(); return True",
        ["True for a packet that it has dropped"],
    ),
    "drops what left": (
        "dequeue",
        "p = self.packets.popleft(); p.drop(); return p",
        ["not in this queue any more"],
    ),
    "raises": (
        "enqueue",
        "return 1 / 0",
        ["Traceback", "own.py", "in enqueue", "ZeroDivisionError: division by zero"],
    ),
    "exits": ("enqueue", "raise SystemExit(3)", ["SystemExit"]),
    "exceeds its limit": (
        "enqueue",
        "self.packets.append(packet); return True",
        ["more than its limit (20 packets)"],
    ),
    "marks later": (
        "internals",
        "self.packets and self.packets[0].drop(); return (None, None)",
        ["while enqueue or dequeue runs"],
    ),
    "has an odd probability": ("internals", "return (1.0, 2.0)", ["probability 2 is not"]),
    "has odd internals": ("internals", "return 3", ["it returned 3", "(average, probability)"]),
    "wakes at no time": ("next_wakeup", "return 'soon'", ["it returned 'soon'", "seconds"]),
    "reports words": ("report", "return {'a': 'b'}", ["it returned {'a': 'b'}", "numbers"]),
    "cannot be made": ("__init__", "raise ValueError('no')", ["cannot be made", "ValueError: no"]),
}
ARGUMENTS = {"enqueue": ", packet, now", "internals": "", "__init__": ", context"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_queue_that_fails_stops_the_run(tmp_path: Path, fault: str) -> None:
    method, body, says = FAULTS[fault]
    source = TAIL_DROP + (
        f"\nclass Wrong(TailDrop):\n    def {method}(self{ARGUMENTS.get(method, ', now')}):\n"
        f"        {body}\n"
    )
    file = experiment(tmp_path, plugin("Wrong", ', limit = "20 packets"'), source)
    series = {"interval": "100 ms", "queues": True}
    with pytest.raises(redtail.QueueError) as failed:
        redtail.run(file, set={"series": series}, out=tmp_path / "runs")
    text = str(failed.value)
    assert f'{file}:9: bottleneck.queue.class = "own.py:Wrong": ' in text
    assert "To repeat this run alone: redtail run" in text
    for part in says:
        assert part in text, text


def redtail_command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("redtail")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **more)


def test_on_the_command_line_a_failure_is_one_message(tmp_path: Path) -> None:
    source = TAIL_DROP.replace("self.packets.popleft()", "now.popleft()")
    file = experiment(tmp_path, plugin(more=', limit = "20 packets"'), source)
    done = redtail_command("run", str(file), "--out", str(tmp_path / "runs"))
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and "AttributeError" in done.stderr
    assert "panicked" not in done.stderr and "fault in redtail" not in done.stderr
    repeat = re.search(r"To repeat this run alone: redtail (.*)", done.stderr)
    assert repeat is not None
    again = redtail_command(*repeat[1].split())
    assert again.returncode == 1 and "AttributeError" in again.stderr

    going = redtail_command(
        "run", str(file), "--keep-going", "--no-figures", "--out", str(tmp_path / "runs")
    )
    assert going.returncode == 1
    # Both replications fail, for the same reason.
    assert "2 of 2 runs failed" in going.stderr and going.stderr.count("AttributeError") == 1


def test_an_interrupt_stops_it_soon(tmp_path: Path) -> None:
    source = TAIL_DROP.replace(
        "    def dequeue(self, now):",
        "    def dequeue(self, now):\n"
        "        import pathlib, time\n"
        "        pathlib.Path(__file__).with_name('reached').touch()\n"
        "        time.sleep(0.01)",
    )
    file = experiment(tmp_path, plugin(more=', limit = "20 packets"'), source)
    redtail_name = str(Path(sys.executable).with_name("redtail"))
    command = [redtail_name, "run", str(file), "--out", str(tmp_path / "runs")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "reached").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, text = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "interrupted: 0 of 2 runs are finished" in text and "Traceback" not in text


def test_packets_can_be_captured(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "20 packets"'))
    captured = redtail.capture(file, {"bottleneck": tmp_path / "packets.pcapng"})
    plain = redtail.run(file, out=tmp_path / "runs").cases[0].runs[0]
    assert captured.metrics == plain.metrics


def test_the_example_differs_from_red(tmp_path: Path) -> None:
    results = redtail.run("examples/python-queue.toml", replications=1, out=tmp_path)
    red, square = (case.runs[0].metrics for case in results.cases)
    # A lower probability at the same average: more waits.
    assert square["queue_delay_mean"] > red["queue_delay_mean"]
    assert square["loss"] > 0 and square["utilization"] > 0.95
