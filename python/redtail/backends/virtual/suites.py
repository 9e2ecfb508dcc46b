"""Where packages come from: this computer's suites, or another suite of its distribution.

For another suite, apt gets a configuration, lists and caches of its own in a folder that is removed
afterwards, so that nothing of this computer's changes. The suite is on the mirror that the computer
has for its own suites, and its signature is checked with the same keys.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redtail.errors import RedtailError, SpecError, StoreError

_STALE = "as root `apt-get update` renews the lists of packages"

_KEYS = {
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}
"""The keys of a distribution, from its package debian-archive-keyring or ubuntu-keyring."""

# Names of suites such as "sid", "trixie-backports", "bookworm-proposed-updates".
_SUITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~-]*")

# apt.conf(5). What the computer's own configuration runs after an update would change its state.
_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
#clear APT::Architectures;
APT::Architectures {{ "amd64"; }};
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
"""


# Whatever the configuration of this computer says: a list of packages counts only with a signature
# that is right, and a package only with the hash that such a list has (apt-secure(8)).
_CHECKED = tuple(
    word
    for key in (
        "APT::Get::AllowUnauthenticated",
        "Acquire::AllowInsecureRepositories",
        "Acquire::AllowWeakRepositories",
        "Acquire::AllowDowngradeToInsecureRepositories",
    )
    for word in ("-o", f"{key}=false")
)


@dataclass(frozen=True)
class Source:
    """Where packages come from.

    Attributes:
        suite: the name of a suite; empty for those that this computer's apt has.
        configuration: the file with apt's configuration for it.
        keys: the file with the keys that its signature is checked with; empty for all that apt has.
    """

    suite: str = ""
    configuration: Path | None = None
    keys: str = ""

    @property
    def advice(self) -> str:
        """What helps if apt's lists are old."""
        return "try again" if self.suite else _STALE

    def run(
        self, program: str, words: Sequence[str], folder: Path | None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of apt in a folder; it checks signatures and hashes."""
        own = ["-c", str(self.configuration)] if self.configuration else []
        return run([program, *_CHECKED, *own, *words], folder)

    def failure(
        self, what: str, said: str, folder: Path, advice: str | None = None
    ) -> RedtailError:
        """Return the error for what a program of apt or dpkg has said."""
        lines = [line.removeprefix("E: ") for line in said.splitlines() if "W: " not in line[:3]]
        reason = " ".join(line.strip() for line in lines if line.strip()) or "no reason was told"
        if "No space left" in said or "enough free space" in said:
            return StoreError(
                f"{folder.parent}: {what}: {reason}; make room, or REDTAIL_KERNELS=DIR chooses "
                "another folder"
            )
        if advice is None:
            old = "404" in said or "Can't find a source" in said
            check = "" if old else "check this computer's network; "
            advice = f"; {check}{self.advice}"
        return RedtailError(f"{what}: {reason}{advice}")


SYSTEM = Source()
"""The suites that this computer's apt has."""


def find(suite: str, folder: Path, progress: Callable[[str], None]) -> Source:
    """Get the lists of packages of another suite of this computer's distribution.

    Args:
        suite: its name, such as "sid" or "trixie-backports".
        folder: an absolute path; made, and holds the lists.
        progress: is told what is being done.

    Raises:
        SpecError: there is no such suite, or this computer cannot check its signature.
        RedtailError: its lists cannot be downloaded.
    """
    if not _SUITE.fullmatch(suite):
        raise SpecError(
            f"--suite {suite}: cannot be the name of a suite; accepted: a name such as sid or "
            "trixie-backports",
            key="--suite",
        )
    mirror, keys = _mirror(suite)
    if any(sign in f"{folder}{mirror}{keys}" for sign in '"\n\\]'):
        raise SpecError(
            f"{folder}: apt cannot be told of a folder with such signs; REDTAIL_KERNELS=DIR "
            "chooses another one",
            key="--suite",
        )
    for below in ("state/lists/partial", "cache/archives/partial"):
        (folder / below).mkdir(parents=True)
    (folder / "status").touch()
    signed = f" signed-by={keys}" if keys else ""
    line = f"deb [arch=amd64{signed}] {mirror} {suite} main\n"
    (folder / "sources.list").write_text(line, encoding="utf-8")
    file = folder / "apt.conf"
    file.write_text(_CONFIGURATION.format(folder=folder), encoding="utf-8")
    source = Source(suite, file, keys)
    progress(f"getting the list of packages of {suite}")
    ran = source.run("apt-get", ["-q", "update"], folder)
    if ran.returncode:
        raise _no_suite(source, ran.stderr, folder)
    return source


def _mirror(suite: str) -> tuple[str, str]:
    """Return the address of this computer's mirror of its distribution, and the file with its keys.

    The file is empty if the distribution's is not there; then all keys count that apt has.
    """
    words = ["indextargets", "--format", "$(ORIGIN) $(REPO_URI)"]
    ran = SYSTEM.run("apt-get", [*words, "Created-By: Packages", "Component: main"], None)
    try:
        about = platform.freedesktop_os_release()
    except OSError:
        about = {}
    ours = [about.get("ID", ""), *about.get("ID_LIKE", "").split()]
    # That of the distribution itself; a security suite may be on another mirror and comes later.
    for line in ran.stdout.splitlines():
        origin, _, mirror = line.partition(" ")
        if origin.lower() in ours and mirror:
            keys = _KEYS.get(origin.lower(), "")
            return mirror, keys if os.path.exists(keys) else ""
    raise SpecError(
        f"--suite {suite}: this computer's apt names no mirror of its distribution; {_STALE}, and "
        "without --suite the kernel of its own suites is fetched",
        key="--suite",
    )


def _no_suite(source: Source, said: str, folder: Path) -> RedtailError:
    """Return the error for an update that failed."""
    suite = source.suite
    if "does not have a Release file" in said or "404" in said:
        return SpecError(
            f"--suite {suite}: this computer's mirror has no such suite; accepted: the name of a "
            "suite of the distribution, such as sid or trixie-backports",
            key="--suite",
        )
    if "BADSIG" in said:
        return RedtailError(
            f"--suite {suite}: the signature of its list of packages is wrong (BADSIG): the list "
            "was altered after it was signed, and nothing of it is used; another mirror among the "
            "sources of this computer's apt may have it unaltered"
        )
    if "NO_PUBKEY" in said or "EXPKEYSIG" in said or "not signed" in said:
        keys = source.keys or "the keys that apt has"
        return SpecError(
            f"--suite {suite}: its signature cannot be checked with {keys}; a newer package "
            "debian-archive-keyring or ubuntu-keyring brings the keys of newer suites",
            key="--suite",
        )
    return source.failure(f"the list of packages of {suite} cannot be downloaded", said, folder)


def run(words: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; with Ctrl-C it ends, and so do the programs that it started."""
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, errors = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, errors)
