"""Tables of connections: what is read, what is refused, and what runs make of it."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import redtail
from redtail import SpecError
from redtail.cli import app
from redtail.engine import batches
from redtail.inputs.connections import COLUMNS
from redtail.inputs.traces import REQUEST_BYTES, Located

from conftest import ROOT

HEAD = "start_s,size_bytes,direction,rtt_s,request_bytes,service_s,think_s\n"
GOOD = "0.5,1000,down,0.05,200,0.001,0\n"

EXPERIMENT = """
name = "Traced"
duration = "10 s"
replications = 1
[bottleneck]
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[bottleneck.return]
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "all"
kind = "trace"
file = "flows.csv"
"""


def written(folder: Path, text: str, name: str = "flows.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def experiment(folder: Path, table: str, name: str = "flows.csv") -> Path:
    written(folder, table, name)
    text = EXPERIMENT.replace("flows.csv", name)
    return written(folder, text, "traced.toml")


# --- What is refused ------------------------------------------------------------------------

BAD_VALUES = [
    ("-1,1000,,,,,", "start_s = -1 is negative"),
    ("soon,1000,,,,,", "start_s = soon is not a number"),
    ("nan,1000,,,,,", "start_s = nan is not a number"),
    (",1000,,,,,", "start_s is missing"),
    ("3e6,1000,,,,,", "start_s = 3e6 is more than can be run"),
    ("inf,1000,,,,,", "start_s = inf is more than can be run"),
    ("1,0,,,,,", "size_bytes = 0 is zero"),
    ("1,0,,,0,,", "size_bytes = 0 is zero"),
    ("1,-5,,,,,", "size_bytes = -5 is negative"),
    ("1,,,,,,", "size_bytes is missing"),
    ("1,10.5,,,,,", "size_bytes = 10.5 is not a whole number"),
    ("1,1e13,,,,,", "size_bytes = 1e13 is more than can be run"),
    ("1,99999999999999999999,,,,,", "size_bytes = 99999999999999999999 is more than can be run"),
    ("1,1000,sideways,,,,", "direction = sideways is none"),
    ("1,1000,,0,,,", "rtt_s = 0 is zero"),
    ("1,1000,,-0.1,,,", "rtt_s = -0.1 is negative"),
    ("1,1000,,4000,,,", "rtt_s = 4000 is more than can be run"),
    ("1,1000,,,1.5,,", "request_bytes = 1.5 is not a whole number"),
    ("1,1000,,,,-1,", "service_s = -1 is negative"),
    ("1,1000,,,,,x", "think_s = x is not a number"),
    ("1,0,,,100,0.1,", "service_s = 0.1 delays a response of no bytes"),
    ("1,100,,,0,,0.1", "think_s = 0.1 delays a request of no bytes"),
]


@pytest.mark.parametrize(("row", "what"), BAD_VALUES, ids=[what for _, what in BAD_VALUES])
def test_the_first_bad_row_is_named_with_its_line_column_and_value(
    row: str, what: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"{HEAD}{GOOD}{GOOD}\n{row}\n-7,0,x,-1,-1,-1,-1\n{GOOD}")
    with pytest.raises(SpecError) as caught:
        redtail.read_trace(path)
    # The empty line is one of the file, and no row.
    assert str(caught.value).startswith(f"{path}:5: {what}; accepted: ")
    assert (caught.value.file, caught.value.line) == (str(path), 5)
    assert caught.value.key == what.split()[0]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("start_s,size\n1,2\n", "there is no column 'size'; accepted: connection, start_s"),
        ("start_s,rtt_s\n1,2\n", "the column 'size_bytes' is missing"),
        ("start_s,size_bytes,start_s\n1,2,3\n", "the column 'start_s' is given twice"),
        ("start_s,size_bytes\n", "has no rows"),
        ("", "there is no column ''"),
        ("start_s,size_bytes\n1,2\n3\n", "3: has 1 values; accepted: 2"),
        ("start_s,size_bytes\n1,2,3\n", "2: has 3 values; accepted: 2"),
    ],
)
def test_a_table_of_another_shape_is_refused(text: str, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        redtail.read_trace(path)
    assert str(caught.value).startswith(f"{path}:")
    assert what in str(caught.value)


def test_values_of_a_parquet_file_are_checked_by_row(tmp_path: Path) -> None:
    path = tmp_path / "flows.parquet"
    table = {"start_s": [0.5, float("nan"), 1.0], "size_bytes": [10, 20, None]}
    pq.write_table(pa.table(table), path)
    with pytest.raises(SpecError, match="row 2: start_s = nan is not a number; accepted: "):
        redtail.read_trace(path)
    pq.write_table(pa.table({**table, "start_s": [0.5, 0.6, 1.0]}), path)
    with pytest.raises(SpecError, match="row 3: size_bytes is missing; accepted: "):
        redtail.read_trace(path)
    pq.write_table(pa.table({"start_s": [True], "size_bytes": [1]}), path)
    with pytest.raises(SpecError, match="'start_s' holds values of type bool"):
        redtail.read_trace(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(SpecError, match="cannot be read as Parquet"):
        redtail.read_trace(path)


def test_a_file_that_is_not_there_or_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.csv: no such file"):
        redtail.read_trace(tmp_path / "none.csv")
    with pytest.raises(SpecError, match=r"cannot be a \.txt; accepted: \.csv, \.parquet or \.cvec"):
        redtail.read_trace(tmp_path / "flows.txt")
    path = tmp_path / "flows.csv"
    path.write_bytes(b"start_s,size_bytes\n1,\xff\xfe\n")
    with pytest.raises(SpecError):
        redtail.read_trace(path)


def test_rows_of_one_connection_must_agree(tmp_path: Path) -> None:
    head = "connection,start_s,size_bytes,direction,rtt_s\n"
    cases = [
        ("a,1,10,up,0.1\na,2,10,,\n", "start_s = 2 is not that of the connection"),
        ("a,1,10,up,0.1\na,,10,down,\n", "direction = down is not that of the connection"),
        ("a,1,10,up,0.1\na,,10,,0.2\n", "rtt_s = 0.2 is not that of the connection"),
        ("a,1,10,up,0.1\n,,10,,\n", "connection is missing"),
        ("a,1,10,up,0.1\nb,,10,,\n", "start_s is missing"),
    ]
    for rows, what in cases:
        path = written(tmp_path, head + rows)
        with pytest.raises(SpecError) as caught:
            redtail.read_trace(path)
        assert f"{path}:3: {what}" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "row", "what"),
    [
        ({}, "10,1000,,,,,", "start_s = 10, and the run ends at 10 s; accepted: starts before"),
        ({}, "1,1000,,0.019,,,", "rtt_s = 0.019, less than the 0.02 s that the links make"),
    ],
)
def test_a_row_that_does_not_go_with_the_run_is_named(
    settings: dict[str, object], row: str, what: str, tmp_path: Path
) -> None:
    path = experiment(tmp_path, f"{HEAD}{GOOD}{row}\n")
    with pytest.raises(SpecError) as caught:
        redtail.check(path, set=settings)
    assert f"{path}:16: traffic.all.file = " in str(caught.value)
    assert f"{tmp_path / 'flows.csv'}:3 {what}" in str(caught.value)


def test_a_reverse_row_needs_a_return_link(tmp_path: Path) -> None:
    path = experiment(tmp_path, f"{HEAD}{GOOD}1,1000,up,,,,\n")
    text = path.read_text()
    begin, end = text.index("[bottleneck.return]"), text.index("[[traffic]]")
    path.write_text(text[:begin] + text[end:])
    with pytest.raises(SpecError, match=r"flows\.csv:3 direction = reverse, which has no link"):
        redtail.check(path)


def test_a_bad_table_is_an_error_of_the_experiment(tmp_path: Path) -> None:
    path = experiment(tmp_path, f"{HEAD}{GOOD}1,0,,,,,\n")
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 2
    assert "flows.csv:3: size_bytes = 0 is zero; accepted: " in done.stderr
    with pytest.raises(SpecError, match="no such file"):
        redtail.check(path, set={"traffic.all.file": "none.csv"})


def test_each_table_that_cannot_be_used_is_named_by_its_key_and_line(tmp_path: Path) -> None:
    path = experiment(tmp_path, f"{HEAD}{GOOD}")
    text = path.read_text()
    begin = text.index("[[traffic]]")
    group = text[begin:].replace('name = "all"', 'name = "more"').replace("flows.csv", "none.csv")
    path.write_text(f"{text}\n{group}")
    (tmp_path / "flows.csv").write_text("start_s,size\n1,2\n")
    with pytest.raises(SpecError) as caught:
        redtail.check(path)
    first, second = str(caught.value).splitlines()
    assert re.search(r':\d+: traffic\.all\.file = "flows\.csv" cannot .* no column \'size\'', first)
    assert re.search(r':\d+: traffic\.more\.file = "none\.csv" cannot .* no such file; acc', second)
    assert caught.value.key == "traffic.all.file"


def test_keys_that_the_table_decides_are_refused(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + GOOD)
    for key, value in {"users": 3, "rtt_resolution": "0 s", "table": {}}.items():
        with pytest.raises(SpecError, match=key):
            redtail.check(path, set={f"traffic.all.{key}": value})


# --- What is read ---------------------------------------------------------------------------


def test_rows_come_in_the_order_of_their_starts_with_defaults_filled_in(tmp_path: Path) -> None:
    path = written(tmp_path, "size_bytes,start_s,direction\n20,2,Up\n10,1,\n")
    trace = redtail.read_trace(path)
    assert trace.start_ns.tolist() == [10**9, 2 * 10**9]
    assert trace.response.tolist() == [10, 20]
    assert trace.reverse.tolist() == [0, 1]
    assert trace.request.tolist() == [REQUEST_BYTES] * 2
    assert set(trace.rtt_ns.tolist()) == {2**64 - 1}


def test_exchanges_stay_with_their_connection_in_their_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "connection,start_s,size_bytes,rtt_s,think_s\n"
        "b,2,10,0.1,\na,1,20,0.2,\nb,,11,,0.5\na,,21,0.2,\nb,2,12,,\n",
    )
    trace = redtail.read_trace(path)
    assert (trace.connections, trace.exchanges) == (2, 5)
    assert trace.first.tolist() == [0, 2]
    assert trace.response.tolist() == [20, 21, 10, 11, 12]
    assert trace.think_ns.tolist() == [0, 0, 0, 5 * 10**8, 0]
    assert trace.rtt_ns.tolist() == [2 * 10**8, 10**8]


@pytest.mark.parametrize("name", ["flows.csv", "sample.cvec"])
def test_what_is_written_is_read_again_as_it_was(name: str, tmp_path: Path) -> None:
    trace = redtail.read_trace(ROOT / "examples" / name)
    path = tmp_path / "written.parquet"
    trace.write(path)
    assert redtail.read_trace(path).name == trace.name
    assert set(pq.read_table(path).column_names) <= set(COLUMNS)


def test_the_name_is_that_of_the_content(tmp_path: Path) -> None:
    one = redtail.read_trace(written(tmp_path, f"{HEAD}{GOOD}", "one.csv"))
    same = redtail.read_trace(written(tmp_path, f"{HEAD}{GOOD}", "two.csv"))
    other = redtail.read_trace(written(tmp_path, f"{HEAD}{GOOD.replace('200', '201')}", "2.csv"))
    assert one.name == same.name != other.name


# --- Connection vectors ---------------------------------------------------------------------

ORIGINAL = """\
# a comment
SEQ 6851 1 21217 555382       # and another
w 64800 6432
r 117619
l 0.000000 0.000000
> 245
t 51257
< 510
t 6304943

SEQ 2000 3 1 2
r 50000
< 100
t 10
> 200
t 20
> 201
t 30
< 300
t 40
< 301
"""

ALTERNATE = """\
S 6851 1 21217 555382
r 117619
I 0 0 245
A 0 51257 510
A 6304943 0 0
S 2000 3 1 2
r 50000
A 0 0 100
I 0 10 200
I 20 0 201
A 0 30 300
A 40 0 301
"""


def test_both_forms_of_vectors_are_the_same_exchanges(tmp_path: Path) -> None:
    path = written(tmp_path, ORIGINAL, "a.cvec")
    with pytest.warns(redtail.RedtailWarning, match=r"window sizes \(w\) are not used"):
        original = redtail.read_trace(path)
    alternate = redtail.read_trace(written(tmp_path, ALTERNATE, "b.cvec"))
    assert original.name == alternate.name
    us = 1000
    assert original.start_ns.tolist() == [2000 * us, 6851 * us]
    assert original.rtt_ns.tolist() == [50_000 * us, 117_619 * us]
    assert original.first.tolist() == [0, 4]
    rows = [original.request, original.response, original.service_ns, original.think_ns]
    assert np.array(rows).T.tolist() == [
        [0, 100, 0, 0],  # the answering side speaks first
        [200, 0, 0, 10 * us],  # a message, and another 20 us after it
        [201, 300, 30 * us, 20 * us],
        [0, 301, 40 * us, 0],  # and it speaks again 40 us after it has answered
        [245, 510, 51_257 * us, 0],
    ]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("> 3\n", 1, "'>' stands before the first connection"),
        ("S 1 1 1 1\nr 5\nI 0 0 x\n", 3, "size [bytes] = x is not a whole number"),
        ("S 1 1 1 1\nr 5\nI 0 -3 5\n", 3, "wait after receiving [us] = -3 is negative"),
        ("S 1 1 1 1\nr 5\nI 0 0\n", 3, "size [bytes] is missing"),
        ("S 1 1 1 1\nr 0\nI 0 0 5\n", 2, "round-trip time [us] = 0 is zero"),
        ("S -1 1 1 1\n", 1, "start [us] = -1 is negative"),
        ("S 1 1 1 1\nr 5\n", 1, "the connection carries nothing"),
        ("S 1 1 1 1\nI 0 0 5\nA 1 0 0\nI 0 0 5\n", 4, "follows what closes the connection"),
        ("S 1 1 1 1\nI 0 0 5\nA 0 1 5\nI 9 0 5\n", 4, "waits from its own last sending"),
        ("SEQ 1 1 1 1\nw 1\n> 5\n", 2, "w 1; accepted: w and two numbers"),
        ("SEQ 1 1 1 1\n> 5\nc> 5\n", 3, "'c>' begins no line of a sequential connection"),
        ("SEQ 1 1 1 1\n> 5\nCONC 9 2 2 1 1\n", 3, "CONC begins a concurrent connection"),
        ("C 9 2 2 1 1\n", 1, "C begins a concurrent connection"),
        ("SEQ 1 1 1 1\n> 9999999999999\n", 2, "size [bytes] = 9999999999999 is more than can"),
    ],
)
def test_a_bad_line_of_a_vector_is_named(text: str, line: int, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, text, "bad.cvec")
    with pytest.raises(SpecError) as caught:
        redtail.read_trace(path)
    assert f"{path}:{line}: " in str(caught.value)
    assert what in str(caught.value)
    assert "; accepted: " in str(caught.value)


def test_loss_rates_are_told_of_where_there_are_any(tmp_path: Path) -> None:
    path = written(tmp_path, "S 1 1 1 1\nl 0.01 0\nI 0 0 5\nA 0 0 5\n", "lossy.cvec")
    with pytest.warns(redtail.RedtailWarning, match=r"loss rates \(l\) are not used"):
        redtail.read_trace(path)
    toml = experiment(tmp_path, path.read_text(), "lossy.cvec")
    (warning,) = redtail.check(toml).warnings
    assert "loss rates (l) are not used" in warning


# --- Runs -----------------------------------------------------------------------------------

ROWS = "".join(
    f"{0.1 * i},{500 * i + 700},down,{0.05 + 0.01 * (i % 3)},300,0,0\n" for i in range(40)
)


def test_results_do_not_depend_on_the_form_of_the_table_or_where_it_is(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + ROWS)
    (tmp_path / "elsewhere").mkdir()
    redtail.read_trace(tmp_path / "flows.csv").write(tmp_path / "elsewhere/copy.parquet")
    shuffled = "".join(reversed(ROWS.splitlines(keepends=True)))
    written(tmp_path, HEAD + shuffled, "shuffled.csv")
    texts = set()
    for file in ("flows.csv", "elsewhere/copy.parquet", "shuffled.csv"):
        plan = redtail.check(path, set={"traffic.all.file": file})
        texts.add(plan.scenario(0, 0))
        (name,) = plan.traces
        assert f'"file":"{name}"' in plan.scenario(0, 0)
    (text,) = texts
    assert "flows" not in text and "parquet" not in text
    results = redtail.run(path, out=tmp_path / "runs")
    assert results.cases[0].metric("all.responses").mean == 40
    # The same run, so it is not made again.
    again = redtail.run(
        path, set={"traffic.all.file": "elsewhere/copy.parquet"}, out=tmp_path / "runs"
    )
    assert again.reused == 1


def test_another_content_is_another_run(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + ROWS)
    before = redtail.check(path).scenario(0, 0)
    written(tmp_path, HEAD + ROWS.replace("700", "701"))
    assert redtail.check(path).scenario(0, 0) != before


def test_rows_are_no_part_of_the_scenario_text(tmp_path: Path) -> None:
    few = redtail.check(experiment(tmp_path, HEAD + ROWS)).scenario(0, 0)
    many = redtail.check(experiment(tmp_path, HEAD + ROWS * 200)).scenario(0, 0)
    assert abs(len(many) - len(few)) < 100


def test_other_processes_find_the_table(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + ROWS)
    here = redtail.run(path, out=tmp_path / "one").cases[0].metrics
    with ProcessPoolExecutor(1) as executor:
        there = redtail.run(path, out=tmp_path / "two", executor=executor).cases[0].metrics
    assert here == there


def test_a_table_that_has_changed_since_the_check_is_not_taken(tmp_path: Path) -> None:
    plan = redtail.check(experiment(tmp_path, HEAD + ROWS))
    written(tmp_path, HEAD + GOOD)
    ((name, located),) = plan.traces.items()
    # Here the table is still there; another process would have to read it again.
    batches.run_one(plan.scenario(0, 0), traces=plan.traces)
    other = pickle.loads(pickle.dumps(located))
    assert other == Located(name, str(tmp_path / "flows.csv"))
    with pytest.raises(SpecError, match="has changed since the experiment was checked"):
        batches.run_one(plan.scenario(0, 0), traces={name: other})


def test_a_run_without_its_table_says_so(tmp_path: Path) -> None:
    plan = redtail.check(experiment(tmp_path, HEAD + ROWS))
    with pytest.raises(SpecError, match=r"traffic\.all: the run was started without the table"):
        batches.run_one(plan.scenario(0, 0))


def test_captures_have_the_table_too(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + ROWS)
    captured = redtail.capture(path, {"bottleneck": tmp_path / "a.pcapng"})
    assert captured.metrics["all.responses"] == 40


def test_a_factor_may_be_the_table(tmp_path: Path) -> None:
    path = experiment(tmp_path, HEAD + ROWS)
    written(tmp_path, HEAD + GOOD, "one.csv")
    path.write_text(path.read_text() + '[factors]\n"traffic.all.file" = ["flows.csv", "one.csv"]\n')
    results = redtail.run(path, out=tmp_path / "runs")
    counts = [case.metric("all.responses").mean for case in results.cases]
    assert counts == [40, 1]


# Peak memory in MiB of reading a million rows and running them, over that of the imports.
MILLION = 500

SCRIPT = """
import resource, sys
import numpy as np, pyarrow, pyarrow.csv, pyarrow.compute
import redtail
from redtail.engine import batches
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
redtail.check(sys.argv[1], set={"traffic.all.file": "small.csv"})
before = peak()
plan = redtail.check(sys.argv[1])
read = peak()
outcome = batches.run_one(plan.scenario(0, 0), traces=plan.traces)
print(read - before, peak() - read, outcome.metrics["all.responses"])
"""


@pytest.mark.weekly
def test_a_million_rows_take_no_more_memory_than_is_told(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    start = np.sort(draw.uniform(0, 999, 1_000_000))
    size = draw.integers(100, 1400, 1_000_000)
    rtt = draw.choice([0.03, 0.05, 0.08], 1_000_000)
    rows = [f"{a:.6f},{b},{c}" for a, b, c in zip(start, size, rtt, strict=True)]
    path = experiment(tmp_path, "start_s,size_bytes,rtt_s\n" + "\n".join(rows) + "\n")
    written(tmp_path, "start_s,size_bytes\n1,2\n", "small.csv")
    text = path.read_text().replace('"8 Mbit/s"', '"100 Mbit/s"').replace('"10 s"', '"1000 s"')
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
    )
    reading, running, responses = map(float, done.stdout.split())
    assert responses > 999_900
    assert reading < MILLION, "MiB to read"
    assert running < 32, "MiB more to run"


# --- The command ----------------------------------------------------------------------------


def test_import_sums_up_and_writes(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    done = CliRunner().invoke(app, ["import", str(ROOT / "examples/flows.csv"), "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("400 connections, 400 exchanges, starts from 0.108141 s to ")
    assert "reverse: 40 connections" in done.stdout
    assert "round-trip times: 45 ms at the least" in done.stdout
    assert done.stdout.endswith(f"written: {out}\n")
    assert redtail.read_trace(out).connections == 400


def test_import_of_a_bad_table_ends_with_its_message(tmp_path: Path) -> None:
    path = written(tmp_path, "start_s,size_bytes\n1,0\n")
    done = CliRunner().invoke(app, ["import", str(path)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {path}:2: size_bytes = 0 is zero; accepted: ")
    done = CliRunner().invoke(
        app, ["import", str(ROOT / "examples/flows.csv"), "--out", "/no/such/folder/a.parquet"]
    )
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
