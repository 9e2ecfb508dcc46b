"""Trains a queue, and compares it with others on loads that it has not been trained on.

    python examples/gym/agent.py train      # writes weights.json; some minutes on one core
    python examples/gym/agent.py compare    # the table of docs/how-to/machine-learning.md

The policy is linear. It changes the square root of the drop probability, to which the rate of TCP
is inversely proportional (De Schepper et al., "PI2", CoNEXT 2016), by a weighted sum of what it
observes. The training is the cross-entropy method (de Boer et al., "A tutorial on the cross-entropy
method", 2005): candidates are drawn from a normal distribution, which moves to the best of them.
"""

import json
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np

import redtail
import redtail.gym
from redtail.analysis.stats import estimate, paired_difference

HERE = Path(__file__).parent
TRAIN, TEST = HERE / "train.toml", HERE / "test.toml"
WEIGHTS = HERE / "weights.json"

FEATURES = ("delay", "change of delay", "offered load", "use", "root of probability", "constant")
TARGET_S = 0.015  # that of PIE, and of the reward
GREATEST_CHANGE = 0.05  # of the root of the probability in a step

CANDIDATES, BEST, GENERATIONS = 20, 5, 30
SEED = 1


def features(seen: np.ndarray) -> np.ndarray:
    """What the weights multiply, from observations of shape (..., 8)."""
    delay, change, load, use = (seen[..., place] for place in range(4))
    columns = [
        np.minimum(delay / TARGET_S - 1, 10),
        np.clip(change / TARGET_S, -10, 10),
        np.minimum(load, 2) - 1,
        np.minimum(use, 2) - 1,
        np.sqrt(seen[..., 7]),
        np.ones_like(delay),
    ]
    return np.stack(columns, axis=-1)


def actions(weights: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The probabilities of the next step; `weights` has a row for each environment or for all."""
    change = np.tanh((weights * features(seen)).sum(axis=-1))
    root = np.sqrt(seen[..., 7]) + GREATEST_CHANGE * change
    return np.square(np.clip(root, 0, 1))[..., None].astype(np.float32)


def returns(envs: gymnasium.vector.VectorEnv, weights: np.ndarray, options: dict) -> np.ndarray:
    """The mean reward of a step, of one episode of each environment."""
    seen, _ = envs.reset(options=options)
    total, steps, over = np.zeros(envs.num_envs), 0, False
    while not over:
        seen, rewards, _, truncated, _ = envs.step(actions(weights, seen))
        total += rewards
        steps += 1
        over = truncated.all()
    return total / steps


def train() -> None:
    random = np.random.default_rng(SEED)
    cases = len(redtail.check(TRAIN).cases)
    envs = gymnasium.make_vec("redtail/Queue-v0", num_envs=CANDIDATES * cases, experiment=TRAIN)
    # All environments have the same seed: a candidate is not better for an easier workload.
    envs.reset(seed=[SEED] * envs.num_envs)
    mean, deviation = np.zeros(len(FEATURES)), np.full(len(FEATURES), 1.0)
    for generation in range(GENERATIONS):
        drawn = mean + deviation * random.standard_normal((CANDIDATES, len(FEATURES)))
        options = {"case": list(range(cases)) * CANDIDATES, "replication": generation}
        found = returns(envs, np.repeat(drawn, cases, axis=0), options)
        scores = found.reshape(CANDIDATES, cases).mean(axis=1)
        best = drawn[np.argsort(-scores)[:BEST]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.02
        print(f"generation {generation + 1}: {scores.mean():.4f}, best {scores.max():.4f}")
    weights = dict(zip(FEATURES, mean.round(4).tolist(), strict=True))
    WEIGHTS.write_text(json.dumps(weights, indent=2) + "\n")
    print(f"{time.process_time():.0f} s of one core")


def trained() -> np.ndarray:
    weights = json.loads(WEIGHTS.read_text())
    return np.array([weights[name] for name in FEATURES])


# What the table shows: the metric, its scale, and digits after the point.
COLUMNS = (
    ("utilization", 100, 1),
    ("queue_delay_mean", 1000, 1),
    ("queue_delay_p95", 1000, 1),
    ("loss", 100, 2),
)


def score(run: dict[str, float]) -> float:
    """The formula of the reward, over the measurement period of a run."""
    return run["utilization"] - 0.1 * run["queue_delay_mean"] / TARGET_S - run["loss"]


def of_agent(case: int, seed: int, replications: int) -> list[dict[str, float]]:
    """The metrics of all replications of a case, with the agent in place of its tail drop."""
    envs = gymnasium.make_vec("redtail/Queue-v0", num_envs=replications, experiment=TEST)
    options = {"case": case, "replication": list(range(replications))}
    seen, _ = envs.reset(seed=[seed] * replications, options=options)
    weights, over = trained(), False
    while not over:
        seen, _, _, truncated, infos = envs.step(actions(weights, seen))
        over = truncated.all()
    return list(infos["metrics"])


def compare() -> None:
    results = redtail.run(TEST)
    plan = redtail.check(TEST)
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    for number, case in enumerate(results.cases):
        load, queue = case.labels["case.name"], case.labels["bottleneck.queue"]
        of_load = runs.setdefault(load, {})
        if queue == "tail drop":
            of_load["agent"] = of_agent(number, plan.seed, plan.replications)
        columns = {name: case.values(name) for name, *_ in COLUMNS}
        rows = zip(*columns.values(), strict=True)
        of_load[queue] = [dict(zip(columns, row, strict=True)) for row in rows]
    heads = ("use, %", "delay, ms", "95 %, ms", "dropped, %", "score", "agent's - this")
    print(" " * 18 + "".join(f"{head:>15}" for head in heads))
    for load, of_load in runs.items():
        print(load)
        agent = [score(run) for run in of_load["agent"]]
        for queue, of_queue in of_load.items():
            scores = [score(run) for run in of_queue]
            cells = [
                shown(estimate(scale * run[name] for run in of_queue), digits)
                for name, scale, digits in COLUMNS
            ]
            cells.append(shown(estimate(scores), 3))
            if queue != "agent":
                cells.append(shown(paired_difference(agent, scores), 3))
            print(f"  {queue:16}" + "".join(f"{cell:>15}" for cell in cells))


def shown(found: redtail.Estimate, digits: int) -> str:
    """A mean with its interval; there is none where more than half of the values are equal."""
    interval = "?" if found.ci95 is None else f"{found.ci95:.{digits}f}"
    return f"{found.mean:.{digits}f} ±{interval}"


if __name__ == "__main__":
    {"train": train, "compare": compare}[sys.argv[1]]()
