"""Check what changed: formatting, lints, and the tests that a change is likely to break.

    .venv/bin/python tests/check.py [BASE]

A change is what differs from BASE (by default the last commit on the upstream branch, else HEAD),
files that git does not know included. `make test` checks everything; this is for the minutes
between two commits. A crate is tested with those that depend on it; a module of the Python package
with the test files that import it; a page alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
_DOCS = "tests/documents/test_docs.py"
_NATIVE = "redtail-py"  # it has no tests: it only translates


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def changed_files(base: str | None) -> list[str]:
    """Return the paths, from the project's folder, of files that differ from a commit."""
    if base is None:
        upstream = subprocess.run(
            ["git", "merge-base", "HEAD", "@{upstream}"], cwd=ROOT, capture_output=True, text=True
        )
        base = upstream.stdout.strip() or "HEAD"
    tracked = _output("git", "diff", "--name-only", base)
    untracked = _output("git", "ls-files", "--others", "--exclude-standard")
    return sorted({*tracked.splitlines(), *untracked.splitlines()})


def crates_to_test(files: Iterable[str]) -> list[str]:
    """Return the names of the changed crates and of all that depend on them."""
    found = json.loads(_output("cargo", "metadata", "--no-deps", "--format-version=1", "--locked"))
    packages = {
        package["name"]: (
            Path(package["manifest_path"]).parent.relative_to(ROOT),
            {dependency["name"] for dependency in package["dependencies"]},
        )
        for package in found["packages"]
    }
    everything = {"Cargo.toml", "Cargo.lock", "clippy.toml"}
    if everything & set(files):
        return sorted(packages)
    touched = {
        name
        for name, (folder, _) in packages.items()
        if any(Path(file).is_relative_to(folder) for file in files)
    }
    while more := {name for name, (_, needs) in packages.items() if needs & touched} - touched:
        touched |= more
    return sorted(touched)


def queues(files: Iterable[str]) -> list[str]:
    """Return the kinds of the queues that changed: each has a file of its name."""
    folder = Path("crates/qdisc/src/queues")
    paths = [path for path in map(Path, files) if path.parent == folder]
    return [path.stem.replace("_", "-") for path in paths if (ROOT / path).exists()]


def python_tests(files: Iterable[str]) -> list[str]:
    """Return the test files that changed, and those that import a module that did."""
    modules = {
        # Tests reach the commands through `redtail.cli`.
        path.parent.name if path.stem == "__init__" or path.parent.name == "cli" else path.stem
        for path in map(Path, files)
        if path.is_relative_to("python/redtail") and path.suffix == ".py"
    }
    chosen = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = str(path.relative_to(ROOT))
        imports = "\n".join(re.findall(r"^\s*(?:from|import) .*$", path.read_text(), re.MULTILINE))
        if name in files or any(re.search(rf"\b{module}\b", imports) for module in modules):
            chosen.append(name)
    return chosen


def commands(files: list[str]) -> list[list[str]]:
    """Return what to run for these changed files, in order."""
    # What fails soonest first: the own tests of a queue take seconds, those of all crates minutes.
    found = [["make", "--silent", "test-queue", f"QUEUE={kind}"] for kind in queues(files)]
    crates = crates_to_test(files)
    if crates:
        found.append(["cargo", "fmt", "--all", "--", "--check"])
        chosen = [word for crate in crates for word in ("-p", crate)]
        lints = ["cargo", "clippy", "--locked", "--quiet", "--all-targets", *chosen]
        found.append([*lints, "--", "-D", "warnings"])
        tested = [word for crate in crates if crate != _NATIVE for word in ("-p", crate)]
        if tested:
            found.append(["cargo", "test", "--locked", "--quiet", "--no-fail-fast", *tested])
    if _NATIVE in crates:
        found += [["make", "check-fresh"], ["make", "check-types"]]
    elif any(file.endswith(".py") for file in files):
        found.append(["make", "check-types"])
    if any(file.endswith(".py") for file in files):
        found.append(["make", "check-python"])
    if any(file.startswith("lab/") for file in files):
        found.append(["make", "--silent", "check-lab"])
    tests = python_tests(files)
    if _NATIVE in crates and "tests/engine/test_engine.py" not in tests:
        tests.append("tests/engine/test_engine.py")
    pages = [file for file in files if file.endswith(".md")]
    if tests or pages:
        found.append(["make", "--silent", "dev"])  # not before: Rust tests need no native module
    if tests:
        found.append([sys.executable, "-m", "pytest", "-q", *tests])
    if pages and _DOCS not in tests:
        names = " or ".join(pages)
        found.append([sys.executable, "-m", "pytest", "-q", _DOCS, "-k", names])
    return found


def main(base: str | None) -> int:
    """Run the commands; returns the number of those that failed."""
    files = changed_files(base)
    if not files:
        print("nothing changed; name a commit to compare with: make check BASE=HEAD~1")
        return 0
    failed = []
    for command in commands(files):
        print("$", " ".join(command), flush=True)
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            failed.append(command)
    for command in failed:
        print("failed:", " ".join(command))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None))
