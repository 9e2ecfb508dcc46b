"""Packages with kernels come from apt alone, which checks signatures and hashes: here apt itself.

A small suite on this computer is signed with a key of its own, and then altered.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redtail.backends.virtual import packages, suites
from redtail.errors import RedtailError, SpecError

TOOLS = ("apt-get", "apt-cache", "dpkg-deb", "gpg", "gpgv")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or any(shutil.which(tool) is None for tool in TOOLS),
    reason="needs apt and gpg",
)

NAME = "linux-image-tried"

# What somebody who distrusts nothing may have in the configuration of apt.
CARELESS = """
APT::Get::AllowUnauthenticated "true";
APT::Get::Assume-Yes "true";
Acquire::AllowInsecureRepositories "true";
Acquire::AllowWeakRepositories "true";
Acquire::AllowDowngradeToInsecureRepositories "true";
"""


def run(*words: str | Path, **more: str) -> bytes:
    environment = {**os.environ, **more}
    return subprocess.run(words, check=True, capture_output=True, env=environment).stdout


class Suite:
    """A suite of one package.

    Args:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "gpg"
        self.home.mkdir(parents=True, mode=0o700)
        self.index = folder / "dists" / "tried" / "main" / "binary-amd64" / "Packages"
        self.index.parent.mkdir(parents=True)
        self.release = folder / "dists" / "tried" / "InRelease"
        self.package = folder / "pool" / f"{NAME}_1.0_amd64.deb"
        self.package.parent.mkdir()
        self.build("a kernel")
        self.key("right")
        self.list_package()
        self.sign("right")

    def build(self, content: str) -> None:
        """Make the package."""
        tree = self.folder / "tree"
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (tree / "boot").mkdir(exist_ok=True)
        (tree / "boot" / "vmlinuz-1").write_text(content)
        (tree / "DEBIAN" / "control").write_text(
            f"Package: {NAME}\nVersion: 1.0\nArchitecture: amd64\n"
            "Maintainer: a <a@example.org>\nDescription: a\n"
        )
        run("dpkg-deb", "-Znone", "--root-owner-group", "-b", tree, self.package)

    def key(self, name: str) -> None:
        """Make a key, and the file with its public part."""
        words = ("gpg", "--homedir", self.home, "--batch", "--passphrase", "")
        run(*words, "--quick-generate-key", name, "ed25519", "sign", "never")
        (self.folder / f"{name}.gpg").write_bytes(run("gpg", "--homedir", self.home, "--export"))

    def list_package(self) -> None:
        """Make the list of packages."""
        data = self.package.read_bytes()
        self.index.write_text(
            f"Package: {NAME}\nVersion: 1.0\nArchitecture: amd64\nInstalled-Size: 1\n"
            f"Maintainer: a <a@example.org>\nFilename: pool/{self.package.name}\n"
            f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\nDescription: a\n"
        )

    def sign(self, key: str) -> None:
        """Make the file with the hashes of the lists, and sign it."""
        self.write_release()
        words = ("gpg", "--homedir", self.home, "--batch", "--yes", "-u", key, "--clearsign", "-o")
        plain = self.release.with_name("Release")
        run(*words, self.release, plain)
        plain.unlink()

    def write_release(self) -> None:
        """Make the file with the hashes of the lists."""
        data = self.index.read_bytes()
        self.release.with_name("Release").write_text(
            "Origin: Debian\nSuite: tried\nCodename: tried\nComponents: main\n"
            "Architectures: amd64\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
            f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-amd64/Packages\n"
        )

    def fetch(self, folder: Path) -> Path:
        """Get the package as `redtail kernel fetch --suite` does."""
        source = suites.find("tried", folder / "lists", lambda text: None)
        wanted = packages.resolve(NAME, source)
        (folder / "packages").mkdir()
        kernel, _ = packages.unpack(wanted, folder / "packages", lambda text: None, source)
        return kernel


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite that is in order, on a computer whose configuration of apt asks for no check."""
    made = Suite(tmp_path / "mirror")
    keys = str(made.folder / "right.gpg")
    monkeypatch.setattr(suites, "_mirror", lambda _: (f"file:{made.folder}", keys))
    careless = tmp_path / "careless.conf"
    careless.write_text(CARELESS)
    monkeypatch.setenv("APT_CONFIG", str(careless))
    return made


def test_a_suite_in_order_is_taken(suite: Suite, tmp_path: Path) -> None:
    assert (suite.fetch(tmp_path) / "boot" / "vmlinuz-1").read_text() == "a kernel"


def altered_package(suite: Suite) -> None:
    size = suite.package.stat().st_size
    suite.build("a kernem")  # as long, so that the size is right
    assert suite.package.stat().st_size == size


def altered_list(suite: Suite) -> None:
    altered_package(suite)
    suite.list_package()


def signed_by_another(suite: Suite) -> None:
    suite.key("wrong")
    altered_list(suite)
    suite.sign("wrong")


def not_signed(suite: Suite) -> None:
    altered_list(suite)
    suite.write_release()
    suite.release.unlink()


def altered_signed_text(suite: Suite) -> None:
    altered_list(suite)
    old = suite.release.read_text()
    suite.write_release()
    fresh = suite.release.with_name("Release")
    digest = fresh.read_text().split("SHA256:\n ")[1].split()[0]
    fresh.unlink()
    before = old.split("SHA256:\n ")[1].split()[0]
    suite.release.write_text(old.replace(before, digest))


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (altered_package, f"{NAME} cannot be downloaded: .*Hash Sum mismatch"),
        (
            altered_list,
            "the list of packages of tried cannot be downloaded: .*unexpected size|Hash",
        ),
        (signed_by_another, "its signature cannot be checked with .*right.gpg"),
        (not_signed, "its signature cannot be checked with .*right.gpg"),
        (altered_signed_text, "the signature of its list of packages is wrong .BADSIG."),
    ],
)
def test_what_was_altered_on_the_way_is_refused(
    suite: Suite, tmp_path: Path, alter: Callable[[Suite], None], told: str
) -> None:
    alter(suite)
    with pytest.raises((RedtailError, SpecError), match=rf"(?s){told}"):
        suite.fetch(tmp_path)
    assert not list(tmp_path.glob("packages/unpacked/**/vmlinuz*"))


def test_no_list_of_a_suite_is_trusted_without_its_signature(suite: Suite, tmp_path: Path) -> None:
    source = suites.find("tried", tmp_path / "lists", lambda text: None)
    line = (tmp_path / "lists" / "sources.list").read_text()
    assert f"signed-by={suite.folder / 'right.gpg'}" in line
    assert "trusted" not in line and "allow-" not in line
    told = source.run("apt-config", ["dump"], None).stdout
    for key in (
        "APT::Get::AllowUnauthenticated",
        "Acquire::AllowInsecureRepositories",
        "Acquire::AllowWeakRepositories",
        "Acquire::AllowDowngradeToInsecureRepositories",
    ):
        assert f'{key} "false";' in told
    assert (
        'APT::Get::AllowUnauthenticated "false";'
        in suites.SYSTEM.run("apt-config", ["dump"], None).stdout
    )
