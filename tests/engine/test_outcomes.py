"""Runs of a batch: one by one and in columns, with runs that fail or are stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import redtail
from redtail.engine import batches, plans
from redtail.errors import RunError
from redtail.outcomes import TABLES, Listed, Rows
from redtail.store.tables import Nested

from fake_native import FakeNative

# Groups, metrics and queues differ between the cases.
EXPERIMENT = """
name = "batch"
duration = "1 s"
warmup = "0.1 s"
keep_flows = 100
[bottleneck]
rate = "5 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
[[traffic]]
name = "cbr"
kind = "cbr"
rate = "250 kbit/s"
packet = "500 B"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "10 packets" },
  { kind = "codel", limit = "10 packets" },
]
"traffic.ftp.flows" = [1, 8]
"traffic.cbr.name" = ["cbr", "other"]
"""


def made(plan: plans.Plan, replications: int) -> list[str]:
    return plan.scenarios([(c, n) for n in range(replications) for c in range(len(plan.cases))])


def plain(rows: Rows) -> list[Any]:
    """Return all that is stored of rows; which part has which run does not matter."""
    tables = []
    for name in TABLES:
        nested = Nested(name)
        nested.extend(rows.tables[name])
        found = nested.column()
        # As text: NaN equals nothing.
        tables.append((found and repr(found[1].to_pylist()), list(nested.names)))
    return [
        [(tuple(names), tuple(links)) for names, links in map(rows.shapes.__getitem__, rows.shape)],
        rows.numbers,
        list(rows.losses),
        list(rows.wall_time_s),
        list(rows.bottleneck_packets),
        list(rows.events),
        tables,
    ]


def test_columns_are_the_same_however_they_are_made() -> None:
    scenarios = made(redtail.check(redtail.Toml(EXPERIMENT)), 3)
    (batch,) = batches.run_many(scenarios)
    assert not isinstance(batch, RunError)
    listed = Listed(batch[index] for index in range(len(batch)))
    assert len(batch) == len(scenarios) and not any(batch.has_series)
    for indices in (range(24), [5], [23, 2, 2, 9]):
        flows = [index % 5 != 1 for index in indices]
        assert plain(batch.rows(indices, flows)) == plain(listed.rows(indices, flows))
    (alone,) = batches.run_many(scenarios[7:8])
    assert not isinstance(alone, RunError)
    assert alone[0].metrics == batch[7].metrics


def test_runs_that_are_wanted_in_columns_alone_are_the_same() -> None:
    series = EXPERIMENT + '[series]\ninterval = "1 s"\nqueues = true\n'
    texts = [made(redtail.check(redtail.Toml(text)), 2) for text in (EXPERIMENT, series)]
    scenarios = [*texts[0][:9], texts[1][0], *texts[0][9:]]
    (batch,) = batches.run_many(scenarios)
    (alone,) = batches.run_many(scenarios, columns=True)
    assert not isinstance(batch, RunError) and not isinstance(alone, RunError)
    assert alone.bottleneck_packets == batch.bottleneck_packets
    assert alone.has_series == batch.has_series == [at == 9 for at in range(len(scenarios))]
    assert alone[9].metrics == batch[9].metrics
    places = [at for at in range(len(scenarios)) if at != 9]
    flows = ['"keep_flows":' in scenarios[at] for at in places]
    found, expected = alone.rows(places, flows), batch.rows(places, flows)
    same = replace(found, wall_time_s=expected.wall_time_s)
    assert plain(same) == plain(expected)
    for wrong in ([0], [*places, 9]):
        with pytest.raises(IndexError, match="all at once"):
            alone.rows(wrong, [True] * len(wrong))
    with pytest.raises(IndexError):
        alone[0]


def test_a_run_that_fails_is_no_outcome_and_others_are_made(fake: FakeNative) -> None:
    def fail(number: int) -> None:
        if number in (0, 3, 4, 6):
            raise RuntimeError(f"no luck with {number}")

    fake.before_run = fail
    scenarios = [json.dumps({"case": {}, "number": number}) for number in range(7)]
    found = batches.run_many(scenarios)
    assert [None if isinstance(part, RunError) else len(part) for part in found] == [
        None, 2, None, None, 1, None,
    ]  # fmt: skip
    assert fake.ran == scenarios
    assert "no luck with 3" in str(found[2])


def test_a_stopped_batch_has_the_runs_before(fake: FakeNative) -> None:
    token = batches.cancel_token()

    def stop(number: int) -> None:
        if number == 2:
            token.cancel()

    fake.before_run, fake.delay = stop, 0.01
    scenarios = [json.dumps({"case": {}, "number": number}) for number in range(7)]
    (part,) = batches.run_many(scenarios, token)
    assert not isinstance(part, RunError) and len(part) == 2
    with pytest.raises(redtail.Cancelled):
        batches.run_one(scenarios[0], token)


def test_no_table_is_a_table_without_rows() -> None:
    nested = Nested("flows")
    assert nested.column() is None
    scenario = made(redtail.check(redtail.Toml(EXPERIMENT)), 1)[0]
    (batch,) = batches.run_many([scenario] * 2)
    assert not isinstance(batch, RunError)
    nested.extend(batch.rows([0, 1], [False, False]).tables["flows"])
    assert nested.column() is None
    nested.extend(batch.rows([0, 1], [False, True]).tables["flows"])
    found = nested.column()
    assert found is not None and pa.types.is_list(found[1].type)
    assert [len(rows) for rows in found[1].to_pylist()] == [0, 0, 0, 2]
