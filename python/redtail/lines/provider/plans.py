"""The plans of an access provider: from a file or a text to checked values."""

from __future__ import annotations

import csv
import io
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail import facts
from redtail.errors import SpecError

USES = ("calls", "web", "downloads", "backup")
"""What subscribers can do. Calls are part of every load, and downloads of every busy subscriber."""

MOST_PLANS = 20
"""Source: our choice; a table of more rows says nothing."""

MOST_SUBSCRIBERS = 100_000
"""Subscribers of all plans together. Source: our choice."""

MOST_BYTES = 1_000_000
"""The largest file of plans, in bytes. Source: our choice."""

LEAST_BPS, MOST_BPS = 200e3, 100e9
"""The slowest and the fastest plan, in bit/s. Source: those of lines (`lines.advice`)."""

_COLUMNS = ("name", "down", "up", "number")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")
_INLINE = re.compile(r"\s*(\d+)\s*x\s*([^/]+)/([^/]+)")
_FORM = '"200 x 100mbit/20mbit", several with commas between them, or a file .csv or .toml'


@dataclass(frozen=True)
class Plan:
    """What some subscribers have bought.

    Attributes:
        name: what tables call it.
        down_bps: the rate towards them, in bit/s.
        up_bps: the rate from them, in bit/s.
        number: how many subscribers have it.
        uses: what they do, of `USES`.
    """

    name: str
    down_bps: float
    up_bps: float
    number: int
    uses: tuple[str, ...]


def read_plans(given: str, uses: Sequence[str] = ("calls", "web", "downloads")) -> tuple[Plan, ...]:
    """Return plans from a text such as "200 x 100mbit/20mbit", or from a file of them.

    Args:
        given: the text, or the name of a file that ends in .csv or .toml.
        uses: what subscribers do whose plan does not say it.

    Raises:
        SpecError: the file cannot be read, or a value makes no sense; the text names file, line or
            entry, key, value and what is accepted.
    """
    suffix = Path(given).suffix.lower()
    if suffix == ".csv":
        rows = _csv_rows(given)
    elif suffix == ".toml":
        rows = _toml_rows(given)
    else:
        rows = _inline_rows(given)
    if not 1 <= len(rows) <= MOST_PLANS:
        raise _refused("subscribers", f"has {len(rows)} plans", f"1 to {MOST_PLANS}")
    plans = tuple(_plan(where, row, uses) for where, row in rows)
    names = [plan.name for plan in plans]
    for (where, _), name in zip(rows, names, strict=True):
        if names.count(name) > 1:
            raise _refused(f"{where}name", f'= "{name}" names two plans', "a name for each")
    total = sum(plan.number for plan in plans)
    if total > MOST_SUBSCRIBERS:
        raise _refused(
            "subscribers", f"has {total} subscribers", f"up to {MOST_SUBSCRIBERS} in all plans"
        )
    return plans


def _refused(key: str, problem: str, accepted: str) -> SpecError:
    return SpecError(f"{key} {problem}; accepted: {accepted}", key="subscribers")


_Rows = list[tuple[str, Mapping[str, Any]]]
"""What stands before the key in a message, and the values of a plan."""


def _inline_rows(given: str) -> _Rows:
    rows: _Rows = []
    for number, text in enumerate(given.split(","), start=1):
        found = _INLINE.fullmatch(text)
        if found is None:
            raise _refused(f'subscribers = "{given}"', "is no plan", _FORM)
        count, down, up = found.groups()
        name = f"plan{number}" if "," in given else "plan"
        rows.append(("subscribers: ", {"name": name, "down": down, "up": up, "number": count}))
    return rows


def _text_of(given: str) -> str:
    path = Path(given)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refused(f"{given}:", "is too large", f"up to {MOST_BYTES} bytes")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(f"{given}:", "is no text in UTF-8", _FORM) from None
    except OSError as error:
        raise _refused(f"{given}:", f"cannot be read ({error.strerror})", _FORM) from None


def _csv_rows(given: str) -> _Rows:
    lines = csv.DictReader(io.StringIO(_text_of(given)), skipinitialspace=True)
    known = (*_COLUMNS, "uses")
    heads = [head.strip() for head in lines.fieldnames or ()]
    lines.fieldnames = heads
    missing = [column for column in _COLUMNS if column not in heads]
    other = [head for head in heads if head not in known]
    if missing or other:
        problem = f"lacks {missing[0]}" if missing else f'has the column "{other[0]}"'
        raise _refused(f"{given}:1: the head", problem, f"{', '.join(_COLUMNS)}, and uses")
    rows: _Rows = []
    try:
        for row in lines:
            if len(rows) > MOST_PLANS:
                break
            where = f"{given}:{lines.line_num}: "
            if None in row or None in row.values():
                raise _refused(where.rstrip(), "has other columns than the head", "as many")
            uses = str(row.pop("uses", "") or "").replace(";", " ").split()
            rows.append((where, {**row, **({"uses": uses} if uses else {})}))
    except csv.Error as error:
        raise _refused(f"{given}:{lines.line_num}:", f"is no CSV ({error})", _FORM) from None
    return rows


def _toml_rows(given: str) -> _Rows:
    try:
        found = tomllib.loads(_text_of(given))
    except tomllib.TOMLDecodeError as error:
        raise _refused(f"{given}:", f"is no TOML ({error})", _FORM) from None
    entries = found.get("plan")
    if list(found) != ["plan"] or not isinstance(entries, list):
        raise _refused(f"{given}:", "has no list of [[plan]] alone", "[[plan]] for each plan")
    rows: _Rows = []
    for number, entry in enumerate(entries, start=1):
        where = f"{given}: plan {number}: "
        known = (*_COLUMNS, "uses")
        if not isinstance(entry, dict):
            raise _refused(f"{given}: plan {number}", "is no table", "[[plan]] for each plan")
        for key in [*(key for key in _COLUMNS if key not in entry), *entry]:
            if key not in entry:
                raise _refused(where + key, "is missing", ", ".join(_COLUMNS))
            if key not in known:
                raise _refused(where + key, "is no key of a plan", ", ".join(known))
        rows.append((where, entry))
    return rows


def _plan(where: str, row: Mapping[str, Any], uses: Sequence[str]) -> Plan:
    name = str(row["name"]).strip()
    if not _NAME.fullmatch(name):
        accepted = "up to 31 letters, digits, _ and -, of which the first is none of these two"
        raise _refused(f"{where}name", f'= "{name}" names no plan', accepted)
    rates = {}
    for key in ("down", "up"):
        rate = facts.rate_bps(f"{where}{key}", str(row[key]).strip())
        if not LEAST_BPS <= rate <= MOST_BPS:
            accepted = 'from "200 kbit/s" to "100 Gbit/s"'
            raise _refused(f"{where}{key}", f'= "{row[key]}" is no rate of a plan', accepted)
        rates[key] = rate
    number = row["number"]
    text = str(number).strip()
    if isinstance(number, bool) or not text.isascii() or not text.isdigit() or len(text) > 9:
        number = 0
    number = int(number)
    if not 1 <= number <= MOST_SUBSCRIBERS:
        accepted = f"a whole number from 1 to {MOST_SUBSCRIBERS}"
        raise _refused(f"{where}number", f"= {text} is no number of subscribers", accepted)
    own = row.get("uses", uses)
    if isinstance(own, str):
        own = own.replace(",", " ").split()
    if not isinstance(own, list | tuple) or not own:
        raise _refused(f"{where}uses", f"= {own!r} is no list", ", ".join(USES))
    for use in own:
        if use not in USES:
            raise _refused(f"{where}uses", f'= "{use}" is no use of a subscriber', ", ".join(USES))
    return Plan(name, rates["down"], rates["up"], number, tuple(dict.fromkeys(own)))


def sold(plans: Sequence[Plan], direction: str) -> float:
    """Return the sum of what all subscribers have bought in a direction, in bit/s."""
    return math.fsum(
        plan.number * (plan.down_bps if direction == "down" else plan.up_bps) for plan in plans
    )
