"""Experiment files to start from: the examples, and one for each kind of queue, TCP and traffic."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from redtail import facts
from redtail.inputs.compiled import can_compile

ROOT = Path(__file__).parents[2]

# Examples of queues and tables beside the files that name them.
_DATA = ("*.trace", "*.csv", "*.cvec", "*.py", "compiled-queue/*.wasm")

QUEUE = 'kind = "tail-drop"\nlimit = "50 packets"'

# The keys of a small group of each kind of traffic, which ends before the run does. A table of
# connections (`trace`) is among the examples; groups of kind `endpoint` need another program.
_ELSEWHERE = ("trace", "endpoint", "program")
TRAFFIC = {kind: keys for kind, keys in facts.traffic_examples().items() if kind not in _ELSEWHERE}

# The keys of each kind of queue except `plugin`. Queues of classes have a class for the groups
# `always` and `step`.
QUEUES = {kind: keys for kind, keys in facts.queue_examples().items() if kind != "plugin"}


def experiment(queue: str, groups: list[tuple[str, str, str]], duration: str = "6 s") -> str:
    """An experiment file with a queue's keys, and a group for each name, kind and keys."""
    traffic = "".join(
        f'[[traffic]]\nname = "{name}"\nkind = "{kind}"\n{keys}\n' for name, kind, keys in groups
    )
    return (
        f'name = "Attack"\nduration = "{duration}"\nreplications = 1\n[bottleneck]\n'
        f'rate = "5 Mbit/s"\ndelay = "10 ms"\n[bottleneck.queue]\n{queue}\n{traffic}'
    )


def queue_keys(kind: str) -> str:
    """The keys of a queue of this kind, a line each."""
    return f'kind = "{kind}"\n{QUEUES[kind]}'


@cache
def files() -> dict[str, str]:
    """All files to start from, by name."""
    found = {path.stem: path.read_text() for path in sorted((ROOT / "examples").glob("*.toml"))}
    if not can_compile():
        del found["compiled-queue"]
    always = ("always", "bulk", "flows = 2")
    for kind in QUEUES:
        step = ("step", "cbr", TRAFFIC["cbr"])
        found[f"queue-{kind}"] = experiment(queue_keys(kind), [always, step])
    for preset in facts.presets():
        found[f"tcp-{preset}"] = experiment(QUEUE, [("always", "bulk", f'tcp = "{preset}"')])
    for kind, keys in TRAFFIC.items():
        found[f"traffic-{kind}"] = experiment(QUEUE, [("always", kind, keys)])
    return found


def copy_data(folder: Path) -> None:
    """Copy what the examples name beside themselves."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in _DATA:
        for path in (ROOT / "examples").glob(pattern):
            target = folder / path.relative_to(ROOT / "examples")
            target.parent.mkdir(exist_ok=True)
            shutil.copy(path, target)
