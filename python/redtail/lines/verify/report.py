"""Two recordings compared, as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from redtail import escape
from redtail.lines import printing
from redtail.lines.recordings.values import scaled
from redtail.lines.verify.blocks import Value
from redtail.lines.verify.verified import BASE, Row, Verified

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

HEADS = ("quantity", "before", "after", "difference", "says")


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, to three digits.

    >>> shown(-0.0123, "s"), shown(0.015, "")
    ('-12.3 ms', '1.5 %')
    """
    return _with_unit([value], unit)


def _with_unit(values: Sequence[float], unit: str) -> str:
    """Return a number, and the ends of its interval if they follow, in the unit of the largest.

    >>> _with_unit([0.1, 0.0912, 0.114], "s")
    '100 ms (91.2 to 114)'
    """
    if unit == "":
        scale, name = 0.01, "%"
    else:
        scale, name = scaled(max(map(abs, values)), unit)
    first, *ends = (f"{each / scale:.3g}" for each in values)
    text = f"{first} {name}"
    return f"{text} ({ends[0]} to {ends[1]})" if ends else text


def value_text(found: Value, unit: str) -> str:
    """Return a value with its interval, or with its bound."""
    if not found.known:
        return "not known"
    ends = found.ends()
    if ends is None:
        return f"{found.bound} {shown(found.value, unit)}".lstrip()
    # No rate, delay or share is below 0.
    return _with_unit([found.value, max(ends[0], 0.0), ends[1]], unit)


def _difference(row: Row) -> str:
    if row.difference is None:
        return "" if row.quantity == BASE else "no interval"
    change = row.difference
    return _with_unit([change.value, change.low, change.high], row.unit)


def table_of(found: Verified) -> Table:
    """Return the rows as a table of the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in HEADS:
        table.add_column(head, no_wrap=True)
    for row in found.rows:
        says = "" if row.quantity == BASE else row.effect
        table.add_row(
            row.name,
            value_text(row.before, row.unit),
            value_text(row.after, row.unit),
            _difference(row),
            says,
        )
    return table


def _promises(found: Verified) -> Table:
    """Return the promises of the advice as a table of the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("promised", "value", "after", "kept", "why"):
        table.add_column(head)
    for each in found.promised:
        bound = "at most" if each.unit == "s" else "at least"
        table.add_row(
            escape.name(each.what),
            f"{bound} {shown(each.promised, each.unit)}",
            value_text(each.measured, each.unit),
            each.kept,
            escape.name(each.why),
        )
    return table


def printed(found: Verified, width: int) -> str:
    """Return all of it as text with lines of at most so many columns."""
    return printing.text_of(lambda _: _parts(found), width)


def _parts(found: Verified) -> Iterator[RenderableType]:
    for side in (found.before, found.after):
        # Names of others have no lines of their own.
        yield escape.name(f"{side.name}: {side.found.file}: {side.found.about}")
    if found.rows:
        yield table_of(found)
    if found.promised:
        yield _promises(found)
    yield from map(escape.name, _lines(found))


def _lines(found: Verified) -> Iterator[str]:
    """Yield what is said below the tables."""
    yield f"verdict: {found.verdict}"
    for text in found.reasons:
        yield f"why:     {text}"
    missing: dict[str, list[str]] = {}
    for row in found.rows:
        if row.missing:
            missing.setdefault(row.missing, []).append(row.name)
    for text, names in missing.items():
        yield f"missing: {', '.join(names)}: {text}"
    for text in found.cautions:
        yield f"note:    {text}"


def text_of(found: Verified, form: str) -> str:
    """Return the rows as text for other programs: "csv", "latex" or "markdown".

    Raises:
        SpecError: there is no such form.
    """
    from redtail.display import texts

    chosen = texts.form_of(form)
    if chosen != "csv":
        return texts.of_tables([table_of(found)], chosen)
    heads = ["load", "quantity", "unit", "before", "before low", "before high"]
    heads += ["after", "after low", "after high", "difference", "low", "high", "p adjusted", "says"]
    return texts.csv(heads, [_cells(row) for row in found.rows])


def _cells(row: Row) -> list[str | float | None]:
    cells: list[str | float | None] = [row.load, row.quantity, row.unit]
    for value in (row.before, row.after):
        cells += [value.value if value.known else None, *(value.ends() or (None, None))]
    change = row.difference
    cells += [None] * 3 if change is None else [change.value, change.low, change.high]
    return [*cells, row.p, row.effect]
