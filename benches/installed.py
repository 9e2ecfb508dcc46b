"""What redtail and what it needs without extras take on the disk, by package.

`make bench` prints it, and `tests/wheel.py` holds the sum under a limit: it runs this file with the
Python of an environment that has the wheel, ``python installed.py --json``.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(name: str = "redtail") -> dict[str, Distribution]:
    """Return a package and all that it needs in this environment without extras, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(name, frozenset({""}))]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        package, extras = one
        found[package] = distribution(package)
        for line in found[package].requires or ():
            wanted = Requirement(line)
            # A requirement of a dependency may name extras, as `uvicorn[standard]` does.
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": it}) for it in extras):
                waiting.append((canonicalize_name(wanted.name), frozenset({"", *wanted.extras})))
    return found


def size(package: Distribution) -> int:
    """Return the bytes of a package's files, with what Python has compiled of them."""
    files = {Path(str(package.locate_file(file))).resolve() for file in package.files or ()}
    if package.name == "redtail":
        import redtail  # a development build has its files in the project

        files.update(Path(redtail.__file__).parent.resolve().rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file())


def measured() -> dict[str, int]:
    """Return the bytes of redtail and of each package that it needs, the largest first."""
    sizes = {name: size(package) for name, package in needed().items()}
    return dict(sorted(sizes.items(), key=lambda one: -one[1]))


def show(sizes: dict[str, int]) -> None:
    """Print a table; packages of less than 1 MB are put together."""
    print(f"\ninstalled without extras: {sum(sizes.values()) / 1e6:.0f} MB")
    small = {name: bytes_ for name, bytes_ in sizes.items() if bytes_ < 1e6}
    for name, bytes_ in sizes.items():
        if name not in small:
            print(f"  {name:<24} {bytes_ / 1e6:7.1f} MB")
    print(f"  {f'{len(small)} smaller ones':<24} {sum(small.values()) / 1e6:7.1f} MB")


if __name__ == "__main__":
    if "--json" in sys.argv:
        print(json.dumps(measured()))
    else:
        show(measured())
