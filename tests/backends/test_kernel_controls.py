"""A kernel's own congestion controls: `tcp = { kernel_control = "NAME" }`, modules and BPF objects.

The tests with the mark `linux` need QEMU and a kernel; those with a module of our own need its
headers, `make` and `gcc` too, and those with an object in BPF `clang` and `bpftool`. Without them
they are skipped with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kernels import CONTROL, QDISC, bzimage, make_modules, module
from test_linux import LACKING
from test_live import BULK, TAIL_DROP, link
from typer.testing import CliRunner

import redtail
from redtail import backends, experiment
from redtail.backends.virtual import initramfs, kernels
from redtail.cli import app
from redtail.engine import realtime
from redtail.errors import RedtailError, RunError, SpecError

pytestmark = pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
in_a_guest = pytest.mark.linux


def asking(name: str, more: str = "") -> str:
    """An experiment whose TCP has a congestion control of a kernel."""
    tcp = f'tcp = {{ preset = "linux", kernel_control = "{name}"{more} }}'
    return link(TAIL_DROP, "4 s") + BULK.replace('tcp = "linux"', tcp)


def scenario(text: str) -> str:
    return experiment.prepare(redtail.Toml(text)).scenario(0, 0)


def refusals(text: str, controls: list[str]) -> dict[str, str]:
    return dict(realtime.live_refusals(scenario(text), controls))


# --- What is refused before a run -----------------------------------------------------------


@pytest.mark.parametrize("name", ["", "sixteen_letters_", "two words", 'a"b', "a/b"])
def test_a_name_that_no_kernel_can_have_is_refused(name: str) -> None:
    with pytest.raises(SpecError) as refused:
        experiment.check(redtail.Toml(link(TAIL_DROP) + BULK), set={KEY: name})
    text = str(refused.value)
    assert f"{KEY} = " in text and "cannot be the name of a congestion control" in text
    assert "accepted: 1 to 15 letters, digits" in text


KEY = "traffic.ftp.tcp.kernel_control"


def test_the_longest_name_is_accepted() -> None:
    plan = experiment.check(redtail.Toml(asking("fifteen_letters")))
    assert plan.kernel_controls() == [(KEY, "fifteen_letters")]


def test_the_simulator_refuses_it_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "controls.toml"
    file.write_text(asking("cdg"))
    (line,) = (n for n, text in enumerate(file.read_text().splitlines(), 1) if "cdg" in text)
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert f"{file}:{line}: backend sim cannot run this experiment: {KEY}: " in done.output
    assert '"cdg" is a congestion control of a Linux kernel; accepted: backend live' in done.output
    assert not (tmp_path / "out").exists()
    with pytest.raises(SpecError, match="backend sim cannot run") as refused:
        redtail.capture(file, {"bottleneck": tmp_path / "packets.pcapng"})
    assert (refused.value.line, refused.value.key) == (line, KEY)


def test_the_line_is_that_of_the_factor() -> None:
    text = link(TAIL_DROP) + BULK + f'\n[factors]\n"{KEY}" = ["cdg", "nv"]\n'
    plan = experiment.check(redtail.Toml(text))
    assert plan.line_of(KEY) == text.splitlines().index(f'"{KEY}" = ["cdg", "nv"]') + 1
    assert plan.kernel_controls() == [(KEY, "cdg"), (KEY, "nv")]
    assert experiment.check(redtail.Toml(text), set={"seed": 4}).line_of("seed") is None


def test_the_engine_itself_does_not_run_it() -> None:
    maker = backends.find("sim")
    with pytest.raises(SpecError, match=f'{KEY} = "cdg": only a kernel has'):
        maker.run(scenario(asking("cdg")))


def test_a_kernel_without_it_refuses_it_and_says_what_it_has() -> None:
    assert refusals(asking("cdg"), ["cdg", "reno"]) == {}
    (reason,) = refusals(asking("cdg"), ["reno", "vegas"]).values()
    assert '"cdg" is no congestion control that this kernel has loaded; accepted: reno' in reason
    assert "`modprobe tcp_cdg`" in reason and "redtail kernel add NAME --module" in reason


@pytest.mark.parametrize(
    ("more", "key", "says"),
    [
        (', growth = "vegas"', "growth", "beside kernel_control, which is in its place"),
        (', slow_start = "standard"', "slow_start", "beside kernel_control"),
        (', initial_rto = "3 s"', "initial_rto", "cannot be set in a kernel"),
    ],
)
def test_keys_that_it_stands_in_place_of_are_refused(more: str, key: str, says: str) -> None:
    found = refusals(asking("cdg", more), ["cdg"])
    assert list(found) == [f"traffic.ftp.tcp.{key}"] and says in found[f"traffic.ftp.tcp.{key}"]


def test_a_preset_that_no_kernel_has_is_refused_with_it_too() -> None:
    text = asking("cdg").replace('preset = "linux"', 'preset = "tahoe"')
    assert "no Linux kernel behaves so" in refusals(text, ["cdg"])["traffic.ftp.tcp.preset"]


def test_check_says_which_kernel_has_it(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redtail.backends import controls

    monkeypatch.setattr(controls, "AVAILABLE", tmp_path / "available")
    (tmp_path / "available").write_text("reno cubic\n")
    file = tmp_path / "controls.toml"
    file.write_text(asking("vegas"))
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 0
    assert f'{KEY} = "vegas":' in done.output
    assert "it is not loaded (there are cubic, reno); `modprobe tcp_vegas`" in done.output
    assert "kernel plain: it is there" in done.output


# --- Modules and objects that are added -----------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store, with the kernel `plain` in it."""
    monkeypatch.setenv("REDTAIL_KERNELS", str(tmp_path / "kernels"))
    image = tmp_path / "vmlinuz"
    image.write_bytes(bzimage())
    kernels.add("plain", image, make_modules(tmp_path / "modules"))
    return tmp_path / "kernels"


def file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def control(name: str = "mine", needs: str = "", more: bytes = b"") -> bytes:
    return module(needs, CONTROL + name.encode() + b"\0" + more)


def bpf(name: str = "mine", section: bytes = b".struct_ops", machine: int = 247) -> bytes:
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HH", 1, machine)
    return head + bytes(44) + section + b"\0" + name.encode() + b"\0"


def test_a_module_is_added_to_a_copy_of_a_kernel(kept: Path, tmp_path: Path) -> None:
    plain = kernels.find("plain")
    path = file(tmp_path / "tcp_mine.ko", control())
    mine = kernels.add("mine", own=[path])
    path.unlink()
    assert kernels.find() == mine and kernels.find("plain") == plain
    assert mine.controls() == sorted([*plain.controls(), "mine"])
    assert mine.queues() == plain.queues() and mine.release == plain.release
    assert mine.origin == f"{plain.origin}, with tcp_mine.ko"
    assert "tcp_mine.ko" in [each.name for each in mine.to_load()]
    mine.check()
    # The key of results has the module in it.
    assert mine.identity != plain.identity
    kernels.remove("mine")
    other = kernels.add("mine", own=[file(path, control(more=b"another one"))], base="plain")
    assert other.identity not in (mine.identity, plain.identity)


def test_a_module_of_the_user_stands_in_place_of_the_kernels(kept: Path, tmp_path: Path) -> None:
    changed = control("vegas", more=b"changed")
    mine = kernels.add("mine", own=[file(tmp_path / "tcp_vegas.ko", changed)])
    assert mine.controls() == kernels.find("plain").controls()
    assert (kept / "mine" / "modules" / "tcp_vegas.ko").read_bytes() == changed
    # What the image had in it is a module then.
    codel = file(tmp_path / "sch_fq_codel.ko", module(more=QDISC))
    mine = kernels.add("queue", own=[codel], base="mine")
    assert "sch_fq_codel.ko" in [each.name for each in mine.to_load()]


def test_modules_may_need_each_other(kept: Path, tmp_path: Path) -> None:
    parts = [
        file(tmp_path / "tcp_mine.ko", control(needs="helper")),
        file(tmp_path / "helper.ko", module()),
    ]
    mine = kernels.add("mine", own=parts)
    loaded = [each.name for each in mine.to_load()]
    assert loaded.index("helper.ko") < loaded.index("tcp_mine.ko")
    with pytest.raises(SpecError, match=r"tcp_mine\.ko: needs the module helper, which is neither"):
        kernels.add("other", own=parts[:1], base="plain")


def test_a_module_for_another_kernel_is_refused_with_both_versions(
    kept: Path, tmp_path: Path
) -> None:
    path = file(tmp_path / "tcp_mine.ko", control().replace(b"6.1.0-test", b"6.2.0-test"))
    with pytest.raises(SpecError) as refused:
        kernels.add("mine", own=[path])
    text = str(refused.value)
    assert f"{path}: was built for the kernel 6.2.0-test SMP preempt mod_unload" in text
    assert "and the kernel is 6.1.0-test SMP preempt mod_unload; accepted" in text
    # The same release with another configuration.
    file(path, control().replace(b"SMP preempt", b"SMP preempt_rt"))
    with pytest.raises(SpecError, match=r"preempt_rt mod_unload, and the kernel is .* preempt mod"):
        kernels.add("mine", own=[path])
    assert [kernel.name for kernel in kernels.known()] == ["plain"]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("tcp_mine.ko", module(), "is nothing that a run could use; accepted: a congestion"),
        ("usb.ko", module(), "is nothing that a run could use; accepted: a congestion"),
        ("tcp_mine.ko", control("other"), "does not register a congestion control of the name mi"),
        ("tcp_mine.ko", b"text", "is not a kernel module: it has no vermagic"),
        ("tcp_mine.o", control(), "is not the file of a kernel module; accepted: NAME.ko"),
    ],
)
def test_other_files_are_refused(
    kept: Path, tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        kernels.add("mine", own=[file(tmp_path / name, data)])
    assert [kernel.name for kernel in kernels.known()] == ["plain"]


def test_an_object_in_bpf_is_added_to_a_copy_of_a_kernel(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = kernels.find("plain")
    mine = kernels.add("mine", bpf=[file(tmp_path / "mine.bpf.o", bpf())])
    assert mine.controls() == sorted([*plain.controls(), "mine"])
    assert mine.identity != plain.identity and mine.origin.endswith(", with mine.bpf.o")
    mine.check()
    # A kernel that is made of it has the object too.
    both = kernels.add("both", own=[file(tmp_path / "tcp_other.ko", control("other"))])
    assert {"mine", "other"} <= set(both.controls())
    script = file(tmp_path / "bpftool", b"#!/bin/sh\n")
    monkeypatch.setattr(initramfs, "where", lambda program: str(script))
    with pytest.raises(SpecError, match="bpftool is a script, which the guest cannot run"):
        initramfs._objects(mine)
    monkeypatch.setattr(initramfs, "where", lambda program: None)
    with pytest.raises(SpecError, match="the program bpftool, which registers them, is not inst"):
        initramfs._objects(mine)
    (kept / "mine" / "objects" / "mine.bpf.o").write_bytes(bpf() + b"changed")
    with pytest.raises(RedtailError, match="are not those that were put there"):
        mine.check()
    kernels.remove("mine")
    assert sorted(path.name for path in kept.iterdir()) == ["both", "plain"]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("mine.o", bpf(), "is not called after its congestion control"),
        ("mine.bpf.o", b"text", "is no ELF file"),
        ("mine.bpf.o", bpf(machine=62), "is an ELF file, but no object for BPF"),
        ("mine.bpf.o", bpf(section=b".maps"), r"has no section \.struct_ops"),
        ("mine.bpf.o", bpf("other"), "has no congestion control of the name mine"),
        ("vegas.bpf.o", bpf("vegas"), "two congestion controls have the name vegas"),
    ],
)
def test_other_objects_are_refused(
    kept: Path, tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        kernels.add("mine", bpf=[file(tmp_path / name, data)])


def test_the_command_adds_modules(kept: Path, tmp_path: Path) -> None:
    path = file(tmp_path / "tcp_mine.ko", control())
    run = CliRunner().invoke
    done = run(app, ["kernel", "add", "mine", "--module", str(path), "--base", "plain"])
    assert done.exit_code == 0 and "5 congestion controls" in done.output
    assert "controls  5: bbr, cubic, mine, reno, vegas" in run(app, ["kernel", "list"]).output
    for words in ([], ["--image", str(path)], ["--base", "plain"]):
        done = run(app, ["kernel", "add", "other", *words])
        assert done.exit_code == 2 and "it is not said what the kernel is" in done.output
    done = run(app, ["kernel", "add", "other", "--module", str(path), "--base", "none"])
    assert done.exit_code == 2 and "there is no kernel of this name; accepted: mine" in done.output


# --- Runs -----------------------------------------------------------------------------------


def missing() -> list[str]:
    """What this computer lacks for a module of one's own."""
    return LACKING or [
        f"the program {name} is not installed" for name in ("make", "gcc") if not shutil.which(name)
    ]


on_this_host = pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))
with_modules = pytest.mark.skipif(bool(missing()), reason="; ".join(missing()))


@in_a_guest
@on_this_host
def test_each_control_that_the_kernel_has_is_the_one_that_runs() -> None:
    # The agent asks each connection for its control, and a run with another one fails.
    names = kernels.find().controls()
    assert {"reno", "cubic"} < set(names)
    first, *others = names
    text = asking(first) + "".join(
        BULK.replace('tcp = "linux"', f'tcp = {{ preset = "linux", kernel_control = "{name}" }}')
        .replace('name = "ftp"', f'name = "{name}"')
        .replace("flows = 4", "flows = 1")
        for name in others
    )
    metrics = dict(backends.find("linux-tcp").run(scenario(text)).metrics)
    assert set(names) - {first} == {name for name in others if metrics[f"{name}.data_segments"] > 0}


@pytest.mark.weekly
@in_a_guest
@on_this_host
def test_alone_each_control_uses_the_link_in_its_own_way(tmp_path: Path) -> None:
    names = kernels.find().controls()
    factors = f'\n[factors]\n"{KEY}" = {json.dumps(names)}\n'
    text = asking("reno") + factors
    results = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux-tcp")
    assert [case.factors[KEY] for case in results.cases] == names
    found = {case.factors[KEY]: case.metrics["goodput"].mean for case in results.cases}
    assert all(goodput > 5e6 for goodput in found.values()), found
    delays = {case.metrics["queue_delay_mean"].mean for case in results.cases}
    assert len(delays) > len(names) / 2, "they differ"


@in_a_guest
@on_this_host
def test_a_run_fails_if_the_kernel_turns_out_not_to_have_it() -> None:
    with pytest.raises(RunError) as failed:
        backends.find("linux").run(scenario(asking("redtail_none")))
    text = str(failed.value)
    assert "the guest's kernel refused a step: the congestion control redtail_none: " in text
    assert "the kernel has " in text and "cubic" in text


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "kernel-controllers.md"
EXPERIMENT = "examples/kernel-module/experiment.toml"


def follow(marked: str, folder: Path) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """Run the commands of the page's block below a mark, and yield each with how it ended."""
    (block,) = re.findall(rf"<!-- {marked} -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in re.findall(r"(?:.*\\\n)*.+", block):
        yield (
            command,
            subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env={**os.environ, "PATH": path, "REDTAIL_KERNELS": str(folder / "kernels")},
                capture_output=True,
                text=True,
                check=False,
            ),
        )


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of the page were given, with a store of kernels of its own."""
    folder, kernel = tmp_path_factory.mktemp("page"), kernels.find()
    (folder / "examples").symlink_to(PAGE.parents[2] / "examples")
    shutil.copytree(kernel.image.parent, folder / "kernels" / kernel.name)
    for command, done in follow("with a kernel", folder):
        if done.returncode and command.startswith("redtail kernel headers"):
            pytest.skip(f"the kernel's headers cannot be had: {done.stderr.strip()}")
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return folder


def delays(folder: Path, *names: str) -> list[float | None]:
    """The mean queueing delay with each control, in the page's experiment and its results."""
    key = "traffic.download.tcp.kernel_control"
    results = redtail.run(
        folder / EXPERIMENT, out=folder / "runs", set={f'factors."{key}"': list(names)}
    )
    assert [case.factors[key] for case in results.cases] == list(names)
    return [case.metrics["queue_delay_mean"].mean for case in results.cases]


PATH, LARGEST, PACKET_S = 16.7, 66.7, 0.0012
"""Packets of 1500 B on the path, and with its full buffer of 50; the time that each takes."""


def expected(kept: float) -> float:
    """The mean queueing delay of Reno that keeps a share of the window after a loss.

    The window w grows from kept * LARGEST to LARGEST by as much in each round trip, which lasts as
    long as w packets take, so the mean of w - PATH is weighted by w.
    """
    least = kept * LARGEST

    def integral(w: float) -> float:
        return w**3 / 3 - PATH * w**2 / 2

    mean = (integral(LARGEST) - integral(least)) / ((LARGEST**2 - least**2) / 2)
    return mean * PACKET_S


# It builds a module with the kernel's headers, which takes as long as all other tests of this file.
@pytest.mark.weekly
@in_a_guest
@with_modules
def test_a_module_of_ones_own_controls_connections(
    followed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = kernels.find().name
    monkeypatch.setenv("REDTAIL_KERNELS", str(followed / "kernels"))
    # Runs in virtual time are the same each time. The two expected values differ by 15 %.
    reno, own = delays(followed, "reno", "redtail_quarter")
    assert reno == pytest.approx(expected(1 / 2), rel=0.04)
    assert own == pytest.approx(expected(1 / 4), rel=0.04)
    # Another kernel has not got it; results of the two have different keys.
    with pytest.raises(SpecError, match='"redtail_quarter" is no congestion control that this'):
        redtail.run(followed / EXPERIMENT, out=followed / "runs", backend=f"linux:{plain}")
    keys = {backends.find(f"linux:{name}").identity() for name in (plain, "mine")}
    assert len(keys) == 2


@pytest.mark.weekly
@in_a_guest
@with_modules
def test_a_module_that_was_built_for_another_kernel_is_refused(
    followed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTAIL_KERNELS", str(followed / "kernels"))
    release = kernels.find().release
    other = release.replace("6", "7", 1)
    built = followed / "tcp_redtail_quarter.ko"
    own, changed = (f"vermagic={each} ".encode() for each in (release, other))
    path = file(tmp_path / built.name, built.read_bytes().replace(own, changed))
    with pytest.raises(SpecError) as refused:
        kernels.add("other", own=[path])
    assert f"was built for the kernel {other} " in str(refused.value)
    assert f"and the kernel is {release} " in str(refused.value)


@pytest.mark.weekly
@in_a_guest
@with_modules
def test_a_module_that_the_kernel_does_not_load_is_told_with_its_reason(
    followed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTAIL_KERNELS", str(followed / "kernels"))
    built = followed / "tcp_redtail_quarter.ko"
    # A symbol with another version than the kernel's, as after a change of its types.
    data = built.read_bytes().replace(b"tcp_reno_undo_cwnd\0", b"tcp_reno_undo_cwn_\0")
    assert data != built.read_bytes()
    kernels.add("other", own=[file(tmp_path / built.name, data)], base="mine")
    with pytest.raises(RunError, match="does not start") as failed:
        backends.find("linux:other").run(scenario(asking("redtail_quarter")))
    kernels.remove("other")
    assert "/modules.d/tcp_redtail_quarter.ko: " in str(failed.value)
    assert "Unknown symbol tcp_reno_undo_cwn_" in str(failed.value)


def missing_for_bpf() -> list[str]:
    """What this computer lacks for an object in BPF."""
    programs = {"clang": shutil.which("clang"), "bpftool": initramfs.where("bpftool")}
    return missing() + [
        f"the program {name} is not installed" for name, path in programs.items() if not path
    ]


@in_a_guest
@pytest.mark.skipif(bool(missing_for_bpf()), reason="; ".join(missing_for_bpf()))
def test_an_object_in_bpf_controls_connections(
    followed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command, done in follow("with clang and bpftool", followed):
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    monkeypatch.setenv("REDTAIL_KERNELS", str(followed / "kernels"))
    (found,) = delays(followed, "redtail_bpf")
    assert found == pytest.approx(expected(1 / 4), rel=0.04)
