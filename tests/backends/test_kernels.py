"""The store of kernels and the archive that a guest starts with, on small files that look alike."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from redtail.backends import live
from redtail.backends.virtual import images, initramfs, kernels, packages
from redtail.cli import app
from redtail.errors import Cancelled, RedtailError, SpecError, StoreError

RELEASE = "6.1.0-test"

QDISC = b"\0register_qdisc\0"
CONTROL = b"\0tcp_register_congestion_control\0"


def bzimage(release: str = RELEASE, flags: int = 1, magic: bytes = b"HdrS") -> bytes:
    data = bytearray(0x400)
    data[0x202:0x206] = magic
    struct.pack_into("<H", data, 0x206, 0x20F)
    struct.pack_into("<H", data, 0x236, flags)
    if release:
        struct.pack_into("<H", data, 0x20E, 0x100)
        text = f"{release} (someone@somewhere) #1 SMP".encode()
        data[0x300 : 0x300 + len(text)] = text
    return bytes(data)


def elf(banner: bytes = b"", note: int = 18, kind: int = 2, machine: int = 62) -> bytes:
    notes = struct.pack("<III4s4s", 4, 3, 7, b"Xen\0", b"abc")
    notes += struct.pack("<III4s8s", 4, 8, note, b"Xen\0", bytes(8))
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, 64, 64, 0)
    table = load + struct.pack("<IIQQQQQQ", 4, 0, 176, 0, 0, len(notes), len(notes), 4)
    return head + table + notes + banner


def module(needs: str = "", more: bytes = b"", release: str = RELEASE) -> bytes:
    texts = f"\0license=GPL\0depends={needs}\0vermagic={release} SMP preempt mod_unload \0"
    return b"\x7fELF" + more + texts.encode()


def packed(data: bytes, suffix: str) -> bytes:
    match suffix:
        case ".xz":
            return lzma.compress(data)
        case ".gz":
            return gzip.compress(data)
        case ".zst":
            return bytes(pa.compress(data, codec="zstd", asbytes=True))
    return data


def make_modules(folder: Path, suffix: str = "", release: str = RELEASE) -> Path:
    """A kernel's modules: some queues, congestion controls, and what is neither."""
    kernel = folder / "kernel"
    files = {
        "drivers/net/tun": module(release=release),
        "net/sched/sch_pie": module(more=QDISC, release=release),
        "net/sched/sch_fq_pie": module("sch_pie", QDISC, release),
        "net/sched/sch_hfsc": module(more=QDISC, release=release),
        "net/sched/sch_ingress": module(more=QDISC, release=release),
        "net/sched/sch_mqprio_lib": module(release=release),
        "net/sched/cls_flower": module("shared-part", release=release),
        "lib/shared-part": module(release=release),
        "net/ipv4/tcp_bbr": module(more=CONTROL, release=release),
        "net/ipv4/tcp_vegas": module(more=CONTROL, release=release),
        "net/ipv4/tcp_diag": module("inet_diag", release=release),
        "net/ipv4/inet_diag": module(release=release),
        "drivers/usb/storage": module(release=release),
    }
    for name, data in files.items():
        path = kernel / f"{name}.ko{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(data, suffix))
    builtin = ("net/sched/sch_fq_codel", "net/ipv4/tcp_cubic", "net/ipv4/tcp_sigpool")
    (folder / "modules.builtin").write_text("".join(f"kernel/{name}.ko\n" for name in builtin))
    return folder


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache" / "kernels"
    monkeypatch.setenv("REDTAIL_KERNELS", str(folder))
    return folder


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "vmlinuz"
    path.write_bytes(bzimage())
    return path


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    return make_modules(tmp_path / "modules" / RELEASE)


def everything(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# --- Images ---------------------------------------------------------------------------------


def test_a_bzimage_and_a_vmlinux_tell_their_release(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(bzimage("6.12.1+deb12"))
    assert images.release_of(path) == "6.12.1+deb12"
    path.write_bytes(elf(b"\0Linux version 6.9.0-rc1 (someone@somewhere) #1"))
    assert images.release_of(path) == "6.9.0-rc1"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"#!/bin/sh\n" * 100, "is not the image of a kernel"),
        (bzimage(magic=b"HdrX"), "is not the image of a kernel"),
        (bzimage()[:0x210], "is cut off"),
        (bzimage(flags=0), "is a kernel for 32-bit x86"),
        (elf(machine=183), "is an ELF file for another processor"),
        (elf(kind=1), "is an ELF file, but not the image of a kernel"),
        (elf(note=19), "is not the image of a kernel"),
        (elf(b"Linux version 6.1 (x)", note=19), "is a kernel built without CONFIG_PVH"),
        (elf()[:40], "is cut off"),
    ],
    ids=lambda case: case.replace(" ", "-") if isinstance(case, str) else "",
)
def test_a_file_that_is_no_kernel_is_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    with pytest.raises(SpecError, match=f"image: (the image )?{problem}; accepted: the bzImage"):
        images.release_of(path)


def test_an_image_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="none: cannot be read: No such file"):
        images.release_of(tmp_path / "none")
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        images.release_of(tmp_path)


# --- What a kernel has ----------------------------------------------------------------------


def test_queues_and_controls_are_modules_or_built_in(image: Path, modules: Path) -> None:
    kernel = kernels.examine("mine", image, modules)
    assert kernel.release == RELEASE
    always, built_in = ["bfifo", "pfifo", "pfifo_head_drop"], ["fq_codel"]
    as_modules = ["clsact", "fq_pie", "hfsc", "ingress", "pie"]
    assert kernel.queues() == sorted([*always, *built_in, *as_modules])
    assert kernel.controls() == ["bbr", "cubic", "reno", "vegas"]


def test_modules_are_loaded_after_those_that_they_need(image: Path, modules: Path) -> None:
    loaded = [path.name for path in kernels.examine("mine", image, modules).to_load()]
    assert loaded == [
        "tun.ko",
        *("sch_pie.ko", "sch_fq_pie.ko", "sch_ingress.ko"),
        *("shared-part.ko", "cls_flower.ko"),
        *("tcp_bbr.ko", "tcp_vegas.ko"),
    ]


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_compressed_modules_are_the_same_modules(
    image: Path, modules: Path, tmp_path: Path, suffix: str
) -> None:
    plain = kernels.examine("mine", image, modules)
    other = kernels.examine("mine", image, make_modules(tmp_path / "other", suffix))
    assert other.identity == plain.identity != ""
    assert other.queues() == plain.queues() and other.controls() == plain.controls()


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_a_damaged_module_is_named(image: Path, modules: Path, tmp_path: Path, suffix: str) -> None:
    folder = make_modules(tmp_path / "other", suffix)
    path = folder / f"kernel/drivers/net/tun.ko{suffix}"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(SpecError, match=rf"tun\.ko\{suffix}: the module cannot be read: \S"):
        kernels.examine("mine", image, folder)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_a_module_is_unpacked_within_a_limit(
    image: Path, modules: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_modules(tmp_path / "other", suffix)
    path = folder / f"kernel/drivers/net/tun.ko{suffix}"
    whole = images.module_bytes(path)
    monkeypatch.setattr(images, "LARGEST_MODULE", len(whole))
    assert images.module_bytes(path) == whole
    monkeypatch.setattr(images, "LARGEST_MODULE", len(whole) - 1)
    with pytest.raises(SpecError, match=r"cannot be read: it has more than 0 MiB"):
        images.module_bytes(path)


def test_identity_covers_image_modules_and_what_is_built_in(image: Path, modules: Path) -> None:
    def identity() -> str:
        return kernels.examine("mine", image, modules).identity

    found = [identity()]
    assert identity() == found[0]
    (modules / "kernel/drivers/usb/storage.ko").write_bytes(module(more=b"changed"))
    assert identity() == found[0]  # is not kept
    (modules / "kernel/net/sched/sch_pie.ko").write_bytes(module(more=QDISC + b"changed"))
    found.append(identity())
    image.write_bytes(bzimage() + b"changed")
    found.append(identity())
    (modules / "modules.builtin").write_text("kernel/net/sched/sch_fq_codel.ko\n")
    found.append(identity())
    assert len(set(found)) == 4


def test_an_image_without_release_takes_that_of_its_modules(tmp_path: Path, modules: Path) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(elf())
    assert kernels.examine("mine", path, modules).release == RELEASE
    shutil.rmtree(modules / "kernel")
    with pytest.raises(SpecError, match=r"neither the image nor a module in .* tells"):
        kernels.examine("mine", path, modules)


def test_modules_of_another_kernel_are_refused(tmp_path: Path, image: Path) -> None:
    other = make_modules(tmp_path / "other", release="6.2.0")
    with pytest.raises(SpecError) as refused:
        kernels.examine("mine", image, other)
    text = str(refused.value)
    assert "was built for the kernel 6.2.0, and" in text and f"{image} is {RELEASE}" in text


def test_a_module_that_is_none_is_refused(image: Path, modules: Path) -> None:
    (modules / "kernel/net/sched/sch_pie.ko").write_bytes(b"text" + QDISC)
    with pytest.raises(SpecError, match=r"sch_pie\.ko: is not a kernel module: it has no vermagic"):
        kernels.examine("mine", image, modules)


def test_a_kernel_without_tun_is_refused_by_name(image: Path, modules: Path) -> None:
    (modules / "kernel/drivers/net/tun.ko").unlink()
    with pytest.raises(SpecError, match=r"has no module tun; accepted: .* with CONFIG_TUN=m or"):
        kernels.examine("mine", image, modules)
    (modules / "modules.builtin").unlink()
    with pytest.raises(SpecError, match=r"no module tun, and no file modules\.builtin tells"):
        kernels.examine("mine", image, modules)
    (modules / "modules.builtin").write_text("kernel/drivers/net/tun.ko\n")
    assert "tun.ko" not in [path.name for path in kernels.examine("mine", image, modules).to_load()]


def test_a_module_whose_dependency_is_missing_is_refused(image: Path, modules: Path) -> None:
    (modules / "kernel/lib/shared-part.ko").unlink()
    with pytest.raises(SpecError, match=r"cls_flower\.ko: needs the module shared_part, which"):
        kernels.examine("mine", image, modules)
    with open(modules / "modules.builtin", "a") as file:
        file.write("kernel/lib/shared-part.ko\n")
    kernels.examine("mine", image, modules)


def test_a_module_from_updates_is_preferred_and_other_twins_are_refused(
    image: Path, modules: Path
) -> None:
    update = modules / "updates" / "sch_pie.ko"
    update.parent.mkdir()
    update.write_bytes(module(more=QDISC + b"new"))
    assert update in kernels.examine("mine", image, modules).to_load()
    update.rename(modules / "sch_pie.ko")
    with pytest.raises(SpecError, match=r"sch_pie\.ko and .*sch_pie\.ko: the same module twice"):
        kernels.examine("mine", image, modules)


@pytest.mark.parametrize("part", ["kernel", "..", "../../.."])
def test_the_folder_of_modules_may_be_named_in_several_ways(
    tmp_path: Path, image: Path, part: str
) -> None:
    root = tmp_path / "root" / "lib" / "modules"
    folder = make_modules(root / RELEASE)
    make_modules(root / "6.2.0", release="6.2.0")
    kernel = kernels.examine("mine", image, folder / part)
    assert "fq_codel" in kernel.queues() and "fq_pie" in kernel.queues()


def test_a_folder_of_modules_that_is_none_is_refused(tmp_path: Path, image: Path) -> None:
    with pytest.raises(SpecError, match="none: cannot be read: No such file or directory; acc"):
        kernels.examine("mine", image, tmp_path / "none")
    with pytest.raises(SpecError, match="vmlinuz: cannot be read: Not a directory; accepted"):
        kernels.examine("mine", image, image)


# --- The store ------------------------------------------------------------------------------


def test_a_kernel_is_kept_when_its_files_are_gone(store: Path, image: Path, modules: Path) -> None:
    before = kernels.examine("mine", image, modules)
    added = kernels.add("mine", image, modules)
    origin = f"{image}, {modules}"
    image.unlink()
    shutil.rmtree(modules)
    (kept,) = kernels.known()
    assert kept == added == kernels.find() == kernels.find("mine")
    assert (kept.name, kept.release, kept.origin) == ("mine", RELEASE, origin)
    assert kept.identity == before.identity
    assert kept.queues() == sorted({*kept.queues(), "fq_pie", "fq_codel"})
    assert len(kept.to_load()) == 8
    assert everything(store) == ["mine"]
    assert "storage.ko" not in everything(store / "mine" / "modules")
    assert kept.size > 0x400
    kept.check()


def test_the_folder_is_that_of_the_environment_or_of_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDTAIL_KERNELS", "~/here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kernels.store() == tmp_path / "here"
    monkeypatch.delenv("REDTAIL_KERNELS")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert kernels.store() == tmp_path / ".cache/redtail/kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert kernels.store() == tmp_path / "caches/redtail/kernels"


def test_without_a_name_the_kernel_that_was_added_last_is_meant(
    store: Path, image: Path, modules: Path
) -> None:
    for name in ("b", "c", "a"):
        kernels.add(name, image, modules)
        assert kernels.find().name == name
    assert [kernel.name for kernel in kernels.known()] == ["a", "b", "c"]
    kernels.remove("a")
    assert kernels.find().name == "c"


def test_the_last_kernel_is_the_default_also_after_a_clock_went_back(
    store: Path, image: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.add("first", image, modules)
    monkeypatch.setattr(kernels.time, "time_ns", lambda: 17)
    kernels.add("second", image, modules)
    assert kernels.find().name == "second"


def test_without_a_kernel_it_is_said_how_to_get_one(store: Path) -> None:
    for name in (None, "mine"):
        with pytest.raises(SpecError, match=r"`redtail kernel fetch` .* `redtail kernel add NAME"):
            kernels.find(name)


def test_a_name_that_is_not_there_is_refused_with_those_that_are(
    store: Path, image: Path, modules: Path
) -> None:
    kernels.add("mine", image, modules)
    for act in (kernels.find, kernels.remove):
        with pytest.raises(SpecError, match=r'"other": there is no kernel of this name; .*: mine'):
            act("other")


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "-x", "a\nb"])
def test_a_name_that_is_none_is_refused(store: Path, image: Path, modules: Path, name: str) -> None:
    with pytest.raises(SpecError, match="cannot be the name of a kernel; accepted: letters"):
        kernels.add(name, image, modules)
    assert everything(store) == []


def test_a_name_that_is_taken_is_refused(store: Path, image: Path, modules: Path) -> None:
    before = kernels.add("mine", image, modules)
    with pytest.raises(SpecError, match="mine: there is a kernel of this name; accepted: another"):
        kernels.add("mine", image, modules)
    assert kernels.known() == [before]


def test_remove_takes_a_kernel_away(store: Path, image: Path, modules: Path) -> None:
    kernels.add("mine", image, modules)
    kernels.add("other", image, modules)
    kernels.remove("other")
    assert [kernel.name for kernel in kernels.known()] == ["mine"]
    kernels.remove("mine")
    assert kernels.known() == [] and everything(store) == []


@pytest.mark.parametrize(
    "about",
    [
        '{"release": ',
        "{}",
        '{"of": "another program", "name": "other", "release": "1", "origin": "", "identity": "", '
        '"added": 1, "iproute2": ""}',
        None,
    ],
)
def test_what_is_not_provably_a_kernel_of_redtail_stays(
    store: Path, image: Path, modules: Path, about: str | None
) -> None:
    """Neither a command that removes nor one that replaces takes a folder of others away."""
    kernels.add("other", image, modules)
    description = store / "other" / "kernel.json"
    description.unlink()
    if about is not None:
        description.write_text(about)
        with pytest.raises(StoreError, match=r"other/kernel\.json: is damaged, or not of redtail"):
            kernels.known()
    before = everything(store)
    with pytest.raises(RedtailError):
        kernels.remove("other")
    with pytest.raises(StoreError, match="other"):
        kernels._take_away(store / "other")
    assert everything(store) == before


@pytest.mark.parametrize("name", ["notes.txt", "modules/deeper/tun.ko", "link"])
def test_a_kernel_with_files_of_others_stays(
    store: Path, image: Path, modules: Path, tmp_path: Path, name: str
) -> None:
    kernels.add("mine", image, modules)
    path = store / "mine" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path) if name == "link" else path.write_text("mine")
    before = everything(store)
    with pytest.raises(StoreError, match=rf"{name}: is not of redtail, so the kernel stays"):
        kernels.remove("mine")
    assert everything(store) == before


def test_files_of_others_beside_kernels_stay(store: Path, image: Path, modules: Path) -> None:
    """What has a name like that of an unfinished file, and an old one, is not swept away."""
    store.mkdir(parents=True)
    names = (".tmp-backup", ".tmp-redtail-notes", ".tmp-redtail-x-host-1-2.txt", "machines/old")
    for name in names:
        path = store / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        os.utime(path, (1, 1))
    kernels.add("mine", image, modules)
    kernels.remove("mine")
    assert all((store / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize("about", ["[]", "{}", '{"release": 1, "origin": 2, "identity": 3}', "x"])
def test_a_damaged_description_is_told(store: Path, image: Path, modules: Path, about: str) -> None:
    kernels.add("mine", image, modules)
    (store / "mine" / "kernel.json").write_text(about)
    with pytest.raises(StoreError, match=r"kernel\.json: is damaged"):
        kernels.find("mine")


@pytest.mark.parametrize("part", ["image", "modules/tun.ko", "modules/modules.builtin"])
def test_files_that_were_changed_are_noticed(
    store: Path, image: Path, modules: Path, part: str
) -> None:
    kernels.add("mine", image, modules)
    path = store / "mine" / part
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(StoreError, match=r"mine: the files .* are not those .*kernel remove mine`"):
        kernels.find("mine").check()
    path.unlink()
    with pytest.raises(StoreError, match="mine"):
        kernels.find("mine").check()


def test_a_full_disk_leaves_nothing(
    store: Path, image: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match="No space left on device; make room, or REDTAIL_KERNELS"):
        kernels.add("mine", image, modules)
    assert everything(store) == [] and kernels.known() == []


def test_a_folder_that_cannot_be_made_is_told(
    image: Path, modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTAIL_KERNELS", str(image / "kernels"))
    with pytest.raises(StoreError, match="cannot be written: Not a directory; REDTAIL_KERNELS=DIR"):
        kernels.add("mine", image, modules)


def test_an_interrupt_leaves_nothing(
    store: Path, image: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(Cancelled, match="no kernel was added"):
        kernels.add("mine", image, modules)
    assert everything(store) == []


def test_a_killed_command_leaves_no_half_of_a_kernel(
    store: Path, image: Path, modules: Path
) -> None:
    code = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from redtail.backends.virtual import kernels
        os.rename = lambda *_: os.kill(os.getpid(), 9)
        kernels.add("mine", Path(sys.argv[1]), Path(sys.argv[2]))
        """
    )
    ran = subprocess.run([sys.executable, "-c", code, str(image), str(modules)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert len(everything(store)) == 1 and kernels.known() == []
    kernels.add("mine", image, modules)
    assert everything(store) == ["mine"]


# --- The archive ----------------------------------------------------------------------------


def unpacked(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Read an archive: mode and content by path, in its order."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert data[at : at + 6] == b"070701" and at % 4 == 0
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        begin = at + 110 + fields[11]
        begin += -begin % 4
        if name == "TRAILER!!!":
            return found
        assert fields[2:4] == [0, 0] and fields[5] == 0  # root, and no time
        found[name] = (fields[1], data[begin : begin + fields[6]])
        at = begin + fields[6]
        at += -at % 4


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with an `ip` and a `tc`, and an `ldd` that says what they need."""
    folder = tmp_path / "bin"
    folder.mkdir()
    library = tmp_path / "lib" / "glibc-hwcaps" / "x86-64-v3" / "libone.so.1"
    for path, text in (
        (library, "for newer processors"),
        (tmp_path / "lib" / "libone.so.1", "for all"),
        (tmp_path / "lib" / "loader.so.2", "the loader"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script(folder / "ip", "echo ip")
    script(folder / "tc", "echo tc")
    script(
        folder / "ldd",
        f"""
        case $1 in *ip) echo "	not a dynamic executable" >&2; exit 1;; esac
        echo "	linux-vdso.so.1 (0x00007f)"
        echo "	libone.so.1 => {library} (0x00007f)"
        echo "	{tmp_path}/lib/loader.so.2 (0x00007f)"
        """,
    )
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{textwrap.dedent(text)}\n")
    path.chmod(0o755)


def test_the_archive_has_what_a_guest_needs(
    store: Path, image: Path, modules: Path, programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_bytes(b"the agent")
    kernel = kernels.add("mine", image, modules)
    data = initramfs.build(kernel, tmp_path / "agent")
    found = unpacked(data)
    assert found["init"] == (0o100755, b"the agent")
    assert found["bin/ip"] == (0o100755, (programs / "ip").read_bytes())
    assert found["bin/tc"] == (0o100755, (programs / "tc").read_bytes())
    here = str(tmp_path / "lib").lstrip("/")
    assert found[f"{here}/libone.so.1"][1] == b"for all"
    assert found[f"{here}/loader.so.2"][1] == b"the loader"
    assert not any("hwcaps" in path for path in found)
    lines = found["modules"][1].decode().splitlines()
    assert lines == [f"/modules.d/{images.module_name(path)}.ko" for path in kernel.to_load()]
    assert "/modules.d/shared_part.ko" in lines
    for line, path in zip(lines, kernel.to_load(), strict=True):
        assert found[line.lstrip("/")] == (0o100644, path.read_bytes())
    for folder in ("dev", "proc", "sys", "run", "bin", "modules.d", here):
        assert found[folder] == (0o040755, b"")
    assert found["tmp"] == (0o041777, b"")
    order = list(found)
    for path in found:
        parent = str(Path(path).parent)
        assert parent == "." or order.index(parent) < order.index(path)
    os.utime(programs / "tc", (1, 1))
    assert initramfs.build(kernels.find("mine"), tmp_path / "agent") == data


def test_a_missing_agent_is_told(
    store: Path, image: Path, modules: Path, programs: Path, tmp_path: Path
) -> None:
    kernel = kernels.add("mine", image, modules)
    with pytest.raises(SpecError, match=r"none: the program for the guest .* `make dev` builds it"):
        initramfs.build(kernel, tmp_path / "none")


def test_a_missing_iproute2_is_told_as_the_backend_live_does(
    store: Path, image: Path, modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent").write_bytes(b"")
    kernel = kernels.add("mine", image, modules)
    monkeypatch.setattr(initramfs, "_ADMIN", "")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(SpecError, match="backend linux cannot run on this host: ") as refused:
        initramfs.build(kernel, tmp_path / "agent")
    reason = str(refused.value).partition("host: ")[2]
    assert "iproute2 (Debian, Ubuntu, Arch) or iproute (Fedora)" in reason
    monkeypatch.setattr(live, "_told", lambda _: subprocess.CompletedProcess([], 0, "", ""))
    assert reason in live.missing()


def test_a_missing_library_is_told(
    store: Path, image: Path, modules: Path, programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_bytes(b"")
    script(programs / "ldd", 'echo "	libmnl.so.0 => not found"')
    kernel = kernels.add("mine", image, modules)
    with pytest.raises(SpecError, match=r"bin/ip lacks a library: libmnl\.so\.0 => not found"):
        initramfs.build(kernel, tmp_path / "agent")


def test_a_changed_kernel_gets_no_archive(
    store: Path, image: Path, modules: Path, programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_bytes(b"")
    kernel = kernels.add("mine", image, modules)
    (store / "mine" / "image").write_bytes(bzimage() + b"x")
    with pytest.raises(StoreError, match="are not those that were put there"):
        initramfs.build(kernel, tmp_path / "agent")


# --- Packages -------------------------------------------------------------------------------


class Apt:
    """Stands for a distribution: programs of apt and dpkg that know the packages in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        self.programs.mkdir(parents=True)
        script(
            self.programs / "apt-cache",
            f"""
            {self.of_suite}
            name=${{3%%=*}}; version=${{3#$name}}
            test -e "$here/$name.txt" || {{ echo "E: No packages found" >&2; exit 100; }}
            case $version in ""|=$(sed -n 's/^Version: //p' "$here/$name.txt")) ;;
            *) exit 100;; esac
            cat "$here/$name.txt"
            """,
        )
        self.downloads(
            f"""
            {self.of_suite}
            case $1 in indextargets)
                echo "Other http://other/"; echo "Debian http://mirror/debian/"; exit;;
            esac
            case $2 in update)
                cat "$list" >> "{folder}/lists"
                cat "$conf" > "{folder}/conf"
                test -e "{folder}/refused" && {{ cat "{folder}/refused" >&2; exit 100; }}
                exit 0;;
            esac
            shift 2
            for each; do cp "$here/${{each%%=*}}.tar" "./${{each%%=*}}_${{each#*=}}.deb"; done
            echo "$@" >> "{folder}/downloads"
            """
        )
        script(self.programs / "dpkg-deb", 'tar -C "$3" -xf "$2"')
        monkeypatch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setattr("platform.machine", lambda: "x86_64")
        self.monkeypatch = monkeypatch
        self.system("debian")

    @property
    def of_suite(self) -> str:
        """Lines that let $here be the folder of the suite that a configuration names."""
        return (
            'while test "$1" = -o; do shift 2; done; '
            f'here="{self.folder}"; if test "$1" = -c; then conf=$2; shift 2; '
            'list="$(dirname "$conf")/sources.list"; '
            'here="$here/$(sed "s/.* \\([^ ]*\\) main/\\1/" "$list")"; fi'
        )

    def system(self, name: str, like: str = "") -> None:
        about = {"ID": name, "ID_LIKE": like, "PRETTY_NAME": name.title()}
        self.monkeypatch.setattr("platform.freedesktop_os_release", lambda: about)

    def downloads(self, text: str) -> None:
        script(self.programs / "apt-get", text)

    def package(
        self,
        name: str,
        version: str = "1.0",
        depends: str = "",
        root: Path | None = None,
        suite: str = "",
    ) -> None:
        folder = self.folder / suite
        folder.mkdir(exist_ok=True)
        fields = {"Package": name, "Version": version, "Depends": depends}
        sizes = {"Size": "100", "Installed-Size": "1"}
        text = "".join(f"{key}: {value}\n" for key, value in {**fields, **sizes}.items() if value)
        (folder / f"{name}.txt").write_text(f"{text}Description: a\n more: text\n\n")
        with open(folder / f"{name}.tar", "wb") as file:
            words = ["tar", "-c", "."] if root else ["tar", "-c", "-T", "/dev/null"]
            subprocess.run(words, cwd=root, stdout=file, check=True)

    def asked(self) -> list[str]:
        file = self.folder / "downloads"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    return Apt(tmp_path / "apt", monkeypatch)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a package with a kernel has in it."""
    root = tmp_path / "root"
    make_modules(root / "lib" / "modules" / RELEASE)
    (root / "boot").mkdir()
    (root / "boot" / f"vmlinuz-{RELEASE}").write_bytes(bzimage())
    return root


@pytest.fixture
def debian(apt: Apt, tree: Path) -> Apt:
    apt.package("linux-image-cloud-amd64", "1.0", f"linux-image-{RELEASE} (= 1.0)")
    apt.package(
        f"linux-image-{RELEASE}", "1.0", "kmod, initramfs-tools (>= 1) | linux-initramfs-tool", tree
    )
    return apt


def test_the_kernel_of_debian_is_fetched(store: Path, debian: Apt) -> None:
    said: list[str] = []
    kernel = kernels.fetch(progress=said.append)
    assert kernel == kernels.find() == kernels.find(RELEASE)
    assert kernel.origin == f"linux-image-{RELEASE} 1.0"
    assert "fq_pie" in kernel.queues() and len(kernel.to_load()) == 8
    assert debian.asked() == ["linux-image-cloud-amd64=1.0", f"linux-image-{RELEASE}=1.0"]
    assert said[0] == f"downloading linux-image-{RELEASE} 1.0 (200 B)"
    assert everything(store) == [RELEASE]


def test_a_kernel_that_is_here_is_not_downloaded_again(
    store: Path, debian: Apt, image: Path, modules: Path
) -> None:
    first = kernels.fetch()
    kernels.add("mine", image, modules)
    said: list[str] = []
    again = kernels.fetch(f"linux-image-{RELEASE}", said.append)
    assert said == [f"{first.origin} is here already"] and len(debian.asked()) == 2
    assert kernels.find() == again  # it is the default
    assert again.identity == first.identity


def test_a_newer_version_replaces_the_older_of_the_same_release(
    store: Path, debian: Apt, tree: Path
) -> None:
    before = kernels.fetch()
    (tree / "boot" / f"vmlinuz-{RELEASE}").write_bytes(bzimage() + b"newer")
    debian.package(f"linux-image-{RELEASE}", "1.1", root=tree)
    after = kernels.fetch(f"linux-image-{RELEASE}=1.1")
    assert kernels.known() == [after] and after.origin.endswith(" 1.1")
    assert after.identity != before.identity
    after.check()


def test_a_kernel_of_the_user_is_not_replaced(
    store: Path, debian: Apt, image: Path, modules: Path
) -> None:
    own = kernels.add(RELEASE, image, modules)
    with pytest.raises(SpecError, match=f"{RELEASE}: there is a kernel of this name, from {image}"):
        kernels.fetch()
    assert kernels.known() == [own] and everything(store) == [RELEASE]


def test_the_kernel_of_ubuntu_is_put_together_from_its_packages(
    store: Path, apt: Apt, tree: Path, tmp_path: Path
) -> None:
    extra = tmp_path / "extra"
    sched = Path("lib/modules", RELEASE, "kernel/net/sched")
    (extra / sched).mkdir(parents=True)
    (tree / sched / "sch_fq_pie.ko").rename(extra / sched / "sch_fq_pie.ko")
    boot = tmp_path / "image"
    boot.mkdir()
    (tree / "boot").rename(boot / "boot")
    apt.system("linuxmint", "ubuntu debian")
    apt.package("linux-image-virtual", "6.1.7", f"linux-image-{RELEASE}")
    apt.package(f"linux-image-{RELEASE}", "6.1.7", f"kmod, linux-modules-{RELEASE}", boot)
    apt.package(f"linux-modules-{RELEASE}", "6.1.7", "linux-base", tree)
    apt.package(f"linux-modules-extra-{RELEASE}", "6.1.7", root=extra)
    kernel = kernels.fetch()
    assert kernel.origin == f"linux-image-{RELEASE} 6.1.7"
    assert {"pie", "fq_pie"} <= set(kernel.queues())
    assert f"linux-modules-extra-{RELEASE}=6.1.7" in apt.asked()


@pytest.mark.parametrize("relation", ["", " (= 1.0)", " (>= 0.9)", ":amd64"])
def test_a_part_is_found_whatever_version_is_asked_for(
    store: Path, apt: Apt, tree: Path, relation: str
) -> None:
    apt.package("linux-image-own", depends=f"linux-image-{RELEASE}{relation}")
    apt.package(f"linux-image-{RELEASE}", root=tree)
    assert kernels.fetch("linux-image-own").origin == f"linux-image-{RELEASE} 1.0"


def test_a_part_is_of_the_version_that_is_asked_for(store: Path, apt: Apt) -> None:
    apt.package("linux-image-own", depends=f"linux-image-{RELEASE} (= 0.9)")
    apt.package(f"linux-image-{RELEASE}")
    with pytest.raises(SpecError, match=f"^linux-image-{RELEASE}=0.9: apt does not know"):
        kernels.fetch("linux-image-own")


def test_extra_modules_of_another_version_are_left_out(store: Path, apt: Apt, tree: Path) -> None:
    apt.package(f"linux-image-{RELEASE}", "6.1.7", f"linux-modules-{RELEASE}", tree)
    apt.package(f"linux-modules-{RELEASE}", "6.1.7")
    apt.package(f"linux-modules-extra-{RELEASE}", "6.1.8")
    kernels.fetch(f"linux-image-{RELEASE}")
    assert apt.asked() == [f"linux-image-{RELEASE}=6.1.7", f"linux-modules-{RELEASE}=6.1.7"]


@pytest.mark.parametrize("name", ["-o", "", "a b", "linux image", "LINUX", "a=b c", "--help"])
def test_a_package_that_is_no_name_is_refused(store: Path, apt: Apt, name: str) -> None:
    with pytest.raises(SpecError, match="cannot be the name of a package; accepted: a name such"):
        kernels.fetch(name)


def test_a_package_that_apt_does_not_know_is_told_with_what_to_do(store: Path, apt: Apt) -> None:
    for name in (None, "linux-image-9"):
        with pytest.raises(SpecError, match=r"apt does not know this .* `apt-get update` renews"):
            kernels.fetch(name)
    assert everything(store) == []


def test_a_package_without_a_kernel_is_refused(store: Path, apt: Apt, tmp_path: Path) -> None:
    apt.package("bash", depends="libc6")
    with pytest.raises(SpecError, match="bash: is not a package with a kernel, and depends on no"):
        kernels.fetch("bash")
    apt.package("linux-image-empty")
    with pytest.raises(SpecError, match="linux-image-empty: the package has no image"):
        kernels.fetch("linux-image-empty")
    assert everything(store) == []


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (
            "E: Failed to fetch http://x/y.deb  Temporary failure resolving 'x'\n"
            "E: Unable to fetch some archives.",
            RedtailError,
            "cannot be downloaded: Failed to fetch .* resolving 'x' Unable to fetch .*; check this "
            "computer's network",
        ),
        (
            "W: unsandboxed\nE: Failed to fetch http://x/y.deb  404  Not Found",
            RedtailError,
            "downloaded: Failed to fetch .* Not Found; as root `apt-get update` renews",
        ),
        (
            "E: You don't have enough free space in /x/.",
            StoreError,
            "cannot be downloaded: You don't have enough free space in /x/.; make room",
        ),
        ("", RedtailError, "no reason was told"),
    ],
    ids=["network", "old-lists", "full", "silent"],
)
def test_a_download_that_fails_is_told_and_leaves_nothing(
    store: Path, debian: Apt, said: str, kind: type[RedtailError], told: str
) -> None:
    (debian.folder / "said").write_text(said)
    debian.downloads(f'cat "{debian.folder}/said" >&2; echo half > x.deb; exit 100')
    with pytest.raises(kind, match=told) as failed:
        kernels.fetch()
    assert not isinstance(failed.value, SpecError)
    assert everything(store) == []


def test_a_package_that_cannot_be_unpacked_is_told(store: Path, debian: Apt) -> None:
    script(debian.programs / "dpkg-deb", "echo 'dpkg-deb: error: not a Debian archive' >&2; exit 2")
    with pytest.raises(RedtailError, match=r"\.deb cannot be unpacked: dpkg-deb: error: not a Deb"):
        kernels.fetch()
    assert everything(store) == []


def test_a_download_without_files_is_told(store: Path, debian: Apt) -> None:
    debian.downloads("exit 0")
    with pytest.raises(RedtailError, match="apt-get has downloaded 0 of the 2 packages"):
        kernels.fetch()
    assert everything(store) == []


def test_too_little_room_is_told_before_the_download(
    store: Path, debian: Apt, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(packages.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(StoreError, match=r"needs 2\.2 kB, and 1\.0 kB are free; make room"):
        kernels.fetch()
    assert debian.asked() == [] and everything(store) == []


def test_ctrl_c_ends_the_download_and_leaves_nothing(store: Path, debian: Apt) -> None:
    begun = debian.folder / "begun"
    # The second process would hold the pipes open if it were not ended.
    debian.downloads(f'echo half > x.deb; sleep 600 & touch "{begun}"; wait')

    def interrupt() -> None:
        last = time.monotonic() + 600
        while not begun.exists() and time.monotonic() < last:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Cancelled, match="interrupted; no kernel was fetched"):
        kernels.fetch()
    thread.join()
    assert everything(store) == []


def test_elsewhere_than_on_debian_it_is_said_what_to_do(
    store: Path, apt: Apt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apt.system("devuan-like")
    with pytest.raises(
        SpecError, match=r"which package of Devuan-Like has .*kernel fetch PACKAGE`"
    ):
        kernels.fetch()
    apt.system("fedora")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(SpecError, match="Fedora has no apt-cache; `redtail kernel add NAME"):
        kernels.fetch()
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(SpecError, match="on aarch64; kernels can be fetched on Linux on x86-64 al"):
        kernels.fetch()


# --- Another suite --------------------------------------------------------------------------


@pytest.fixture
def sid(debian: Apt, tree: Path, tmp_path: Path) -> Apt:
    """A distribution whose suite sid has a kernel, and iproute2 with a library and a loader."""
    debian.package("linux-image-cloud-amd64", "2.0", f"linux-image-{RELEASE} (= 2.0)", suite="sid")
    debian.package(
        f"linux-image-{RELEASE}",
        "2.0",
        f"linux-base-{RELEASE} (= 2.0), linux-base (>= 4)",
        tree,
        suite="sid",
    )
    debian.package(f"linux-base-{RELEASE}", "2.0", suite="sid")
    tools = tmp_path / "tools"
    for path in ("usr/bin/ip", "usr/sbin/tc", "usr/share/doc/tc", "usr/lib/ifstate/ip"):
        (tools / path).parent.mkdir(parents=True, exist_ok=True)
        (tools / path).write_text(path)
    debian.package("iproute2", "7.3.0-1", "debconf, libone1 (>= 1), libc6", tools, suite="sid")
    libraries = tmp_path / "libraries"
    (libraries / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (libraries / "usr/lib/x86_64-linux-gnu/libone.so.1").write_text("one")
    (libraries / "usr/lib64").mkdir()
    # The loader, which is asked what a program needs: library path $3, program $5.
    script(
        libraries / "usr/lib64/ld-linux-x86-64.so.2",
        """
        case $5 in */tc) echo "	libone.so.1 => ${3%%:*}/libone.so.1 (0x00007f)";; esac
        echo "	/lib64/ld-linux-x86-64.so.2 => $0 (0x00007f)"
        case $5 in *agent) grep -q old "$5" && echo "agent: version X not found" >&2;; esac
        exit 0
        """,
    )
    debian.package("libc6", "2.43", root=libraries, suite="sid")
    debian.package("libone1", "1.0", "libc6", suite="sid")
    return debian


def test_a_kernel_of_another_suite_brings_its_iproute2(
    store: Path, sid: Apt, tmp_path: Path
) -> None:
    kernel = kernels.fetch(suite="sid")
    assert kernel.origin == f"linux-image-{RELEASE} 2.0" and kernel.iproute2 == "7.3.0-1"
    programs = {name: path.read_text() for name, (_, path) in kernel.programs.items()}
    loader = programs.pop("lib64/ld-linux-x86-64.so.2")
    assert programs == {
        "bin/ip": "usr/bin/ip",
        "bin/tc": "usr/sbin/tc",
        "lib/x86_64-linux-gnu/libone.so.1": "one",
    }
    assert f"linux-base-{RELEASE}=2.0" in sid.asked() and "debconf=" not in " ".join(sid.asked())
    (tmp_path / "agent").write_text("new")
    found = unpacked(initramfs.build(kernel, tmp_path / "agent"))
    assert found["bin/tc"] == (0o100755, b"usr/sbin/tc")
    assert found["lib64/ld-linux-x86-64.so.2"] == (0o100755, loader.encode())
    assert everything(store) == [RELEASE]


def test_the_settings_of_apt_are_not_used_to_update_another_suite(store: Path, sid: Apt) -> None:
    kernels.fetch(suite="sid")
    line = (sid.folder / "lists").read_text()
    assert re.fullmatch(
        r"deb \[arch=amd64( signed-by=\S+)?\] http://mirror/debian/ sid main\n", line
    )
    conf = (sid.folder / "conf").read_text()
    for key in ("Dir::State", "Dir::Cache", "Dir::Etc::SourceList", "Dir::State::status"):
        assert f'{key} "{store}/' in conf
    assert "#clear APT::Update::Post-Invoke;" in conf


def test_the_programs_of_a_kernel_are_part_of_its_identity(store: Path, sid: Apt) -> None:
    kernel = kernels.fetch(suite="sid")
    assert kernels.fetch() != kernel
    kernel = kernels.fetch(suite="sid")
    kernel.check()
    (kernel.image.parent / "programs/bin/tc").write_text("changed")
    with pytest.raises(StoreError, match="are not those that were put there"):
        kernel.check()


def test_a_suite_with_an_older_c_library_than_the_agent_needs_is_refused(
    store: Path, sid: Apt, tmp_path: Path, programs: Path
) -> None:
    kernel = kernels.fetch(suite="sid")
    (tmp_path / "agent").write_text("old")
    with pytest.raises(SpecError, match="its suite has an older C library than this computer"):
        initramfs.build(kernel, tmp_path / "agent")


def test_a_kernel_of_the_user_can_have_the_iproute2_of_a_suite(
    store: Path, sid: Apt, image: Path, modules: Path
) -> None:
    fetched = kernels.fetch(suite="sid")
    mine = kernels.add("mine", image, modules, fetched.name)
    assert mine.iproute2 == "7.3.0-1" and list(mine.programs) == list(fetched.programs)
    kernels.add("plain", image, modules)
    with pytest.raises(SpecError, match="--iproute2 plain: no iproute2 was fetched with this kern"):
        kernels.add("other", image, modules, "plain")


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (
            "E: The repository 'http://mirror/debian nosuch Release' does not have a Release file.",
            SpecError,
            "--suite sid: this computer's mirror has no such suite; accepted: the name of a suite",
        ),
        (
            "W: GPG error: signatures couldn't be verified: NO_PUBKEY 762F67A0B2C39DE4",
            SpecError,
            "its signature cannot be checked with .*; a newer package debian-archive-keyring",
        ),
        (
            "E: Failed to fetch http://mirror/  Temporary failure resolving 'mirror'",
            RedtailError,
            "the list of packages of sid cannot be downloaded: Failed .*; check this comp",
        ),
    ],
    ids=["unknown", "keys", "network"],
)
def test_a_suite_that_cannot_be_had_is_told_and_leaves_nothing(
    store: Path, sid: Apt, said: str, kind: type[RedtailError], told: str
) -> None:
    (sid.folder / "refused").write_text(said)
    with pytest.raises(kind, match=told) as failed:
        kernels.fetch(suite="sid")
    assert isinstance(failed.value, SpecError) == (kind is SpecError)
    assert everything(store) == []


def test_what_cannot_be_a_suite_is_refused(store: Path, sid: Apt) -> None:
    for name in ("", "sid main", "../sid", "-o", "[trusted=yes]"):
        with pytest.raises(SpecError, match="cannot be the name of a suite"):
            kernels.fetch(suite=name)
    with pytest.raises(SpecError, match=r"^linux-image-none: sid has no such package"):
        kernels.fetch("linux-image-none", suite="sid")
    sid.system("devuan")
    with pytest.raises(SpecError, match="this computer's apt names no mirror of its distribution"):
        kernels.fetch(suite="sid")
    assert everything(store) == []


def test_a_library_that_no_package_has_is_told(store: Path, sid: Apt, tmp_path: Path) -> None:
    missing = tmp_path / "libraries" / "usr/lib64/ld-linux-x86-64.so.2"
    script(missing, 'echo "	libtwo.so.2 => /lib/x86_64-linux-gnu/libtwo.so.2 (0x00007f)"')
    sid.package("libc6", "2.43", root=tmp_path / "libraries", suite="sid")
    with pytest.raises(SpecError, match=r"ip needs libtwo\.so\.2, which is in no package that ipr"):
        kernels.fetch(suite="sid")
    assert everything(store) == []


# --- The command ----------------------------------------------------------------------------


@pytest.fixture
def said(store: Path) -> Iterator[Callable[..., tuple[int, str]]]:
    def run(*words: Any) -> tuple[int, str]:
        ran = CliRunner().invoke(app, ["kernel", *map(str, words)])
        return ran.exit_code, ran.output

    yield run


def test_the_command_adds_lists_and_removes(
    said: Callable[..., tuple[int, str]], store: Path, image: Path, modules: Path
) -> None:
    code, text = said("list")
    assert code == 0 and f"{store}: no kernels; `redtail kernel fetch`" in text
    assert said("list", "--json") == (0, "[]\n")
    code, text = said("add", "mine", "--image", image, "--modules", modules)
    assert code == 0 and text == f"mine: Linux {RELEASE}, 9 queues, 4 congestion controls\n"
    said("add", "other", "--image", image, "--modules", modules)
    code, text = said("list")
    assert code == 0 and "other (the default)\n" in text and "mine\n" in text
    assert f"  origin    {image}, {modules}\n" in text
    assert "  controls  4: bbr, cubic, reno, vegas\n" in text
    found = json.loads(said("list", "--json")[1])
    assert [(each["name"], each["default"]) for each in found] == [("mine", False), ("other", True)]
    assert found[0]["release"] == RELEASE and "fq_pie" in found[0]["queues"]
    assert found[0]["bytes"] > 0 and len(found[0]["identity"]) == 64
    assert said("remove", "other") == (0, "other: removed\n")
    code, text = said("remove", "other")
    assert code == 2 and "accepted: mine" in text


def test_the_command_fetches(said: Callable[..., tuple[int, str]], debian: Apt) -> None:
    code, text = said("fetch")
    assert code == 0 and "note: downloading" in text
    assert f"{RELEASE}: 9 queues, 4 congestion controls, from linux-image-{RELEASE} 1.0\n" in text


def test_the_command_fetches_from_another_suite(
    said: Callable[..., tuple[int, str]], sid: Apt
) -> None:
    code, text = said("fetch", "--suite", "sid")
    assert code == 0 and "note: getting the list of packages of sid" in text
    assert f"from linux-image-{RELEASE} 2.0, with iproute2 7.3.0-1\n" in text
    assert "  iproute2  7.3.0-1\n" in said("list")[1]
    assert json.loads(said("list", "--json")[1])[0]["iproute2"] == "7.3.0-1"


def test_the_command_tells_bad_input_and_failures_apart(
    said: Callable[..., tuple[int, str]], debian: Apt, image: Path, modules: Path
) -> None:
    code, text = said("add", "mine", "--image", modules / "modules.builtin", "--modules", modules)
    assert code == 2 and "error: " in text and "is not the image of a kernel" in text
    assert said("fetch", "linux-image-none")[0] == 2
    debian.downloads("exit 100")
    assert said("fetch")[0] == 1
