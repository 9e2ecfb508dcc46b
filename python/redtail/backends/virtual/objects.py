"""Congestion controls in BPF: objects with a `struct_ops`, which the guest registers when it boots.

An object is called NAME.bpf.o for a controller of the name NAME. The guest's `bpftool` registers it
("bpftool struct_ops register OBJ", bpftool-struct_ops(8)); the kernel needs its own types for this,
in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF).
"""

from __future__ import annotations

import struct
from pathlib import Path

from redtail.backends.virtual import images
from redtail.errors import SpecError

PROGRAM = "bpftool"
"""What registers objects in the guest: this computer's."""

LARGEST = 16 << 20
"""Bytes of an object; those of Linux's own samples have less than 100 kB."""

_SUFFIX = ".bpf.o"
_SECTION = b".struct_ops\0"

# The ELF specification, and include/uapi/linux/elf-em.h of Linux.
_ET_REL, _EM_BPF = 1, 247

_ACCEPTED = (
    "accepted: NAME.bpf.o with a struct tcp_congestion_ops of the name NAME in its section "
    ".struct_ops, as `clang -target bpf -g -O2 -c` makes it"
)


def control(path: Path) -> str:
    """Return the name of the congestion control in an object.

    >>> control(Path("mine.bpf.o"))
    'mine'
    """
    return path.name.removesuffix(_SUFFIX)


def content(path: Path) -> bytes:
    """Return the bytes of an object.

    Raises:
        SpecError: it cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read: {error.strerror}; {_ACCEPTED}", key="--bpf"
        ) from None
    if len(data) > LARGEST:
        raise SpecError(f"{path}: has more than {LARGEST >> 20} MiB; {_ACCEPTED}", key="--bpf")
    return data


def require(path: Path) -> None:
    """Refuse a file that is no object with a congestion control of its name.

    Raises:
        SpecError: it is none; the text says why.
    """
    data = content(path)
    name = control(path)
    if not path.name.endswith(_SUFFIX):
        problem = "is not called after its congestion control"
    elif data[:6] != b"\x7fELF\2\1" or len(data) < 20:
        problem = "is no ELF file"
    elif struct.unpack_from("<HH", data, 16) != (_ET_REL, _EM_BPF):
        problem = "is an ELF file, but no object for BPF"
    elif _SECTION not in data:
        problem = "has no section .struct_ops"
    elif not images.has_text(data, name):
        problem = f"has no congestion control of the name {name}"
    else:
        return
    raise SpecError(f"{path}: {problem}; {_ACCEPTED}", key="--bpf")
