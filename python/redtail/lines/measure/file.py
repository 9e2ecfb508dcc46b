"""The file of a measurement."""

from __future__ import annotations

import gzip
from pathlib import Path

from redtail.errors import SpecError
from redtail.lines.recordings.measurement import Measurement

ENDS = (".json", ".json.gz")


def require_writable(file: Path, force: bool) -> None:
    """Refuse a file that cannot become one of a measurement, before anything is measured.

    Raises:
        SpecError: its name has another end, it exists, or its folder does not.
    """
    if not file.name.endswith(ENDS):
        raise SpecError(f"--save {file}: accepted: a name that ends with {' or '.join(ENDS)}")
    if not file.parent.is_dir():
        raise SpecError(f"--save {file}: there is no folder {file.parent}; accepted: one that is")
    if file.exists() and not force:
        raise SpecError(f"{file} exists; accepted: another name with --save FILE, or --force")


def write(measured: Measurement, file: Path) -> None:
    """Write a measurement: aside, and renamed when it is whole.

    Raises:
        SpecError: it cannot be written.
    """
    data = measured.to_text().encode()
    part = file.with_name(f".{file.name}.part")
    try:
        # Without a time, so that the same measurement is the same file.
        part.write_bytes(gzip.compress(data, mtime=0) if file.name.endswith(".gz") else data)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SpecError(f"{file}: cannot be written: {error.strerror}") from None
