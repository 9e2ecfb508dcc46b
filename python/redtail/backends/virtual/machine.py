"""A virtual machine that makes one run: QEMU without help of the processor, counting instructions.

Its clock advances by one nanosecond with each instruction that it executes, and jumps to the next
timer when it idles ("TCG Instruction Counting", docs/devel/tcg-icount of QEMU). So what happens in
it depends neither on this computer's speed nor on its load. Snapshots save the time to boot: the
machine is stopped before it is told what to run, saved, and goes on from there for each run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail.backends import virtual
from redtail.backends.real import Stop
from redtail.backends.virtual import initramfs, snapshots
from redtail.backends.virtual.kernels import Kernel
from redtail.backends.virtual.roots import Root
from redtail.engine import realtime
from redtail.errors import Cancelled, RunError
from redtail.store import writing

PROGRAM = "qemu-system-x86_64"

MEMORY_MIB = 512
"""The guest's memory. Linux and the agent take 60 MiB, and 64 connections 30 MiB more."""

PROGRAMS_MIB = 512
"""Further memory of a guest with programs of the user, besides two times their root filesystem: the
archive, and what is unpacked from it. A program in Python takes 30 MiB."""

MIB = 1 << 20

TRANSLATED_MIB = 256
"""Room for translated code. A run fills 30 to 60 MiB of it."""

# mitigations, preempt, lsm, audit, psi, and all after nokaslr: what costs instructions and changes
# nothing here. The time stamp counter is the clock that counts instructions, at 1 GHz.
COMMAND_LINE = (
    "console=ttyS0 quiet panic=-1 tsc=reliable tsc_early_khz=1000000 mitigations=off preempt=none "
    "random.trust_cpu=on idle=halt no_timer_check lsm= audit=0 psi=0 norandmaps nokaslr "
    "init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off cgroup_disable=memory"
)

# -seed, -rtc: random numbers and the date of the machine are always the same. erms, fsrm: with
# them the kernel copies by instructions that count as one for each byte. smap, la57: a guard of
# memory and a fifth level of page tables, which cost time in each miss of QEMU's own tables.
ARGUMENTS = (
    *("-accel", f"tcg,tb-size={TRANSLATED_MIB}", "-icount", "shift=0,sleep=off"),
    *("-cpu", "max,-erms,-fsrm,-smap,-la57", "-machine", "q35,hpet=off"),
    *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
    *("-seed", "1", "-rtc", "base=2020-01-01,clock=vm"),
    *("-device", "pvpanic", "-action", "panic=pause"),
    *("-append", COMMAND_LINE),
)

SILENCE_CPU_S = 300.0
"""A guest that has computed for so long without a sign of life hangs: a second of its time has 1e9
instructions, which take some 10 s."""

SILENCE_S = 60.0
"""A guest that has neither computed nor given a sign of life for so long hangs."""

TOO_LONG_S = 60
"""A guest that has given signs of life for so much longer than its run should take hangs."""

# A line of the console can be long, and a panic has many.
CONSOLE_END = 2000


@dataclass(frozen=True)
class Guest:
    """What machines of a kind have in common.

    Attributes:
        kernel: what they start.
        archive: what they start with (`initramfs`).
        qemu: QEMU's version.
        memory_mib: their memory.
    """

    kernel: Kernel
    archive: bytes
    qemu: str
    memory_mib: int = MEMORY_MIB

    @staticmethod
    def of(kernel: Kernel, qemu: str, root: Root | None = None) -> Guest:
        """Return the guest with a kernel, and with a root filesystem for programs of the user.

        Raises:
            SpecError: a program for it is missing.
            StoreError: the kernel's files are not those that were fetched or added.
        """
        more = PROGRAMS_MIB + 2 * -(-root.size // MIB) if root else 0
        return Guest(kernel, initramfs.build(kernel, virtual.AGENT, root), qemu, MEMORY_MIB + more)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of QEMU that all its machines have."""
        return (*ARGUMENTS, "-m", str(self.memory_mib))

    @property
    def needs_memory(self) -> str:
        """What is said where memory was missing, or seems to have been."""
        return (
            f"a machine needs up to {self.memory_mib + TRANSLATED_MIB} MiB of this computer's "
            "memory: --jobs 1 (jobs=1 in Python) makes one run at a time"
        )

    @functools.cached_property
    def identity(self) -> str:
        """What a run depends on, besides the request: a hash."""
        parts = (
            self.kernel.identity.encode(),
            hashlib.sha256(self.archive).digest(),
            virtual.TURNS.read_bytes(),
            self.qemu.encode(),
            " ".join(self.arguments).encode(),
        )
        found = hashlib.sha256()
        for part in parts:
            found.update(hashlib.sha256(part).digest())
        return found.hexdigest()


class Control:
    """The connection over which QEMU takes commands (QMP, docs/interop/qmp-spec of QEMU)."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rw", encoding="utf-8")
        self._file.readline()  # the greeting
        self.ask("qmp_capabilities")

    def close(self) -> None:
        """Close it; QEMU goes on."""
        with contextlib.suppress(OSError):
            self._file.close()

    def ask(self, command: str, **arguments: object) -> Any:
        """Return the answer to a command.

        Raises:
            OSError: QEMU has ended, or does not do it.
        """
        self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._file.flush()
        for line in self._file:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise OSError(f"{command}: {answer['error'].get('desc')}")
        raise OSError(f"QEMU ended at {command}")


class Machine:
    """A process of QEMU in a folder of its own, which ends with the `with` block.

    Args:
        guest: what it starts.
        more: further arguments.
        stop: ends it from outside.
    """

    def __init__(self, guest: Guest, folder: Path, more: list[str], stop: Stop) -> None:
        self._guest = guest
        self.folder = folder
        self.output = folder / "output"
        self.console = folder / "console"
        self._stop = stop
        ours, theirs = socket.socketpair()
        ours.settimeout(SILENCE_S)
        try:
            with theirs, (folder / "errors").open("wb") as errors:
                self.process = subprocess.Popen(
                    [
                        PROGRAM,
                        *guest.arguments,
                        *("-kernel", str(guest.kernel.image), "-initrd", str(folder / "archive")),
                        *("-serial", f"file:{_escaped(self.console)}"),
                        *("-debugcon", f"file:{_escaped(self.output)}"),
                        *("-chardev", f"socket,id=control,fd={theirs.fileno()}"),
                        *("-mon", "chardev=control,mode=control"),
                        *more,
                    ],
                    pass_fds=(theirs.fileno(),),
                    env={
                        **os.environ,
                        "LD_PRELOAD": str(virtual.TURNS),
                        "REDTAIL_STARTED_BY": str(os.getpid()),
                        "TMPDIR": str(folder),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C reaches this process, which ends that one
                )
        except BaseException:
            ours.close()
            raise
        self._connection = ours
        self._control: Control | None = None
        stop.add(self.process)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._control is not None:
            self._control.close()
        self._connection.close()
        self._stop.remove(self.process)

    def control(self) -> Control:
        """Return the connection for commands.

        Raises:
            OSError: QEMU has ended.
        """
        self._control = Control(self._connection)
        return self._control

    def wait_for(self, control: Control, command: str, *wanted: str) -> str:
        """Ask until the status is one of these, and return it.

        Raises:
            OSError: QEMU has ended, or does not answer.
            RunError: the machine hangs.
        """
        silence = Silence(self)
        while True:
            status = control.ask(command).get("status")
            if status in wanted:
                return str(status)
            silence.check()
            time.sleep(0.01)

    def failed(self, what: str) -> RunError:
        """Return an error with the end of what QEMU and the guest's kernel have said."""
        said = [(self.folder / "errors").read_text(errors="replace").strip()]
        if self.process.poll() == -signal.SIGKILL:
            said.append("it was killed")
        if said[1:] or "Cannot allocate memory" in said[0]:
            said.append(self._guest.needs_memory)
        console = _read(self.console).decode(errors="replace").strip()
        end = f"; the end of its console:\n{console[-CONSOLE_END:]}" if console else ""
        reasons = "; ".join(filter(None, said))
        return RunError(f"the virtual machine {what}{': ' if reasons else ''}{reasons}{end}")


class Silence:
    """How long a machine has given no sign of life."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.broken()

    def broken(self) -> None:
        """Note a sign of life."""
        self._since = time.monotonic()
        self._computed = _cpu_s(self._machine.process.pid)

    def check(self) -> None:
        """Check whether the machine has been silent for too long.

        Raises:
            RunError: it hangs.
        """
        silent = time.monotonic() - self._since
        computed = _cpu_s(self._machine.process.pid) - self._computed
        if computed > SILENCE_CPU_S or (silent > SILENCE_S and computed < 1):
            raise self._machine.failed(
                f"hangs: no sign of life for {silent:.0f} s, in which it computed for "
                f"{computed:.0f} s"
            )


def run(guest: Guest, request: bytes, duration_s: float, stop: Stop) -> bytes:
    """Make one run in a machine of its own.

    Args:
        guest: what the machine starts.
        request: what the agent is asked for.
        duration_s: the seconds of its time that the run takes.
        stop: ends it.

    Returns:
        The agent's reply.

    Raises:
        Cancelled: it was stopped.
        RunError: the guest hung or died, or QEMU did.
    """
    saved = snapshot(guest, stop)
    with _folder(guest, {"request": request}) as folder, _processor() as processor:
        more = [
            *("-incoming", f"exec:cat {shlex.quote(str(saved))}"),
            *("-fw_cfg", f"name=opt/redtail/request,file={_escaped(folder / 'request')}"),
        ]
        with Machine(guest, folder, more, stop) as machine:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(machine.process.pid, {processor})
            try:
                control = machine.control()
                if machine.wait_for(control, "query-migrate", "completed", "failed") == "failed":
                    raise machine.failed(f"cannot go on from its snapshot {saved}")
                control.ask("cont")
            except (OSError, ValueError) as error:
                if not stop.cancelled:
                    raise machine.failed(f"did not start ({error})") from None
            _wait(machine, duration_s)
            if stop.cancelled:
                raise Cancelled()
            return _reply(machine)


def run_programs(guest: Guest, programs: Sequence[Sequence[str]]) -> list[Printed]:
    """Run programs in a machine of its own, one after the other, as its first user.

    Args:
        guest: what the machine starts; it has `ip` and `tc`, and no shell.
        programs: the name and the arguments of each. One that fails does not stop the others.

    Raises:
        RunError: as for `run`, or a program could not be started.
    """
    reply = run(guest, realtime.guest_programs(programs), len(programs), Stop())
    return [Printed(*each) for each in realtime.guest_printed(reply)]


@dataclass(frozen=True)
class Printed:
    """What a program did in a machine.

    Attributes:
        code: its exit code; None if a signal ended it.
        output: what it printed to standard output.
        errors: the same to standard error.
    """

    code: int | None
    output: str
    errors: str


def _wait(machine: Machine, duration_s: float) -> None:
    """Wait until a machine ends.

    Raises:
        RunError: it hangs.
    """
    size, silence = -1, Silence(machine)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.process.wait(timeout=0.2)
            return
        found = machine.output.stat().st_size if machine.output.exists() else 0
        if found != size:
            size = found
            silence.broken()
        silence.check()
        if found > duration_s + TOO_LONG_S and not _read(machine.output).lstrip(b"."):
            raise machine.failed(f"hangs: a run of {duration_s:.0f} s has taken {found} s")


def _reply(machine: Machine) -> bytes:
    """Return what the agent has sent."""
    head, found, rest = _read(machine.output).partition(b"\nreply ")
    length, _, reply = rest.partition(b"\n")
    if not found:
        raise machine.failed(f"ended without a result, after {len(head)} s of its time")
    if len(reply) != int(length):
        raise machine.failed(
            f"sent {len(reply)} of {int(length)} bytes; is the disk of {machine.folder.parent} "
            "full?"
        )
    return reply


def snapshot(guest: Guest, stop: Stop) -> Path:
    """Return the state of a machine that waits for a request, made if there is none.

    Raises:
        Cancelled: it was stopped.
        RunError: the guest does not start.
        StoreError: as for `snapshots.get`.
    """
    return snapshots.get(guest.identity, lambda path: _make(guest, path, stop))


def _make(guest: Guest, path: Path, stop: Stop) -> None:
    with _folder(guest, {}, path.parent) as folder, Machine(guest, folder, [], stop) as machine:
        try:
            control = machine.control()
            machine.wait_for(control, "query-status", "guest-panicked")
            state = folder / "state"
            control.ask("migrate", uri=f"exec:cat > {shlex.quote(str(state))}")
            status = machine.wait_for(control, "query-migrate", "completed", "failed")
            saved = status == "completed"
        except (OSError, ValueError) as error:
            if stop.cancelled:
                raise Cancelled() from None
            raise machine.failed(f"does not start ({error})") from None
        if not saved:
            raise machine.failed(f"cannot be saved in {path.parent}: is its disk full?")
        state.rename(path)


_NAME = "machine"


@contextlib.contextmanager
def _folder(guest: Guest, files: dict[str, bytes], place: Path | None = None) -> Iterator[Path]:
    """Make a folder for a machine, with these files, which goes afterwards.

    Folders of commands that were killed go as well.

    Raises:
        RunError: there is no room for it.
    """
    setting = "TMPDIR" if place is None else "XDG_CACHE_HOME"
    place = Path(tempfile.gettempdir()) if place is None else place
    for left in writing.leftovers(place):
        if left.name.startswith(f"{writing.LEFTOVER}{_NAME}-"):
            shutil.rmtree(left, ignore_errors=True)
    folder = writing.temporary_path(place, _NAME)
    try:
        try:
            folder.mkdir(mode=0o700)
            for file, content in {"archive": guest.archive, **files}.items():
                (folder / file).write_bytes(content)
        except OSError as error:
            raise RunError(
                f"the files of a virtual machine cannot be written in {place}: {error.strerror}; "
                f"{setting}=DIR chooses another folder"
            ) from None
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_NUMBERS = itertools.count()
_TAKEN: set[int] = set()
_TAKING = threading.Lock()


@contextlib.contextmanager
def _processor() -> Iterator[int]:
    """Take a processor of this computer for a machine, one that no other machine has if there is.

    Both threads of QEMU work in turns, so a second processor would only make them wait longer.
    """
    mine = sorted(os.sched_getaffinity(0))
    with _TAKING:
        free = [number for number in mine if number not in _TAKEN]
        number = free[0] if free else mine[next(_NUMBERS) % len(mine)]
        _TAKEN.add(number)
    try:
        yield number
    finally:
        with _TAKING:
            _TAKEN.discard(number)


def _cpu_s(pid: int) -> float:
    """Return how long a process has computed, in seconds (proc_pid_stat(5))."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _escaped(path: Path) -> str:
    """Return a path in an option of QEMU, whose commas are doubled."""
    return str(path).replace(",", ",,")
