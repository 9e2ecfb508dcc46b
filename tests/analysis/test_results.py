"""The same numbers in every form."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import redtail
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.analysis.stats import estimate, paired_difference
from redtail.display.tables import summary_table
from redtail.errors import RedtailError, StoreError
from redtail.store.folders import StoredRun
from redtail.store.parquet import parquet_bytes

from fake_native import FakeNative


@pytest.fixture
def results(fake: FakeNative, fake_file: Path, tmp_path: Path) -> Results:
    return redtail.run(fake_file, out=tmp_path / "runs")


def test_json_has_an_object_per_case(results: Results) -> None:
    told = json.loads(results.to_json())
    assert told["experiment"] == "Fake experiment"
    assert len(told["cases"]) == 4
    case = told["cases"][1]
    assert case["factors"]["traffic.ftp.flows"] == 64
    assert case["factors"]["bottleneck.queue"]["kind"] == "tail-drop"
    assert case["labels"]["bottleneck.queue"] == "tail drop"
    assert set(case["metrics"]["goodput"]) == {"mean", "ci95", "n"}
    assert case["metrics"]["goodput"]["n"] == 3
    assert [row["losses"] for row in case["consecutive_loss_exceeds"]] == [1, 2, 3]


def test_json_has_null_where_there_is_no_interval(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    told = redtail.run(fake_file, out=tmp_path, replications=1).as_json()
    assert told["cases"][0]["metrics"]["goodput"]["ci95"] is None
    assert told["cases"][0]["metrics"]["goodput"]["n"] == 1


def test_a_metric_undefined_in_one_case_is_null_there(fake: FakeNative, tmp_path: Path) -> None:
    source = redtail.Toml('name = "x"\n[factors]\n"traffic.ftp.flows" = [13, 14]')
    told = redtail.run(source, out=tmp_path, replications=2).as_json()
    assert told["cases"][0]["metrics"]["fairness"] == estimate([]).as_json()
    assert told["cases"][1]["metrics"]["fairness"]["mean"] == 0.9


def test_tables_have_units_and_numeric_factors(results: Results) -> None:
    frame = results.to_pandas()
    assert len(frame) == 12
    assert frame["traffic.ftp.flows"].tolist()[:6] == [16] * 3 + [64] * 3
    assert frame["bottleneck.queue"].iloc[0] == "tail drop"
    assert frame["queue_delay_mean_s"].between(0, 1).all()
    rows = results.to_polars("cases").filter(metric="goodput")
    assert rows["n"].to_list() == [3] * 4
    assert rows["unit"].unique().to_list() == ["bit/s"]
    assert results.table().equals(results.to_arrow("cases"))


def test_tables_agree_with_the_cases(results: Results) -> None:
    frame = results.to_pandas()
    for number, case in enumerate(results.cases):
        own = frame[frame["case"] == number]["udp_loss"].tolist()
        assert estimate(own) == case.metric("udp_loss")


def test_a_case_is_found_by_its_labels(results: Results) -> None:
    assert results.case(queue="RED", flows=64) is results.cases[3]
    with pytest.raises(RedtailError, match=r"2 cases fit.*tail drop, ftp flows 16"):
        results.case(queue="RED")


def test_consecutive_losses_have_intervals(results: Results) -> None:
    rows = results.consecutive_losses().to_pylist()
    first = [row for row in rows if row["case"] == 0]
    assert [row["losses_packets"] for row in first] == [1, 2, 3]
    assert all(row["link"] == "bottleneck" and row["n"] == 3 for row in rows)
    assert results.consecutive_losses("return").num_rows == 0
    with pytest.raises(RedtailError, match="the queues are bottleneck, return"):
        results.consecutive_losses("nowhere")


def test_series_name_their_links(results: Results) -> None:
    table = results.series("queues", case=1)
    assert table.column("link").to_pylist()[0] == "bottleneck"
    assert table.schema.field("time_s").metadata[b"unit"] == b"s"
    with pytest.raises(StoreError, match=r"windows = true"):
        results.series("flows")


def test_differences_are_paired_with_the_baseline_of_the_same_load(results: Results) -> None:
    found = results.differences("goodput", baseline="tail drop")
    assert [case.title for case, _ in found] == ["RED, ftp flows 16", "RED, ftp flows 64"]
    case, difference = found[0]
    first, second = case.values("goodput"), results.cases[0].values("goodput")
    assert difference == paired_difference(first, second)
    with pytest.raises(RedtailError, match="'blue' is not a setting"):
        results.differences("goodput", baseline="blue")


def _printed(results: Results, width: int) -> str:
    from rich.console import Console

    console = Console(width=width, record=True, file=io.StringIO())
    console.print(summary_table(results, width))
    return console.export_text()


@pytest.mark.parametrize("width", [60, 80, 100, 118, 160])
def test_the_table_fits_its_width(results: Results, width: int) -> None:
    text = _printed(results, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "gentle" not in text and "tail drop" in text


def test_the_table_of_the_demo_shows_losses_per_event_on_118_columns(tmp_path: Path) -> None:
    """Numbers as the demo has them: nothing but these columns, and none of them too wide."""

    def runs(**values: tuple[float, float]) -> dict[int, StoredRun]:
        # Two replications, apart by what gives an interval of about the second number.
        return {
            number: StoredRun(
                "",
                tmp_path,
                {name: mean + sign * half / 12.7 for name, (mean, half) in values.items()},
                {"bottleneck": []},
                {},
            )
            for number, sign in enumerate((-1, 1))
        }

    measured = {
        "utilization": (1.0, 3e-8),
        "goodput": (8.763e6, 3e3),
        "udp_loss": (0.00198, 0.00014),
        "loss": (0.1720, 0.0010),
        "queue_delay_mean": (0.31073, 0.00009),
        "queue_delay_std": (0.01226, 0.00029),
        "consecutive_loss_mean": (1.234, 0.012),
    }
    factors = {"traffic.ftp.flows": 256, "bottleneck.queue": {}}
    labels = {"traffic.ftp.flows": "256", "bottleneck.queue": "gentle RED"}
    case = CaseResult(factors, labels, runs(**measured))
    results = Results(
        name="Demo", description="", factors=list(factors), cases=(case,), folder=tmp_path
    )
    text = _printed(results, 118)
    assert "losses/event" in text
    assert "100.0 ±<0.1 " in text and "310.7 ±0.1 " in text and "17.20 ±0.10" in text
    assert max(map(len, text.splitlines())) <= 118


def test_figures_are_drawn_and_repeatable(results: Results, tmp_path: Path) -> None:
    formats = ("png", "svg", "pdf")
    paths = results.figures(every=True, formats=formats)
    stems = {path.stem for path in paths}
    assert {"goodput", "udp_loss", "consecutive_loss", "queue_over_time"} <= stems
    assert {path.suffix for path in paths} == {".png", ".svg", ".pdf"}
    # Each kind of figure in one format, and one in all: drawing them is what takes the time.
    again = results.figures(tmp_path / "again", every=True, formats=("svg",))
    first = {path.name: path.read_bytes() for path in paths}
    assert {path.name for path in again} == {name for name in first if name.endswith(".svg")}
    for path in [*again, *results.figures(tmp_path / "one", names=["goodput"], formats=formats)]:
        assert path.read_bytes() == first[path.name], path


@pytest.mark.usefixtures("figures_unwritten")
def test_figures_without_a_numeric_factor_have_a_row_per_case(
    fake: FakeNative, tmp_path: Path
) -> None:
    text = 'name = "x"\n[factors]\n"bottleneck.queue" = [{ kind = "a" }, { kind = "b" }]'
    results = redtail.run(redtail.Toml(text), out=tmp_path, replications=2)
    assert any(path.stem == "goodput" for path in results.figures(every=True))
    alone = redtail.run(redtail.Toml('name = "alone"'), out=tmp_path, replications=1)
    assert alone.cases[0].title == ""
    assert any(path.stem == "consecutive_loss" for path in alone.figures(every=True))


@pytest.mark.parametrize(
    ("kind", "unit", "averaged"),
    [
        ('kind = "red", limit = "100 kB", min_th = "20 kB", max_th = "60 kB"', "kB", True),
        ('kind = "red", limit = "100 kB", min_th = "20 ms", max_th = "60 ms"', "kB", True),
        (
            'kind = "red", limit = "100 kB", min_th = "20 packets", max_th = "60 packets"',
            "packets",
            True,
        ),
        ('kind = "adaptive-red", limit = "100 packets"', "packets", True),
        ('kind = "codel"', "packets", False),  # what it has in the series is a delay
    ],
)
def test_a_queue_over_time_is_in_the_unit_of_its_average(
    kind: str, unit: str, averaged: bool, tmp_path: Path
) -> None:
    from redtail.display.lengths import queue_figure

    text = f"""
name = "over time"
duration = "5 s"
warmup = "1 s"
replications = 1
[series]
interval = "100 ms"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {{ {kind} }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 20
return_delay = "50 ms"
"""
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    figure = queue_figure(results)
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_ylabel() == f"Queue ({unit})"
    length, *average = axes.get_lines()
    table = results.series("queues").to_pydict()
    lengths = table["packets"] if unit == "packets" else [each / 1e3 for each in table["bytes"]]
    assert np.allclose(length.get_ydata(), lengths, rtol=1e-12, atol=0)
    assert len(average) == averaged
    for line in average:  # it follows the queue, so it is of the same size
        assert 0.3 * max(lengths) < np.max(line.get_ydata()) <= max(lengths)


def _answered(folder: Path, case: int, bins: list[tuple[str, float, float, int]]) -> StoredRun:
    """A stored run with counts by group, size and time."""
    run = folder / str(case)
    run.mkdir()
    group, size, time, count = zip(*bins, strict=True)
    table = pa.table(
        {
            "group": pa.array(group).dictionary_encode(),
            "size_up_to_bytes": size,
            "time_up_to_s": time,
            "count": pa.array(count, pa.uint64()),
        }
    )
    (run / "response_times.parquet").write_bytes(parquet_bytes(table))
    return StoredRun(str(case), run, {"web.responses": 1.0}, {}, {})


def test_a_distribution_is_the_mean_of_its_replications(tmp_path: Path) -> None:
    runs = {
        # The replications do not have the same bins, and one has another class of sizes.
        0: _answered(tmp_path, 0, [("web", 1460, 0.1, 1), ("web", 1460, 1.0, 3)]),
        1: _answered(
            tmp_path, 1, [("web", 1460, 0.1, 3), ("web", 1e4, 0.5, 0), ("web", 1e4, 1.0, 1)]
        ),
    }
    results = Results(
        name="r", description="", factors=[], cases=(CaseResult({}, {}, runs),), folder=tmp_path
    )
    rows = results.response_time_cdf(at=[0.05, 0.1, 1.0, 2.0]).to_pylist()
    assert [row["mean"] for row in rows] == [0.0, 0.5, 1.0, 1.0]
    assert rows[1]["ci95"] == estimate([0.25, 0.75]).ci95
    small = results.response_time_cdf(at=[0.1], size_up_to=1460).to_pylist()
    assert small[0]["mean"] == (0.25 + 1.0) / 2
    large = results.response_time_cdf(at=[0.1], size_up_to=10_000).to_pylist()
    assert (large[0]["mean"], large[0]["n"]) == (0.0, 1)
    everywhere = results.response_time_cdf().to_pylist()
    assert [row["time_s"] for row in everywhere] == [0.1, 0.5, 1.0]
    shares = [row["mean"] for row in everywhere]
    assert shares == sorted(shares) and shares[-1] == 1.0
    drawn = results.figures(tmp_path / "figures", every=True)
    assert "web.response_times" in {path.stem for path in drawn}
    assert "responses" in _printed(results, 118)


def test_quantities_in_one_unit_make_an_axis() -> None:
    from redtail.display.layout import find_load

    def load(*values: object) -> object:
        cases = tuple(
            CaseResult({"bottleneck.rate": v}, {"bottleneck.rate": str(v)}, {}) for v in values
        )
        found = find_load(
            Results(
                name="", description="", factors=["bottleneck.rate"], cases=cases, folder=Path()
            )
        )
        return found and (found.title, found.values)

    assert load("10 Mbit/s", "20Mbit/s") == ("Rate (Mbit/s)", (10.0, 20.0))
    assert load("10 Mbit/s", "1 Gbit/s") == ("Rate (Mbit/s)", (10.0, 1000.0))
    assert load("10 Mbit/s", "20 ms") is None
    assert load("fast", "slow") is None
    assert load(1, math.pi) == ("Rate", (1.0, math.pi))


def test_a_flow_without_progress_is_a_warning_and_one_with_progress_is_not(tmp_path: Path) -> None:
    lossy = """
name = "Stuck"
duration = "100 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
wire.loss = 0.6
queue = { kind = "tail-drop", limit = "1000 packets" }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 5
tcp = "sack"
"""
    with pytest.warns(
        redtail.RedtailWarning,
        match=r"flows of 'bulk' .*, in 10 of 10 runs \(1 of 1 case\), .* bulk\.stalls",
    ):
        stuck = redtail.run(redtail.Toml(lossy), out=tmp_path)
    assert len(stuck.warnings) == 1
    groups = [
        f'[[traffic]]\nname = "b{number}"\nkind = "bulk"\nflows = 2\ntcp = "sack"\n'
        for number in range(9)
    ]
    many = (
        lossy[: lossy.index("[[traffic]]")]
        + "".join(groups)
        + '[factors]\n"bottleneck.delay" = ["5 ms", "20 ms"]\n'
    )
    with pytest.warns(
        redtail.RedtailWarning, match=r"'b0', 'b1', 'b2' and 6 other groups .* in [0-9]+ of 20 runs"
    ):
        assert len(redtail.run(redtail.Toml(many), out=tmp_path / "many").warnings) == 1
    assert redtail.load(stuck.folder).warnings == stuck.warnings
    calm = redtail.run(redtail.Toml(lossy.replace("0.6", "0.01")), out=tmp_path)
    assert calm.warnings == ()


def test_a_seed_beyond_a_signed_number_can_be_a_factor(fake: FakeNative, tmp_path: Path) -> None:
    large = 2**64 - 1
    text = f'name = "Seeds"\nreplications = 1\n[factors]\nseed = [1, {large}]\n'
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    assert results.to_arrow()["seed"].to_pylist() == ["1", str(large)]
    assert redtail.load(results.folder).run_count == 2
