"""The page as HTML, from the templates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redtail.analysis.stats import interval_in_words
from redtail.errors import RedtailError
from redtail.files import path_of
from redtail.page import model
from redtail.page.filled import filled, text
from redtail.store.format import REPORT
from redtail.store.writing import explain_write_errors, replace_file

if TYPE_CHECKING:
    from redtail.analysis.results import Results


def page(results: Sequence[Results], *, metrics: Sequence[str] = ()) -> str:
    """Return one HTML page of the results of one or more experiments.

    Args:
        results: of each experiment.
        metrics: what is shown first, as for `Results.select`; the others can be chosen.

    Raises:
        RedtailError: there are none.
        SpecError: there is no such metric.
        StoreError: a series of a run is damaged.
    """
    if not results:
        raise RedtailError("a page needs the results of at least one experiment")
    sections = [
        model.section(each, number, metrics) for number, each in enumerate(results, start=1)
    ]
    return filled(
        "page.html",
        {each.id: each.data for each in sections},
        styles=["page.css"],
        scripts=[["plotly-basic.min.js"], ["elements.js", "page.js"]],
        title=", ".join(each.title for each in sections),
        sections=sections,
        library_licence=text("plotly-LICENSE"),
        intervals=(interval_in_words(), interval_in_words(paired=True)),
    )


def write(
    results: Sequence[Results],
    file: str | os.PathLike[str] | None = None,
    *,
    metrics: Sequence[str] = (),
) -> Path:
    """Write the page; an older one is replaced in one step.

    Args:
        results: of each experiment.
        file: where to; by default `report.html` in the folder of the first experiment's results.
        metrics: what is shown first, as for `page`.

    Returns:
        The path of the file.

    Raises:
        StoreError: it cannot be written.
    """
    html = page(results, metrics=metrics)
    path = results[0].folder / REPORT if file is None else path_of(file)
    with explain_write_errors(path):
        replace_file(path, html.encode())
    return path
