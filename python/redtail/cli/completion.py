"""What the shell completes besides options and files: names that redtail knows.

A shell asks for names while its user waits for the answer, so these functions load no heavy
library. They print nothing: a shell would show it in the middle of the user's line. Where they
return nothing the shell completes the names of files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import typer

from redtail.errors import RedtailError


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def templates(incomplete: str) -> list[str]:
    """Return the templates of `redtail init`."""
    from redtail import templates

    return _beginning(templates.names(), incomplete)


def parts(context: typer.Context, incomplete: str) -> list[str]:
    """Return queues, presets, laws, traffic, metrics or events, as `redtail list` has them."""
    from redtail import catalog, facts, metrics

    part = context.params.get("part")
    part = getattr(part, "value", part)
    if part == "metrics":
        return _beginning((each.name for each in metrics.DEFINITIONS), incomplete)
    if part == "events":
        return _beginning((each["name"] for each in facts.event_kinds()), incomplete)
    known = catalog.Catalog(facts.schema())
    if part == "tcp":
        return _beginning((str(preset.value) for preset in known.tcp[0]), incomplete)
    if part == "laws":
        return _beginning(dict.fromkeys(str(law.kind) for _, law in known.tcp_laws), incomplete)
    sections = known.traffic if part == "traffic" else known.queues
    return _beginning((str(section.kind) for section in sections), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Return the names of metrics, without the group or the link in front of them."""
    from redtail import metrics

    return _beginning((each.name for each in metrics.DEFINITIONS), incomplete)


def forms(incomplete: str) -> list[str]:
    """Return the forms of a table as text."""
    from typing import get_args

    from redtail.display.texts import Form

    return _beginning(get_args(Form), incomplete)


def studies(incomplete: str) -> list[str]:
    """Return the studies that `redtail reproduce` repeats."""
    from redtail import studies

    return _beginning(studies.names(), incomplete)


def suites(incomplete: str) -> list[str]:
    """Return the suites that `redtail evaluate` runs."""
    from redtail.studies import definition

    return _beginning(definition.suites(), incomplete)


def backends(incomplete: str) -> list[str]:
    """Return the names of backends."""
    from redtail.backends import KNOWN

    return _beginning(KNOWN, incomplete)


def devices(incomplete: str) -> list[str]:
    """Return the devices that commands can be made for."""
    from redtail.lines import DEVICES

    return _beginning(DEVICES, incomplete)


def kernels(incomplete: str) -> list[str]:
    """Return the kernels of `redtail kernel list`."""
    from redtail.backends.virtual import kernels

    with contextlib.suppress(RedtailError, OSError):
        return _beginning((kernel.name for kernel in kernels.known()), incomplete)
    return []


def experiments(context: typer.Context, incomplete: str) -> list[str]:
    """Return the experiments in the folder of results."""
    from redtail.files import path_of
    from redtail.store import objects, runs

    out = str(context.params.get("out") or "runs")
    if objects.is_url(out):
        return []
    with contextlib.suppress(RedtailError, OSError):
        return _beginning((folder.name for folder in runs.folders(path_of(out))), incomplete)
    return []


def accesses(incomplete: str) -> list[str]:
    """Return the access technologies of `redtail advise`."""
    from redtail.lines import ACCESS

    return _beginning(ACCESS, incomplete)


def providers(incomplete: str) -> list[str]:
    """Return what providers do with what exceeds the rates of a line."""
    from redtail.lines import PROVIDERS

    return _beginning(PROVIDERS, incomplete)


def rates(incomplete: str) -> list[str]:
    """Return what rates of a line can be of."""
    from redtail.lines import RATES

    return _beginning(RATES, incomplete)


def uses(incomplete: str) -> list[str]:
    """Return what a line can be used for; what stands before the last comma stays."""
    from redtail.lines import USES

    return _continuing(USES, incomplete)


def advised_queues(incomplete: str) -> list[str]:
    """Return the queues of `redtail advise`; what stands before the last comma stays."""
    from redtail.lines import QUEUES

    return _continuing(QUEUES, incomplete)


def objectives(incomplete: str) -> list[str]:
    """Return the objectives of `redtail advise`."""
    from redtail.lines import OBJECTIVES

    return _beginning(OBJECTIVES, incomplete)


def efforts(incomplete: str) -> list[str]:
    """Return the efforts of `redtail advise`."""
    from redtail.lines import EFFORTS

    return _beginning(EFFORTS, incomplete)


def _continuing(names: Iterable[str], incomplete: str) -> list[str]:
    """Return names for the last place of a list with commas.

    >>> _continuing(["web", "calls"], "calls,w")
    ['calls,web']
    """
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    left = (name for name in names if name not in given)
    return [f"{before}{comma}{name}" for name in _beginning(left, last)]
