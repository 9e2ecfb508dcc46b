"""What each backend needs, and what this computer has of it."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from redtail import facts
from redtail.backends import host, live
from redtail.errors import RedtailError

DISTRIBUTIONS = ("Debian, Ubuntu", "Fedora", "Arch")


@dataclass(frozen=True)
class Need:
    """One thing that a backend needs.

    Attributes:
        backend: the backend's name.
        what: the thing.
        found: what this computer has of it; empty if it lacks it.
        lacking: why it lacks it, and what to do.
        required: whether the backend cannot run without it.
        packages: what brings it, by distribution.
    """

    backend: str
    what: str
    found: str = ""
    lacking: str = ""
    required: bool = True
    packages: dict[str, str] = field(default_factory=dict)

    @property
    def here(self) -> bool:
        """Whether this computer has it."""
        return bool(self.found)

    def as_json(self) -> dict[str, Any]:
        """Return it as `redtail doctor --json` prints it."""
        return {
            "backend": self.backend,
            "what": self.what,
            "here": self.here,
            "found": self.found or None,
            "lacking": self.lacking or None,
            "required": self.required,
            "packages": self.packages,
        }


def packages(debian: str, fedora: str, arch: str) -> dict[str, str]:
    """Return names of packages by distribution."""
    return dict(zip(DISTRIBUTIONS, (debian, fedora, arch), strict=True))


IPROUTE2 = packages("iproute2", "iproute iproute-tc", "iproute2")
MODULES = packages(
    "the kernel's own, on Ubuntu linux-modules-extra-VERSION", "kernel-modules-extra", "linux"
)

QEMU = packages("qemu-system-x86", "qemu-system-x86-core", "qemu-system-x86")

BPFTOOL = packages("bpftool, on Ubuntu linux-tools-generic", "bpftool", "bpf")

FILTERS = "filters of the kernel, for queues with classes"

OUTSIDE = {
    "pasta": packages("passt", "passt", "passt"),
    "slirp4netns": packages("slirp4netns", "slirp4netns", "slirp4netns"),
}


def needs() -> list[Need]:
    """Return what each backend needs, in the order of the backends."""
    found = live.survey() if sys.platform.startswith("linux") else {}
    return [*_of_sim(), *_of_live(found), *_of_live_tc(found), *_of_linux()]


def _of_sim() -> Iterator[Need]:
    try:
        version = facts.version()
    except RedtailError as error:
        yield Need("sim", "redtail's native module", lacking=str(error))
    else:
        yield Need("sim", "redtail's native module", found=f"version {version}")


def _of_live(found: dict[str, Any]) -> Iterator[Need]:
    if not sys.platform.startswith("linux"):
        yield Need("live", "Linux", lacking=f"this is {sys.platform}")
        return
    reason = live.old_kernel(platform.release())
    yield Need("live", "Linux", found="" if reason else platform.release(), lacking=reason)
    version = host.iproute2()
    yield Need(
        "live",
        "the program ip",
        found=version,
        lacking="" if version else "it is not installed",
        packages=IPROUTE2,
    )
    for what, key in (("user namespaces", "namespaces"), ("TUN devices", "tun")):
        reason = found[key]
        yield Need("live", what, found="" if reason else "allowed", lacking=reason)
    if found["namespaces"]:
        return
    controls = ", ".join(found["controls"])
    yield Need(
        "live",
        "TCP congestion controls",
        found=controls,
        lacking="" if controls else "the kernel tells none",
    )
    yield Need(
        "live",
        "packets without offload",
        found=found["offload"],
        lacking="" if found["offload"] else "a TUN device could not be made",
    )
    for program, brought_by in OUTSIDE.items():
        path = shutil.which(program)
        yield Need(
            "live",
            f"{program}, for a shell that reaches the outside",
            found=path or "",
            lacking="" if path else "it is not installed",
            required=False,
            packages=brought_by,
        )


def _of_live_tc(found: dict[str, Any]) -> Iterator[Need]:
    if found.get("namespaces", "no Linux"):
        yield Need("live-tc", "what backend live needs", lacking="see above")
        return
    version = host.iproute2("tc")
    yield Need(
        "live-tc",
        "the program tc",
        found=version,
        lacking="" if version else "it is not installed",
        packages=IPROUTE2,
    )
    yield from _kinds(found["queues"], "queues of the kernel", required=True)
    yield from _kinds(found["filters"], FILTERS, required=False)


def _kinds(reasons: dict[str, str], what: str, *, required: bool) -> Iterator[Need]:
    """Yield the kinds that the kernel has, and those that it lacks, by their reasons.

    Args:
        reasons: for each kind why the kernel has not got it; empty if it has.
        what: what they are.
        required: whether the backend cannot run without any of them.
    """
    kinds: dict[str, list[str]] = {"": []}
    for kind, reason in reasons.items():
        kinds.setdefault(reason, []).append(kind)
    for reason, of_reason in kinds.items():
        names = ", ".join(of_reason)
        if reason or names or required:
            yield Need(
                "live-tc",
                (names if required else f"{names}, {what}") if reason else what,
                found="" if reason else names,
                lacking=reason or ("" if names else "none of them"),
                required=required and not reason,
                packages=MODULES,
            )


def _of_linux() -> Iterator[Need]:
    from redtail.backends import virtual
    from redtail.backends.virtual import initramfs, kernels, objects

    machine = platform.machine()
    here = sys.platform.startswith("linux") and machine == "x86_64"
    yield Need(
        "linux",
        "Linux on x86-64",
        found=platform.release() if here else "",
        lacking="" if here else f"this is {sys.platform} on {machine}",
    )
    if not here:
        return
    version = host.qemu()
    yield Need(
        "linux",
        "the program qemu-system-x86_64",
        found=version,
        lacking="" if version else "it is not installed",
        packages=QEMU,
    )
    for program in kernels.PROGRAMS:
        version = host.iproute2(initramfs.where(program) or program)
        yield Need(
            "linux",
            f"the program {program}",
            found=version,
            lacking="" if version else "it is not installed",
            packages=IPROUTE2,
        )
    bpftool = initramfs.where(objects.PROGRAM)
    yield Need(
        "linux",
        "the program bpftool, for congestion controls in BPF",
        found=bpftool or "",
        lacking="" if bpftool else "it is not installed",
        required=False,
        packages=BPFTOOL,
    )
    try:
        kept = kernels.known()
    except RedtailError as error:
        yield Need("linux", "a kernel", lacking=str(error))
    else:
        names = ", ".join(kernel.name for kernel in kept)
        yield Need("linux", "a kernel", found=names, lacking="" if names else kernels.GET_ONE)
        for kernel in kept:
            what = f"TCP congestion controls of {kernel.name}"
            yield Need("linux", what, found=", ".join(kernel.controls()))
    for what, path in (
        ("the program for the guest", virtual.AGENT),
        ("the library for QEMU", virtual.TURNS),
    ):
        there = path.is_file()
        yield Need(
            "linux",
            what,
            found=str(path) if there else "",
            lacking="" if there else f"{path} is not there; `make dev` builds it",
        )
