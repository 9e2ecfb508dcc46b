"""The process that makes one run in real time: `python -m redtail.backends.agent`.

It enters namespaces of its own before it does anything else, reads a request (JSON), makes the run,
and writes a reply (`crates/live/src/exchange.rs`). It ends when the pipe of its request does. The
request comes from standard input, and the reply goes to standard output; with `--programs IN OUT`
they are other descriptors, because the programs of the user have the terminal. These programs
inherit neither of the two, and cannot open them either. With `--pairs` there are programs of
groups, which end with this process.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.backends import controls, host
from redtail.engine import realtime
from redtail.errors import PluginError, RunError, SpecError

if TYPE_CHECKING:
    from redtail.inputs import queues as own


@dataclass(frozen=True)
class Request:
    """What is asked for: the arguments of `realtime.run_live`."""

    scenario: str
    queues: Mapping[str, own.Located]
    traces: realtime.Traces
    programs: realtime.Programs | None = None
    captures: Sequence[tuple[str, str]] = ()
    kernel_queues: bool = False

    def to_bytes(self) -> bytes:
        """Return it as a line of JSON."""
        from redtail.inputs import programs as files
        from redtail.inputs import traces as tables

        programs = None if self.programs is None else asdict(self.programs)
        plain = {
            "scenario": self.scenario,
            "queues": {name: asdict(queue) for name, queue in self.queues.items()},
            "traces": {
                name: {"name": table.name, "path": table.path}
                for name, table in self.traces.items()
                if isinstance(table, tables.Located)
            },
            "files": {
                name: {"name": file.name, "path": file.path}
                for name, file in self.traces.items()
                if isinstance(file, files.Located)
            },
            "programs": programs,
            "captures": [list(each) for each in self.captures],
            "kernel_queues": self.kernel_queues,
        }
        return json.dumps(plain).encode() + b"\n"

    @staticmethod
    def from_bytes(line: bytes) -> Request:
        """Return what `to_bytes` has written."""
        from redtail.inputs import programs as files
        from redtail.inputs import queues as own
        from redtail.inputs import traces as tables

        plain = json.loads(line)
        given = plain["programs"]
        lists = ("command", "servers", "writable")
        programs = None
        if given is not None:
            tuples: dict[str, Any] = {name: tuple(given[name]) for name in lists}
            if given["environment"] is not None:
                pairs = ((name, value) for name, value in given["environment"])
                tuples["environment"] = tuple(pairs)
            programs = realtime.Programs(**{**given, **tuples})
        return Request(
            plain["scenario"],
            {name: own.Located(**queue) for name, queue in plain["queues"].items()},
            {
                **{name: tables.Located(**table) for name, table in plain["traces"].items()},
                **{name: files.Located(**file) for name, file in plain["files"].items()},
            },
            programs,
            [(point, file) for point, file in plain["captures"]],
            plain["kernel_queues"],
        )


def main() -> int:
    """Serve one request, or say what this host lacks (`--probe`)."""
    match sys.argv[1:]:
        case ["--probe"]:
            return probe()
        case ["--survey"]:
            return survey()
        case ["--pairs"]:
            return serve_programs(0, _own_output())
        case ["--programs", request, reply]:
            return serve_programs(int(request), int(reply))
    reply_to = _own_output()
    return serve(0, reply_to) if entered(reply_to) else 1


def _own_output() -> int:
    """Return standard output for the reply; what others print goes to standard error.

    A queue in Python may print, say.
    """
    reply_to = os.dup(1)
    os.dup2(2, 1)
    return reply_to


def entered(reply_to: int, *, processes: bool = False) -> bool:
    """Enter the namespaces, or reply why that is forbidden."""
    try:
        realtime.enter_namespaces(processes=processes)
    except OSError as error:
        with os.fdopen(reply_to, "wb") as reply:
            reply.write(realtime.failed_reply("kernel", forbidden(error)))
        return False
    return True


def serve(request_from: int, reply_to: int) -> int:
    """Make the run that is asked for, and reply what it measured."""
    with os.fdopen(request_from, "rb", closefd=False) as request:
        asked = Request.from_bytes(request.readline())
    threading.Thread(target=end_with, args=(request_from,), daemon=True).start()
    try:
        answer = realtime.run_live(
            asked.scenario,
            asked.queues,
            asked.traces,
            asked.programs,
            asked.captures,
            asked.kernel_queues,
        )
    except OSError as error:
        answer = realtime.failed_reply("kernel", str(error))
    except PluginError as error:
        answer = realtime.failed_reply("queue", str(error))
    except SpecError as error:
        answer = realtime.failed_reply("experiment", str(error))
    except RunError as error:
        answer = realtime.failed_reply("engine", str(error))
    except Exception as error:
        answer = realtime.failed_reply("engine", f"{type(error).__name__}: {error}")
    with os.fdopen(reply_to, "wb") as reply:
        reply.write(answer)
    return 0


def serve_programs(request_from: int, reply_to: int) -> int:
    """Serve a request with programs of the user, in a child that is the first of its processes.

    All processes end with this child, so nothing that the user's programs have started stays.
    """
    # Ctrl-C is for the user's program. A handler, unlike SIG_IGN, is not inherited by it.
    signal.signal(signal.SIGINT, lambda *_: None)
    # Python ignores it, and programs would inherit that. (SIGPIPE is set back where they start.)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for descriptor in (request_from, reply_to):
        os.set_inheritable(descriptor, False)
    if not entered(reply_to, processes=True):
        return 1
    realtime.hide_process()
    child = os.fork()
    if child == 0:
        os._exit(serve(request_from, reply_to))
    os.close(request_from)
    os.close(reply_to)
    _, status = os.waitpid(child, 0)
    return abs(os.waitstatus_to_exitcode(status))


def end_with(pipe: int) -> None:
    """Wait for the end of a pipe, and end this process then."""
    os.read(pipe, 1)
    os._exit(1)


def probe() -> int:
    """Print what is missing on this host, a line for each thing."""
    found = [reason for reason in (namespaces(), tun()) if reason]
    print("\n".join(found))
    return 1 if found else 0


def survey() -> int:
    """Print as JSON what this host has for runs in real time."""
    found: dict[str, object] = {"namespaces": namespaces(), "tun": tun()}
    if not found["namespaces"]:
        found["controls"] = controls.of_this_computer()
        realtime.enter_network()
        device = "trial"
        made = subprocess.run(
            ["ip", "tuntap", "add", "dev", device, "mode", "tun"], capture_output=True, check=False
        )
        ok = made.returncode == 0
        found["offload"] = "TUN devices, which take none" if ok else ""
        found["queues"] = host.try_queues(device) if ok else {}
        found["filters"] = host.try_filters(device) if ok else {}
    print(json.dumps(found))
    return 0


def namespaces() -> str:
    """Enter a user namespace; return why that is forbidden, or nothing."""
    try:
        realtime.enter_namespaces()
    except OSError as error:
        return forbidden(error)
    return ""


def tun() -> str:
    """Return why TUN devices cannot be made, or nothing."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return (
            f"/dev/net/tun cannot be opened ({error.strerror}); `modprobe tun` as root makes it, "
            "and a container needs it passed in (`--device /dev/net/tun`)"
        )
    return ""


# Settings that can forbid user namespaces: the value that allows them, and who has the setting.
SETTINGS = {
    "user/max_user_namespaces": ("10000", "every Linux"),
    "kernel/unprivileged_userns_clone": ("1", "Debian's kernels"),
    "kernel/apparmor_restrict_unprivileged_userns": ("0", "Ubuntu 23.10 and later"),
}


PROC_SYS = Path("/proc/sys")


def forbidden(error: OSError) -> str:
    """Return why user namespaces are not allowed here, and what to do."""
    for key, (wanted, where) in SETTINGS.items():
        path = PROC_SYS / key
        try:
            value = path.read_text().strip()
        except OSError:
            continue
        if value == wanted or (key.startswith("user/") and value != "0"):
            continue
        name = key.replace("/", ".")
        return (
            f"user namespaces are forbidden by the setting {name} = {value} ({where}); as root: "
            f"sysctl -w {name}={wanted}"
        )
    reason = errno.errorcode.get(error.errno or 0, str(error))
    return (
        f"user namespaces are refused ({reason}); in a container its seccomp profile forbids "
        "them: start it with --security-opt seccomp=unconfined"
    )


if __name__ == "__main__":
    sys.exit(main())
