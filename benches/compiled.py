"""What compiled plug-ins cost beside the built-in law: a queue and a congestion controller.

Each pair has the same law and so the same packets: what differs is the way to call it. Both are
run in turn in this process, and the ratio of times is what counts. Run it as ``make bench``, or as
``python benches/compiled.py``.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from redtail.engine import batches, plans
from redtail.templates import plugins

_ROOT = Path(__file__).resolve().parents[1]

#: The most that a packet may cost, as a multiple of the built-in law's.
AIM = 1.5

_SCENARIO = """\
name = "compiled"
duration = "{duration}"
warmup = "1 s"
replications = 1

[bottleneck]
rate = "100 Mbit/s"
delay = "10 ms"
queue = {queue}

[[traffic]]
name = "flows"
kind = "bulk"
flows = {flows}
tcp = {tcp}
start = "uniform 0..1 s"
"""

_FQ_CODEL = _ROOT / "examples" / "compiled-queue" / "fq_codel.wasm"
_TAIL_DROP = '{ kind = "tail-drop", limit = "300 packets" }'


@dataclass
class Pair:
    """A law, built in and compiled.

    Attributes:
        title: What it is.
        texts: The experiments of both, with the same packets.
        nanoseconds: Measured for each packet at the bottleneck, of both.
    """

    title: str
    texts: tuple[str, str]
    nanoseconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    @property
    def ratio(self) -> float:
        """The cost of the compiled law as a multiple of the other, by the least of each."""
        return min(self.nanoseconds[1]) / min(self.nanoseconds[0])


def _text(queue: str, tcp: str, flows: int, duration: str) -> str:
    return _SCENARIO.format(queue=queue, tcp=tcp, flows=flows, duration=duration)


def pairs(folder: Path, duration: str) -> list[Pair]:
    """The pairs that can be measured here; the controller is compiled in a folder."""
    limit = 'limit = "1000 packets"'
    own = f'{{ kind = "plugin", class = "{_FQ_CODEL}", {limit} }}'
    found = []
    for flows in (16, 256):
        queues = (f'{{ kind = "fq-codel", {limit} }}', own)
        both = [_text(queue, '"sack"', flows, duration) for queue in queues]
        found.append(Pair(f"FQ-CoDel from C, {flows} flows", (both[0], both[1])))
    if any(shutil.which(tool) is None for tool in ("clang", "wasm-ld", "make")):
        print("clang, wasm-ld or make is not installed: no compiled controller")
        return found
    plugins.write("controller", "c", folder)
    subprocess.run(["make", "-s", "-C", str(folder)], check=True)
    module = folder / "my_controller.wasm"
    tcps = ('"sack"', f'{{ preset = "sack", class = "{module}" }}')
    both = [_text(_TAIL_DROP, tcp, 16, duration) for tcp in tcps]
    found.append(Pair("Reno from C, 16 flows", (both[0], both[1])))
    return found


def measure_compiled(repeats: int, duration: str = "20 s") -> list[Pair]:
    """Measure all pairs, in turn."""
    with TemporaryDirectory() as folder:
        found = pairs(Path(folder), duration)
        for pair in found:
            made = [plans.plan(text, load=True) for text in pair.texts]
            packets = []
            for _ in range(repeats):
                for plan, into in zip(made, pair.nanoseconds, strict=True):
                    scenario = plan.scenario(0, 0)
                    outcome = batches.run_one(scenario, queues=plan.queues)
                    packets.append(outcome.bottleneck_packets)
                    into.append(outcome.wall_time_s * 1e9 / outcome.bottleneck_packets)
            assert len(set(packets)) == 1, f"{pair.title}: not the same packets: {packets}"
    return found


def show_compiled(found: list[Pair]) -> None:
    """Print the table."""
    print("\ncompiled plug-ins, ns per packet at the bottleneck: least (median), in turn")
    for pair in found:
        built_in, own = (
            f"{min(each):.0f} ({statistics.median(each):.0f})" for each in pair.nanoseconds
        )
        print(
            f"  {pair.title:30} built in {built_in:>12}   compiled {own:>12}   "
            f"ratio {pair.ratio:.2f}"
        )
    print(f"  aim: at most {AIM}")


if __name__ == "__main__":
    show_compiled(measure_compiled(7))
