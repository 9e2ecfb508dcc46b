"""Names, labels and captions of users, made safe to show.

Data keep them as they are: tables in Parquet, results.json, scenarios. What is shown to a reader
goes through here: control characters would act on a terminal, bidirectional ones reorder what is
read, and Markdown, Matplotlib and rich have signs of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

# C0, DEL and C1 controls; the marks, embeddings, overrides and isolates of the bidirectional
# algorithm (UAX #9, section 2); line and paragraph separators; the byte order mark; and halves of
# surrogate pairs, which cannot be written at all.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

# What begins a construct of CommonMark or GitHub's Markdown within a line. An underscore within a
# word and an asterisk between spaces do not.
_INLINE = re.compile(
    r"""[`|$~]                  # code, table cells, mathematics, strikes
    | (?<=\S)\* | \*(?=\S)      # emphasis
    | (?<![^\W_])_ | _(?![^\W_])
    | \](?=[(\[:])             # links
    | \\(?=[!-/:-@\[-`{-~])     # a backslash that would escape what follows
    | <(?=[A-Za-z/!?])          # HTML
    | &(?=\#?\w+;)              # an entity
    """,
    re.VERBOSE,
)
# What begins one at the beginning of a line: headings, lists, quotes, rules.
_START = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)|^(\s*)([#>+=-])")


def name(text: str) -> str:
    r"""Return a name with characters that cannot be seen as escapes, on one line.

    >>> name("a\x1b[31mb\u202ec\nd")
    'a\\u001b[31mb\\u202ec\\u000ad'
    """
    return _HIDDEN.sub(_escaped, text)


def text(text: str) -> str:
    r"""Return a message of several lines with characters that cannot be seen as escapes.

    In JSON the escapes stand for the same characters.

    >>> text("first:\n\tsecond\x9b2J")
    'first:\n\tsecond\\u009b2J'
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in "\n\t" else _escaped(found), text)


def plot(text: str) -> str:
    r"""Return a text for Matplotlib, which takes what stands between two dollar signs for TeX.

    >>> plot("$5_$ plan")
    '\\$5_\\$ plan'
    """
    return name(text).replace("$", r"\$")


def markdown(text: str) -> str:
    r"""Return a text for Markdown, within a paragraph, a heading or a cell of a table.

    >>> markdown("a|b <b> *c* max_p _d_ 3 < 4 [e](f)")
    'a\\|b \\<b> \\*c\\* max_p \\_d\\_ 3 < 4 [e\\](f)'
    """
    return _INLINE.sub(r"\\\g<0>", name(text.replace("\n", " ")))


def paragraph(text: str) -> str:
    r"""Return a text for Markdown, as a paragraph or the beginning of one.

    >>> paragraph("# no heading"), paragraph("1. no list"), paragraph("-3 dB")
    ('\\# no heading', '1\\. no list', '\\-3 dB')
    """
    return _START.sub(
        lambda at: f"{at[1]}\\{at[2]}" if at[2] else f"{at[3]}\\{at[4]}", markdown(text)
    )


def plain(text: str, style: str = "") -> Text:
    """Return a text for a table, in which rich sees neither markup nor names of emoji."""
    from rich.text import Text

    return Text(text, style)


def title(words: str) -> Text:
    """Return the title of a table; what cannot be seen in it is escaped."""
    return plain(text(words), "table.title")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
