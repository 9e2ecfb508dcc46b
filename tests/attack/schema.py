"""Random experiments of the whole schema, and what must hold for every one.

An experiment is drawn from the JSON schema: each key of each table, whichever kind of queue, TCP
and traffic, over one link or a chain. What one key demands of another is not in the schema, so a
draw may be refused; the refusal names a key, which is drawn again or left out, until the experiment
is valid.
"""

from __future__ import annotations

import math
import random
import re
import tempfile
import threading
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from test_kills import contents

import redtail
from attack.identities import of_groups
from attack.inputs import copy_data
from redtail import facts, native
from redtail.engine import batches, plans
from redtail.errors import Cancelled, RedtailError, RedtailWarning, SpecError
from redtail.metrics import DEFINITIONS, base
from redtail.outcomes import Outcome

Table: TypeAlias = dict[str, Any]

LEFT_OUT = {
    "backend": "another program makes the runs",
    "factors": "each case is an experiment of its own",
    "case": "each case is an experiment of its own",
    "metrics": "changes no run; tests/analysis/test_derived.py",
    "report": "changes no run",
    "description": "changes no run",
    "label": "changes no run",
    "kernel_control": "only kernels have them; tests/backends/test_kernel_controls.py",
    "load": "needs trial runs, tests/running/test_offered_load.py",
    "delay_trace": "no file of the examples is one; its form is in crates/spec/src/wire.rs",
    "repeat": "needs a start and a stop; crates/sim/tests/it/groups.rs",
    "activations": "needs repeat",
    "source": "another class would be refused",
    "params": "the class of a queue says what it takes; tests/inputs/test_own_queues.py",
}
"""Keys that are not drawn, and why."""

KINDS_LEFT_OUT = {
    "endpoint": "a program of its own brings the endpoints",
    "program": "a real kernel runs the programs",
}
"""Kinds that are not drawn, and why."""

# Draws of keys that a refusal names, before an experiment is given up.
_REPAIRS = 60

# Far more than a run takes, on a machine that is busy too.
_SECONDS = 120.0

# Sums are made in another order than by the engine.
_NEAR = 1e-9

_FRACTIONS = {each.name for each in DEFINITIONS if each.measure == "fraction"}
_DEFINED = {each.name for each in DEFINITIONS}


@cache
def _schema() -> Table:
    found: Table = facts.schema()
    return found


@cache
def _tcp_values() -> dict[str, list[Any]]:
    """What the presets have for each parameter of TCP."""
    found: dict[str, list[Any]] = {}
    for parameters in facts.presets().values():
        for key, value in parameters.items():
            if value is not None and value not in found.setdefault(key, []):
                found[key].append(value)
    return found


def _number(text: Any) -> float | None:
    """The number of a quantity in SI units (bytes, packets), if the text is one."""
    try:
        value, _ = redtail.quantities.parse(text)
    except (RedtailError, ValueError, TypeError, AttributeError):
        return None
    return float(value)


class Drawn:
    """An experiment that is being drawn.

    Args:
        draw: where its random numbers come from.
    """

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.defs: Table = _schema()["$defs"]
        # The schema of each table, by its identity.
        self.of: dict[int, Table] = {}
        self.groups = ["always", "step", "third"][: draw.choice((1, 2, 2, 3))]
        self.hops = draw.choice((0, 0, 1, 2, 3))
        self.seconds = draw.choice((0.3, 1.0, 2.0, 4.0))
        self.unit = "packets"
        self.depth = 0
        self.root = self.experiment()

    def experiment(self) -> Table:
        """Draw the keys at the top."""
        root: Table = {
            "name": "Drawn",
            "duration": f"{self.seconds} s",
            "replications": 1,
            "seed": self.draw.randrange(2**32),
        }
        self.of[id(root)] = _schema()
        keys = _schema()["properties"]
        for key, chance in (
            ("warmup", 0.2),
            ("phases", 0.2),
            ("series", 0.3),
            ("keep_flows", 0.1),
            ("host_jitter", 0.2),
            ("format", 0.1),
        ):
            if self.draw.random() < chance:
                root[key] = self.value(keys[key], key)
        if self.hops:
            hops = [self.value({"$ref": "#/$defs/Hop"}, "hop") for _ in range(self.hops)]
            for hop in hops:
                hop.pop("name", None)  # the checks below go by places
            root["chain"] = {"hop": hops}
            self.of[id(root["chain"])] = self.defs["Chain"]
        else:
            root["bottleneck"] = self.value(keys["bottleneck"], "bottleneck")
            root["bottleneck"].pop("name", None)
        root["traffic"] = []
        for name in self.groups:
            group = self.value({"$ref": "#/$defs/TrafficGroup"}, "group")
            root["traffic"].append(group | {"name": name})
            self.of[id(root["traffic"][-1])] = self.of[id(group)]
        return root

    def value(self, schema: Table, key: str) -> Any:
        """Draw what a schema allows."""
        draw = self.draw
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            inner = self.defs[name]
            if "default" in schema:
                inner = {**inner, "default": schema["default"]}
            if name == "QueueSpec":
                return self.queue(inner)
            if name == "Rule":
                return self.rule()
            if name == "Load":
                return draw.uniform(0.1, 1.0)
            if name.startswith(("Law_", "Dist_")) and draw.random() < 0.8:
                return self.law(name.split("_")[1], schema.get("default"))
            return self.value(inner, key)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw.choice(schema["enum"])
        if "properties" in schema and "oneOf" not in schema:
            return self.table(schema)
        for choices in ("oneOf", "anyOf"):
            if choices in schema:
                among = [each for each in schema[choices] if _kind(each) not in KINDS_LEFT_OUT]
                chosen = among[0] if draw.random() < 0.4 else draw.choice(among)
                if "const" in among[0] or "properties" in among[0]:
                    chosen = draw.choice(among)
                shared = {name: schema[name] for name in ("default", "x-unit") if name in schema}
                return self.value({**shared, **chosen}, key)
        kind = schema.get("type")
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "integer":
            return self.integer(schema, key)
        if kind == "number":
            return self.real(schema, key)
        if kind == "array":
            if "prefixItems" in schema:
                return [self.value(each, key) for each in schema["prefixItems"]]
            least = schema.get("minItems", 0)
            count = draw.randint(least, min(least + 2, schema.get("maxItems", least + 2)))
            return [self.value(schema["items"], key) for _ in range(count)]
        assert kind == "string", (key, schema)
        return self.text(schema, key)

    def table(self, schema: Table) -> Table:
        """Draw a table: what it must have, and some of the rest."""
        found: Table = {}
        self.of[id(found)] = schema
        # Few keys, or many.
        chance = self.draw.choice((0.08, 0.25, 0.6))
        keys = schema["properties"]
        if "preset" in keys:
            chance = self.draw.choice((0.0, 0.04, 0.15, 0.4))
        for key, each in keys.items():
            must = key in schema.get("required", ()) or (key == "rate" and "rate_trace" in keys)
            if key in LEFT_OUT or not (must or self.draw.random() < chance):
                continue
            if each.get("type") == "object" and "properties" not in each:
                continue  # its keys are names of groups: crates/sim/tests/it/airtime.rs
            if key == "class" and each.get("type") == "array" and self.depth > 1:
                continue
            if key == "class" and "preset" in keys:
                continue  # a controller refuses half of the other keys: test_own_controllers.py
            self.depth += key in ("class", "queue")
            found[key] = self.value(each, key)
            self.depth -= key in ("class", "queue")
        if "rate_trace" in found:
            found.pop("rate", None)
            found.pop("rate_changes", None)
        self.arrange(found)
        return found

    def arrange(self, table: Table) -> None:
        """Put what belongs together into an order that is usually asked for."""
        if self.draw.random() < 0.05:
            return
        for low, high in (
            ("min_th", "max_th"),
            ("short_min_th", "short_max_th"),
            ("bottom", "top"),
            ("p_lower", "p_upper"),
            ("min_rate", "max_rate"),
            ("min_rto", "max_rto"),
            ("rate", "ceil"),
            ("rate", "peak_rate"),
            ("max_th", "limit"),
            ("min_th", "max_th"),
        ):
            if low in table and high in table:
                a, b = _plain(table[low]), _plain(table[high])
                if a is not None and b is not None and a > b:
                    table[low], table[high] = table[high], table[low]

    def queue(self, schema: Table) -> Table:
        """Draw a queue of any kind, or, inside of classes, one that holds packets."""
        kinds = schema["oneOf"]
        if self.depth > 1:
            kinds = [each for each in kinds if "class" not in each["properties"]]
        self.unit = self.draw.choice(("packets", "packets", "packets", "B", "ms"))
        found = self.table(self.draw.choice(kinds))
        if isinstance(found.get("class"), list):
            self.name_classes(found)
        return found

    def name_classes(self, queue: Table) -> None:
        """Give a queue classes of different names, of which the last takes all that is left."""
        classes = queue["class"] or [self.value(_items(self.of[id(queue)]["properties"]), "class")]
        queue["class"] = classes
        for number, each in enumerate(classes):
            each["name"] = f"c{self.depth}{number}"
            each.setdefault("match", self.rule())
            if "class" in each:
                self.depth += 1
                self.name_classes(each)
                self.depth -= 1
                each.pop("queue", None)
        classes[-1].pop("match", None)
        if self.draw.random() < 0.2:
            queue["default"] = self.draw.choice(classes)["name"]

    def rule(self) -> Table:
        """Draw what a class takes."""
        chosen = self.draw.randrange(4)
        if chosen == 0:
            group = {"group": self.draw.choice(self.groups)}
            return {**group, "host": 0} if self.draw.random() < 0.3 else group
        if chosen == 1:
            return {"protocol": self.draw.choice(("tcp", "udp"))}
        if chosen == 2:
            return {"dscp": self.value({"$ref": "#/$defs/Dscp"}, "dscp")}
        return {"port": self.draw.choice((80, 443, 5001, self.draw.randrange(65536)))}

    def integer(self, schema: Table, key: str) -> int:
        """Draw a whole number: near its default, or small, or at an end of what is accepted."""
        draw = self.draw
        least, most = schema.get("minimum", 0), schema.get("maximum", 2**32 - 1)
        if key in ("flows", "users") and most == 1_000_000:
            return draw.choice((1, 2, 3, 5, 12))
        if key == "hosts":
            return draw.randint(1, 4)
        if key in ("first_hop", "last_hop"):
            return draw.randint(1, max(self.hops, 1))
        near = schema.get("default", draw.choice(_tcp_values().get(key, [10])))
        if isinstance(near, bool) or not isinstance(near, int):
            near = 10
        chosen = draw.randrange(8)
        if chosen == 0:
            return int(least)
        if chosen == 1 and most <= 2**24:
            return int(most)
        if chosen == 2:
            return int(min(max(least, draw.randint(0, 3)), most))
        return int(min(max(least, round(near * 10 ** draw.uniform(-1, 1))), most))

    def real(self, schema: Table, key: str) -> float:
        """Draw a number: near its default, a share, or at an end of what is accepted."""
        draw = self.draw
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0.0))
        most = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        if key in ("loss", "duplicate", "share"):
            return draw.choice((0.0, 0.001, 0.02, 0.3))
        near = schema.get("default", draw.choice(_tcp_values().get(key, [0.1])))
        chosen = draw.randrange(10)
        if chosen == 0:
            return float(least)
        if chosen == 1 and most < math.inf:
            return float(most)
        if chosen == 2:
            return draw.choice((0.5, 1.0))
        if chosen < 5:
            return draw.random()
        value = float(near or 0.1) * 10 ** draw.uniform(-1, 1)
        return float(f"{min(max(least, value), most):.4g}")

    def quantity(self, unit: str, near: float) -> str:
        """Draw a quantity near another one, seldom far from it."""
        draw = self.draw
        chosen = draw.randrange(20)
        spread = 3.0 if chosen == 0 else 1.0 if chosen < 12 else 0.3
        value = near * 10 ** draw.uniform(-spread, spread)
        if unit in ("B", "packets", "bit/s"):
            return f"{max(1, round(value))} {unit}"
        return f"{value * 1e3:.6f} ms"

    def text(self, schema: Table, key: str) -> str:
        """Draw a text: a quantity, or a name."""
        draw = self.draw
        if key == "hosts":
            return draw.choice(self.groups)
        unit = schema.get("x-unit")
        default = schema.get("default", draw.choice(_tcp_values().get(key, [None])))
        near = _number(default) if isinstance(default, str) else None
        if key == "mss":
            return draw.choice(("1448 B", "1460 B", "536 B", self.quantity("B", 1000.0), "1 B"))
        if key == "header":
            return draw.choice(("40 B", "52 B", "28 B", self.quantity("B", 40.0)))
        if key in ("receive_window", "send_buffer"):
            return self.quantity("B", 30_000.0)
        if key == "packet":
            return f"{draw.choice((100, 200, 1000, 1500, draw.randint(29, 9000)))} B"
        if unit == "rate":
            return self.quantity("bit/s", 2e6)
        if unit == "bytes":
            return self.quantity("B", near or (30.0 if near == 0 else 3000.0))
        if unit == "queue-size":
            return self.size()
        if unit == "sampling":
            return draw.choice(("170 Hz", "20 Hz", self.quantity("s", 0.005)))
        if unit == "time":
            return self.time(key, near)
        if key == "class":
            return "python-queue.py:SquareRed"
        if key == "file":
            return draw.choice(("early.csv", "early.csv", "flows.csv"))
        if key == "rate_trace":
            return "cellular.trace"
        if key == "group":
            return draw.choice(self.groups)
        if "in +[0-9]+" in schema.get("pattern", ""):
            return f"1..{draw.randint(2, 60)} ms in {draw.randint(2, 5)}"
        if schema.get("pattern", "").startswith("^(BE"):
            return draw.choice(("BE", "LE", "EF", "VA", "CS1", "CS6", "AF11", "AF42"))
        return "x"

    def time(self, key: str, near: float | None) -> str:
        """Draw a time: of the run, of the path, or near a default."""
        draw = self.draw
        if key in ("start", "stop", "at", "phases", "warmup"):
            if key == "start" and draw.random() < 0.4:
                return f"uniform 0..{self.seconds / 3:.3f} s"
            return f"{self.seconds * draw.uniform(0.0, 0.95):.4f} s"
        if key in ("delay", "access_delay", "exit_delay", "return_delay"):
            return draw.choice(("0 s", "10 ms", "1 ms", self.quantity("s", 0.01)))
        if key == "host_jitter":
            return draw.choice(("0 s", "200 us", "3 ms"))
        if key == "interval" and near is None:
            return draw.choice(("10 ms", "100 ms", "7 ms"))
        if draw.random() < 0.05:
            return "0 s"
        return self.quantity("s", near if near else 0.02)

    def size(self) -> str:
        """Draw the size of a queue, in the unit of the present one."""
        if self.unit == "packets":
            return self.quantity("packets", 25.0)
        if self.unit == "B":
            return self.quantity("B", 25_000.0)
        return self.quantity("s", 0.05)

    def law(self, kind: str, default: Any) -> str:
        """Draw how a quantity is drawn."""
        draw = self.draw

        def one() -> str:
            near = _number(default) if isinstance(default, str) else None
            if kind == "Span":
                return self.quantity("s", near or 0.1)
            if kind == "Bytes":
                return self.quantity("B", min(near or 8000.0, 8000.0))
            if kind == "Rate":
                return self.quantity("bit/s", near or 1e6)
            return f"{draw.uniform(1, 6):.2f}"

        shape = f"{draw.uniform(1.05, 3):.2f}"
        laws = [
            one(),
            f"exponential mean {one()}",
            f"pareto mean {one()} shape {shape} max {self.most(kind)}",
            f"pareto min {one()} shape {shape} max {self.most(kind)}",
            f"lomax mean {one()} shape {shape} max {self.most(kind)}",
            f"lomax scale {one()} shape {shape} max {self.most(kind)}",
            f"lognormal median {one()} sigma {draw.uniform(0.1, 2):.2f} max {self.most(kind)}",
            f"weibull scale {one()} shape {draw.uniform(0.5, 2):.2f} max {self.most(kind)}",
            f"normal mean {one()} std {one()}",
            f"gumbel location {one()} scale {one()}",
        ]
        if kind == "double":
            laws.append("geometric mean 3")
        return draw.choice(laws)

    def most(self, kind: str) -> str:
        """The largest value of a law with a heavy tail."""
        return {"Span": "20 s", "Bytes": "300 kB", "double": "40", "Rate": "20 Mbit/s"}[kind]

    def repair(self, refusal: SpecError, attempt: int) -> None:
        """Draw again, or leave out, what a refusal names; now and then the table around it."""
        for line in str(refusal).splitlines():
            if named := _KEY.match(line):
                missing = _MISSING.search(line)
                path = f"{named[1]}.{missing[1]}" if missing else named[1]
                if attempt % 10 == 9:
                    path = path.rsplit(".", 1 + (attempt > 30))[0]
                self.redraw(path)

    def redraw(self, path: str) -> None:
        """Draw a key again, or leave it out; the table around it, if there is no such key."""
        here: Any = self.root
        steps: list[tuple[Any, Any]] = []
        for part in path.split("."):
            if (
                isinstance(here, dict)
                and "hop" in here
                and (hop := re.fullmatch(r"hop(\d+)", part))
            ):
                here, step = here["hop"], int(hop[1]) - 1
            elif isinstance(here, list):
                step = _place(here, part)
            else:
                step = part
            keys = self.of.get(id(here), {}).get("properties", {})
            if isinstance(here, dict) and part not in here and part in keys:
                if part not in LEFT_OUT:  # it is missing
                    here[part] = self.value(keys[part], part)
                return
            if step is None or not isinstance(here, (dict, list)):
                break
            if isinstance(here, dict) and step not in here:
                break
            steps.append((here, step))
            here = here[step]
        if not steps:
            return
        table, key = steps[-1]
        if isinstance(table, list) and isinstance(here, dict):  # a group, a hop or a class
            if "name" in here and "kind" in here:
                group = self.value({"$ref": "#/$defs/TrafficGroup"}, "group")
                table[key] = group | {"name": here["name"]}
                self.of[id(table[key])] = self.of[id(group)]
            elif "delay" in here:
                table[key] = self.value({"$ref": "#/$defs/Hop"}, "hop")
            return
        if isinstance(table, list):
            table, key = steps[-2]
        schema = self.of.get(id(table), {})
        if key not in schema.get("properties", {}) or key in ("name", "kind", "traffic", "chain"):
            return
        must = key in schema.get("required", ()) or key in ("bottleneck", "rate")
        if must or self.draw.random() < 0.4:
            self.unit = self.draw.choice(("packets", "packets", "B", "ms"))
            table[key] = self.value(schema["properties"][key], key)
            if key == "class" and isinstance(table[key], list):
                self.name_classes(table)
        else:
            del table[key]
        self.arrange(table)


def _place(tables: list[Any], name: str) -> int | None:
    """Where in a list of tables the one of this name or number is."""
    names = [each.get("name") for each in tables if isinstance(each, dict)]
    if name in names:
        return names.index(name)
    number = re.fullmatch(r"[a-z]*(\d+)", name)
    return int(number[1]) - 1 if number and 1 <= int(number[1]) <= len(tables) else None


# The key that a line of a message names, behind the number of the line of the file.
_KEY = re.compile(r"(?:\S+:\d+: )?([a-z_]+(?:\.[A-Za-z0-9_-]+)*)")
_MISSING = re.compile(r'the key "(\w+)" is missing')
_NAMES_A_KEY = re.compile(r"^\S+:\d+: [a-z_]")


def _constant(schema: Table) -> Any:
    return schema.get("properties", {}).get("kind", {}).get("const", schema.get("const"))


def _items(keys: Table) -> Table:
    found: Table = keys["class"]["items"]
    return found


def _plain(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return _number(value)
    return None


def toml(value: Any) -> str:
    """Write a value in TOML, in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def written(root: Table) -> str:
    """Write an experiment in TOML: groups and hops a line each."""
    found = []
    for key, value in root.items():
        if key in ("traffic", "chain"):
            of = value["hop"] if key == "chain" else value
            name = "chain.hop" if key == "chain" else key
            lines = "".join(f"  {toml(each)},\n" for each in of)
            found.append(f"{name} = [\n{lines}]\n")
        else:
            found.append(f"{key} = {toml(value)}\n")
    return "".join(found)


def experiment(seed: int, number: int) -> tuple[str, list[str], bool]:
    """Return an experiment, what is wrong with refusals on the way, and whether it is valid."""
    drawn = Drawn(random.Random(f"schema {seed} {number}"))
    found = []
    path = folder() / "drawn.toml"
    for attempt in range(_REPAIRS):
        text = written(drawn.root)
        path.write_text(text)
        try:
            plans.plan(text, file=str(path))
        except SpecError as refusal:
            if not _NAMES_A_KEY.search(str(refusal)):
                found.append(f"a refusal that names no key: {refusal}\n{text}")
            drawn.repair(refusal, attempt)
            continue
        return text, found, True
    return text, found, False


@cache
def folder() -> Path:
    """A folder with what experiments name beside themselves, for the life of this process."""
    made = tempfile.TemporaryDirectory(prefix="redtail-attack-")
    _KEPT.append(made)
    copy_data(Path(made.name))
    rows = "".join(f"{0.01 * row},{300 * row * row}\n" for row in range(1, 25))
    (Path(made.name) / "early.csv").write_text(f"start_s,size_bytes\n{rows}")
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def keys_of(value: Any, kind: str = "") -> Iterator[str]:
    """The keys of an experiment, each with the kind of its table."""
    if isinstance(value, dict):
        kind = value.get("kind", kind)
        for key, each in value.items():
            yield f"{kind}.{key}"
            yield from keys_of(each, "tcp" if key == "tcp" else kind)
    elif isinstance(value, list):
        for each in value:
            yield from keys_of(each, kind)


def wrong(text: str, *, threads: bool = False) -> list[str]:
    """Run an experiment; return what does not hold.

    Args:
        text: the experiment.
        threads: whether it is also run on one thread and on two, through the store.
    """
    path = folder() / "drawn.toml"
    path.write_text(text)  # a queue in Python is looked for beside it
    plan = plans.plan(text, file=str(path), load=True)
    scenario = plan.scenario(0, 0)
    cancel = native.module().CancelToken()
    watch = threading.Timer(_SECONDS, cancel.cancel)
    watch.start()
    capture = folder() / "drawn.pcapng"
    try:
        outcome = batches.run_one(scenario, cancel, plan.queues, plan.traces)
        links = outcome.names["links"]
        points = [(f"{link}:{end}", str(capture)) for link in links for end in ("in", "out")]
        # A packet larger than IP's cannot be captured.
        captured = None
        try:
            captured = batches.run_captured(scenario, points, 4, cancel, plan.queues, plan.traces)
        except SpecError as refusal:
            if "larger than" not in str(refusal) and "IP" not in str(refusal):
                raise
    except Cancelled:
        return [f"no end within {_SECONDS:.0f} s"]
    finally:
        watch.cancel()
    found = [*_ranges(outcome.metrics), *_sums(outcome)]
    if captured is not None:
        if _telling(captured) != _telling(outcome):
            found.append(f"a capture changes the run: {_first_difference(captured, outcome)}")
        root = read_back(text)
        found += _links(root, outcome, _Packets(capture))
    if threads:
        found += _threads(text)
    return found


def read_back(text: str) -> Table:
    """Read an experiment back."""
    return tomllib.loads(text)


def _telling(outcome: Outcome) -> tuple[Any, ...]:
    """All of an outcome but the number of events and the time that it took."""
    series = {name: repr(table) for name, table in outcome.series.items()}
    return (
        outcome.metrics,
        outcome.consecutive_losses,
        series,
        outcome.tables,
        outcome.names,
        outcome.bottleneck_packets,
    )


def _first_difference(one: Outcome, other: Outcome) -> str:
    for name in sorted({*one.metrics, *other.metrics}):
        if one.metrics.get(name) != other.metrics.get(name):
            return f"{name} = {one.metrics.get(name)}, without {other.metrics.get(name)}"
    return "not in the metrics"


def _ranges(found: dict[str, float]) -> Iterator[str]:
    """Values that are none of their kind."""
    for name, value in found.items():
        if not math.isfinite(value):
            yield f"{name} = {value}"
        elif base(name) in _FRACTIONS and not 0 <= value <= 1 + _NEAR:
            yield f"{name} = {value} is no fraction"
        elif value < 0 and base(name) in _DEFINED - {"r_factor"}:
            yield f"{name} = {value} is negative"
    for name in found:
        for low, high in (("p50", "p95"), ("p95", "p99")):
            if name.endswith(f"_{low}"):
                above = found.get(name[: -len(low)] + high, math.inf)
                if found[name] > above:
                    yield f"{name} = {found[name]}, and the {high} is {above}"


def _sums(outcome: Outcome) -> Iterator[str]:
    """What is not the sum over groups that it should be."""
    found = outcome.metrics
    groups = outcome.names["groups"]
    for link in outcome.names["links"]:
        prefix = "" if link == "bottleneck" else f"{link}."
        for name in ("queue_length_mean", "utilization"):
            whole = found.get(f"{prefix}{name}", 0.0)
            total = sum(found.get(f"{prefix}{group}.{name}", 0.0) for group in groups)
            if abs(total - whole) > _NEAR * max(1.0, whole):
                yield f"{prefix}{name} = {whole}, and its groups make {total}"
    yield from of_groups(found, groups)


class _Packets:
    """The packets of a capture by its points, each with a number that is its own at every point."""

    def __init__(self, path: Path) -> None:
        read = native.module().read_capture(path)
        columns = {name: np.frombuffer(data, kind) for name, (kind, data) in read.columns.items()}
        self.damage = read.damage or {k: v for k, v in dict(read.left_out).items() if v}
        of = columns["conversation"].astype(np.int64) * 2 + columns["end"]
        self.numbers = of * 65536 + columns["id"]
        self.at = columns["at_ns"]
        # The second octet of the address of each conversation's first end (IPv4 in IPv6).
        _, data = read.conversations["address"]
        octets = np.frombuffer(data, "u1").reshape(-1, 2, 16)[:, 0, 13] % 128
        self.group = np.append(octets, np.uint8(0))[columns["conversation"]]
        self.interface = columns["interface"]
        last = int(self.interface.max()) if len(self.interface) else -1
        self.names = [read.interface(number) for number in range(last + 1)]

    def of(self, point: str) -> tuple[Any, Any]:
        """The numbers and times in nanoseconds of the packets at a point."""
        if point not in self.names:  # nothing was captured there, nor at any later point
            return self.numbers[:0], self.at[:0]
        here = self.interface == self.names.index(point)
        return self.numbers[here], self.at[here]


def _links(root: Table, outcome: Outcome, packets: _Packets) -> Iterator[str]:
    """Conservation of packets and Little's law at each link, by the packets that were captured."""
    if packets.damage:
        yield f"the capture cannot be read: {packets.damage}"
        return
    seconds = _number(root["duration"]) or 0.0
    end = seconds * 1e9
    whole = _number(root.get("warmup", "0 s")) == 0
    found = outcome.metrics
    for link in outcome.names["links"]:
        came, came_at = packets.of(f"{link}:in")
        went, went_at = packets.of(f"{link}:out")
        if len(np.unique(came)) < len(came):
            continue  # a number of 16 bits has come round
        if len(np.unique(went)) < len(went):
            yield f"{link}: a packet left twice"
            continue
        order = np.argsort(came)
        place = np.searchsorted(came[order], went)
        place = np.minimum(place, max(len(came) - 1, 0))
        if len(went) and (len(came) == 0 or (came[order][place] != went).any()):
            yield f"{link}: a packet left that never came"
            continue
        inside = (went_at - came_at[order][place]) if len(went) else np.zeros(0)
        if (inside < 0).any():
            yield f"{link}: a packet left before it came"
        if not whole:
            continue
        prefix = "" if link == "bottleneck" else f"{link}."
        if f"{prefix}queue_length_mean" not in found:
            continue
        spec = _spec(root, link)
        lost = found.get(f"{prefix}loss", 0.0) * len(came)
        if abs(lost - round(lost)) > 1e-6 * max(1.0, lost):
            yield f"{link}: {lost} of {len(came)} packets lost is no whole number"
        left = len(came) - len(went) - round(lost)
        if left < 0:
            yield f"{link}: {len(came)} came, {len(went)} went, and {lost} were lost"
        # Little's law: the time that packets spent inside is the integral of how many there were.
        waited = found[f"{prefix}queue_length_mean"] * seconds
        spent = float(inside.sum()) * 1e-9
        stayed = np.setdiff1d(came, went, assume_unique=True)
        stay = np.isin(came, stayed, assume_unique=True)
        remained = float((end - came_at[stay]).sum()) * 1e-9
        rounding = 2e-9 * (len(came) + 1)
        if any("airtime" in each or "medium" in each for each in (spec, *_hops(root))):
            continue  # several packets are sent at once, and others wait for the medium
        constant = not spec.get("rate_changes") and "rate_trace" not in spec
        most_sent = found.get(f"{prefix}utilization", 0.0) * seconds if constant else seconds
        least_sent = most_sent if constant else 0.0
        near = rounding + _NEAR * max(1.0, spent)
        if waited + most_sent < spent - near:
            yield f"{link}: {waited} s waited and {most_sent} s sent, in {spent} s inside"
        if waited > spent + remained - least_sent + near:
            yield f"{link}: {waited} s waited, but {spent} + {remained} s inside"
        if left == len(stayed) == len(came) - len(went):  # nothing was dropped
            total = spent + remained
            if not least_sent - near <= total - waited <= most_sent + near:
                yield (
                    f"{link}: {waited} s waited, {least_sent} to {most_sent} s sent, "
                    f"{total} s inside"
                )
        if len(inside) > 1:
            for share in (50, 95, 99):
                delay = found.get(f"{prefix}queue_delay_p{share}", 0.0)
                longest = max(
                    inside.max() * 1e-9, (end - came_at[stay]).max() * 1e-9 if len(stayed) else 0.0
                )
                if delay > longest * 1.002 + 1e-8:
                    yield f"{link}: {prefix}queue_delay_p{share} = {delay}, longest {longest}"
    yield from _between(root, packets)


def _hops(root: Table) -> list[Table]:
    """The tables of the bottleneck, or of all hops."""
    return [root["bottleneck"]] if "bottleneck" in root else list(root["chain"]["hop"])


def _spec(root: Table, link: str) -> Table:
    """The table of a link."""
    name, _, back = link.partition(".")
    if link == "return":
        name, back = "bottleneck", "return"
    hops = root.get("chain", {}).get("hop", [])
    if name == "bottleneck":  # a chain of one hop too
        table: Table = root.get("bottleneck") or hops[0]
    else:
        table = hops[int(name[3:]) - 1]
    return table["return"] if back else table


def _between(root: Table, packets: _Packets) -> Iterator[str]:
    """Packets reach the next hop exactly the delay after they left, if the wire holds none."""
    hops = root.get("chain", {}).get("hop", [])
    for number in range(1, len(hops)):
        if hops[number - 1].get("wire", {}).keys() - {"loss", "duplicate", "limit"}:
            continue
        went, went_at = packets.of(f"hop{number}:out")
        came, came_at = packets.of(f"hop{number + 1}:in")
        if len(np.unique(went)) < len(went) or len(np.unique(came)) < len(came):
            continue
        both, before, after = np.intersect1d(went, came, assume_unique=True, return_indices=True)
        delay = (_number(hops[number - 1]["delay"]) or 0.0) * 1e9
        taken = came_at[after] - went_at[before]
        if len(both) and (np.abs(taken - delay) > 1.001).any():
            span = f"{taken.min()} to {taken.max()} ns"
            yield f"from hop{number} to hop{number + 1}: {span}, and not {delay}"


def _threads(text: str) -> Iterator[str]:
    """Through the store, on one thread and on two: the same bytes."""
    with tempfile.TemporaryDirectory(prefix="redtail-attack-") as made:
        stores = []
        for jobs in (1, 2):
            path = folder() / "drawn.toml"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RedtailWarning)
                redtail.run(path, replications=3, jobs=jobs, out=Path(made) / str(jobs))
            stores.append(contents(Path(made) / str(jobs)))
        if stores[0] != stores[1]:
            names = [name for name in stores[0] if stores[0][name] != stores[1].get(name)]
            yield f"one thread and two differ in {names[:3]}"


def _kind(schema: Table) -> str | None:
    """Return the kind that a table of the schema is of, if it has one."""
    found: str | None = schema.get("properties", {}).get("kind", {}).get("const")
    return found
