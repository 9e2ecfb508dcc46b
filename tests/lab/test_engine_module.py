"""The engine as a WebAssembly module, in a browser, beside the native engine.

`make lab-engine` makes the module. It is asked as `lab/src/wasm.ts` asks it.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redtail import native
from redtail.analysis import stats
from redtail.engine import batches, plans
from redtail.errors import SpecError

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "target/lab-engine/redtail.wasm"
MOST_BYTES = 1_500_000

pytestmark = pytest.mark.skipif(
    not MODULE.is_file(), reason="there is no target/lab-engine/redtail.wasm: make lab-engine"
)

ASK = """
async (encoded) => {
  const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const engine = instance.exports;
  window.ask = (request) => {
    const given = new TextEncoder().encode(request);
    const place = engine.redtail_input(given.length);
    if (place === 0) return null;
    new Uint8Array(engine.memory.buffer, place, given.length).set(given);
    engine.redtail_call();
    const memory = engine.memory.buffer;
    const text = new Uint8Array(memory, engine.redtail_output(), engine.redtail_output_length());
    const columns = new Float64Array(
      memory, engine.redtail_columns(), engine.redtail_columns_length());
    return [new TextDecoder().decode(text), Array.from(columns)];
  };
}
"""


class Module:
    """The module in a page that is empty otherwise."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def ask(self, **request: Any) -> Any:
        answer = self.page.evaluate("(request) => window.ask(request)", json.dumps(request))
        return json.loads(answer[0])

    def metrics(self, text: str, files: dict[str, str], case: int, replication: int) -> Any:
        begun = self.ask(
            ask="begin",
            experiment={"text": text, "files": files},
            case=case,
            replication=replication,
        )
        assert begun["ok"], begun
        self.ask(ask="advance", to_s=begun["duration_s"] / 3)
        return self.ask(ask="finish")["metrics"]


@pytest.fixture(scope="module")
def module(browser: Any) -> Iterator[Module]:
    import base64

    page = browser.new_page()
    page.evaluate(ASK, base64.b64encode(MODULE.read_bytes()).decode())
    yield Module(page)
    page.close()


MIXED = """
name = "mixed"
duration = "2 s"
warmup = "500 ms"
[bottleneck]
rate = "8 Mbit/s"
delay = "10 ms"
queue = QUEUE
wire = { loss = 0.002, jitter = "uniform 0..1 ms" }
[bottleneck.return]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "cubic"
kind = "bulk"
flows = 3
tcp = "linux"
access_delay = ["1 ms", "15 ms"]
[[traffic]]
name = "bbr"
kind = "bulk"
tcp = "bbr3"
[[traffic]]
name = "prague"
kind = "bulk"
tcp = "prague"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "1 Mbit/s"
packet = "1000 B"
dither = 0.5
[[traffic]]
name = "web"
kind = "web"
model = "http2"
users = 5
[[traffic]]
name = "calls"
kind = "call"
"""

QUEUES = (
    '{ kind = "tail-drop", limit = "50 packets" }',
    '{ kind = "red", limit = "90 packets", min_th = "5 packets", max_th = "30 packets" }',
    '{ kind = "pie", limit = "200 packets" }',
    '{ kind = "fq-codel" }',
    '{ kind = "cake" }',
    '{ kind = "dualpi2" }',
)

EXAMPLES = (
    "cellular-link",
    "chain",
    "disturbed-path",
    "following-shaper",
    "quickstart",
    "why",
)


def experiments() -> Iterator[Any]:
    for queue in QUEUES:
        name = queue.split('"')[1]
        yield pytest.param(MIXED.replace("QUEUE", queue), {}, id=name)
    for name in EXAMPLES:
        text = (ROOT / f"examples/{name}.toml").read_text(encoding="utf-8")
        named = re.findall(r'rate_trace = "([^"]+)"', text)
        files = {each: (ROOT / "examples" / each).read_text(encoding="utf-8") for each in named}
        yield pytest.param(text, files, id=name)


@pytest.mark.parametrize(("text", "files"), list(experiments()))
def test_metrics_are_those_of_the_native_engine_bit_for_bit(
    module: Module, text: str, files: dict[str, str]
) -> None:
    plan = plans.plan(text, given=files)
    for case, replication in ((0, 0), (len(plan.cases) - 1, 3)):
        scenario = plan.scenario(case, replication)
        expected = batches.run_one(scenario).metrics
        found = module.metrics(text, files, case, replication)
        assert list(found) == list(expected)
        for name, value in expected.items():
            number = found[name] if found[name] is not None else float("nan")
            assert struct.pack("<d", number) == struct.pack("<d", value), name


def test_the_module_is_small() -> None:
    assert len(gzip.compress(MODULE.read_bytes(), 9)) < MOST_BYTES


WRONG = (
    'name = "x"',
    "name = ",
    MIXED.replace("QUEUE", '{ kind = "fqcodel" }'),
    MIXED.replace("QUEUE", '{ kind = "pie", limit = "9 packets", targte = "5 ms" }').replace(
        "8 Mbit/s", "8 Mbits"
    ),
    MIXED.replace("QUEUE", QUEUES[0]).replace('warmup = "500 ms"', 'warmup = "5 s"'),
    'format = 9\nname = "x"',
)


@pytest.mark.parametrize("text", WRONG)
def test_errors_are_those_of_the_native_check(module: Module, text: str) -> None:
    with pytest.raises(SpecError) as raised:
        plans.plan(text, file="x.toml")
    found = module.ask(ask="check", text=text, file="x.toml")
    assert not found["ok"]
    assert found["text"] == str(raised.value)
    assert found["errors"][0].get("line") == raised.value.line
    assert found["errors"][0].get("key") == raised.value.key


def test_a_check_says_what_the_native_one_says(module: Module) -> None:
    text = (ROOT / "examples/quickstart.toml").read_text(encoding="utf-8")
    plan = plans.plan(text)
    found = module.ask(ask="check", text=text)
    assert found["ok"]
    assert (found["name"], found["replications"], found["seed"]) == (
        plan.name,
        plan.replications,
        plan.seed,
    )
    assert [case["factors"] for case in found["cases"]] == [case.factors for case in plan.cases]
    assert tuple(found["outline"]) == plan.outline
    assert tuple(found["warnings"]) == plan.warnings


def test_intervals_are_those_of_the_analysis(module: Module) -> None:
    draws = random.Random(1)
    samples: list[list[float]] = [[], [1.0], [0.0, 0.0, 0.0, 4.0], [0.1 + 0.2, 0.3], [1.5] * 9]
    for n in (2, 3, 5, 10, 31, 200):
        samples.append([draws.gauss(5, 2) for _ in range(n)])
        samples.append([draws.expovariate(1e6) for _ in range(n)])
        samples.append([1e9 + 1e4 * draws.paretovariate(1.5) for _ in range(n)])
    for values in samples:
        expected = stats.estimate(values)
        found = module.ask(ask="interval", values=[*values, None])
        assert found["n"] == expected.n
        if expected.n:
            assert found["mean"] == expected.mean
        if expected.ci95 is None:
            assert found["why"] == expected.no_interval
        else:
            # The gamma function of C and that of Rust differ in their last bits.
            assert found["half_width"] == pytest.approx(expected.ci95, rel=1e-9)


def test_a_request_that_is_too_long_is_refused(module: Module) -> None:
    assert module.page.evaluate("() => window.ask('x'.repeat(9 << 20))") is None
    assert not module.ask(ask="check", text="#" * 300_000)["ok"]


def test_the_catalog_has_the_version_and_the_queues(module: Module) -> None:
    found = module.ask(ask="catalog")
    assert found["version"] == native.module().version()
    assert {"tail-drop", "fq-codel", "cake"} <= {each["kind"] for each in found["queues"]}
