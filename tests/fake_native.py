"""A stand-in for `redtail._native` that can be told to misbehave.

It keeps the native module's interface and none of its meaning: a run's "measurements" are drawn
from the hash of its scenario. Used where a fault has to be produced on purpose.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
import threading
import time
import tomllib

from redtail.outcomes import losses_as_json


class SpecError(ValueError):
    file: str | None = None
    line: int | None = None
    key: str | None = None


class Cancelled(Exception):
    pass


class CancelToken:
    def __init__(self) -> None:
        self.flag = threading.Event()

    def cancel(self) -> None:
        self.flag.set()


class Plan:
    def __init__(self, spec: dict) -> None:
        self.spec = spec
        self.name = spec["name"]
        self.description = spec.get("description")
        self.replications = spec.get("replications", 10)
        self.seed = spec.get("seed", 1)
        self.backend = spec.get("backend")
        self.warnings = spec.get("warnings", [])
        factors = spec.get("factors", {})
        self.factors = list(factors)
        self.outline = ["bottleneck: none"]
        self.plugins = []
        self._cases = [
            {
                "factors": dict(zip(factors, values, strict=True)),
                "labels": {
                    key: value.get("label", value["kind"])
                    if isinstance(value, dict)
                    else str(value)
                    for key, value in zip(factors, values, strict=True)
                },
            }
            for values in itertools.product(*factors.values())
        ]
        self.cases = json.dumps(self._cases)

    def texts(self, runs, users):
        return [self.scenario(case, replication) for case, replication in runs]

    def scenario(self, case_index: int, replication: int) -> str:
        case = self._cases[case_index]["factors"]
        return json.dumps({"seed": [self.seed, replication], "case": case, "name": self.name})


class RunResult:
    def __init__(self, scenario: str) -> None:
        draw = random.Random(hashlib.sha256(scenario.encode()).hexdigest())
        flows = json.loads(scenario)["case"].get("traffic.ftp.flows", 16)
        self.metrics = {
            "utilization": 0.99 + 0.005 * draw.random(),
            "goodput": 8.6e6 + 1e5 * draw.random(),
            "loss": 0.001 * flows * (1 + 0.1 * draw.random()),
            "mark": 0.0,
            "udp_loss": 0.001 * flows * (1 + 0.1 * draw.random()),
            "queue_delay_mean": 0.001 * flows + 0.01 * draw.random(),
            "queue_delay_std": 0.01 * draw.random(),
            "queue_delay_p95": 0.002 * flows,
            "queue_length_mean": 0.9 * flows,
            "consecutive_loss_mean": 1 + draw.random(),
            "fairness": float("nan") if flows == 13 else 0.9,
            "ftp.goodput": 8.6e6,
            "cbr.end_to_end_loss": 0.01,
        }
        self.consecutive_losses = {"bottleneck": [100, 20, 0, draw.randrange(9)], "return": []}
        times = [i / 10 for i in range(50)]
        self.series = {
            "queues": {
                "time_s": ("f64", struct.pack("<50d", *times)),
                "link": ("u32", struct.pack("<50I", *[0] * 50)),
                "packets": ("f64", struct.pack("<50d", *[draw.randrange(99) for _ in times])),
                "average": ("f64", struct.pack("<50d", *[40 + t for t in times])),
            }
        }
        self.names = {"links": ["bottleneck", "return"], "groups": ["ftp"]}
        self.bottleneck_packets = 1000
        self.events = 5000


class Batch:
    def __init__(self) -> None:
        self.results: list[RunResult] = []
        self.wall_time_s: list[float] = []
        self.failure: BaseException | None = None

    def __len__(self) -> int:
        return len(self.results)

    def result(self, index: int) -> RunResult:
        return self.results[index]

    @property
    def bottleneck_packets(self) -> list[int]:
        return [result.bottleneck_packets for result in self.results]

    @property
    def has_series(self) -> list[bool]:
        return [bool(result.series) for result in self.results]

    def rows(self, indices, flows):
        results = [self.results[index] for index in indices]
        defined = [{k: v for k, v in each.metrics.items() if v == v} for each in results]
        shapes = list(dict.fromkeys(map(tuple, defined)))
        return {
            "shapes": [(names, ["bottleneck", "return"]) for names in shapes],
            "shape": [shapes.index(tuple(each)) for each in defined],
            "numbers": b"".join(struct.pack("<d", v) for each in defined for v in each.values()),
            "losses": [losses_as_json(each.consecutive_losses) for each in results],
            "wall_time_s": [self.wall_time_s[index] for index in indices],
            "bottleneck_packets": [each.bottleneck_packets for each in results],
            "events": [each.events for each in results],
            "tables": {},
        }


class FakeNative:
    """One engine with its faults; an instance stands where the module would."""

    SpecError = SpecError
    Cancelled = Cancelled
    CancelToken = CancelToken

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.delay = 0.0
        self.before_run = lambda number: None
        self.version_of_code = "fake-1"

    def plan(
        self,
        text,
        file=None,
        sets=(),
        format="toml",
        resolve=None,
        read=None,
        tables=None,
        programs=None,
    ):
        spec = tomllib.loads(text) if format == "toml" else json.loads(text)
        for item in sets:
            spec.update(tomllib.loads(item))
        return Plan(spec)

    def run_many(self, scenarios, cancel=None, queues=None, traces=None, columns=False):
        batch = Batch()
        for scenario in scenarios:
            start = time.monotonic()
            try:
                batch.results.append(self.run(scenario, cancel))
            except BaseException as error:
                batch.failure = error
                break
            batch.wall_time_s.append(time.monotonic() - start)
        return batch

    def run(self, scenario, cancel=None):
        number = len(self.ran)
        self.ran.append(scenario)
        self.before_run(number)
        end = time.monotonic() + self.delay
        while time.monotonic() < end:
            if cancel is not None and cancel.flag.is_set():
                raise Cancelled
            time.sleep(0.001)
        return RunResult(scenario)

    def schema(self):
        return "{}"

    def presets(self):
        return "{}"

    def si_value(self, text):
        raise SpecError(f"{text!r} is not a quantity")

    def code_version(self):
        return self.version_of_code

    def version(self):
        return "0.0"
