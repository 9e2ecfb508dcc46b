"""The navigation of the site, from the lists of docs/index.md.

Every page has to be linked there (tests/documents/test_docs.py), so there is no second list.
"""

from __future__ import annotations

import re
from typing import Any

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")
_SECTION = re.compile(r"^\*\*(?P<title>[^*]+)\*\*$", re.MULTILINE)
_GROUP = re.compile(r"(?P<title>[A-Z][a-z ]+): ")

Nav = list[dict[str, Any]]

# The first section, and entries for pages that the build makes.
START: Nav = [
    {"redtail": "README.md"},
    {"Install": "how-to/install.md"},
    {"Tutorial": "tutorial.md"},
    {"All pages": "index.md"},
    {"Changes": "CHANGELOG.md"},
]
MADE: dict[str, Nav] = {
    "Reference": [
        {"Commands": "reference/commands.md"},
        {"Python": "reference/python.md"},
        {"Typed objects": "reference/python-objects.md"},
        {"Environments of Gymnasium": "reference/python-gym.md"},
    ]
}


def navigation(index: str, start: Nav, more: dict[str, Nav]) -> Nav:
    """Return MkDocs' `nav` for the text of docs/index.md.

    Args:
        index: The text. A line in bold begins a section; each link of its list becomes an entry.
            The entries of an item that begins with a word and a colon ("Queues: ...") have a group
            of their own. Links to what is no page are left out. A link to a page above docs/ stands
            for the page of that name on the site.
        start: Entries of the first section.
        more: Entries to put at the beginning of sections, by the section's title.

    Raises:
        ValueError: `more` names a section that the text does not have.
    """
    _, *parts = _SECTION.split(index)
    titles = parts[::2]
    if unknown := set(more) - set(titles):
        raise ValueError(f"docs/index.md has no section {', '.join(sorted(unknown))}")
    sections = zip(titles, parts[1::2], strict=True)
    return [
        {"Start": start},
        *({title: [*more.get(title, []), *_entries(text)]} for title, text in sections),
    ]


def _entries(text: str) -> Nav:
    entries: Nav = []
    for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
        links: Nav = [
            _entry(link)
            for link in _LINK.finditer(item)
            if re.fullmatch(r"[^:]+\.md", link["target"])
        ]
        if group := _GROUP.match(item):
            entries.append({group["title"]: links})
        else:
            entries += links
    return entries


def _entry(link: re.Match[str]) -> dict[str, str]:
    text = " ".join(link["text"].split())
    if not text.startswith("redtail"):
        text = text[:1].upper() + text[1:]
    return {text: link["target"].removeprefix("../")}
