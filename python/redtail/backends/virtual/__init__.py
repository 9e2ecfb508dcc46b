"""The backend `linux`: a Linux kernel in a QEMU virtual machine whose clock counts instructions.

`kernels` keeps the kernels (`images` reads their files, `packages` gets a distribution's), and
`initramfs` makes what the guest starts with.
"""

from __future__ import annotations

from pathlib import Path

AGENT = Path(__file__).with_name("agent")
"""The program that makes a run inside the guest, which `make dev` builds (crates/live)."""

TURNS = Path(__file__).with_name("turns.so")
"""The library with which QEMU's runs are repeatable, which `make dev` builds (crates/turns)."""
