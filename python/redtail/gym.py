"""Environments of Gymnasium: an agent sets a knob of a queue or of a congestion controller.

    >>> import gymnasium, redtail.gym
    >>> env = gymnasium.make("redtail/Queue-v0")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

Importing this module registers `redtail/Queue-v0` and `redtail/Controller-v0`, for
`gymnasium.make` and `gymnasium.make_vec`. An experiment says what is simulated; the agent takes the
place of a tail-drop queue or of the controller of one TCP flow. A step is an interval of simulated
time, and an episode is a run, which ends (is truncated) with the duration of the experiment.

Episodes are runs of the experiment in a fixed order: all cases of a replication, then the next
replication. `reset(seed=S)` begins this order anew, with S as the experiment's seed. Without any,
the seed is the file's: the episodes are the runs that `redtail run` makes, with the same workload.
In a vector each environment's seed is one more than that of the one before, as in Gymnasium's own.

The environments here must not know how a step is made: that is in Rust (`crates/gym`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redtail import facts, native
from redtail.backends.sim import Sim
from redtail.errors import SpecError
from redtail.experiment import Source, Toml, prepare
from redtail.extras import extra
from redtail.options import Overrides

with extra("gym", "redtail.gym"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

__all__ = ["ControllerEnv", "ControllerVectorEnv", "QueueEnv", "QueueVectorEnv"]

Floats: TypeAlias = NDArray[np.float64]
Observations: TypeAlias = NDArray[np.float32]

QUEUE_EXPERIMENT = Toml(
    """
name = "A link with an agent as its queue"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "40 ms"
queue = { kind = "tail-drop", limit = "200 packets" }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 4
tcp = "cubic"
""",
    "<the experiment of redtail/Queue-v0>",
)
"""Four CUBIC flows over a link of a home, of 10 Mbit/s, with a deep buffer (240 ms)."""

CONTROLLER_EXPERIMENT = Toml(
    """
name = "A flow with an agent as its controller"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "40 ms"
queue = { kind = "tail-drop", limit = "200 packets" }
[[traffic]]
name = "agent"
kind = "bulk"
flows = 1
tcp = "sack"
""",
    "<the experiment of redtail/Controller-v0>",
)
"""One flow over the same link."""


class _Runs:
    """Runs of an experiment with an agent in each, which go on together.

    Attributes:
        plan: the experiment.
        count: number of runs.
        meanings: what each number is that is measured in a step.
        measures: what was measured in the latest step, of shape (runs, numbers).
        observations: what is observed after it, of shape (runs, numbers).
    """

    def __init__(
        self,
        source: Source,
        count: int,
        sets: Overrides | None,
        *,
        at: str,
        knob: str,
        interval: str,
        target: str,
        weights: Mapping[str, float],
    ) -> None:
        if count < 1:
            raise SpecError(f"num_envs = {count}: accepted: 1 or more")
        target_s = facts.time_s("target", target)
        if target_s == 0:
            raise SpecError(f'target = "{target}": accepted: a time of more than 0 s')
        for name, weight in weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise SpecError(f"{name} = {weight}: accepted: a number of 0 or more")
        self.plan = prepare(source, set=sets, backend="sim", load=False)
        self._refuse()
        self.count = count
        with native.translated():
            self._episodes = native.module().Episodes(
                count, at, knob, interval, target_s, *weights.values()
            )
        self.meanings: dict[str, str] = dict(self._episodes.measures)
        self.measures = np.zeros((count, len(self.meanings)))
        self.observations = np.zeros((count, len(self._episodes.observed)), np.float32)
        self._traces = [located.load() for located in self.plan.traces.values()] or None
        self._texts: dict[tuple[int, int], str] = {}
        # Of each environment: the seed, the case if it has only one, the number of the next run.
        self._seeds = [self.plan.seed + index for index in range(count)]
        self._cases: list[int | None] = [None] * count
        self._numbers = [0] * count
        # What is wrong with the place is said when the environment is made, not when it is used.
        self.begin(0)
        self._numbers[0] = 0

    def _refuse(self) -> None:
        """Refuse experiments whose runs are not simulated, or are not known before trials."""
        refused = [(each.key, each.reason) for each in Sim().refuse(self.plan)]
        if self.plan.code:
            reason = "is code of your own; accepted: queues and controllers of redtail"
            refused.append((self.plan.code[0].key, reason))
        for case in range(len(self.plan.cases)):
            for load in self.plan.loads(case):
                reason = (
                    "is an offered load, for which the number of users is found by trial runs; "
                    f'accepted: users, such as "users = {load.estimate}"'
                )
                refused.append((f"traffic.{load.group}.load", reason))
        if refused:
            key, reason = refused[0]
            where = f"{self.plan.file}: " if self.plan.file else ""
            line = self.plan.line_of(key)
            raise SpecError(f"{where}{key}: {reason}", file=self.plan.file, line=line, key=key)

    def spaces(self) -> tuple[spaces.Box[np.float32], spaces.Box[np.float32]]:
        """Return the spaces of an observation and of an action."""
        examples = [json.loads(self.plan.example(case)) for case in range(len(self.plan.cases))]
        longest = max(facts.time_s("duration", example["duration"]) for example in examples)
        bounds = np.array([each[1:] for each in self._episodes.observed], np.float32)
        low, high = np.where(np.isfinite(bounds), bounds, np.sign(bounds) * longest).T
        action_low, action_high = self._episodes.bounds
        return (
            spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32),
            spaces.Box(action_low, action_high, (1,), np.float32),
        )

    def restart(self, seeds: Sequence[int | None], options: Mapping[str, Any] | None) -> None:
        """Note with which seed, case and replication each environment goes on."""
        for index, seed in enumerate(seeds):
            if seed is not None:
                if not 0 <= seed < 2**64:
                    raise SpecError(f"seed = {seed}: accepted: whole numbers from 0 to 2^64 - 1")
                self._seeds[index], self._cases[index], self._numbers[index] = seed, None, 0
        given = dict(options or {})
        cases = self._option(given, "case", len(self.plan.cases))
        replications = self._option(given, "replication", 2**32)
        if given:
            raise SpecError(
                f"options: there is no {next(iter(given))!r}; accepted: case, replication"
            )
        for index in range(self.count):
            if cases is not None:
                self._cases[index], self._numbers[index] = cases[index], 0
            if replications is not None:
                one = self._cases[index] is not None
                each = 1 if one else len(self.plan.cases)
                self._numbers[index] = each * replications[index]

    def _option(self, given: dict[str, Any], name: str, end: int) -> list[int] | None:
        value = given.pop(name, None)
        if value is None:
            return None
        found = list(value) if isinstance(value, Sequence | np.ndarray) else [value] * self.count
        if len(found) != self.count or not all(
            isinstance(each, int | np.integer) and 0 <= each < end for each in found
        ):
            many = "" if self.count == 1 else f", or {self.count} of them"
            raise SpecError(
                f"options: {name} = {value!r}; accepted: a whole number from 0 to {end - 1}{many}"
            )
        return [int(each) for each in found]

    def begin(self, index: int) -> dict[str, int]:
        """Begin the next run of an environment; return which it is."""
        number, cases = self._numbers[index], len(self.plan.cases)
        one = self._cases[index]
        replication, case = divmod(number, cases) if one is None else (number, one)
        self._numbers[index] += 1
        text = self._texts.get((case, replication))
        if text is None:
            text = self.plan.scenario(case, replication)
            # Vectors need the same few runs again and again, and a long training many once.
            if len(self._texts) < 1000:
                self._texts[case, replication] = text
        seed = self._seeds[index]
        with native.translated():
            self.measures[index], self.observations[index] = self._episodes.begin(
                index, text, seed, self._traces
            )
        return {"case": case, "replication": replication, "seed": seed}

    def step(self, action: ArrayLike) -> tuple[Floats, list[int]]:
        """Go on by a step; return the rewards, and the environments whose runs are over.

        Raises:
            ValueError: an action is out of its bounds, or there are more or fewer of them.
            RunError: the engine failed.
        """
        actions = np.ascontiguousarray(action, dtype=np.float64).ravel()
        # Arrays that were returned stay as they are.
        measures, observations = np.zeros_like(self.measures), np.zeros_like(self.observations)
        rewards = np.zeros(self.count)
        try:
            over: list[int] = self._episodes.step(actions, measures, observations, rewards)
        except (ValueError, RuntimeError):
            raise
        except BaseException:
            with native.translated():
                raise
        self.measures, self.observations = measures, observations
        return rewards, over

    def metrics(self, index: int) -> dict[str, float]:
        """Return the metrics of a run that is over, as `redtail run` names them."""
        with native.translated():
            found: Mapping[str, float] = self._episodes.finish(index).metrics
        return {name: value for name, value in found.items() if value == value}

    def close(self) -> None:
        """Free the memory of all runs."""
        self._episodes.clear()


class _Single(gymnasium.Env[Observations, NDArray[Any]]):
    """One environment."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, runs: _Runs) -> None:
        self._runs = runs
        self._over = True
        self.observation_space, self.action_space = runs.spaces()

    @property
    def measures(self) -> dict[str, str]:
        """The numbers of `info`: what each means, with its unit."""
        return dict(self._runs.meanings)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin the next run.

        Args:
            seed: of the experiment; the first run of its order is begun.
            options: `case`: the number, from 0, of the only case that is run from now on;
                `replication`: the number, from 0, of the next replication.

        Returns:
            What is observed, and the numbers in `measures` with `case`, `replication` and `seed` of
            the run.

        Raises:
            SpecError: there is no such case or option.
        """
        super().reset(seed=seed)
        self._runs.restart([seed], options)
        run = self._runs.begin(0)
        self._over = False
        return self._runs.observations[0].copy(), {**self._info(), **run}

    def _info(self) -> dict[str, Any]:
        return dict(zip(self._runs.meanings, self._runs.measures[0].tolist(), strict=True))

    def step(self, action: NDArray[Any]) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Set the knob, and go on by an interval.

        Args:
            action: an array of one number.

        Returns:
            What is observed, the reward, False (no run ends before its time), whether the run is
            over, and the numbers in `measures`. When the run is over, `metrics` has all metrics of
            the run, by the names that `redtail list metrics` has.

        Raises:
            ValueError: the action is out of its bounds.
            gymnasium.error.ResetNeeded: no run has begun, or it is over.
            RunError: the engine failed.
        """
        if self._over:
            raise gymnasium.error.ResetNeeded("no run has begun; accepted: env.reset()")
        rewards, over = self._runs.step(action)
        info = self._info()
        self._over = bool(over)
        if over:
            info["metrics"] = self._runs.metrics(0)
        return self._runs.observations[0].copy(), float(rewards[0]), False, self._over, info

    def close(self) -> None:
        """Free the memory of the run."""
        self._runs.close()
        self._over = True


class _Vector(VectorEnv[Observations, NDArray[Any], NDArray[Any]]):
    """Several environments, which one call of the engine steps."""

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, runs: _Runs) -> None:
        self._runs = runs
        self.num_envs = runs.count
        self._over = np.zeros(runs.count, dtype=bool)
        self._begun = False
        self._masks = [f"_{name}" for name in runs.meanings]
        self.single_observation_space, self.single_action_space = runs.spaces()
        self.observation_space = batch_space(self.single_observation_space, runs.count)
        self.action_space = batch_space(self.single_action_space, runs.count)

    @property
    def measures(self) -> dict[str, str]:
        """The numbers of `infos`: what each means, with its unit."""
        return dict(self._runs.meanings)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin the next run of each environment.

        Args:
            seed: of the first environment; each next one has one more. Or one for each.
            options: `case` and `replication` as for one environment: a number, or one for each.

        Returns:
            What is observed, and the numbers in `measures` with `case`, `replication` and `seed` of
            the runs, as arrays with a number for each environment.

        Raises:
            SpecError: there is no such case or option.
        """
        count = self.num_envs
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=seed)
            seeds = [None if seed is None else seed + index for index in range(count)]
        else:
            seeds = list(seed)
            if len(seeds) != count:
                raise SpecError(f"seed: {len(seeds)} seeds; accepted: one, or {count}")
            super().reset(seed=seeds[0])
        self._runs.restart(seeds, options)
        self._over[:] = False
        self._begun = True
        runs = [self._runs.begin(index) for index in range(count)]
        infos = self._infos()
        for name in runs[0]:
            infos[name] = np.array([run[name] for run in runs])
            infos[f"_{name}"] = np.ones(count, dtype=bool)
        return self._runs.observations.copy(), infos

    def _infos(self) -> dict[str, Any]:
        runs = self._runs
        # A copy, because a run that begins writes its row.
        infos: dict[str, Any] = dict(zip(runs.meanings, runs.measures.T.copy(), strict=True))
        infos.update(dict.fromkeys(self._masks, np.ones(runs.count, dtype=bool)))
        return infos

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Set all knobs, and go on by an interval; where a run was over, begin the next one.

        Args:
            actions: a number for each environment, of shape (num_envs, 1).

        Returns:
            What is observed, the rewards, no terminations, which runs are over, and the numbers in
            `measures`, each with one value for each environment. Where a run is over, `metrics` has
            all metrics of the run. The action of an environment that begins a run is not used, and
            its reward is 0.

        Raises:
            ValueError: an action is out of its bounds.
            gymnasium.error.ResetNeeded: no runs have begun.
            RunError: the engine failed.
        """
        if not self._begun:
            raise gymnasium.error.ResetNeeded("no run has begun; accepted: envs.reset()")
        runs, count = self._runs, self.num_envs
        rewards, over = runs.step(actions)
        begun = {index: runs.begin(index) for index in np.flatnonzero(self._over).tolist()}
        infos = self._infos()
        truncated = np.zeros(count, dtype=bool)
        truncated[over] = True
        self._over = truncated.copy()
        for index, run in begun.items():
            infos = self._add_info(infos, run, index)
        if over:
            # Not by `_add_info`, which would make an array of each metric.
            metrics = np.full(count, None, dtype=object)
            for index in over:
                metrics[index] = runs.metrics(index)
            infos |= {"metrics": metrics, "_metrics": truncated.copy()}
        return runs.observations.copy(), rewards, np.zeros(count, dtype=bool), truncated, infos

    def close_extras(self, **_: Any) -> None:
        """Free the memory of all runs."""
        self._runs.close()
        self._begun = False


def _queues(
    count: int,
    experiment: Source | None,
    set: Overrides | None,
    mark: bool,
    delay_weight: float,
    drop_weight: float,
    **place: str,
) -> _Runs:
    return _Runs(
        QUEUE_EXPERIMENT if experiment is None else experiment,
        count,
        set,
        knob="mark" if mark else "drop",
        weights={"delay_weight": delay_weight, "drop_weight": drop_weight},
        **place,
    )


class QueueEnv(_Single):
    """An agent as a queue: it sets the probability with which arriving packets are dropped.

    It takes the place of a tail-drop queue and keeps its limit. With the action 0 a run is the run
    with tail drop.

    The action, an array of shape (1,), is the probability, from 0 to 1. It holds for the step.

    The observation, an array of shape (8,):

    1. queueing delay, s: mean of the packets whose transmission began in the step; without any, how
       long the first packet in the queue has waited
    2. its change since the step before, s
    3. offered load: bytes that arrived, as a share of what the link sends in a step
    4. use: bytes whose transmission began, likewise
    5. packets dropped, the queue's limit included, as a share of those that arrived
    6. packets marked, likewise
    7. backlog, as the time in s that the link needs for it
    8. the probability of the step

    Shares of the link are at most 100, times at most the duration of the run. The rate of the link
    is the one at the begin of the run.

    The reward of a step is

        use - delay_weight * (queueing delay / target) - drop_weight * (share of packets dropped)

    Args:
        experiment: a path, `redtail.Toml(text)` or a `redtail.Experiment`; by default four CUBIC
            flows on a link of 10 Mbit/s.
        at: the dotted key of the queue, as for a factor: `bottleneck.queue`, or
            `chain.HOP.return.queue`.
        interval: how long a step takes; 15 ms is T_UPDATE of PIE (RFC 8033, section 5.4).
        mark: mark packets of senders that use ECN, in place of dropping them.
        target: the delay that the reward measures delays with; 15 ms is QDELAY_REF of PIE
            (RFC 8033, section 5.4).
        delay_weight: what a delay of the target costs, as a share of the link: 0.1 is ours.
        drop_weight: what dropping all packets costs; 1 is ours: a dropped packet is sent again, so
            it costs as much as one that the link did not send.
        set: overrides of the experiment, by dotted key.

    Raises:
        SpecError: the experiment is not valid, has no such queue, or an argument is out of bounds.
    """

    def __init__(
        self,
        experiment: Source | None = None,
        *,
        at: str = "bottleneck.queue",
        interval: str = "15 ms",
        mark: bool = False,
        target: str = "15 ms",
        delay_weight: float = 0.1,
        drop_weight: float = 1.0,
        set: Overrides | None = None,
    ) -> None:
        super().__init__(
            _queues(
                1,
                experiment,
                set,
                mark,
                delay_weight,
                drop_weight,
                at=at,
                interval=interval,
                target=target,
            )
        )


class QueueVectorEnv(_Vector):
    """Several agents as queues, each in a run of its own.

    Args:
        num_envs: their number.
        experiment: as the other arguments, those of `QueueEnv`.
        at: the dotted key of the queue.
        interval: how long a step takes.
        mark: mark packets of senders that use ECN.
        target: the delay that the reward measures delays with.
        delay_weight: what a delay of the target costs.
        drop_weight: what dropping all packets costs.
        set: overrides of the experiment, by dotted key.

    Raises:
        SpecError: the experiment is not valid, has no such queue, or an argument is out of bounds.
    """

    def __init__(
        self,
        num_envs: int = 1,
        experiment: Source | None = None,
        *,
        at: str = "bottleneck.queue",
        interval: str = "15 ms",
        mark: bool = False,
        target: str = "15 ms",
        delay_weight: float = 0.1,
        drop_weight: float = 1.0,
        set: Overrides | None = None,
    ) -> None:
        super().__init__(
            _queues(
                num_envs,
                experiment,
                set,
                mark,
                delay_weight,
                drop_weight,
                at=at,
                interval=interval,
                target=target,
            )
        )


KNOBS = ("window", "rate")
"""What an agent can set of a controller."""


def _controllers(
    count: int,
    experiment: Source | None,
    set: Overrides | None,
    knob: str,
    delay_weight: float,
    loss_weight: float,
    **place: str,
) -> _Runs:
    if knob not in KNOBS:
        raise SpecError(f"knob = {knob!r}; accepted: {', '.join(map(repr, KNOBS))}")
    return _Runs(
        CONTROLLER_EXPERIMENT if experiment is None else experiment,
        count,
        set,
        knob=knob,
        weights={"delay_weight": delay_weight, "loss_weight": loss_weight},
        **place,
    )


class ControllerEnv(_Single):
    """An agent as a congestion controller: it changes the window or the pacing rate of a TCP flow.

    It takes the place of the controller of a group of kind `bulk` with one flow. The group's `tcp`
    gives all else, such as recovery and ECN.

    The action, an array of shape (1,), is a from -1 to 1: the window, or the rate, is multiplied by
    2^a (the form of Orca, Abbasloo et al., SIGCOMM 2020, whose factor is 2^(2a)). It holds from the
    next acknowledgement on. Losses change nothing by themselves, apart from being sent again; after
    a timeout the sender sets the window to one segment.

    The observation, an array of shape (8,), is what a sender knows:

    1. round-trip time, mean of the step, over the least so far
    2. the change of this ratio since the step before
    3. bytes delivered, over what the largest rate of delivery so far gives in a step
    4. bytes lost, as a share of those lost or delivered
    5. bytes marked (ECN), as a share of those delivered
    6. window, over the product of largest rate and least round-trip time
    7. bytes in flight, over the window
    8. pacing rate, over the largest rate of delivery; 0 where the window is set

    Ratios are at most 100, and 0 while they are not known.

    The reward of a step, which a sender does not know, is

        delivered / (rate of the bottleneck * interval)
            - delay_weight * (round-trip time - least round-trip time) / target
            - loss_weight * (share of bytes lost)

    Args:
        experiment: a path, `redtail.Toml(text)` or a `redtail.Experiment`; by default one flow on a
            link of 10 Mbit/s.
        at: the dotted key of the group's TCP: `traffic.GROUP.tcp`.
        interval: how long a step takes; 20 ms, half of the default experiment's round trip, is
            ours.
        knob: `window`, or `rate`: the pacing rate, with a window of twice the rate times the
            smoothed round-trip time (cwnd_gain of BBR, draft-ietf-ccwg-bbr-06, section 5.6.1).
        target: the delay that the reward measures queueing with; 15 ms is QDELAY_REF of PIE
            (RFC 8033, section 5.4).
        delay_weight: what a delay of the target costs, as a share of the link: 0.1 is ours.
        loss_weight: what losing all bytes costs; 1 is ours: what is lost is sent again.
        set: overrides of the experiment, by dotted key.

    Raises:
        SpecError: the experiment is not valid, has no such flow, or an argument is out of bounds.
    """

    def __init__(
        self,
        experiment: Source | None = None,
        *,
        at: str = "traffic.agent.tcp",
        interval: str = "20 ms",
        knob: str = "window",
        target: str = "15 ms",
        delay_weight: float = 0.1,
        loss_weight: float = 1.0,
        set: Overrides | None = None,
    ) -> None:
        super().__init__(
            _controllers(
                1,
                experiment,
                set,
                knob,
                delay_weight,
                loss_weight,
                at=at,
                interval=interval,
                target=target,
            )
        )


class ControllerVectorEnv(_Vector):
    """Several agents as congestion controllers, each in a run of its own.

    Args:
        num_envs: their number.
        experiment: as the other arguments, those of `ControllerEnv`.
        at: the dotted key of the group's TCP.
        interval: how long a step takes.
        knob: `window` or `rate`.
        target: the delay that the reward measures queueing with.
        delay_weight: what a delay of the target costs.
        loss_weight: what losing all bytes costs.
        set: overrides of the experiment, by dotted key.

    Raises:
        SpecError: the experiment is not valid, has no such flow, or an argument is out of bounds.
    """

    def __init__(
        self,
        num_envs: int = 1,
        experiment: Source | None = None,
        *,
        at: str = "traffic.agent.tcp",
        interval: str = "20 ms",
        knob: str = "window",
        target: str = "15 ms",
        delay_weight: float = 0.1,
        loss_weight: float = 1.0,
        set: Overrides | None = None,
    ) -> None:
        super().__init__(
            _controllers(
                num_envs,
                experiment,
                set,
                knob,
                delay_weight,
                loss_weight,
                at=at,
                interval=interval,
                target=target,
            )
        )


for _name in ("Queue", "Controller"):
    gymnasium.register(
        f"redtail/{_name}-v0",
        entry_point=f"redtail.gym:{_name}Env",
        vector_entry_point=f"redtail.gym:{_name}VectorEnv",
    )
