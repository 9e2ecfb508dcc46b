"""Every queue has a page with the figure of the standard load step, made by what is committed."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import redtail
from redtail import facts
from redtail.catalog import Catalog

QUEUES = Path(__file__).parents[2] / "docs" / "queues"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("load_step", QUEUES / "load_step.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


load_step = _script()


def _kinds() -> list[str]:
    kinds = [str(section.kind) for section in Catalog(facts.schema()).queues]
    return [kind for kind in kinds if kind != "plugin"]  # that one is the user's own


@pytest.mark.parametrize("kind", _kinds())
def test_the_page_of_a_queue_shows_its_load_step(kind: str) -> None:
    page = (QUEUES / f"{kind}.md").read_text()
    figure = f"../figures/{kind}-load-step.png"
    shown = re.search(rf"^!\[(?P<alt>[^\]]+)\]\({re.escape(figure)}\)$", page, re.MULTILINE)
    assert shown is not None
    assert "[load step](load_step.py)" in page
    assert (QUEUES / figure).stat().st_size < 60_000


@pytest.mark.parametrize("kind", _kinds())
def test_the_load_step_of_a_queue_still_runs(kind: str, tmp_path: Path) -> None:
    # Past the first step; the whole is for the script.
    results = load_step.run(kind, tmp_path, "55 s")
    busy = results.cases[0].metric("utilization").mean
    assert busy > 0.7  # Prague alone, in DualPI2, leaves a fifth
    assert load_step.figure(kind, results).axes


def test_the_load_goes_up_and_down_at_the_steps(tmp_path: Path) -> None:
    results = load_step.run("tail-drop", tmp_path)
    flows = results.series("flows").to_pandas()
    sending = flows[(flows["group"] == "step") & (flows["in_flight_bytes"] > 0)]
    up, down = load_step.STEPS
    assert up <= sending["time_s"].min() <= up + 1
    # What is in flight at the stop is delivered, lost segments within some timeouts.
    assert down <= sending["time_s"].max() <= down + 20
    assert sending["flow"].nunique() == 20


def test_each_queue_has_the_example_of_its_page() -> None:
    found = {kind: case.factors["bottleneck.queue"] for kind, case in load_step.CASES.items()}
    examples = {kind: tomllib.loads(keys) for kind, keys in facts.queue_examples().items()}
    assert found == {kind: {"kind": kind, **examples[kind]} for kind in _kinds()}


def test_the_load_steps_give_no_warnings_but_that_of_the_step() -> None:
    warnings = redtail.check(load_step.FILE).warnings
    assert not [text for text in warnings if "first round trips" not in text]
