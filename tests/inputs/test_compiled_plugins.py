"""Plug-ins that are WebAssembly modules: right, found, told apart, and stopped when they fail."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

import redtail
from redtail.errors import SpecError
from redtail.experiment import prepare
from redtail.inputs.compiled import can_compile
from redtail.templates import plugins

pytestmark = [
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
    pytest.mark.skipif(
        not can_compile(), reason="the native module is built without the compiler of plug-ins"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "compiled-queue"
INTERFACE = ROOT / "python" / "redtail" / "templates" / "plugins" / "interface"

# Folders of tests are outside the project, whose toolchain has the target.
TOOLS = {
    **os.environ,
    "RUSTUP_TOOLCHAIN": tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"][
        "channel"
    ],
}

SCENARIO = """\
name = "Compiled"
duration = "8 s"
warmup = "2 s"
replications = 2

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {queue}

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 12
tcp = {{ preset = "sack", ecn = {ecn} }}
start = "uniform 0..1 s"

[[traffic]]
name = "udp"
kind = "cbr"
rate = "{udp}"
packet = "500 B"
"""


def experiment(
    folder: Path, queue: str, code: bytes, *, ecn: str = "false", udp: str = "500 kbit/s"
) -> Path:
    (folder / "mine.wasm").write_bytes(code)
    path = folder / "mine.toml"
    path.write_text(SCENARIO.format(queue=queue, ecn=ecn, udp=udp))
    return path


def plugin(name: str = "mine.wasm", more: str = "") -> str:
    return f'{{ kind = "plugin", class = "{name}"{more} }}'


def fq_codel() -> bytes:
    return (EXAMPLE / "fq_codel.wasm").read_bytes()


def common(results: redtail.Results) -> list[dict[int, dict[str, float]]]:
    """The metrics of all runs, without those that only one of the queues reports."""
    return [
        {
            number: {
                name: value for name, value in run.metrics.items() if not name.startswith("queue.")
            }
            for number, run in case.runs.items()
        }
        for case in results.cases
    ]


@cache
def missing(language: str) -> str:
    """What is not there to compile a language to WebAssembly; empty if nothing."""
    if language == "rust":
        command = ["rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=TOOLS)
        except OSError:
            return "rustc is not installed"
        there = done.returncode == 0 and Path(done.stdout.strip()).is_dir()
        return "" if there else "rustc has no target wasm32-unknown-unknown"
    lacks = [tool for tool in ("clang", "wasm-ld", "make") if shutil.which(tool) is None]
    return f"{', '.join(lacks)}: not installed" if lacks else ""


def require(language: str) -> None:
    if missing(language):
        pytest.skip(missing(language))


def build(folder: Path) -> None:
    command = ["make", "-C", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=TOOLS)
    assert done.returncode == 0, done.stdout + done.stderr


def compiled(folder: Path, text: str) -> bytes:
    """Compile a queue in C whose functions have the name `mine`."""
    require("c")
    (folder / "mine.c").write_text(f'#include "redtail_plugin.h"\n{text}')
    command = [
        "clang",
        "--target=wasm32",
        "-O2",
        "-mbulk-memory",
        "-nostdlib",
        "-Wl,--no-entry",
    ]
    command += ["-I", str(INTERFACE), "-o", str(folder / "made.wasm"), str(folder / "mine.c")]
    subprocess.run(command, check=True)
    return (folder / "made.wasm").read_bytes()


@pytest.mark.parametrize(
    ("ecn", "udp", "limit"),
    [
        ("false", "500 kbit/s", "1000 packets"),
        ("true", "500 kbit/s", "1000 packets"),
        ("false", "8 Mbit/s", "30 packets"),
        ("true", "8 Mbit/s", "40 kB"),
    ],
    ids=["drops", "marks", "overload", "overload in bytes"],
)
def test_fq_codel_from_c_is_the_built_in_one_to_the_bit(
    tmp_path: Path, ecn: str, udp: str, limit: str
) -> None:
    more = f', limit = "{limit}"'
    file = experiment(tmp_path, plugin(more=more), fq_codel(), ecn=ecn, udp=udp)
    own = redtail.run(file, out=tmp_path / "runs")
    file.write_text(SCENARIO.format(queue=f'{{ kind = "fq-codel"{more} }}', ecn=ecn, udp=udp))
    theirs = redtail.run(file, out=tmp_path / "runs")
    assert own.reused == theirs.reused == 0
    assert common(own) == common(theirs)
    dropped = common(own)[0][0]["loss"] > 0
    marked = any(value > 0 for name, value in common(own)[0][0].items() if "mark" in name)
    assert dropped if ecn == "false" or udp == "8 Mbit/s" else marked
    names = own.cases[0].runs[0].metrics
    assert names["queue.overload_drops"] == theirs.cases[0].runs[0].metrics["queue.overload_drops"]


def test_the_compiled_example_measures_the_same_twice(tmp_path: Path) -> None:
    # Its link is idle at times: queues that are empty then leave their lists, in both.
    results = redtail.run(ROOT / "examples" / "compiled-queue.toml", out=tmp_path / "runs")
    built_in, own = common(results)
    assert len(built_in) == 3
    assert built_in == own


def test_its_params_are_those_of_the_built_in_one(tmp_path: Path) -> None:
    params = ", params = { target = 0.01, interval = 0.2, quantum = 600 }"
    file = experiment(tmp_path, plugin(more=f', limit = "1000 packets"{params}'), fq_codel())
    own = redtail.run(file, out=tmp_path / "runs")
    built_in = (
        '{ kind = "fq-codel", limit = "1000 packets", target = "10 ms", interval = "200 ms", '
        'quantum = "600 B" }'
    )
    file.write_text(SCENARIO.format(queue=built_in, ecn="false", udp="500 kbit/s"))
    assert common(own) == common(redtail.run(file, out=tmp_path / "runs"))


def test_the_module_in_the_examples_is_what_its_source_says(tmp_path: Path) -> None:
    # Another compiler may write other bytes; the results have to be the same.
    text = (EXAMPLE / "fq_codel.c").read_text()
    made = compiled(tmp_path, text.replace('#include "redtail_plugin.h"', ""))
    more = ', limit = "50 packets"'
    file = experiment(tmp_path, plugin(more=more), made, udp="8 Mbit/s")
    own = redtail.run(file, out=tmp_path / "runs")
    (tmp_path / "mine.wasm").write_bytes(fq_codel())
    assert common(own) == common(redtail.run(file, out=tmp_path / "other"))


@pytest.mark.parametrize("language", ["c", "c++", "rust"])
def test_a_template_of_each_language_measures_what_that_in_python_does(
    tmp_path: Path, language: str
) -> None:
    require(language)
    files = plugins.write("queue", language, tmp_path / "compiled")
    build(tmp_path / "compiled")
    theirs = plugins.write("queue", "python", tmp_path / "python")
    short = {"duration": "6 s", "warmup": "2 s", "replications": 2}
    own = redtail.run(files[0], set=short, out=tmp_path / "runs")
    python = redtail.run(theirs[0], set=short, out=tmp_path / "runs")
    assert own.cases[1].runs[0].metrics == python.cases[1].runs[0].metrics
    assert own.cases[1].runs[0].metrics["queue.late"] > 0


def test_results_are_the_same_with_any_number_of_threads_and_processes(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "100 packets"'), fq_codel())
    one = redtail.run(file, out=tmp_path / "one", jobs=1)
    two = redtail.run(file, out=tmp_path / "two", jobs=2)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        apart = redtail.run(file, out=tmp_path / "apart", executor=pool)
    assert common(one) == common(two) == common(apart)


def test_a_module_that_has_changed_is_run_anew(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "100 packets"'), fq_codel())
    assert redtail.run(file, out=tmp_path / "runs").reused == 0
    assert redtail.run(file, out=tmp_path / "runs").reused == 2
    # A custom section changes the bytes alone: 0, its length, the length of its name, the name.
    (tmp_path / "mine.wasm").write_bytes(fq_codel() + b"\0\x03\x02hi")
    assert redtail.run(file, out=tmp_path / "runs").reused == 0


def test_check_lists_it_and_it_needs_no_permission(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.wasm").write_bytes(fq_codel())
    (tmp_path / "here").mkdir()
    name = "../elsewhere/mine.wasm"
    file = experiment(tmp_path / "here", plugin(name, ', limit = "100 packets"'), b"")
    program = Path(sys.executable).parent / "redtail"
    done = subprocess.run([program, "check", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "would run code: bottleneck.queue: the module" in done.stdout
    assert "mine.wasm, in a sandbox" in done.stdout
    assert redtail.run(file, out=tmp_path / "runs").cases[0].metric("goodput").mean > 3e6


@pytest.mark.parametrize(
    ("name", "code", "more", "said"),
    [
        ("none.wasm", None, "", "names a file that cannot be read"),
        ("mine.wasm", b"", "", "is no WebAssembly module"),
        ("mine.wasm", b"(module)", "", "is no WebAssembly module"),
        ("mine.wasm", "cut", "", "cannot be compiled"),
        ("mine.wasm", b"\0asm\x01\0\0\0", "", 'exports no memory with the name "memory"'),
        ("mine.wasm", b"\0asm\x01\0\0\0" + bytes(4 << 20), "", "at most 4 MiB"),
        ("mine.wasm:codel", None, "", "accepted: one of fq_codel"),
        ("mine.wasm", None, ", params = { targt = 1 }", "accepted: target, interval, quantum"),
        (
            "mine.wasm",
            None,
            ', params = { target = "5 ms" }',
            'params.target = "5 ms" is no number; accepted: a number, true or false',
        ),
    ],
    ids=["none", "empty", "text", "cut", "bare", "large", "name", "key", "value"],
)
def test_what_cannot_be_a_plugin_is_refused_with_its_line(
    tmp_path: Path, name: str, code: bytes | str | None, more: str, said: str
) -> None:
    content = fq_codel() if code is None or isinstance(code, str) else code
    content = content[: len(content) // 2] if code == "cut" else content
    file = experiment(tmp_path, plugin(name, more), content)
    with pytest.raises(SpecError) as raised:
        redtail.run(file, out=tmp_path / "runs")
    assert said in str(raised.value)
    assert "mine.toml:9: bottleneck.queue" in str(raised.value)
    assert not (tmp_path / "runs").exists()


def test_a_module_is_compiled_and_not_executed_when_it_is_checked(tmp_path: Path) -> None:
    endless = """
    void REDTAIL_EXPORT(mine_new)(const redtail_context *context) {
        (void)context;
        for (volatile int i = 0;; i++) {}
    }
    int32_t REDTAIL_EXPORT(mine_enqueue)(const redtail_packet *packet, redtail_time now) {
        (void)packet, (void)now;
        return 0;
    }
    uint64_t REDTAIL_EXPORT(mine_dequeue)(redtail_time now) { (void)now; return REDTAIL_NONE; }
    """
    file = experiment(tmp_path, plugin(), compiled(tmp_path, endless))
    found = prepare(file).code
    assert [each.sandboxed for each in found] == [True]


FAULTY = """
static uint64_t last;
void REDTAIL_EXPORT(mine_new)(const redtail_context *context) {{ (void)context; }}
int32_t REDTAIL_EXPORT(mine_enqueue)(const redtail_packet *packet, redtail_time now) {{
    (void)now;
    last = packet->id;
    {enqueue}
    return 1;
}}
uint64_t REDTAIL_EXPORT(mine_dequeue)(redtail_time now) {{ (void)now; {dequeue} }}
"""


@pytest.mark.parametrize(
    ("enqueue", "dequeue", "said"),
    [
        ("__builtin_trap();", "return last;", "enqueue failed at 0."),
        ("", "return last + 1;", "the packet is not in this queue"),
        ("", "return REDTAIL_NONE;", "it gave no packet while 1 packet waits"),
        ('redtail_fail("no more");', "return last;", "it says: no more"),
        (
            "*(volatile int *)(UINT32_MAX - 7) = 1;",
            "return last;",
            "out of bounds memory access (in mine_enqueue)",
        ),
    ],
    ids=["trap", "handle", "lost", "says", "memory"],
)
def test_a_module_that_fails_stops_the_run(
    tmp_path: Path, enqueue: str, dequeue: str, said: str
) -> None:
    code = compiled(tmp_path, FAULTY.format(enqueue=enqueue, dequeue=dequeue))
    file = experiment(tmp_path, plugin(), code)
    program = Path(sys.executable).parent / "redtail"
    command = [program, "run", file, "--out", tmp_path / "runs"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
    assert "mine.toml" in done.stderr and "bottleneck.queue" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of other systems differ")
def test_an_interrupt_stops_a_module_that_does_not_return(tmp_path: Path) -> None:
    text = FAULTY.format(enqueue="for (volatile int i = 0;; i++) {}", dequeue="return last;")
    file = experiment(tmp_path, plugin(), compiled(tmp_path, text))
    program = Path(sys.executable).parent / "redtail"
    command = [program, "run", file, "--out", tmp_path / "runs"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2)  # the call has begun; without the interrupt its bound would end it later
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "not returned" not in errors
    assert process.returncode == 130


def test_pack_carries_it(tmp_path: Path) -> None:
    file = experiment(tmp_path, plugin(more=', limit = "100 packets"'), fq_codel())
    results = redtail.run(file, out=tmp_path / "runs")
    archive = tmp_path / "mine.zip"
    program = Path(sys.executable).parent / "redtail"
    folder = results.folder
    packed = subprocess.run(
        [program, "pack", folder, "--output", archive], capture_output=True, text=True
    )
    assert packed.returncode == 0, packed.stderr
    (tmp_path / "mine.wasm").unlink()
    verified = subprocess.run(
        [program, "run", archive, "--verify"], capture_output=True, text=True, cwd=tmp_path
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("language", ["c", "c++", "rust"])
def test_reno_in_each_language_is_the_built_in_law_to_the_bit(
    tmp_path: Path, language: str
) -> None:
    require(language)
    files = plugins.write("controller", language, tmp_path / "compiled")
    build(tmp_path / "compiled")
    short = {"duration": "12 s", "warmup": "2 s", "replications": 2}
    built_in, own = redtail.run(files[0], set=short, out=tmp_path / "runs").cases
    for number, run in own.runs.items():
        mine = {name: at for name, at in run.metrics.items() if ".controller." not in name}
        assert mine == built_in.runs[number].metrics
        assert run.metrics["mine.controller.reductions"] > 0


def test_a_controller_may_pace_have_states_and_draw_numbers(tmp_path: Path) -> None:
    text = """
    static redtail_control control;
    void REDTAIL_EXPORT(mine_new)(const redtail_connection *connection) {
        control.cwnd = 100 * connection->mss;
        control.ssthresh = __builtin_inf();
        control.pacing_rate = redtail_number("rate", 1e5) * (1 + 0.01 * redtail_uniform());
        control.send_quantum = connection->mss;
        control.state = "Steady";
    }
    redtail_control *REDTAIL_EXPORT(mine_control)(void) { return &control; }
    void REDTAIL_EXPORT(mine_on_ack)(const redtail_sample *sample) { (void)sample; }
    """
    code = compiled(tmp_path, text)
    file = experiment(tmp_path, '{ kind = "tail-drop", limit = "100 packets" }', code)
    scenario = file.read_text().replace(
        'tcp = { preset = "sack", ecn = false }',
        'tcp = { preset = "sack", class = "mine.wasm", params = { rate = 3e4 } }',
    )
    file.write_text(scenario)
    results = redtail.run(file, out=tmp_path / "runs")
    goodput = [run.metrics["ftp.goodput"] for run in results.cases[0].runs.values()]
    # 12 flows of 30 kB/s, paced, up to 1 % more; segments have 40 bytes of headers on the link.
    assert all(12 * 3e4 * 8 * 0.97 < each < 12 * 3e4 * 8 * 1.02 for each in goodput)
    assert goodput[0] != goodput[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("control.cwnd = -1;", "the window is -1; accepted: bytes"),
        ("control.send_quantum = -1;", "send_quantum is -1; accepted: bytes"),
        ("control.pacing_rate = 0.5;", "the pacing rate is 0.5; accepted: bytes/s"),
        ("control.state = (const char *)UINT32_MAX;", "it gave a text that is none"),
        ("redtail_drop(1, REDTAIL_EARLY);", "while enqueue or dequeue runs"),
        ("__builtin_trap();", "on_ack failed at 0."),
    ],
)
def test_a_controller_that_fails_stops_the_run(tmp_path: Path, body: str, said: str) -> None:
    text = f"""
    static redtail_control control;
    void REDTAIL_EXPORT(mine_new)(const redtail_connection *connection) {{
        control.cwnd = connection->initial_cwnd;
        control.ssthresh = __builtin_inf();
    }}
    redtail_control *REDTAIL_EXPORT(mine_control)(void) {{ return &control; }}
    void REDTAIL_EXPORT(mine_on_ack)(const redtail_sample *sample) {{ (void)sample; {body} }}
    """
    code = compiled(tmp_path, text)
    file = experiment(tmp_path, '{ kind = "tail-drop", limit = "100 packets" }', code)
    own = '{ preset = "sack", class = "mine.wasm" }'
    file.write_text(file.read_text().replace('{ preset = "sack", ecn = false }', own))
    with pytest.raises(redtail.RedtailError, match=r"traffic.*tcp") as raised:
        redtail.run(file, out=tmp_path / "runs")
    assert said in str(raised.value)
