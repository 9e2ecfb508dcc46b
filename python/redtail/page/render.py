"""The page as HTML, from the templates."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import facts
from redtail.analysis.stats import interval_in_words
from redtail.errors import RedtailError
from redtail.files import path_of
from redtail.page import model
from redtail.store.format import REPORT
from redtail.store.writing import explain_write_errors, replace_file

if TYPE_CHECKING:
    from jinja2 import Environment

    from redtail.analysis.results import Results

_TEMPLATES = Path(__file__).with_name("templates")
_LIBRARY = "plotly-basic.min.js"
_SCRIPT = "page.js"


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
    library, script = _text(_LIBRARY), _text(_SCRIPT)
    title = ", ".join(each.title for each in sections)
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            sections=sections,
            data=_json({each.id: each.data for each in sections}),
            style=_text("page.css"),
            library=library,
            library_licence=_text("plotly-LICENSE"),
            script=script,
            hashes=" ".join(f"'sha256-{_hash(text)}'" for text in (library, script)),
            version=facts.version(),
            intervals=(interval_in_words(), interval_in_words(paired=True)),
        )
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
    text = page(results, metrics=metrics)
    path = results[0].folder / REPORT if file is None else path_of(file)
    with explain_write_errors(path):
        replace_file(path, text.encode())
    return path


@cache
def _environment() -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _text(name: str) -> str:
    """Return a file that stands in the page as it is.

    What would end the element that it stands in must not be in it.
    """
    text = (_TEMPLATES / name).read_text(encoding="utf-8")
    assert "</script" not in text.lower() and "</style" not in text.lower(), name
    return text


def _json(value: Any) -> str:
    r"""Return JSON that can stand in a `script` element: no text in it ends the element.

    >>> _json({"label": "</script><!--"})
    '{"label":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    """Return the hash of a script for the policy in the page's head (CSP level 3, section 8.3)."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
