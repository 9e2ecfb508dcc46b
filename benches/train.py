"""The runs by which a build with a profile is optimised: what users run, as they run it.

The compiler takes code that these runs do not reach as cold. So they have each queue discipline,
each TCP preset and each kind of traffic, and the rows of `make bench` at greater length. Run it
with the module that writes profiles (``make profile``). It makes the same runs every time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from redtail import _engine, _native

_SCENARIOS = Path(__file__).resolve().parent / "scenarios"

#: Rows of the benchmark, and for how long they run here.
ROWS = {
    "red-64-sack": "100 s",
    "tail-drop-64-newreno": "100 s",
    "tail-drop-100-newreno": "100 s",
    "web-1200-sack": "100 s",
}

_TAIL_DROP = 'kind = "tail-drop"\nlimit = "300 packets"'


def experiments() -> list[str]:
    """The texts of all experiments."""
    texts = []
    for name, duration in ROWS.items():
        text = (_SCENARIOS / f"{name}.toml").read_text()
        texts.append(re.sub(r"(?m)^duration = .*$", f'duration = "{duration}"', text))
    for kind, keys in _engine.queue_examples().items():
        if kind != "plugin":
            queue = f'kind = "{kind}"\n{keys}'
            texts.append(_experiment(queue, ["bulk", "cbr"], {"bulk": "flows = 16"}))
    for preset in _engine.presets():
        texts.append(_experiment(_TAIL_DROP, ["bulk"], {"bulk": f'flows = 16\ntcp = "{preset}"'}))
    for kind, keys in _engine.traffic_examples().items():
        if kind != "trace":
            texts.append(_experiment(_TAIL_DROP, [kind], {kind: keys}))
    return texts


def _experiment(queue: str, kinds: list[str], keys: dict[str, str]) -> str:
    """An experiment with groups of these kinds, with the keys given here or those of an example."""
    examples = _engine.traffic_examples()
    names = {"cbr": "step"}
    traffic = "".join(
        f'[[traffic]]\nname = "{names.get(kind, "always")}"\nkind = "{kind}"\n'
        f"{keys.get(kind, examples.get(kind, ''))}\n"
        for kind in kinds
    )
    return (
        'name = "Training"\nduration = "10 s"\nwarmup = "1 s"\nreplications = 1\n[bottleneck]\n'
        f'rate = "20 Mbit/s"\ndelay = "10 ms"\n[bottleneck.queue]\n{queue}\n{traffic}'
    )


def main() -> int:
    """Make all runs."""
    for text in experiments():
        plan = _native.plan(text)
        _native.run(plan.scenario(0, 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
