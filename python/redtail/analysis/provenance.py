"""Where results come from: the experiment as it was given, and what else it takes to repeat it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redtail.errors import StoreError
from redtail.files import plain_bytes

LARGEST_TEXT = 64 << 20
"""The most bytes of an experiment's text."""


@dataclass(frozen=True)
class Provenance:
    """The experiment that results are of.

    Attributes:
        version: of redtail; empty when it is not known.
        seed: where the random numbers start from; None when it is not known.
        sets: the overrides it was checked with, `key=value` texts.
        file: the path of the experiment's file as it was given; None for text and typed objects.
        text: the experiment, as it was given; None in results of older versions.
        form: the form of the text: "toml", or "json" for typed objects.
        inputs: the paths of the files that it names, as the experiment names them, and of those
            that its classes import.
        checksums: what was in these files; of results of older versions nothing is known.
        packages: the installed packages that its classes import, and their versions.
    """

    version: str = ""
    seed: int | None = None
    sets: tuple[str, ...] = ()
    file: str | None = None
    text: str | None = None
    form: str = "toml"
    inputs: tuple[str, ...] = ()
    checksums: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the experiment's file in the folder of its results."""
        return f"experiment.{self.form}"

    def command(self, *options: str) -> str | None:
        """Return the command that repeats the experiment; None when it is not in a TOML file.

        >>> Provenance(file="my queue.toml", text="", sets=("seed=2",)).command()
        "redtail run 'my queue.toml' --set seed=2"
        """
        if self.text is None or self.form != "toml":
            return None
        words = ["redtail", "run", self.file or self.name]
        for each in self.sets:
            words += ["--set", each]
        return shlex.join([*words, *options])

    def metadata(self, format_number: int) -> dict[str, str]:
        """Return what tables say of their origin, as metadata of their schema."""
        found = {"redtail.format": str(format_number), "redtail.version": self.version}
        if self.seed is not None:
            found["redtail.seed"] = str(self.seed)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return what `results.json` says of it; the text is in a file of its own."""
        found: dict[str, Any] = {"version": self.version, "seed": self.seed, "set": self.sets}
        if self.text is not None:
            found["experiment"] = {
                "file": self.name,
                "given_as": self.file,
                "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
                "inputs": self.inputs,
            }
            if self.checksums:
                found["experiment"]["input_checksums"] = dict(self.checksums)
            if self.packages:
                found["experiment"]["packages"] = dict(self.packages)
        return found

    @classmethod
    def read(cls, folder: Path, given: Mapping[str, Any] | None) -> Provenance:
        """Read it back.

        Args:
            folder: of the results.
            given: what `as_json` returned, checked (`store.index`); None in results of older
                versions.

        Raises:
            StoreError: the experiment's file is not the one that the results belong to.
            OSError, ValueError: it cannot be read.
        """
        if given is None:
            return cls()
        about = given.get("experiment")
        found = cls(
            version=given["version"],
            seed=given["seed"],
            sets=tuple(given["set"]),
        )
        if about is None:
            return found
        path = folder / about["file"]
        text = plain_bytes(path, LARGEST_TEXT)
        if hashlib.sha256(text).hexdigest() != about["sha256"]:
            raise StoreError(
                f"{path}: is not the experiment that results.json belongs to; "
                "give the experiment's command again to write both anew"
            )
        return replace(
            found,
            file=about["given_as"],
            text=text.decode(),
            form=path.suffix[1:],
            inputs=tuple(about["inputs"]),
            checksums={
                name: {"bytes": each["bytes"], "sha256": each["sha256"]}
                for name, each in about.get("input_checksums", {}).items()
            },
            packages=about.get("packages", {}),
        )
