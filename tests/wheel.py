"""Install the wheel of dist into an empty environment without Rust, and use it there.

    make test-wheel
    make test-sdist

What the package has in python/redtail must be in the wheel, and on Linux a wheel that says how old
a C library may be must run with one: of its programs and libraries auditwheel says so. Then pip
installs it, and redtail is used from a folder outside of the project. What is installed without
extras may take so much on the disk (`MOST_INSTALLED_MB`). With --sdist pip builds the
source distribution, which needs Rust, and redtail is used in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "redtail"
EXAMPLES = ("quickstart.toml", "python-queue.toml", "python-queue.py", "real-tcp.toml")

#: What make builds beside the native module, for virtual machines.
GUEST = {f"redtail/backends/virtual/{name}" for name in ("agent", "turns.so")}
NATIVE = re.compile(r"redtail/_native[^/]*\.(so|pyd)")

#: Programs that an environment of users may lack.
COMPILERS = ("cargo", "rustc", "maturin")


#: What redtail and all that it needs without extras may take, by `benches/installed.py`. The newest
#: versions of libraries are installed, which grow: so there is some room.
MOST_INSTALLED_MB = 420


#: What needs an extra, which its message names.
WITHOUT_EXTRAS = (
    (("redtail", "estimate", str(ROOT / "tests/attack/seeds/dns_tcp.pcap")), "recordings"),
    (("redtail", "run", "quickstart.toml", "--out", "s3://bucket/runs"), "objects"),
)


class Failed(Exception):
    """What was tried does not work."""


def only(pattern: str) -> Path:
    """Return the only file of dist that a pattern fits."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise Failed(
            f"there should be one such file in dist, and there is {names}; "
            "`make build-wheel` and `make sdist` make them"
        )
    return found[0]


def sources() -> set[str]:
    """Return the files of the package as a wheel names them, without what is built."""
    return {
        name
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not NATIVE.fullmatch(name := path.relative_to(PACKAGE.parent).as_posix())
        and name not in GUEST
    }


def check_files(wheel: Path) -> None:
    """Compare what the wheel has with what it should have."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("redtail/")}
    native = {name for name in names if NATIVE.fullmatch(name)}
    if len(native) != 1:
        raise Failed(f"{wheel.name}: native modules: {sorted(native)}; there should be one")
    wanted = sources()
    if sys.platform == "linux" and platform.machine() == "x86_64":
        wanted |= GUEST
    if missing := wanted - names:
        raise Failed(f"{wheel.name}: lacks {', '.join(sorted(missing))}")
    if more := names - wanted - native:
        raise Failed(f"{wheel.name}: has what the package does not: {', '.join(sorted(more))}")
    if "-abi3-" not in wheel.name:
        raise Failed(f"{wheel.name}: is for one version of Python; it should be for all, abi3")
    if "redtail/lab/index.html" not in names:
        print(f"{wheel.name}: is without the laboratory's page (LAB=)")
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def check_library(wheel: Path) -> None:
    """Compare the C library that the wheel says it needs with the one that it needs."""
    said = re.search(r"manylinux_(\d+)_(\d+)", wheel.name)
    if said is None:
        print("the wheel is for the C library of this computer, or for a system without manylinux")
        return
    audit = shutil.which("auditwheel", path=os.pathsep.join((*programs(ROOT / ".venv"), path())))
    if audit is None:
        raise Failed("auditwheel is not installed; `make build-wheel` installs it in .venv")
    shown = subprocess.run([audit, "show", wheel], capture_output=True, text=True, check=True)
    text = " ".join(shown.stdout.split())
    needs = re.search(r'following platform tag: "manylinux_(\d+)_(\d+)_', text)
    if needs is None:
        raise Failed(f"{wheel.name}: auditwheel says: {text}")
    if tuple(map(int, needs.groups())) > tuple(map(int, said.groups())):
        raise Failed(f"{wheel.name}: needs {needs[0]}")
    print(f"auditwheel: {needs[0]}")


def programs(environment: Path) -> list[str]:
    """Return the folders of programs of a virtual environment, on any system."""
    return [str(environment / name) for name in ("bin", "Scripts")]


def path() -> str:
    """Return the folders of programs without those that have a compiler of Rust."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        folder for folder in folders if not any(shutil.which(it, path=folder) for it in COMPILERS)
    )


class Environment:
    """An empty virtual environment with a folder to work in, outside of the project."""

    def __init__(self, folder: Path, *, rust: bool) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        venv.create(folder / "venv", with_pip=True)
        own = programs(folder / "venv")
        self.python = shutil.which("python", path=os.pathsep.join(own))
        others = os.environ.get("PATH", os.defpath) if rust else path()
        self.path = os.pathsep.join((*own, others))
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYO3_", "MAKE"))
        }
        self.variables |= {"PATH": self.path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.variables["PYTHONUTF8"] = "1"  # what is printed is read as UTF-8, on Windows too
        if not rust and (found := [it for it in COMPILERS if shutil.which(it, path=self.path)]):
            raise Failed(f"the environment has {', '.join(found)}")

    def call(self, *words: str, code: int | None = 0) -> str:
        """Run a program and return what it prints; it may end with any code if that is None."""
        print("$", *words, flush=True)
        program = shutil.which(words[0], path=self.path)
        if program is None:
            raise Failed(f"{words[0]}: the environment does not have this program")
        done = subprocess.run(
            [program, *words[1:]],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        if code is not None and done.returncode != code:
            raise Failed(f"{done.stdout}\nit ended with {done.returncode}, not with {code}")
        return done.stdout

    def install(self, file: Path) -> None:
        """Install a wheel or a source distribution with what it depends on."""
        self.call("python", "-m", "pip", "install", "--quiet", str(file))
        self.call("python", "-m", "pip", "check")
        where = self.call("python", "-c", "import redtail; print(redtail.__file__)").strip()
        if not Path(where).is_relative_to(self.folder.parent):
            raise Failed(f"redtail is imported from {where}")


def check_size(environment: Environment) -> None:
    """Hold what is installed under its limit."""
    call = ("python", str(ROOT / "benches/installed.py"))
    print(environment.call(*call))
    total = sum(json.loads(environment.call(*call, "--json")).values()) / 1e6
    if total > MOST_INSTALLED_MB:
        raise Failed(f"{total:.0f} MB are installed; {MOST_INSTALLED_MB} MB are allowed")


def use(environment: Environment) -> None:
    """Do what users do first, from each part of the package that has data files."""
    call, folder = environment.call, environment.folder
    for name in EXAMPLES:
        shutil.copy(ROOT / "examples" / name, folder)
    print(call("redtail", "--version").strip())
    ran = call("redtail", "run", "quickstart.toml", "--report")
    print(ran)
    for name in ("report.html", "figures/delay_and_goodput.png"):
        if not (folder / "runs/quickstart" / name).exists():
            raise Failed(f"redtail run --report has not written {name}")
    ran = call("redtail", "run", "python-queue.toml", "--no-figures")
    if "square RED" not in ran:
        raise Failed(f"the queue in Python is not in the table:\n{ran}")
    call("redtail", "reproduce", "riva2003", "--check")
    names = re.findall(r"^([a-z-]+)  ", call("redtail", "init"), flags=re.MULTILINE)
    if not names:
        raise Failed("redtail init lists no template")
    for name in names:
        call("redtail", "init", name)
        call("redtail", "check", f"{name}.toml")
    schema = call("redtail", "schema")
    if schema != (ROOT / "schema/experiment.schema.json").read_text(encoding="utf-8"):
        raise Failed("redtail schema prints another schema than schema/experiment.schema.json")
    script = "import redtail; print(redtail.run('quickstart.toml').cases[0].title)"
    call("python", "-c", script)
    call("redtail", "list", "metrics")
    for words, extra in WITHOUT_EXTRAS:
        told = call(*words, code=1)
        if f"pip install 'redtail[{extra}]'" not in told:
            raise Failed(f"{' '.join(words)}: does not name the extra {extra}:\n{told}")


def use_kernel(environment: Environment) -> None:
    """Run in a virtual machine, as far as this computer can."""
    run = ["redtail", "run", "real-tcp.toml", "--backend", "linux", "--no-figures"]
    run += ["--replications", "1", "--set", "duration=3 s", "--set", "warmup=1 s"]
    run += ["--set", "traffic.web.start=uniform 0..1 s"]
    without = environment.variables
    environment.variables = without | {"REDTAIL_KERNELS": str(environment.folder / "none")}
    told = environment.call(*run, code=2)
    environment.variables = without
    if "there is no kernel" not in told:
        raise Failed(f"the backend linux got further, or not so far:\n{told}")
    doctor = environment.call("redtail", "doctor", code=None)  # 1 where a backend lacks something
    if "backend linux: ready" in doctor:
        print(environment.call(*run))
    else:
        print("there is no kernel or no QEMU: no run in a virtual machine")


def main() -> None:
    """Install and use what dist has."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sdist", action="store_true", help="the source distribution instead")
    options = parser.parse_args()
    pattern = "redtail-*.tar.gz" if options.sdist else "redtail-*.whl"
    try:
        file = only(pattern)
        if not options.sdist:
            check_files(file)
            check_library(file)
        # Outside of the project, in which pip and redtail could find more than they are given.
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(Path(folder).resolve(), rust=options.sdist)
            environment.install(file)
            check_size(environment)
            use(environment)
            if not options.sdist and sys.platform == "linux" and platform.machine() == "x86_64":
                use_kernel(environment)
    except Failed as failure:
        sys.exit(f"{pattern}: {failure}")
    print(f"{file.name}: works")


if __name__ == "__main__":
    main()
