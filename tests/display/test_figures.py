"""What figures show: lines that can be told apart, units, ends of bars, and what is below."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import redtail
from redtail import metrics as names
from redtail.analysis import stats
from redtail.analysis.case import CaseResult
from redtail.analysis.loads import Calibrated
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, paired_difference
from redtail.display import layout, plane, plots, style, values
from redtail.display.drawn import FORMATS
from redtail.errors import RedtailError, SpecError
from redtail.store.folders import StoredRun

QUEUE, FLOWS = "bottleneck.queue", "traffic.ftp.flows"


def results(
    queues: Sequence[str],
    loads: Sequence[Any] = (),
    *,
    key: str = FLOWS,
    replications: int = 5,
    goodput: float = 9e6,
    delay: float = 0.1,
    loss: float = 0.01,
    spread: float = 0.1,
) -> Results:
    """Return results with drawn numbers, a case for each queue and load."""
    draw = random.Random(1)
    cases = []
    for number, (load, queue) in enumerate(itertools.product(loads or [None], queues)):
        factors: dict[str, Any] = {} if load is None else {key: load}
        factors[QUEUE] = {"kind": queue}
        runs = {
            replication: StoredRun(
                f"{number}-{replication}",
                Path(),
                {
                    "goodput": goodput * draw.uniform(1 - spread, 1 + spread),
                    "queue_delay_mean": delay * (1 + number) * draw.uniform(0.9, 1.1),
                    "loss": loss * draw.uniform(0, 2),
                    "utilization": draw.uniform(0.9, 1.0),
                },
                {"bottleneck": [5, 3, draw.randrange(9)]},
                {},
            )
            for replication in range(replications)
        }
        labels = {factor: str(value) for factor, value in factors.items()} | {QUEUE: queue}
        cases.append(CaseResult(factors, labels, runs))
    factors_of = [*([key] if loads else []), QUEUE]
    return Results(
        name="drawn", description="", factors=factors_of, cases=tuple(cases), folder=Path()
    )


def drawn(figure: Figure) -> Figure:
    FigureCanvasAgg(figure).draw()
    return figure


def below(figure: Figure) -> str:
    """What is written below a figure, on one line."""
    text = figure._supxlabel
    assert text is not None
    return " ".join(text.get_text().split())


def looks(figure: Figure) -> list[list[tuple[str, str, str]]]:
    """Colour, marker and dash of what each panel names in a legend."""
    found = []
    for axes in figure.axes:
        handles, _ = axes.get_legend_handles_labels()
        lines = [handle[0] for handle in handles]
        found.append(
            [(at.get_color(), at.get_marker(), str(at._unscaled_dash_pattern)) for at in lines]
        )
    return found


@pytest.mark.parametrize("count", [7, 8, 40])
def test_any_number_of_queues_can_be_told_apart(count: int) -> None:
    labels = [f"queue {number}" for number in range(count)]
    figure = drawn(results(labels, [1, 4]).figure("goodput"))
    named = []
    for panel, axes in zip(looks(figure), figure.axes, strict=True):
        for part in zip(*panel, strict=True):
            assert len(set(part)) == len(panel)  # colour alone, marker alone, dash alone
        named += [text.strip() for text in axes.get_legend_handles_labels()[1]]
    assert sorted(named) == sorted(labels)
    assert ("cannot be told apart" in below(figure)) == (count > style.DISTINCT)


@pytest.mark.parametrize("size", ["column", "page"])
@pytest.mark.parametrize("kind", ["value", "difference", "plane", "quartiles"])
def test_legends_and_labels_are_inside_the_figure(size: style.Size, kind: str) -> None:
    queues = ["tail drop", "a queue with a name that is far too long for one column of a journal"]
    queues += [f"queue {number}" for number in range(8)]
    metric = None if kind == "plane" else "queue_delay_mean"
    figure = drawn(results(queues, [2, 8]).figure(metric, kind=kind, size=size))
    whole = figure.bbox
    legends = [*figure.legends, *(at for axes in figure.axes if (at := axes.get_legend()))]
    assert legends
    texts = [*legends, figure._supxlabel, *(axes.yaxis.label for axes in figure.axes)]
    for part in texts:
        box = part.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= whole.x1 + 1, part
        assert box.y0 >= -1 and box.y1 <= whole.y1 + 1, part
    assert figure.get_figwidth() == pytest.approx(style.width_of(size))


def test_a_height_that_was_asked_for_is_kept() -> None:
    figure = drawn(results(["a", "b"], [2, 8]).figure("loss", size=(5.0, 4.0)))
    assert list(figure.get_size_inches()) == [5.0, 4.0]


def test_bars_end_where_a_quantity_cannot_go() -> None:
    found = [Estimate(0.01, 0.05, 5), Estimate(0.99, 0.05, 5), Estimate(0.5, None, 5)]
    low, high = style.bars(found, 100.0, (0.0, 1.0))
    assert low[:2] == pytest.approx([1.0, 5.0]) and high[:2] == pytest.approx([5.0, 1.0])
    assert math.isnan(low[2]) and math.isnan(high[2])
    (down, *_), _ = style.bars(found, 1.0, (0.0, 1.0), log=True)
    assert 0.01 - down > 0  # there is no zero on a logarithmic axis
    figure = results(["a", "b"], [1, 2], loss=0.001).figure("loss", log=False)
    for axes in drawn(figure).axes:
        assert axes.get_ylim()[0] == 0.0


@pytest.mark.parametrize(("delay", "unit"), [(4e-6, "µs"), (0.02, "ms"), (2.0, "ms"), (30.0, "s")])
def test_units_make_numbers_readable(delay: float, unit: str) -> None:
    figure = results(["a", "b"], [1, 2], delay=delay).figure("queue_delay_mean")
    (axes,) = drawn(figure).axes
    assert axes.get_ylabel() == f"Mean queueing delay ({unit})"
    assert 0.1 <= max(axes.get_lines()[0].get_ydata()) < 1e4


def test_values_that_span_decades_get_a_logarithmic_axis() -> None:
    queues = [f"queue {number}" for number in range(6)]
    near = results(queues, [1, 2])
    assert drawn(near.figure("queue_delay_mean")).axes[0].get_yscale() == "linear"
    far = results(queues, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])  # the delay grows with each case
    assert drawn(far.figure("queue_delay_mean")).axes[0].get_yscale() == "log"
    assert drawn(far.figure("queue_delay_mean", log=False)).axes[0].get_yscale() == "linear"
    assert drawn(results(queues).figure("goodput", log=True)).axes[0].get_xscale() == "log"


def test_numbers_stand_to_scale_whatever_their_units() -> None:
    found = layout.find_load(
        results(["a"], ["500 kbit/s", "1 Mbit/s", "3 Mbit/s"], key="bottleneck.rate")
    )
    assert found is not None
    assert found.values == (500.0, 1000.0, 3000.0) and found.title == "Rate (kbit/s)"
    (axes,) = drawn(results(["a", "b"], [2, 4, 6]).figure("goodput")).axes
    ticks = [float(tick) for tick in axes.get_xticks()]
    assert ticks == [2.0, 4.0, 6.0] and axes.get_xlabel() == "Number of ftp flows"


def test_names_of_cases_are_a_load_under_the_name_of_their_key() -> None:
    def named(key: str, *values: object) -> Results:
        cases = tuple(
            CaseResult({"case.name": name}, {"case.name": name}, {}, (), {key: value})
            for name, value in zip(("50 %", "90 %"), values, strict=True)
        )
        return Results(name="", description="", factors=["case.name"], cases=cases, folder=Path())

    found = layout.find_load(named("traffic.web.load", "50 %", "90 %"))
    assert found is not None and found.title == "Offered load of web (%)"
    found = layout.find_load(named("traffic.web.users", 640, 1152))
    assert found is not None and (found.title, found.values) == ("Load (%)", (50.0, 90.0))


def test_a_load_that_was_asked_for_stands_where_it_was_achieved() -> None:
    cases = tuple(
        CaseResult(
            {"traffic.web.load": text},
            {"traffic.web.load": text},
            {},
            (Calibrated("web", "bottleneck", asked, text, 7, {0: asked - 0.02, 1: asked - 0.04}),),
        )
        for text, asked in (("50 %", 0.5), ("90 %", 0.9))
    )
    found = layout.find_load(
        Results(name="", description="", factors=["traffic.web.load"], cases=cases, folder=Path())
    )
    assert found is not None
    assert found.values == (47.0, 87.0)
    assert found.of_panel(47.0) == "Offered load of web: 47 %"


def test_no_code_is_in_the_text_of_an_axis() -> None:
    for name in ("web.response_time_p95", "return.calls.queue_delay_p99", "hop1.return.loss"):
        text = names.axis(name)
        assert ":" not in text and "_" not in text
    assert names.axis("ftp.goodput") == "TCP goodput of ftp (Mbit/s)"


def test_a_paired_difference_is_drawn_with_its_interval() -> None:
    found = results(["tail drop", "RED", "PIE"])
    figure = drawn(found.figure("queue_delay_mean", kind="difference"))
    (axes,) = figure.axes
    base, red, pie = (case.values("queue_delay_mean") for case in found.cases)
    expected = [paired_difference(each, base) for each in (red, pie)]
    (points, _, bars) = axes.containers[0]
    assert list(points.get_xdata()) == pytest.approx([1e3 * each.mean for each in expected])
    for segment, each in zip(bars[0].get_segments(), expected, strict=True):
        assert segment[:, 0] == pytest.approx([1e3 * each.low, 1e3 * each.high])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["RED", "PIE"]
    assert "difference from tail drop" in below(figure).lower() and "n = 5" in below(figure)
    over = drawn(results(["tail drop", "RED"], [1, 2]).figure("loss", kind="difference"))
    label = " ".join(over.axes[0].get_ylabel().split())
    assert label == "Packets lost at the queue, difference (percentage points)"
    with pytest.raises(RedtailError, match="nothing to compare"):
        results(["RED"]).figure("loss", kind="difference")


def test_the_ellipse_is_the_contour_of_the_normal_distribution_that_fits_best() -> None:
    generator = np.random.default_rng(7)
    covariance = np.array([[4.0, 1.5], [1.5, 1.0]])
    points = generator.multivariate_normal([10.0, 5.0], covariance, size=4000)
    found = plane.contour([(float(x), float(y)) for x, y in points])
    assert found is not None
    assert found.centre == pytest.approx((10.0, 5.0), abs=0.1)
    lengths = 2 * np.sqrt(np.linalg.eigvalsh(covariance))
    assert sorted((found.width, found.height)) == pytest.approx(sorted(lengths), rel=0.05)
    # The share of the distribution within one sigma in two dimensions; 4000 points give ±0.015.
    inverse = np.linalg.inv(np.cov(points.T, bias=True))
    off = points - points.mean(axis=0)
    inside = np.mean(np.einsum("ij,jk,ik->i", off, inverse, off) <= 1)
    assert inside == pytest.approx(1 - math.exp(-0.5), abs=0.03)
    corners = np.array(plane.outline(found)) - points.mean(axis=0)
    assert np.einsum("ij,jk,ik->i", corners, inverse, corners) == pytest.approx(1.0)
    assert plane.contour([(1.0, 1.0), (2.0, 2.0)]) is None


def test_the_plane_has_a_point_for_each_run_and_the_median_of_each_queue() -> None:
    found = results(["tail drop", "RED"])
    (axes,) = drawn(found.figure()).axes
    clouds = [line for line in axes.get_lines() if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in clouds] == [5, 5]
    for case, label in zip(found.cases, ("tail drop", "RED"), strict=True):
        (median,) = (line for line in axes.get_lines() if str(line.get_label()).strip() == label)
        assert median.get_xdata()[0] == pytest.approx(
            1e3 * np.median(case.values("queue_delay_mean"))
        )
        assert median.get_ydata()[0] == pytest.approx(1e-6 * np.median(case.values("goodput")))


def test_published_numbers_are_points_at_their_loads() -> None:
    found = results(["tail drop", "RED"], [2, 8])
    published = {("RED", 8.0): 0.25, ("tail drop", 2.0): math.nan}
    figure = values.metric_figure(
        found, "queue_delay_mean", published=published, source="Table 1 of the paper"
    )
    stars = [line for line in drawn(figure).axes[0].get_lines() if line.get_marker() == "*"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in stars] == [(8.0, 250.0)]
    assert stars[0].get_markeredgecolor() == style.COLOURS[1]  # that of RED's line
    assert "Table 1 of the paper" in below(figure)


@pytest.mark.parametrize("kind", ["value", "difference", "quartiles", "plane", "loss_events"])
@pytest.mark.parametrize("loads", [[], [2, 8]])
def test_every_figure_says_how_many_replications_it_has(kind: str, loads: list[int]) -> None:
    metric = None if kind in ("plane", "loss_events") else "goodput"
    figure = results(["a", "b"], loads).figure(metric, kind=kind)
    assert "n = 5 replications" in below(figure)


def test_files_have_text_as_text_and_the_same_bytes(tmp_path: Path) -> None:
    found = results(["tail drop", "RED"], [2, 8])
    first, again = (
        style.save([("delay", found.figure("queue_delay_mean"))], tmp_path / name, FORMATS)
        for name in ("first", "again")
    )
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = ElementTree.parse(first[1])
    texts = {"".join(each.itertext()) for each in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"tail drop", "RED", "Number of ftp flows", "Mean queueing delay (ms)"} <= texts
    found.figure("queue_delay_mean").savefig(tmp_path / "own.svg")
    assert b">tail drop</text>" in (tmp_path / "own.svg").read_bytes()
    pdf = first[2].read_bytes()
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf  # fonts that journals accept


def test_queues_are_chosen_by_their_labels() -> None:
    found = results(["tail drop", "RED", "gentle RED"], [2, 8])
    (axes,) = drawn(found.figure("goodput", queues="*RED")).axes
    assert [text.strip() for text in axes.get_legend_handles_labels()[1]] == ["RED", "gentle RED"]
    with pytest.raises(RedtailError, match="no case has 'BLUE'; accepted: tail drop, RED, gentle"):
        found.figure("goodput", queues=["BLUE"])


def test_what_cannot_be_drawn_is_refused_with_what_can() -> None:
    found = results(["a", "b"])
    with pytest.raises(RedtailError, match="no run has the metric goodptu; nearest: goodput"):
        found.figure("goodptu")
    with pytest.raises(RedtailError, match="kind = 'pie'; accepted: value, difference, quartiles"):
        found.figure("goodput", kind="pie")
    with pytest.raises(SpecError, match=r"size = 'wide'; accepted: 'column' \(3\.5 inches wide\)"):
        found.figure("goodput", size="wide")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="size = "):
        found.figure("goodput", size=(3.0, -1.0))


def test_a_notebook_shows_tables_and_figures() -> None:
    found = results(["<tail drop>", "RED"], [2, 8])
    html = found._repr_html_()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    cells = ["".join(cell.itertext()) for cell in root.iter("td")]
    assert "<tail drop>" in cells and len(cells) % len(found.cases) == 0
    compared = ElementTree.fromstring(f"<div>{found.compare('loss')._repr_html_()}</div>")
    assert "verdict" in {"".join(cell.itertext()) for cell in compared.iter("th")}
    png = found.figure("goodput")._repr_png_()
    assert png.startswith(b"\x89PNG")


def test_figures_of_a_run_have_differences_and_the_plane(
    tmp_path: Path, figures_unwritten: None
) -> None:
    found = results(["tail drop", "RED"], [2, 8])
    stems = {path.stem for path in plots.draw(found, tmp_path, every=True)}
    assert {"goodput", "loss", "differences", "delay_and_goodput", "consecutive_loss"} <= stems
    once = results(["tail drop", "RED"], replications=1)
    assert values.can_differ(found) and not values.can_differ(once)


def test_settings_of_other_factors_have_panels_when_lines_are_many() -> None:
    queues = [f"queue {number}" for number in range(5)]
    cases = [
        CaseResult(
            {**case.factors, "bottleneck.delay": delay},
            {**case.labels, "bottleneck.delay": delay},
            case.runs,
        )
        for delay in ("5 ms", "fast")
        for case in results(queues, [2, 8]).cases
    ]
    # The second panel has no line of the first queue; the others look as in the first panel.
    kept = cases[:10] + [case for case in cases[10:] if case.labels[QUEUE] != "queue 0"]
    found = Results(
        name="",
        description="",
        factors=[FLOWS, QUEUE, "bottleneck.delay"],
        cases=tuple(kept),
        folder=Path(),
    )
    figure = drawn(found.figure("goodput"))
    assert [axes.get_title("left") for axes in figure.axes] == ["delay 5 ms", "delay fast"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == queues
    first, second = looks(figure)
    assert len(first) == 5 and second == first[1:]


def test_the_style_is_used_by_all_figures() -> None:
    with mpl.rc_context(style.RC):
        figure = results(["a", "b"], [1, 2]).figure("goodput")
    assert isinstance(figure, style.Shown)


def test_captions_say_which_interval_is_drawn() -> None:
    found = results(["a", "b"], [1, 2])
    of_means = stats.interval_in_words()
    assert "Hall 1992" in of_means
    caption = below(found.figure("loss"))
    assert f"Mean and its {of_means}, n = 5 replications" in caption
    # The bars are as wide as the caption says.
    case = found.cases[0]
    bars = case.metric("loss").ci95
    assert bars == stats.estimate(case.values("loss")).ci95
    caption = below(found.figure("loss", kind="difference"))
    assert stats.interval_in_words(paired=True) in caption and "Hall" not in caption
    (_, difference), *_ = found.differences("loss", factor=QUEUE)
    pair = [case.values("loss") for case in (found.cases[1], found.cases[0])]
    assert difference.ci95 == stats.paired_difference(*pair).ci95
    caption = below(found.figure("bottleneck", kind="loss_events"))
    assert f"Mean share of loss events and its {of_means}" in caption


def test_names_of_axes_stay_in_their_panels(tmp_path: Path) -> None:
    """Names of panels beside each other do not collide, and none is cut at the edge."""
    found = results(["tail drop", "a queue with a name that takes room"])
    metrics = ["queue_delay_mean", "goodput", "loss"]
    figure = values.difference_figure(found, metrics)
    long = "Requests that were not answered by the end of the run (percentage points)"
    for axes in figure.axes:
        axes.set_xlabel(long)
    figure.savefig(tmp_path / "differences.png")
    drawn(figure)
    boxes = [axes.xaxis.label.get_window_extent() for axes in figure.axes]
    assert len(boxes) == 3
    for left, right in itertools.pairwise(boxes):
        assert left.x1 < right.x0
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width
        assert box.y0 >= figure._supxlabel.get_window_extent().y1 - 1


@pytest.mark.parametrize("kind", ["value", "plane"])
def test_values_that_are_nearly_equal_do_not_fill_an_axis(kind: str) -> None:
    found = results(["tail drop", "RED"], spread=1e-4)
    figure = found.figure(None if kind == "plane" else "goodput", kind=kind)
    low, high = figure.axes[0].get_ylim() if kind == "plane" else figure.axes[0].get_xlim()
    assert (high - low) / low == pytest.approx(2 * 0.01, rel=0.05)
    said = re.search(r"TCP goodput: all values are within (0\.0\d) % of each", below(figure))
    assert said is not None and 0.01 <= float(said[1]) <= 0.05
    far = results(["tail drop", "RED"]).figure(None if kind == "plane" else "goodput", kind=kind)
    assert "of each other" not in below(far)


def two_factors(cases: Sequence[tuple[str, int, str, float]]) -> Results:
    """Results of rate, flows, queue and delay in ms, two replications each."""
    found = []
    for number, (rate, flows, queue, delay) in enumerate(cases):
        factors: dict[str, Any] = {"bottleneck.rate": rate, FLOWS: flows, QUEUE: {"kind": queue}}
        labels = {"bottleneck.rate": rate, FLOWS: str(flows), QUEUE: queue}
        runs = {
            replication: StoredRun(
                f"{number}-{replication}",
                Path(),
                {"queue_delay_mean": 1e-3 * delay * (0.9 + 0.2 * replication)},
                {},
                {},
            )
            for replication in range(2)
        }
        found.append(CaseResult(factors, labels, runs))
    keys = ["bottleneck.rate", FLOWS, QUEUE]
    return Results(name="drawn", description="", factors=keys, cases=tuple(found), folder=Path())


def test_a_heat_map_has_a_cell_for_each_pair_and_a_panel_for_each_queue() -> None:
    """Also if the units differ and a pair is missing."""
    cases = [
        ("10 Mbit/s", 4, "red", 30.0),
        ("2000 kbit/s", 4, "red", 10.0),
        ("2000 kbit/s", 1, "red", 20.0),
        ("2000 kbit/s", 4, "pie", 5.0),
    ]
    figure = drawn(two_factors(cases).figure("queue_delay_mean", kind="heatmap"))
    panels = figure.axes[:2]
    assert [axes.get_title(loc="left") for axes in panels] == ["red", "pie"]
    cells = panels[0].images[0].get_array()
    # Rows are rates, columns numbers of flows.
    assert cells.tolist() == [[pytest.approx(20.0), pytest.approx(10.0)], [None, 30.0]]
    assert [text.get_text() for text in panels[0].texts] == ["20", "10", "30"]
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == ["2", "10"]
    assert panels[0].get_ylabel() == "Rate (Mbit/s)"
    assert "half-width of the 95 % interval: at most" in below(figure)


def test_a_heat_map_needs_two_factors_of_numbers() -> None:
    with pytest.raises(RedtailError, match=r"needs two factors of numbers .*bottleneck\.queue"):
        results(["tail drop", "RED"], [2, 8]).figure("goodput", kind="heatmap")


def test_a_curve_of_a_model_is_behind_the_points() -> None:
    found = results(["tail drop", "RED"], [2, 8])
    figure = found.figure("goodput", models={"a share": lambda flows: 8e6 / flows})
    [curve] = [
        line
        for line in drawn(figure).axes[0].get_lines()
        if str(line.get_label()).strip() == "a share"
    ]
    x, y = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert (x[0], x[-1]) == (2.0, 8.0)
    assert y == pytest.approx(8.0 / x)  # in Mbit/s, as the axis
    with pytest.raises(RedtailError, match="there is no load to draw a curve over"):
        results(["tail drop", "RED"]).figure("goodput", models={"one": lambda x: x})


def test_a_caption_can_be_left_out() -> None:
    found = results(["tail drop", "RED"], [2, 8])
    whole, bare = found.figure("goodput"), found.figure("goodput", caption=False)
    assert bare._supxlabel is None
    assert bare.get_figheight() < whole.get_figheight()
    assert found.figure("goodput", size=(5.0, 4.0), caption=False).get_figheight() == 4.0


TCP = "traffic.ftp.tcp"


def with_tcp(queues: Sequence[str], tcps: Sequence[str], loads: Sequence[Any] = ()) -> Results:
    """Return results with a case for each queue, TCP and load."""
    cases = [
        CaseResult({**case.factors, TCP: tcp}, {**case.labels, TCP: tcp}, case.runs)
        for tcp in tcps
        for case in results(queues, loads).cases
    ]
    factors = [*([FLOWS] if loads else []), QUEUE, TCP]
    return Results(name="", description="", factors=factors, cases=tuple(cases), folder=Path())


def test_a_figure_is_drawn_into_axes_of_the_user() -> None:
    found = results(["tail drop", "RED"], [2, 8])
    own, (first, second) = plt.subplots(1, 2, figsize=(8, 3))
    assert found.figure("goodput", ax=first) is own
    assert found.figure(kind="plane", ax=(first, second)) is own
    assert own._supxlabel is None and list(own.get_size_inches()) == [8.0, 3.0]
    assert [each.get_text() for each in first.get_legend().get_texts()] == ["tail drop", "RED"]
    assert first.get_ylabel() == second.get_ylabel() == "TCP goodput (Mbit/s)"
    assert first.get_ylim() == second.get_ylim()
    drawn(own)
    plt.close(own)


def test_axes_of_the_user_are_as_many_as_panels() -> None:
    found = results(["tail drop", "RED"], [2, 8])
    own, axes = plt.subplots(1, 3)
    with pytest.raises(RedtailError, match="has 2 panels; accepted: a sequence of 2 Axes, not 1"):
        found.figure(kind="plane", ax=axes[0])
    with pytest.raises(RedtailError, match="has 1 panel; accepted: one Axes, not 3"):
        found.figure("goodput", ax=axes)
    with pytest.raises(RedtailError, match="accepted: Axes of Matplotlib, or a sequence of them"):
        found.figure("goodput", ax=own)
    with pytest.raises(RedtailError, match="size: the figure of `ax` has one"):
        found.figure("goodput", ax=axes[0], size="page")
    with pytest.raises(RedtailError, match="of a figure that redtail has drawn"):
        found.figure("goodput", ax=found.figure("goodput").axes[0])
    plt.close(own)


def test_in_the_plane_a_colour_is_a_queue_and_a_marker_a_tcp() -> None:
    queues, tcps = ["tail drop", "CoDel", "RED"], ["linux", "bbr", "vegas", "copa"]
    figure = drawn(with_tcp(queues, tcps).figure(kind="plane"))
    (legend,) = figure.legends
    texts = [text.get_text().strip() for text in legend.get_texts()]
    assert texts == ["Queue", *queues, "", "TCP of ftp", *tcps]
    (axes,) = figure.axes
    medians = {
        str(line.get_label()).strip(): line
        for line in axes.get_lines()
        if str(line.get_label()).startswith(" ")
    }
    assert len(medians) == 12
    of_queue: dict[str, set[Any]] = {}
    of_tcp: dict[str, set[Any]] = {}
    for label, line in medians.items():
        queue, _, tcp = label.partition(", ftp tcp ")
        of_queue.setdefault(queue, set()).add(line.get_color())
        of_tcp.setdefault(tcp, set()).add(line.get_marker())
    for looks_of in (of_queue, of_tcp):
        assert all(len(found) == 1 for found in looks_of.values())
        assert len(set.union(*looks_of.values())) == len(looks_of)


@pytest.mark.parametrize("kind", ["loss_events", "difference"])
def test_in_panels_of_several_factors_a_look_is_a_queue(kind: str) -> None:
    queues, tcps = ["tail drop", "CoDel", "RED"], ["linux", "bbr", "vegas", "copa"]
    metric = "goodput" if kind == "difference" else None
    figure = drawn(with_tcp(queues, tcps, [2, 8]).figure(metric, kind=kind))
    (legend,) = figure.legends
    named = [text.get_text().strip() for text in legend.get_texts()]
    assert named == [queue for queue in queues if kind != "difference" or queue != "tail drop"]
    titles = [axes.get_title("left").split("\n")[0] for axes in figure.axes]
    assert list(dict.fromkeys(titles)) == [f"ftp tcp {tcp}" for tcp in tcps]
    assert len({tuple(panel) for panel in looks(figure)}) == 1


def test_a_legend_of_numbers_or_words_has_a_title() -> None:
    (legend,) = with_tcp(["RED"], ["linux", "bbr"], [2, 8]).figure("goodput").legends
    assert legend.get_title().get_text() == ""  # two factors: the labels say what they are
    (legend,) = results(["tail drop", "RED"], [2, 8]).figure("goodput").legends
    assert legend.get_title().get_text() == ""
    cases = [
        replace(
            case,
            factors={FLOWS: case.factors[FLOWS], TCP: tcp},
            labels={FLOWS: case.labels[FLOWS], TCP: tcp},
        )
        for tcp in ("linux", "bbr")
        for case in results(["RED"], [2, 8]).cases
    ]
    found = Results(
        name="", description="", factors=[FLOWS, TCP], cases=tuple(cases), folder=Path()
    )
    (legend,) = found.figure("goodput").legends
    assert legend.get_title().get_text() == "TCP of ftp"


def test_markers_at_the_ends_of_an_axis_are_whole() -> None:
    figure = drawn(results(["tail drop", "RED"], loss=0.0).figure("loss"))
    (axes,) = figure.axes
    marked = [line for line in axes.get_lines() if line.get_marker() in style.MARKERS]
    assert marked and not any(line.get_clip_on() for line in marked)
    found = results(["tail drop", "RED"], spread=0.01, delay=0.5)
    (axes,) = drawn(found.figure("queue_delay_mean")).axes
    highest = max(each.mean + each.ci95 for each in _delays(found)) * 1e3
    assert axes.get_xlim()[0] == 0 and axes.get_xlim()[1] >= 1.03 * highest


def _delays(found: Results) -> list[Any]:
    return [case.metric("queue_delay_mean") for case in found.cases]


@pytest.mark.parametrize(("loss", "explained"), [("0.01", True), ("0", False)])
def test_goodput_above_the_rate_of_the_link_is_explained(
    loss: str, explained: bool, tmp_path: Path
) -> None:
    text = f"""
name = "Bursts"
duration = "10 s"
warmup = "1 s"
replications = 1
[bottleneck]
rate = "10 Mbit/s"
delay = "50 ms"
wire.loss = {loss}
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
tcp = {{ preset = "linux", receive_window = "100 kB" }}
[series]
interval = "20 ms"
"""
    found = redtail.run(redtail.Toml(text), out=tmp_path)
    caption = below(found.figure(kind="series"))
    assert ("goodput above the link's rate" in caption) == explained
