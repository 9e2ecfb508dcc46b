"""`redtail kernel`: the kernels that the backend `linux` can start."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from redtail.cli import completion
from redtail.cli.options import AsJson
from redtail.cli.output import complain, say

Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call the kernel.")]


def fetch(
    package: Annotated[
        str | None,
        typer.Argument(
            metavar="[PACKAGE]",
            help="A package with a kernel, or NAME=VERSION; without it the distribution's newest "
            "kernel for virtual machines.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            metavar="NAME",
            help="Another suite of the distribution than this computer's, such as sid or "
            "trixie-backports; iproute2 comes from there, too.",
        ),
    ] = None,
) -> None:
    """Get a kernel from the packages of this computer's distribution, without root.

    It is called by its release, and becomes the default. The settings of apt stay as they are.
    """
    from redtail.backends.virtual import kernels

    kernel = kernels.fetch(package, lambda text: complain(text, "note"), suite)
    tools = f", with iproute2 {kernel.iproute2}" if kernel.iproute2 else ""
    counted = _counted(kernel.queues(), kernel.controls())
    say(f"{kernel.name}: {counted}, from {kernel.origin}{tools}")


def add(
    name: Name,
    image: Annotated[
        Path | None,
        typer.Option(
            "--image",
            metavar="FILE",
            help="The kernel for x86-64: a bzImage (vmlinuz), or a vmlinux with CONFIG_PVH.",
        ),
    ] = None,
    modules: Annotated[
        Path | None,
        typer.Option(
            "--modules",
            metavar="DIR",
            help="Its modules, with the file modules.builtin: what `make modules_install "
            "INSTALL_MOD_PATH=DIR` has made, or the build tree.",
        ),
    ] = None,
    own: Annotated[
        list[Path] | None,
        typer.Option(
            "--module",
            metavar="FILE",
            help="A module of yours, such as tcp_NAME.ko with a congestion control; repeatable. "
            "Without --image, the kernel is one that is kept.",
        ),
    ] = None,
    bpf: Annotated[
        list[Path] | None,
        typer.Option(
            "--bpf",
            metavar="FILE",
            help="A congestion control in BPF, NAME.bpf.o; repeatable. Runs need the program "
            "bpftool.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="KERNEL",
            help="With --module or --bpf, the kernel that is copied; by default the default one.",
            autocompletion=completion.kernels,
        ),
    ] = None,
    iproute2: Annotated[
        str | None,
        typer.Option(
            "--iproute2",
            metavar="KERNEL",
            help="Take iproute2 from a kernel that was fetched with --suite, if this computer's "
            "does not know a queue.",
        ),
    ] = None,
) -> None:
    """Keep a copy of a kernel of yours; it becomes the default."""
    from redtail.backends.virtual import kernels

    kernel = kernels.add(name, image, modules, iproute2, base=base, own=own or (), bpf=bpf or ())
    say(f"{kernel.name}: Linux {kernel.release}, {_counted(kernel.queues(), kernel.controls())}")


def headers(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new folder for them (80 MB with Debian 12).")
    ],
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="A kernel from `redtail kernel fetch`; by default the default one.",
            autocompletion=completion.kernels,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", metavar="NAME", help="The suite that the kernel was fetched from."),
    ] = None,
) -> None:
    """Get the headers of a kernel, with which modules for it are built, without root.

    They are packages of this computer's distribution, and are not installed.
    """
    from redtail.backends.virtual import kernels

    tree = kernels.headers(folder, kernel, lambda text: complain(text, "note"), suite)
    say(f"make -C {shlex.quote(str(tree))} M=$PWD modules")


def list_kernels(as_json: AsJson = False) -> None:
    """List the kernels: release, origin, queues, congestion controls, size, and the default."""
    from redtail.backends.virtual import kernels
    from redtail.store.runs import shown_size

    found = kernels.known()
    chosen = kernels.default(found) if found else None
    if as_json:
        each = [{**kernel.as_json(), "default": kernel == chosen} for kernel in found]
        say(json.dumps(each, indent=2, ensure_ascii=False))
        return
    if not found:
        say(f"{kernels.store()}: no kernels; {kernels.GET_ONE}")
    for kernel in found:
        say(f"{kernel.name}{' (the default)' if kernel == chosen else ''}")
        say(f"  release   {kernel.release}")
        say(f"  origin    {kernel.origin}")
        if kernel.iproute2:
            say(f"  iproute2  {kernel.iproute2}")
        say(f"  identity  {kernel.identity[:16]}")
        say(f"  queues    {len(kernel.queues())}: {', '.join(kernel.queues())}")
        say(f"  controls  {len(kernel.controls())}: {', '.join(kernel.controls())}")
        say(f"  size      {shown_size(kernel.size)} in {kernel.image.parent}")


def remove(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="As `redtail kernel list` has it.",
            autocompletion=completion.kernels,
        ),
    ],
) -> None:
    """Remove a kernel; results that it has made stay."""
    from redtail.backends.virtual import kernels

    kernels.remove(name)
    say(f"{name}: removed")


def _counted(queues: list[str], controls: list[str]) -> str:
    from redtail.metrics import counted

    return f"{counted(len(queues), 'queue')}, {counted(len(controls), 'congestion control')}"
