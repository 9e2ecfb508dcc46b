"""Quantities as numbers: the engine's own reading of them, from Python."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import redtail
from redtail import quantities
from redtail.display import layout
from redtail.errors import SpecError
from redtail.page import model


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


QUANTITIES = """
name = "q"
duration = "2 s"
warmup = "1 s"
replications = 2
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
queue = {{ kind = "tail-drop", limit = "1 s" }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 1
[factors]
"bottleneck.queue.limit" = [{limits}]
"bottleneck.rate" = ["2 Mbit/s", "4000 kbit/s"]
"""


def test_quantities_have_a_column_of_numbers_in_every_table(tmp_path: Path) -> None:
    text = QUANTITIES.format(limits='"1280 ms", "20 ms", "0.1 s"')
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    again = redtail.load(results.folder)
    tables = {
        "cases": results.to_arrow("cases"),
        "replications": again.to_arrow(),
        "flows": results.flows(),
        "cdf": results.cdf("queue_delay"),
        "losses": results.consecutive_losses(),
        "cases.parquet": pq.read_table(results.folder / "cases.parquet"),
        "replications.parquet": pq.read_table(results.folder / "replications.parquet"),
    }
    for name, table in tables.items():
        columns = table.column_names
        place = columns.index("bottleneck.queue.limit")
        assert columns[place + 1] == "bottleneck.queue.limit_s", name
        assert columns[place + 3] == "bottleneck.rate_bit_per_s", name
        assert table.schema.field("bottleneck.queue.limit_s").metadata[b"unit"] == b"s"
        pairs = set(
            zip(
                table["bottleneck.queue.limit"].to_pylist(),
                table["bottleneck.queue.limit_s"].to_pylist(),
                strict=True,
            )
        )
        assert pairs <= {("1280 ms", 1.28), ("20 ms", 0.02), ("0.1 s", 0.1)}
        if name != "losses":  # there may be a case that loses nothing
            assert len(pairs) == 3, name
            assert set(table["bottleneck.rate_bit_per_s"].to_pylist()) == {2e6, 4e6}
    frame = results.to_pandas().sort_values("bottleneck.queue.limit_s")
    assert frame["bottleneck.queue.limit"].iloc[0] == "20 ms"
    assert frame["bottleneck.queue.limit"].iloc[-1] == "1280 ms"


def test_quantities_are_numeric_coordinates(tmp_path: Path) -> None:
    text = QUANTITIES.format(limits='"1280 ms", "20 ms", "0.1 s"')
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    found = results.to_xarray()
    assert found["goodput"].dims == ("limit", "rate", "replication")
    assert found["limit"].values.tolist() == [1.28, 0.02, 0.1]
    assert found["limit"].attrs == {"units": "s"}
    assert found["limit_label"].dims == ("limit",)
    assert found["limit_label"].values.tolist()[:2] == ["1280 ms", "20 ms"]
    assert found["rate"].attrs == {"units": "bit/s"}
    case = next(
        case for case in results.cases if list(case.factors.values()) == ["20 ms", "4000 kbit/s"]
    )
    chosen = found["goodput"].sel(limit=0.02, rate=4e6)
    assert chosen.values.tolist() == case.values("goodput")
    assert len(chosen) == 2


def test_a_table_of_an_earlier_version_gets_the_numbers(tmp_path: Path) -> None:
    text = QUANTITIES.format(limits='"1280 ms", "20 ms"')
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    whole = results.to_arrow()
    results._loaded = whole.drop_columns(["bottleneck.queue.limit_s", "bottleneck.rate_bit_per_s"])
    assert results.to_arrow().equals(whole)


def test_quantities_are_in_order_on_an_axis(tmp_path: Path) -> None:
    text = QUANTITIES.format(limits='"1280 ms", "20 ms", "0.1 s"')
    text = text.replace('"bottleneck.rate" = ["2 Mbit/s", "4000 kbit/s"]', "")
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    found = layout.find_load(results)
    assert found is not None
    assert found.values == (1280.0, 20.0, 100.0) and found.title == "Limit of the queue (ms)"
    (line,) = layout.lines_of(results, found)
    assert [case.factors["bottleneck.queue.limit"] for _, case in line.points] == [
        "20 ms",
        "0.1 s",
        "1280 ms",
    ]
    (factor,) = model.section(results, 1).data["factors"]
    assert factor == {"title": "queue limit (ms)", "values": [1280.0, 20.0, 100.0]}


def test_settings_of_different_dimensions_stay_texts(tmp_path: Path) -> None:
    text = QUANTITIES.format(limits='"30 packets", "20 ms"')
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    for rows in ("cases", "replications"):
        names = results.to_arrow(rows).column_names
        assert [name for name in names if name.startswith("bottleneck.queue.limit")] == [
            "bottleneck.queue.limit"
        ]
    found = results.to_xarray()
    assert found["limit"].values.tolist() == ["30 packets", "20 ms"]
    assert "limit_label" not in found.coords
