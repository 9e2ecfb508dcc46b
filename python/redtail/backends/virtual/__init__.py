"""The backend `linux`: a Linux kernel in a QEMU virtual machine whose clock counts instructions.

`redtail.backends.linux` asks `machine` for each run. This starts QEMU from a snapshot, which it
makes once for each kernel and archive, with `TURNS` loaded before QEMU's own libraries. The first
process in the guest is `AGENT`: it reads the request, makes the run in virtual time and sends the
reply; or it runs programs of redtail and sends what they printed (`machine.run_programs`).

It must not know what a run measures: a request goes in, and a reply comes out.

    kernels    keeps the kernels; `images` reads their files
    packages   gets kernels from apt, also of another suite (`suites`), with its iproute2
               (`programs`)
    initramfs  the archive that a guest starts with
    roots      the root filesystem of the user's programs in it: from a folder or an archive, or
               from this computer's programs (`collecting`), whose libraries `elf` reads
    snapshots  machines that wait for a request, kept between commands
    machine    the process of QEMU
"""

from __future__ import annotations

from pathlib import Path

AGENT = Path(__file__).with_name("agent")
"""The program that makes a run inside the guest, which `make dev` builds (crates/live)."""

TURNS = Path(__file__).with_name("turns.so")
"""The library with which QEMU's runs are repeatable, which `make dev` builds (crates/turns)."""
