"""The path from a file to results, with the real engine."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

import redtail
from redtail import facts, metrics
from redtail.analysis.results import Results
from redtail.engine import batches
from redtail.errors import RedtailError, StoreError
from redtail.inputs.compiled import can_compile

from conftest import ROOT

# How the names of metrics begin that groups with users have.
OF_USERS = (
    "users",
    "offered",
    "response",
    "unanswered",
    "transaction",
    "slowdown",
    "page",
    "connections",
)

# One has a queue that only a build with the compiler of plug-ins runs.
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").glob("*.toml")
    if path.stem != "compiled-queue" or can_compile()
)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(
        ROOT / "examples/quickstart.toml",
        replications=3,
        out=tmp_path_factory.mktemp("runs"),
        set={
            "duration": "12 s",
            "warmup": "4 s",
            "series": {"interval": "100 ms", "queues": True, "windows": True},
        },
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("figures_unwritten")
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        if path.stem in ("python-controller", "why"):  # a short buffer is what they are about
            warnings.filterwarnings("ignore", "(?s).*below one bandwidth-delay product")
        results = redtail.run(path, replications=1, out=tmp_path)
    assert results.run_count == len(results.cases)
    for case in results.cases:
        first = "utilization" if "utilization" in case.metrics else "hop1.utilization"
        if (path.stem, case.title) == ("red-lock-out", "queue idle_decay false"):
            assert case.metric(first).mean == 0, "what the example is there for"
            continue
        # The line is there for programs of the user; two calls use little of it. DCTCP alone
        # uses less than half of a link with a step at 1 ms (docs/queues/dualpi2.md).
        # NewReno takes reordering for loss. The first hop of the shaper that follows is no line.
        least = {
            "line": 0,
            "dualpi2-kernel": 0.4,
            "disturbed-path": 0.05,
            "following-shaper": 0,
        }.get(path.stem, 0.5)
        assert least < case.metric(first).mean <= 1, case.title
    assert results.figures()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid_by_the_schema(path: Path) -> None:
    jsonschema.validate(
        tomllib.loads(path.read_text()), facts.schema(), jsonschema.Draft202012Validator
    )


def test_the_schema_refuses_what_the_engine_refuses() -> None:
    good = tomllib.loads((ROOT / "examples/quickstart.toml").read_text())
    validator = jsonschema.Draft202012Validator(facts.schema())
    for key, value in {"duration": 30, "speed": 3, "traffic": [{"kind": "bulk"}]}.items():
        assert not validator.is_valid({**good, key: value}), key


OF_CALLS = {"end_to_end_loss", "late", "jitter", "r_factor", "mos", "mos_min"}
OF_CALLS |= {f"one_way_delay_{what}" for what in ("mean", "p50", "p95", "p99")}


def test_a_call_has_all_metrics_of_calls(tmp_path: Path) -> None:
    example = ROOT / "examples/real-time.toml"
    short = {"duration": "30 s", "warmup": "10 s", "replications": 2}
    results = redtail.run(example, set=short, out=tmp_path)
    for case in results.cases:
        assert {f"calls.{name}" for name in OF_CALLS} <= set(case.metrics)
        assert 1 <= case.metric("calls.mos_min").mean <= case.metric("calls.mos").mean < 4.5
    scores = [case.metric("calls.mos").mean for case in results.cases]
    assert scores == sorted(scores)  # tail drop, CoDel, FQ-CoDel


OF_TCP = (
    "every link",
    "links with TCP groups",
    "TCP groups",
    "groups without users",
    "every group",
)


def test_all_promised_metrics_are_there(quick: Results) -> None:
    # There is no UDP here, and no lossy link.
    promised = {each.name for each in metrics.DEFINITIONS if each.of in OF_TCP}
    of_groups = {each.name for each in metrics.DEFINITIONS if each.scope == "group"}
    of_groups &= promised
    assert {"received_rate", "stalls", "ack_wait_max", "host_wait_max"} <= of_groups
    assert {f"ftp.{name}" for name in of_groups} <= set(quick.metric_names)
    promised -= of_groups
    assert {"utilization", "goodput", "fairness", "loss_synchronization"} <= promised
    for case in quick.cases:
        assert promised <= set(case.metrics)
        assert "ftp.goodput" in case.metrics
        assert 0 <= case.metric("loss").mean < 0.2
        # Data that waits behind a gap when measuring begins counts once the gap is closed.
        assert 9e6 < case.metric("goodput").mean < 10.5e6
        low, mid, high = (case.metric(f"queue_delay_p{p}").mean for p in (50, 95, 99))
        assert 0 <= low <= mid <= high < 1


def test_time_series_are_recorded_on_request(quick: Results) -> None:
    queues = quick.series("queues", case=1)
    assert queues.column("time_s").to_pylist() == sorted(queues.column("time_s").to_pylist())
    assert pa.types.is_dictionary(queues.schema.field("link").type)
    assert max(queues.column("packets").to_pylist()) <= 100
    flows = quick.series("flows", case=0)
    assert set(flows.column("flow").to_pylist()) == set(range(16))
    assert min(flows.column("cwnd_bytes").to_pylist()) > 0


TRANSFERS = """
name = "Transfers"
host_jitter = "0 s"
duration = "3 s"
replications = 2
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "files"
kind = "transfer"
flows = 3
size = ["1460 B", "14600 B", "100 MB"]
start = ["100 ms", "1 s", "2 s"]
access_rate = "100 Mbit/s"
return_delay = "30 ms"
tcp = { preset = "sack", delayed_ack = false }
"""


def test_every_transfer_has_its_times(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(TRANSFERS), out=tmp_path)
    table = results.transfers(replication=1)
    assert table.schema.field("completion_time_s").metadata == {b"unit": b"s"}
    assert pa.types.is_uint64(table.schema.field("size_bytes").type)
    rows = table.to_pylist()
    assert [row["group"] for row in rows] == ["files"] * 3
    assert [row["flow"] for row in rows] == [0, 1, 2]
    assert [row["size_bytes"] for row in rows] == [1460, 14600, 100_000_000]
    assert [row["start_s"] for row in rows] == [0.1, 1.0, 2.0]

    # An access link, the bottleneck, an exit link.
    def there(size: int) -> float:
        return 0.020 + size * 8 * (1 / 100e6 + 1 / 10e6 + 1 / 100e6)

    handshake = there(40) + 0.030
    assert [row["handshake_time_s"] for row in rows] == pytest.approx([handshake] * 3, abs=1e-11)
    first = handshake + there(1500)
    assert [row["first_byte_time_s"] for row in rows] == pytest.approx([first] * 3, abs=1e-11)
    assert rows[0]["completion_time_s"] == pytest.approx(first + 0.030, abs=1e-11)
    # Ten segments leave the bottleneck one after the other.
    ten = first + 9 * 1500 * 8 / 10e6 + 0.030
    assert rows[1]["completion_time_s"] == pytest.approx(ten, abs=1e-11)
    assert math.isnan(rows[2]["completion_time_s"])
    assert [row["timeouts"] for row in rows] == [0, 0, 0]

    case = results.cases[0]
    assert case.metric("files.completed").mean == pytest.approx(2 / 3)
    mean = (rows[0]["completion_time_s"] + rows[1]["completion_time_s"]) / 2
    assert case.metric("files.completion_time_mean").mean == pytest.approx(mean)
    assert case.metric("files.handshake_time_mean").mean == pytest.approx(handshake)
    assert case.metric("files.first_byte_time_mean").mean == pytest.approx(first)
    again = redtail.load(results.folder)
    # NaN is unequal to itself.
    assert str(again.transfers(replication=1)) == str(table)


def test_without_transfers_there_is_no_table_of_them(quick: Results) -> None:
    with pytest.raises(StoreError, match='kind "transfer"'):
        quick.transfers()
    with pytest.raises(StoreError, match="no replication 7"):
        quick.transfers(replication=7)


REQUESTS = """
name = "Requests"
duration = "10 s"
replications = 2
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "400 packets" }
[[traffic]]
name = "near"
kind = "transactions"
request = "100 B"
response = "1000 B"
think = "90 ms"
[[traffic]]
name = "far"
kind = "transactions"
request = "100 B"
response = "20 kB"
think = "1 s"
return_delay = "500 ms"
"""


def test_response_times_are_counted_by_group_and_size(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(REQUESTS), out=tmp_path)
    assert results.user_groups == ("near", "far")
    case = results.cases[0]
    assert set(metrics.METRICS) & {n.partition(".")[2] for n in case.metrics} >= {
        name
        for name in metrics.METRICS
        if name.startswith(OF_USERS) and not name.startswith(("page", "offered"))
    }
    table = results.response_times()
    assert table.schema.field("time_up_to_s").metadata == {b"unit": b"s"}
    for group, size in (("near", 1460.0), ("far", 100_000.0)):
        rows = [row for row in table.to_pylist() if row["group"] == group]
        assert {row["size_up_to_bytes"] for row in rows} == {size}
        for replication, count in enumerate(case.values(f"{group}.responses")):
            counted = [row["count"] for row in rows if row["replication"] == replication]
            assert sum(counted) == count > 0
    # An opening and an exchange take two round trips of 20 ms and the links' time, and behind a
    # burst of the other group at most the 17 ms of its 14 packets more.
    found = results.response_time_cdf(group="near", at=[0.040, 0.062, 1.0]).to_pylist()
    assert [row["mean"] for row in found] == [0.0, 1.0, 1.0]
    assert [row["n"] for row in found] == [2, 2, 2]
    mean = case.metric("near.response_time_mean").mean
    assert 0.040 < mean < 0.045
    # One response, 20 ms of the way and 90 ms of thinking: nine of them a second.
    assert case.metric("near.transaction_rate").mean == pytest.approx(1 / (0.090 + mean), rel=0.02)
    again = redtail.load(results.folder)
    assert again.response_times() == table


def test_a_group_without_responses_is_named(quick: Results, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="groups with users"):
        quick.response_times()
    results = redtail.run(redtail.Toml(REQUESTS), replications=1, out=tmp_path)
    with pytest.raises(RedtailError, match="one of near, far"):
        results.response_time_cdf()
    with pytest.raises(RedtailError, match="'web' is no group with users"):
        results.response_time_cdf(group="web")
    with pytest.raises(RedtailError, match="end at 1460, 100000 bytes"):
        results.response_time_cdf(group="near", size_up_to=2000)
    with pytest.raises(RedtailError, match="above 0"):
        results.response_time_cdf(group="near", at=[0.0])


def test_recording_does_not_change_a_run(quick: Results, tmp_path: Path) -> None:
    plain = redtail.run(
        ROOT / "examples/quickstart.toml",
        replications=3,
        out=tmp_path,
        set={"duration": "12 s", "warmup": "4 s"},
    )
    for with_series, without in zip(quick.cases, plain.cases, strict=True):
        for number, run in with_series.runs.items():
            assert run.metrics == without.runs[number].metrics


def test_typed_objects_are_the_same_experiment_as_the_file(tmp_path: Path) -> None:
    experiment = redtail.Experiment(
        name="Quickstart",
        duration="30 s",
        warmup="10 s",
        replications=5,
        bottleneck=redtail.Bottleneck(
            rate="10 Mbit/s", delay="20 ms", queue=redtail.TailDrop(limit="100 packets")
        ),
        traffic=[redtail.Bulk(name="ftp", flows=16, tcp="sack", start="uniform 0..2 s")],
        factors={
            "bottleneck.queue": [
                redtail.TailDrop(limit="100 packets", label="tail drop"),
                redtail.Red(
                    limit="100 packets",
                    min_th="15 packets",
                    max_th="65 packets",
                    max_p=0.1,
                    w_q=0.002,
                    label="RED",
                ),
            ]
        },
    )
    typed = redtail.check(experiment)
    filed = redtail.check(ROOT / "examples/quickstart.toml")
    assert [case.labels for case in typed.cases] == [case.labels for case in filed.cases]
    assert typed.runs == filed.runs
    for case in range(len(typed.cases)):
        assert typed.scenario(case, 1) == filed.scenario(case, 1)


def test_a_bad_typed_object_is_refused_by_its_path() -> None:
    experiment = redtail.Experiment(
        name="x",
        duration="10 s",
        bottleneck=redtail.Bottleneck(
            rate="10", delay="20 ms", queue=redtail.TailDrop(limit="100 packets")
        ),
        traffic=[redtail.Bulk(name="ftp")],
    )
    with pytest.raises(redtail.SpecError, match=r"bottleneck\.rate") as caught:
        redtail.check(experiment)
    assert caught.value.line is None


def test_replications_differ_and_queues_share_their_workload(quick: Results) -> None:
    for case in quick.cases:
        assert len(set(case.values("loss"))) == 3
    plan = redtail.check("examples/quickstart.toml")
    first, second = (json.loads(plan.scenario(case, 0)) for case in (0, 1))
    assert first["seed"] == second["seed"]
    assert first["traffic"] == second["traffic"]


def test_two_threads_run_at_the_same_time() -> None:
    """The engine lets other Python threads work while it runs."""
    from concurrent.futures import ThreadPoolExecutor

    # If it did not, this thread would go on when the run is at its end, and could not stop it.
    plan = redtail.check("examples/quickstart.toml", set={"duration": "2000 s"})
    token = batches.cancel_token()
    ticks = 0
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(batches.run_one, plan.scenario(0, 0), token)
        while ticks < 3 and not future.done():
            ticks += 1
            time.sleep(0.0005)
        token.cancel()
        with pytest.raises(redtail.Cancelled):
            future.result()
    assert ticks == 3


def test_a_token_stops_a_run_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    plan = redtail.check("examples/quickstart.toml", set={"duration": "100000 s"})
    token = batches.cancel_token()
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(batches.run_one, plan.scenario(0, 0), token)
        time.sleep(0.05)
        token.cancel()
        with pytest.raises(redtail.Cancelled):
            future.result(timeout=600)


def test_the_listings_name_every_parameter_with_its_default() -> None:
    from redtail.catalog import listing

    red = listing("queues", "red")
    assert 'kind = "red"' in red and "w_q" in red and "default 0.002" in red
    assert "tail-drop" not in red
    # Its classes hold classes and queues, which hold queues.
    htb = listing("queues", "htb")
    assert "each class:" in htb and "each match:" in htb and "ceil" in htb
    assert 'kind = "cbr"' in listing("traffic", None)
    assert "initial_window = 10" in listing("tcp", "sack")
    with pytest.raises(redtail.SpecError, match="accepted: tail-drop, red"):
        listing("queues", "green")


def test_units_of_tc_are_read_from_files_options_and_python() -> None:
    for given in ({"bottleneck.rate": "50mbit"}, ["bottleneck.rate=50 Mbit"]):
        plan = redtail.check("examples/quickstart.toml", set=given)
        assert json.loads(plan.scenario(0, 0))["bottleneck"]["rate"] == "50 Mbit/s"
    line = redtail.Bottleneck(rate="1gbit", delay="5msec", queue=redtail.TailDrop(limit="100p"))
    traffic = [redtail.Bulk(name="ftp")]
    plan = redtail.check(
        redtail.Experiment(name="e", duration="1sec", traffic=traffic, bottleneck=line)
    )
    assert json.loads(plan.scenario(0, 0))["bottleneck"]["rate"] == "1 Gbit/s"
    with pytest.raises(redtail.SpecError, match=r"1 mbps is 8 Mbit/s in tc and 1 Mbit/s"):
        redtail.check("examples/quickstart.toml", set={"bottleneck.rate": "50mbps"})
    assert redtail.queue_parameters("50mbit", "20ms", flows=4, queue="pie").queue


@pytest.mark.parametrize("part", ["queues", "traffic", "tcp"])
def test_the_listings_begin_with_an_index_of_a_line_each(part: str) -> None:
    from redtail.catalog import Catalog, listing

    catalog = Catalog(facts.schema())
    sections = {"queues": catalog.queues, "traffic": catalog.traffic, "tcp": ()}[part]
    known = [str(each.kind) for each in sections] or [str(each.value) for each in catalog.tcp[0]]
    index, told, *_ = listing(part, None, 70).split("\n\n")
    assert [line.split()[0] for line in index.splitlines()] == known
    assert max(map(len, index.splitlines())) <= 70
    assert f"redtail list {part} NAME" in told
    # One alone needs no index.
    assert not listing(part, known[0]).startswith(known[0])


def test_a_terminal_sees_progress_on_standard_error_alone(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    script = "from redtail.cli import main; main()"
    arguments = ["run", "examples/quickstart.toml", "--json", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    told, _ = process.communicate(timeout=600)
    seen = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.returncode == 0
    assert len(json.loads(told)["cases"]) == 2
    assert b"10/10 runs" in seen and b"packets/s" in seen
    assert b"Traceback" not in seen


def test_a_stored_sweep_is_read_by_other_tools(quick: Results) -> None:
    import polars as pl

    runs = pl.read_parquet(quick.folder / "*" / "summary.parquet")
    assert len(runs) == 6
    assert runs["goodput_bit_per_s"].min() > 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert redtail.load(quick.folder).to_json() == quick.to_json()


@pytest.mark.parametrize(
    ("rate", "flows", "tcp", "warned"),
    [
        (
            "1 Gbit/s",
            1,
            '"linux"',
            'receive_window ("3145728 B" by the preset) limits the flows to 126 Mbit/s '
            "(3.15 MB in each base round trip of 200 ms); "
            "their share of the path is 1 Gbit/s and needs 25 MB",
        ),
        (
            "1 Gbit/s",
            2,
            '{ preset = "linux", receive_window = "10 MB" }',
            'send_buffer ("4194304 B" by the preset) limits the flows to 168 Mbit/s '
            "(4.19 MB in each base round trip of 200 ms); "
            "their share of the path is 500 Mbit/s and needs 12.5 MB",
        ),
        ("1 Gbit/s", 8, '"bbr"', ""),
        ("1 Gbit/s", 1, '"sack"', ""),
        ("100 Mbit/s", 1, '"linux"', ""),
    ],
)
def test_check_says_where_the_buffers_of_a_stock_host_limit_flows(
    rate: str, flows: int, tcp: str, warned: str
) -> None:
    plan = redtail.check(
        redtail.Toml(f"""
name = "Long and fast"
duration = "100 s"
warmup = "50 s"
[bottleneck]
rate = "{rate}"
delay = "200 ms"
queue = {{ kind = "tail-drop", limit = "20000 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
flows = {flows}
tcp = {tcp}
""")
    )
    found = [text.partition("traffic.one.tcp.")[2] for text in plan.warnings]
    assert found == ([warned] if warned else [])
