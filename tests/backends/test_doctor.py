"""`redtail doctor`: what each backend needs, and what this computer has of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redtail.backends import host as programs
from redtail.backends import live, virtual
from redtail.backends.virtual import kernels
from redtail.cli import app
from redtail.errors import StoreError

WHOLE = {
    "namespaces": "",
    "tun": "",
    "controls": ["reno", "cubic"],
    "offload": "TUN devices, which take none",
    "queues": {"pfifo": "", "fq_codel": "", "dualpi2": "the kernel has no module sch_NAME"},
    "filters": {"flower": "", "matchall": "the kernel has no module cls_matchall"},
}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Makes the commands see a Linux host that has all, except what is said."""

    def make(
        version: str = "iproute2-6.1.0",
        qemu: str = "7.2.22",
        kernel: str = "mine",
        agent: bool = True,
        **found: Any,
    ) -> None:
        kept = [kernels.Kernel(kernel, "6.1.0", tmp_path, tmp_path, "", "")] if kernel else []
        (tmp_path / "agent").write_bytes(b"")
        monkeypatch.setattr("platform.machine", lambda: "x86_64")
        monkeypatch.setattr(programs, "qemu", lambda: qemu)
        monkeypatch.setattr(kernels, "known", lambda: kept)
        monkeypatch.setattr(virtual, "AGENT", tmp_path / ("agent" if agent else "none"))
        monkeypatch.setattr(virtual, "TURNS", tmp_path / ("agent" if agent else "none"))
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setattr(live, "survey", lambda: {**WHOLE, **found})
        monkeypatch.setattr(programs, "iproute2", lambda program="ip": version)

    return make


def said(*words: str) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["doctor", *words])
    return ran.exit_code, ran.output


def test_a_host_with_all_is_ready_for_every_backend(host: Callable[..., None]) -> None:
    host()
    code, text = said()
    assert code == 0
    for backend in ("sim", "live", "live-tc", "linux"):
        assert f"backend {backend}: ready" in text
    assert "TCP congestion controls: reno, cubic" in text
    assert "queues of the kernel: pfifo, fq_codel" in text
    assert "absent   dualpi2: the kernel has no module sch_NAME" in text
    assert "filters of the kernel, for queues with classes: flower\n" in text
    assert "absent   matchall, filters of the kernel, for queues with classes: the kernel" in text


def test_a_missing_program_is_named_with_its_packages(host: Callable[..., None]) -> None:
    host(version="")
    code, text = said()
    assert code == 1
    assert "backend live: cannot run here" in text and "backend sim: ready" in text
    assert "missing  the program ip: it is not installed" in text
    assert "Debian, Ubuntu: iproute2; Fedora: iproute iproute-tc; Arch: iproute2" in text
    assert "backend linux: cannot run here" in text
    assert "missing  the program tc: it is not installed" in text.split("backend linux")[1]


def test_forbidden_namespaces_are_told_with_the_setting(host: Callable[..., None]) -> None:
    reason = "user namespaces are forbidden by the setting user.max_user_namespaces = 0"
    host(namespaces=reason)
    code, text = said()
    assert code == 1 and f"missing  user namespaces: {reason}" in text
    assert "backend live-tc: cannot run here" in text


def test_a_kernel_without_queues_cannot_run_live_tc_alone(host: Callable[..., None]) -> None:
    host(queues={"pfifo": "the kernel has no module sch_NAME"})
    code, text = said()
    assert code == 1
    assert "backend live: ready" in text and "backend live-tc: cannot run here" in text


def test_json_has_the_same(host: Callable[..., None]) -> None:
    host()
    code, text = said("--json")
    found = json.loads(text)
    assert code == 0 and {each["backend"] for each in found} == {
        "sim",
        "live",
        "live-tc",
        "linux",
    }
    absent = [each for each in found if not each["here"]]
    assert absent and all(each["packages"] and each["lacking"] for each in absent)
    assert not any(each["required"] for each in absent)


def test_another_system_than_linux_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    code, text = said()
    assert code == 1 and "missing  Linux: this is darwin" in text and "backend sim: ready" in text
    assert "missing  Linux on x86-64: this is darwin" in text


def test_kinds_are_told_apart_by_why_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {
        "codel": "Error: Specified qdisc kind is unknown.",
        "dualpi2": 'Unknown qdisc "dualpi2", hence option "limit" is unparsable',
        "cake": "RTNETLINK answers: Operation not permitted",
    }

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        error = errors.get(words[8], "") if words[2] == "add" else ""
        return subprocess.CompletedProcess(words, int(bool(error)), "", error)

    monkeypatch.setattr(programs.subprocess, "run", run)
    monkeypatch.setattr(programs, "iproute2", lambda: "iproute2-6.1.0")
    tried = programs.try_queues("x")
    assert tried["pfifo"] == ""
    assert "no module sch_NAME" in tried["codel"]
    assert tried["dualpi2"] == "iproute2-6.1.0 does not know it"
    assert tried["cake"] == "RTNETLINK answers: Operation not permitted"


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        ({"flower": "Error: TC classifier not found."}, {"flower": "no module cls_flower"}),
        ({"clsact": "Error: Specified qdisc kind is unknown."}, {"clsact": "module sch_ingress"}),
        ({"matchall": "RTNETLINK answers: Invalid argument"}, {"matchall": "Invalid argument"}),
        (
            dict.fromkeys(("htb", "prio", "drr", "flower", "matchall"), "Error: unknown."),
            dict.fromkeys(("flower", "matchall"), "the kernel has no queue with classes"),
        ),
    ],
    ids=["classifier", "place", "refused", "classes"],
)
def test_filters_are_tried_below_a_queue_with_classes(
    monkeypatch: pytest.MonkeyPatch, lacks: dict[str, str], told: dict[str, str]
) -> None:
    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        error = next((error for kind, error in lacks.items() if kind in words), "")
        return subprocess.CompletedProcess(words, int(bool(error)), "", error)

    monkeypatch.setattr(programs.subprocess, "run", run)
    tried = programs.try_filters("x")
    assert tried.keys() == programs.FILTERS.keys()
    for kind, reason in tried.items():
        assert (told[kind] in reason) if kind in told else not reason


def test_without_outside_programs_a_shell_still_runs(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host()
    monkeypatch.setenv("PATH", str(tmp_path))
    code, text = said()
    assert code == 0
    assert "absent   pasta, for a shell that reaches the outside: it is not installed" in text


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        (
            {"qemu": ""},
            "missing  the program qemu-system-x86_64: it is not installed\n"
            "           packages: Debian, Ubuntu: qemu-system-x86; Fedora: qemu-system-x86-core; "
            "Arch: qemu-system-x86\n",
        ),
        ({"kernel": ""}, "missing  a kernel: `redtail kernel fetch` gets one"),
        ({"agent": False}, "is not there; `make dev` builds it"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_what_a_virtual_machine_lacks_is_told(
    host: Callable[..., None], lacks: dict[str, Any], told: str
) -> None:
    host(**lacks)
    code, text = said()
    assert code == 1 and told in text
    assert "backend linux: cannot run here" in text and "backend live-tc: ready" in text


def test_a_damaged_kernel_is_told_and_the_rest_is_examined(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> list[kernels.Kernel]:
        raise StoreError("kernel.json: is damaged")

    host()
    monkeypatch.setattr(kernels, "known", damaged)
    code, text = said()
    assert code == 1 and "missing  a kernel: kernel.json: is damaged" in text
    assert "ok       the program for the guest" in text


def test_another_processor_is_told(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    host()
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    code, text = said()
    assert code == 1 and "missing  Linux on x86-64: this is linux on aarch64" in text


def test_the_version_of_qemu_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "qemu-system-x86_64"
    program.write_text('#!/bin/sh\necho "QEMU emulator version 8.2.2 (Debian 1:8.2.2)"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert programs.qemu() == "8.2.2"
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert programs.qemu() == ""
