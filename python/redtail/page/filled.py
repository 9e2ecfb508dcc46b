"""Templates filled in: one HTML file with its style, its scripts and its data in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import facts

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")


def filled(
    template: str,
    data: Any,
    *,
    styles: Sequence[str],
    scripts: Sequence[Sequence[str]],
    **values: Any,
) -> str:
    """Return a template as HTML that a browser fetches nothing for.

    Args:
        template: its file name.
        data: what its scripts find as JSON in the element `data`.
        styles: the files of its style.
        scripts: the files of each of its scripts.
        values: what else it names.
    """
    texts = ["\n".join(text(name) for name in names) for names in scripts]
    return (
        _environment()
        .get_template(template)
        .render(
            data=_json(data),
            style="\n".join(text(name) for name in styles),
            scripts=texts,
            hashes=" ".join(f"'sha256-{_hash(each)}'" for each in texts),
            version=facts.version(),
            **values,
        )
    )


@cache
def text(name: str) -> str:
    """Return a file that stands in the page as it is.

    What would end the element that it stands in must not be in it.
    """
    found = (_TEMPLATES / name).read_text(encoding="utf-8")
    assert "</script" not in found.lower() and "</style" not in found.lower(), name
    return found


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


def _json(value: Any) -> str:
    r"""Return JSON that can stand in a `script` element: no text in it ends the element.

    >>> _json({"label": "</script><!--"})
    '{"label":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    """Return the hash of a script for the policy in the page's head (CSP level 3, section 8.3)."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
