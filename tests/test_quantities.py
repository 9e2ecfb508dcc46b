"""Quantities as numbers: the engine's own reading of them, from Python."""

from __future__ import annotations

import pytest

from redtail import quantities
from redtail.errors import SpecError


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("20 ms", 0.02, "s"),
        ("1280 ms", 1.28, "s"),
        ("1.28 s", 1.28, "s"),
        ("100 Mbit/s", 1e8, "bit/s"),
        ("1 Gbit/s", 1e9, "bit/s"),
        ("64 KiB", 65536.0, "B"),
        ("300 packets", 300.0, "packets"),
        ("170 Hz", 170.0, "Hz"),
        ("90 %", 0.9, "1"),
    ],
)
def test_a_quantity_is_a_number_in_si(text: str, value: float, unit: str) -> None:
    assert quantities.parse(text) == (value, unit)


@pytest.mark.parametrize("text", ["", "90", "CoDel", "1 kb/s", "-3 ms", "20 ms or 3 packets"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"quantity|unit"):
        quantities.parse(text)


def test_an_ambiguous_unit_says_what_it_may_be() -> None:
    with pytest.raises(
        SpecError, match=r"'?\"?kbps\"? is refused, because 1 kbps is 8 kbit/s in tc"
    ):
        quantities.parse("5 kbps")
