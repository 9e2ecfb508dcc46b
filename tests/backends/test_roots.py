"""Root filesystems for programs in a guest: from folders, archives, and this computer."""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from redtail.backends.virtual import collecting, elf, initramfs, roots
from redtail.errors import SpecError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.uname().machine != "x86_64",
    reason="guests are Linux on x86-64, and have programs for it",
)


def compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        pytest.skip("needs a C compiler")
    return found


def compiled(path: Path, text: str, *arguments: str) -> Path:
    source = path.with_name(f"{path.name}.c")
    source.write_text(text)
    subprocess.run([compiler(), "-o", str(path), str(source), *arguments], check=True)
    return path


# --- Folders and archives -------------------------------------------------------------------


def test_a_folder_is_a_root_whose_identity_is_that_of_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "bin/tool").write_text("one")
    (folder / "bin/tool").chmod(0o4755)
    (folder / "out").symlink_to("../../etc/shadow")
    os.mkfifo(folder / "pipe")
    (folder / "proc").mkdir()
    (folder / "proc/left").write_text("never seen")
    root = roots.of(folder)
    assert root.entries["bin/tool"] == (stat.S_IFREG | 0o755, b"one")
    # A link is not followed here, and in the guest it leads to what is there.
    assert root.entries["out"] == (stat.S_IFLNK | 0o777, b"../../etc/shadow")
    assert root.entries["empty"][0] == stat.S_IFDIR | 0o755
    assert "pipe" not in root.entries and "proc/left" not in root.entries
    assert b"root:x:0:0" in root.entries["etc/passwd"][1]
    os.utime(folder / "bin/tool", (1, 1))
    assert roots.of(folder).identity == root.identity
    (folder / "bin/tool").write_text("two")
    assert roots.of(folder).identity != root.identity


def test_an_archive_is_the_same_root_as_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/tool").write_text("one")
    (folder / "bin/alias").symlink_to("tool")
    os.link(folder / "bin/tool", folder / "bin/again")
    for name in ("root.tar", "root.tar.gz", "root.tar.xz"):
        with tarfile.open(tmp_path / name, f"w:{name.partition('.tar')[2][1:]}") as archive:
            archive.add(folder, ".")
        assert roots.of(tmp_path / name).identity == roots.of(folder).identity, name


@pytest.mark.parametrize("name", ["../out", "a/../../out", "a/b\0c"])
def test_a_path_that_leads_out_of_an_archive_is_refused(name: str, tmp_path: Path) -> None:
    if "\0" in name:
        builder = roots.Builder("it", "programs.root")
        with pytest.raises(SpecError, match="leads out"):
            roots._inside(builder, name)
        return
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(SpecError, match="which leads out of it; accepted: paths below it") as error:
        roots.of(tmp_path / "bad.tar")
    assert error.value.key == "programs.root"


def test_what_is_no_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "none").mkdir()
    damaged = tmp_path / "cut.tar.gz"
    with tarfile.open(damaged, "w:gz") as archive:
        member = tarfile.TarInfo("bin/tool")
        member.size = 100_000
        archive.addfile(member, io.BytesIO(os.urandom(100_000)))
    damaged.write_bytes(damaged.read_bytes()[:50_000])
    for name, problem in {
        "text": "is no archive of tar",
        "none": "is empty",
        "gone": "no such file or folder",
        "cut.tar.gz": "cannot be unpacked",
    }.items():
        with pytest.raises(SpecError, match=f"{problem}.*accepted: a folder, or an archive"):
            roots.of(tmp_path / name)


def test_a_root_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    with (folder / "sparse").open("wb") as file:
        file.truncate(roots.MOST_BYTES + 1)  # refused before it is read
    with pytest.raises(SpecError, match="has more than 512 MiB"):
        roots.of(folder)
    (folder / "sparse").unlink()
    for number in range(4):
        (folder / str(number)).touch()
    monkeypatch.setattr(roots, "MOST_FILES", 3)
    with pytest.raises(SpecError, match="has more than 3 files"):
        roots.of(folder)


def test_the_place_of_a_folder_cannot_be_a_link(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        link = tarfile.TarInfo("lib")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        archive.addfile(link)
        member = tarfile.TarInfo("lib/file")
        archive.addfile(member, io.BytesIO())
    with pytest.raises(SpecError, match="lib is a file or a link, and lib/file lies in it"):
        roots.of(tmp_path / "bad.tar")


def test_modules_that_python_has_compiled_are_valid_at_any_time(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    source = tmp_path / "thing.py"
    source.write_text("x = 1\n")
    here = {name: it for name, it in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    words = [sys.executable, "-m", "compileall", "-q", str(tmp_path)]
    subprocess.run(words, env=here, check=True)
    (name,) = (path.name for path in (tmp_path / "__pycache__").iterdir())
    before = (tmp_path / "__pycache__" / name).read_bytes()
    assert before[4:8] == bytes(4)
    data = roots.of(tmp_path).entries[f"__pycache__/{name}"][1]
    assert data[4:8] == b"\1\0\0\0" and data[16:] == before[16:]  # PEP 552: unchecked
    # Python takes it though the source has another time and text.
    source.write_text("x = 2\n")
    (tmp_path / "__pycache__" / name).write_bytes(data)
    ask = [sys.executable, "-c", "import thing; print(thing.x)"]
    told = subprocess.run(ask, cwd=tmp_path, env=here, capture_output=True, text=True, check=True)
    assert told.stdout == "1\n"


# --- Programs of this computer --------------------------------------------------------------


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of tests, which may be in /tmp, can be in a root."""
    monkeypatch.setattr(roots, "MOUNTED", ("proc",))


def test_a_program_below_what_the_guest_mounts_is_refused(tmp_path: Path) -> None:
    program = Path("/dev/shm") / f"redtail-test-{os.getpid()}"
    try:
        compiled(program, "int main(void) { return 0; }")
        with pytest.raises(SpecError, match=r"is in a folder of which the guest has its own"):
            collecting.collected([], [str(program)])
    finally:
        program.unlink(missing_ok=True)
        program.with_name(f"{program.name}.c").unlink(missing_ok=True)


def test_libraries_are_those_that_the_loader_finds(tmp_path: Path, anywhere: None) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    compiled(folder / "libone.so", "int one(void) { return 1; }", "-shared", "-fPIC")
    program = compiled(
        tmp_path / "tool",
        "int one(void); int main(void) { return one(); }",
        *(f"-L{folder}", "-lone", "-Wl,-rpath,$ORIGIN/lib"),
    )
    found = elf.read(program.read_bytes())
    assert found is not None
    assert found.needed[0] == "libone.so" and found.loader.startswith("/lib64/")
    root = collecting.collected([], [str(program)])
    assert str(folder / "libone.so").lstrip("/") in root.entries
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        path = line.partition("=>")[2].split(" (")[0].strip() or line.split()[0]
        if path.startswith("/"):
            assert os.path.realpath(path).lstrip("/") in root.entries, line
    # A library that is gone is named.
    (folder / "libone.so").unlink()
    with pytest.raises(SpecError, match=r"tool needs the library libone\.so, which is not on this"):
        collecting.collected([], [str(program)])


def test_nothing_is_executed(tmp_path: Path, anywhere: None) -> None:
    # What `ldd` starts is the loader that a file names.
    program = bytearray(compiled(tmp_path / "tool", "int main(void) { return 0; }").read_bytes())
    trap = tmp_path / "l"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    trap.chmod(0o755)
    loader = elf.read(bytes(program))
    assert loader is not None
    at = program.index(loader.loader.encode())
    name = str(trap).encode()[: len(loader.loader)]
    program[at : at + len(loader.loader)] = name.ljust(len(loader.loader), b"\0")
    (tmp_path / "tool").write_bytes(program)
    with pytest.raises(SpecError):
        collecting.collected([], [str(tmp_path / "tool")])
    assert not (tmp_path / "started").exists()


def test_damaged_programs_are_refused(tmp_path: Path, anywhere: None) -> None:
    program = compiled(tmp_path / "tool", "int main(void) { return 0; }")
    whole = program.read_bytes()
    other = bytearray(whole)
    other[18:20] = struct.pack("<H", 183)  # EM_AARCH64
    wild = bytearray(whole)
    wild[32:40] = struct.pack("<Q", 1 << 60)  # a table far outside
    for data, problem in {
        bytes(other): "for another processor than x86-64",
        bytes(wild): "its tables are damaged",
        whole[:100]: "its tables are damaged",
    }.items():
        program.write_bytes(data)
        with pytest.raises(SpecError, match=f"tool cannot be loaded: .*{problem}"):
            collecting.collected([], [str(program)])
    # Any change of any byte of the first tables is refused or read, and never anything else.
    for at in range(0, 1024, 3):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        try:
            elf.read(bytes(changed))
        except ValueError:
            continue


def test_programs_of_command_lines_are_found(
    tmp_path: Path, anywhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    compiled(own / "tool", "int main(void) { return 0; }")
    script = own / "script"
    script.write_text("#!/usr/bin/env tool\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    lines = ['GREETING=x sleep 1; exec sh -c "script --port {port} | cat" >{out}/log']
    found = collecting.collected(lines).entries
    for name in ("tool", "script"):
        assert str(own / name).lstrip("/") in found
        assert found[f"usr/local/bin/{name}"] == (stat.S_IFLNK | 0o777, os.fsencode(own / name))
    for name in ("sh", "sleep", "cat", "env"):
        assert os.path.realpath(shutil.which(name) or "").lstrip("/") in found, name
    assert not any(path.endswith("/log") for path in found)
    assert collecting.collected(lines).identity == collecting.collected(lines).identity


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no-such-program", "the program no-such-program is not installed"),
        ("/no/such/file", "/no/such/file: no such file or folder"),
        ("./here", "./here: is relative"),
    ],
)
def test_a_program_that_is_not_there_is_told(name: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem) as error:
        collecting.collected([], [name])
    assert error.value.key == "programs.with" and "accepted: " in str(error.value)


def test_links_in_a_circle_are_refused(tmp_path: Path, anywhere: None) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data").write_text("x")
    (folder / "to-data").symlink_to("data")
    (tmp_path / "far").write_text("y")
    (folder / "to-far").symlink_to("../far")
    (folder / "round").symlink_to("round")
    found = collecting.collected([], [str(folder)]).entries
    here = str(folder).lstrip("/")
    assert found[f"{here}/to-data"][1] == b"data" and found[f"{here}/data"][1] == b"x"
    assert found[str(tmp_path / "far").lstrip("/")][1] == b"y"
    assert found[f"{here}/round"] == (stat.S_IFLNK | 0o777, b"round")  # as it is, and not followed


def test_a_virtual_environment_is_taken_with_its_packages(tmp_path: Path, anywhere: None) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True
    )
    (packages,) = (tmp_path / "env/lib").glob("python3.*/site-packages")
    (packages / "mine.py").write_text("x = 1\n")
    python = tmp_path / "env/bin/python"
    found = collecting.collected([f"{python} client.py"]).entries
    assert str(packages / "mine.py").lstrip("/") in found
    assert str(tmp_path / "env/pyvenv.cfg").lstrip("/") in found
    assert any(path.endswith("/json/__init__.py") for path in found)
    assert not any("/idlelib/" in path or "/test/" in path for path in found)


def test_the_archive_of_a_guest_has_links_and_folders() -> None:
    entries = {
        "programs/bin": (stat.S_IFLNK | 0o777, b"usr/bin"),
        "programs/empty": (stat.S_IFDIR | 0o755, b""),
        "init": (0o755, b"x"),
    }
    data = initramfs.archive(entries)
    assert data.count(b"programs/empty\0") == 1
    at = data.index(b"programs/bin\0")
    mode = int(data[at - 110 + 14 : at - 110 + 22], 16)
    assert mode == stat.S_IFLNK | 0o777 and data[at + 14 :].lstrip(b"\0").startswith(b"usr/bin")
