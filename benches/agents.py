"""What a step of an agent costs: in one environment of Gymnasium, and in vectors of them.

Measured is the time of this process, of the default experiments: 12 packets of a link of 10 Mbit/s
in a step of a queue, 16 in one of a controller. A run of the same experiment without an agent is
measured in turn, and the ratio of the two is what agents cost. A vector costs less for each step
than one environment, until the states of its runs no longer fit into the caches.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

import redtail.gym
from redtail.engine import batches
from redtail.experiment import check

AIM = 100_000
"""Steps in a second that some vector has to reach."""


@dataclass
class Steps:
    """Steps of environments of a kind.

    Attributes:
        kind: "Queue" or "Controller".
        count: Number of environments in the vector; 1 without a vector.
        microseconds: Measured for a step, with its packets.
        plain: Measured for the packets of a step without an agent.
    """

    kind: str
    count: int
    microseconds: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The cost with an agent as a multiple of that without, by the least of each."""
        return min(self.microseconds) / min(self.plain)


def _steps(kind: str, count: int, steps: int) -> float:
    """The microseconds of a step."""
    name = f"redtail/{kind}-v0"
    made: Any = (
        gymnasium.make(name).unwrapped if count == 1 else gymnasium.make_vec(name, num_envs=count)
    )
    made.reset(seed=1)
    action = np.zeros(made.action_space.shape, np.float32)
    begin = time.process_time()
    for _ in range(steps // count):
        over = made.step(action)[3]
        if count == 1 and over:
            made.reset()
    spent = time.process_time() - begin
    made.close()
    return 1e6 * spent / (steps // count * count)


def _plain(kind: str) -> float:
    """The microseconds of as much simulated time without an agent."""
    default = {
        "Queue": (redtail.gym.QUEUE_EXPERIMENT, 0.015),
        "Controller": (redtail.gym.CONTROLLER_EXPERIMENT, 0.020),
    }
    experiment, interval = default[kind]
    scenario = check(experiment).scenario(0, 0)
    begin = time.process_time()
    batches.run_one(scenario)
    return 1e6 * (time.process_time() - begin) / math.ceil(60 / interval)


def measure_agents(repeats: int, steps: int = 60_000) -> list[Steps]:
    """Measure all vectors, in turn."""
    found = [Steps(kind, count) for kind in ("Queue", "Controller") for count in (1, 16, 64, 256)]
    for _ in range(repeats):
        for each in found:
            each.microseconds.append(_steps(each.kind, each.count, steps))
            each.plain.append(_plain(each.kind))
    return found


def show_agents(found: list[Steps]) -> None:
    """Print the table."""
    print("\nenvironments of Gymnasium, of one core: least, in turn")
    for each in found:
        least = min(each.microseconds)
        print(
            f"  {each.kind:10} {each.count:4} {1e6 / least:8.0f} steps/s   "
            f"{least:5.1f} µs a step, without an agent {min(each.plain):.1f}   "
            f"ratio {each.ratio:.1f}"
        )
    print(f"  aim: {AIM} steps/s for some vector")


if __name__ == "__main__":
    show_agents(measure_agents(3))
