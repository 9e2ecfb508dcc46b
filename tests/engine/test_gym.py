"""Environments of Gymnasium: its own checks, seeds, vectors, errors and memory."""

from __future__ import annotations

import gc
import importlib.util
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import redtail
import redtail.gym
from redtail.gym import ControllerEnv, ControllerVectorEnv, QueueEnv, QueueVectorEnv

ROOT = Path(__file__).parents[2]

SHORT = """
name = "short"
duration = "1 s"
warmup = "500 ms"
seed = 5
replications = 2
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[bottleneck.return]
rate = "10 Mbit/s"
delay = "0 s"
queue = { kind = "tail-drop", limit = "40 packets" }
[[traffic]]
name = "agent"
kind = "bulk"
flows = 1
tcp = "sack"
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 3
tcp = "cubic"
[factors]
"bottleneck.delay" = ["10 ms", "40 ms"]
"""
TOML = redtail.Toml(SHORT, "short.toml")
KINDS = [(QueueEnv, QueueVectorEnv), (ControllerEnv, ControllerVectorEnv)]


def edited(old: str, new: str) -> redtail.Toml:
    assert old in SHORT
    return redtail.Toml(SHORT.replace(old, new), "short.toml")


def episode(env: gymnasium.Env[Any, Any], action: Any, **reset: Any) -> list[Any]:
    """All that an environment returns in an episode; without an action, some are drawn."""
    found: list[Any] = [env.reset(**reset)]
    over = False
    while not over:
        drawn = env.action_space.sample()
        # Queues that drop half of the packets stop all flows.
        drawn = 0.1 * drawn if isinstance(env, QueueEnv) else drawn
        found.append(env.step(drawn if action is None else action))
        over = found[-1][3]
    return found


def metrics(env: gymnasium.Env[Any, Any], action: Any, **reset: Any) -> dict[str, float]:
    return episode(env, action, **reset)[-1][4]["metrics"]


@pytest.mark.parametrize("name", ["Queue", "Controller"])
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    check_env(gymnasium.make(f"redtail/{name}-v0").unwrapped)


@pytest.mark.parametrize("kind", [QueueEnv, ControllerEnv])
def test_observations_stay_in_their_space(kind: Any) -> None:
    env = kind(TOML)
    env.action_space.seed(1)
    found = episode(env, None)
    seen = np.array([each[0] for each in found])
    assert all(each in env.observation_space for each in seen)
    assert found[-1][2:4] == (False, True)
    assert {len(each[-1]) for each in found[1:-1]} == {len(env.measures)}
    # All but ECN and, where the window is set, the pacing rate is at work in this load.
    unused = {QueueEnv: [5], ControllerEnv: [4, 7]}[kind]
    assert np.flatnonzero(seen.std(axis=0) == 0).tolist() == unused


@pytest.mark.parametrize("kind", [QueueEnv, ControllerEnv])
def test_the_same_seed_gives_the_same_episode(kind: Any) -> None:
    env = kind(TOML)
    found = []
    for seed in (7, 7, 8):
        env.action_space.seed(1)
        found.append(str(episode(env, None, seed=seed)))
    assert found[0] == found[1]
    assert found[0].replace("'seed': 7", "'seed': 8") != found[2]


@pytest.mark.parametrize(("single", "vector"), KINDS)
def test_a_vector_is_its_environments(single: Any, vector: Any) -> None:
    count = 3
    envs = vector(count, TOML)
    alone = [single(TOML) for _ in range(count)]
    random = np.random.default_rng(1)
    seen, infos = envs.reset(seed=4)
    expected = [env.reset(seed=4 + index) for index, env in enumerate(alone)]
    assert np.array_equal(seen, [each[0] for each in expected])
    assert infos["seed"].tolist() == [4, 5, 6]
    over = np.zeros(count, dtype=bool)
    steps = 0
    # More than two episodes, so that the next ones begin by themselves.
    while steps < 2.5 / 0.015:
        actions = random.uniform(0, 0.3, (count, 1)).astype(np.float32)
        seen, rewards, terminated, truncated, infos = envs.step(actions)
        assert not terminated.any()
        for index, env in enumerate(alone):
            if over[index]:
                found, info = env.reset()
                reward, ends = 0.0, False
            else:
                found, reward, _, ends, info = env.step(actions[index])
            assert np.array_equal(seen[index], found)
            assert (rewards[index], truncated[index]) == (reward, ends)
            for name, value in info.items():
                assert infos[name][index] == value, name
                assert infos[f"_{name}"][index]
        over = truncated
        steps += 1


def test_no_drops_is_tail_drop_to_the_bit(tmp_path: Path) -> None:
    run = redtail.run(TOML, out=tmp_path)
    env = QueueEnv(TOML)
    for case, result in enumerate(run.cases):
        for replication in range(2):
            options = {"case": case, "replication": replication}
            found = metrics(env, np.zeros(1), options=options)
            expected = {name: result.values(name)[replication] for name in result.metrics}
            undefined = {name for name, value in expected.items() if value != value}
            assert len(expected) - len(undefined) > 40
            assert not undefined & found.keys()
            for name in expected.keys() - undefined:
                assert found[name] == expected[name], name


def test_episodes_are_the_runs_in_their_order() -> None:
    env = QueueEnv(TOML)
    keys = ("case", "replication", "seed")

    def run(**reset: Any) -> list[int]:
        info = env.reset(**reset)[1]
        return [info[key] for key in keys]

    assert [run() for _ in range(3)] == [[0, 0, 5], [1, 0, 5], [0, 1, 5]]
    assert run(seed=9) == [0, 0, 9]
    assert run(options={"case": 1}) == [1, 0, 9]
    assert run() == [1, 1, 9]
    assert run(options={"replication": 6}) == [1, 6, 9]
    assert run() == [1, 7, 9]
    assert run(seed=9, options={"replication": 3}) == [0, 3, 9]
    assert run() == [1, 3, 9]


def test_the_probability_drops_that_share() -> None:
    env = QueueEnv(edited('flows = 3\ntcp = "cubic"', 'flows = 3\ntcp = "cubic"\nstop = "900 ms"'))
    steps = episode(env, np.array([0.2]))[1:]
    arrivals = sum(each[4]["arrivals"] for each in steps)
    dropped = sum(each[4]["agent_drops"] for each in steps)
    # Five standard deviations: a false alarm in 2 of 10^6 seeds, and the seed is fixed.
    assert arrivals > 100
    assert abs(dropped - 0.2 * arrivals) < 5 * (0.2 * 0.8 * arrivals) ** 0.5


def test_an_agent_marks_packets_of_senders_with_ecn() -> None:
    with_ecn = edited('tcp = "sack"', 'tcp = { preset = "sack", ecn = true }')
    found = episode(QueueEnv(with_ecn, mark=True), np.array([0.1]))[1:]
    assert sum(each[4]["agent_marks"] for each in found) > 0
    assert max(each[0][5] for each in found) > 0
    found = episode(QueueEnv(with_ecn), np.array([0.1]))[1:]
    assert sum(each[4]["agent_marks"] for each in found) == 0


def test_measures_agree_with_the_metrics_of_the_run() -> None:
    without_warmup = edited('warmup = "500 ms"', 'warmup = "0 s"')
    steps = episode(QueueEnv(without_warmup, interval="7 ms"), np.array([0.02]))[1:]
    infos = [each[4] for each in steps]
    found = infos[-1]["metrics"]

    def total(name: str) -> float:
        return sum(each[name] for each in infos)

    dropped = total("limit_drops") + total("agent_drops")
    assert dropped / total("arrivals") == pytest.approx(found["loss"], rel=1e-12)
    waited = sum(each["queue_delay_s"] * each["departures"] for each in infos)
    assert waited / total("departures") == pytest.approx(found["queue_delay_mean"], rel=1e-9)
    # The last packet is counted whole in one of the two.
    assert total("departure_bytes") * 8 / 10e6 == pytest.approx(found["utilization"], abs=0.0013)
    assert infos[-1]["time_s"] == 1.0
    assert total("interval_s") == pytest.approx(1.0)
    assert total("arrivals") - dropped - total("departures") == infos[-1]["backlog_packets"]


def test_the_reward_is_what_the_page_says() -> None:
    env = QueueEnv(TOML, target="20 ms", delay_weight=0.3, drop_weight=2.0)
    for _, reward, _, _, info in episode(env, np.array([0.05]))[1:]:
        use = info["departure_bytes"] * 8 / (info["rate_bps"] * info["interval_s"])
        dropped = (info["limit_drops"] + info["agent_drops"]) / max(info["arrivals"], 1)
        assert reward == pytest.approx(use - 0.3 * info["queue_delay_s"] / 0.02 - 2 * dropped)


@pytest.mark.parametrize("knob", ["window", "rate"])
def test_a_controller_fills_the_link_as_its_agent_says(knob: str) -> None:
    alone = edited('flows = 3\ntcp = "cubic"', 'flows = 1\ntcp = "cubic"\nstart = "950 ms"')
    env = ControllerEnv(alone, knob=knob)
    # Ten segments in 40 ms are a third of the link, and 2^1.5 times as many most of it.
    slow = metrics(env, np.array([0.0]), seed=1, options={"case": 1})
    env.reset(seed=1, options={"case": 1})
    fast = [env.step(np.array([0.1 if 5 <= step < 20 else 0.0])) for step in range(50)][-1]
    assert fast[3]
    assert 2e6 < slow["agent.goodput"] < 3.5e6
    assert 6e6 < fast[4]["metrics"]["agent.goodput"] < 9.5e6
    name = {"window": "window_bytes", "rate": "pacing_bps"}[knob]
    assert fast[4][name] > 0


def test_a_controller_s_measures_add_up() -> None:
    found = episode(ControllerEnv(TOML), np.array([0.0]))[1:]
    infos = [each[4] for each in found]
    acknowledged = sum(each["delivered_bytes"] for each in infos)
    # The SYN and its handshake are no data.
    assert acknowledged % infos[0]["mss_bytes"] == 0
    assert 0.01 <= infos[-1]["least_rtt_s"] <= infos[-1]["rtt_s"]


def test_make_vec_has_the_engine_s_own_vector() -> None:
    envs = gymnasium.make_vec("redtail/Queue-v0", num_envs=2, experiment=TOML)
    assert isinstance(envs.unwrapped, QueueVectorEnv)
    envs.reset(seed=1)
    assert envs.step(envs.action_space.sample())[0].shape == (2, 8)


@pytest.mark.parametrize(
    "action", [np.array([1.5]), np.array([-0.1]), np.array([np.nan]), np.zeros(2), np.zeros(0)]
)
def test_bad_actions_are_refused_and_change_nothing(action: Any) -> None:
    env = QueueEnv(TOML)
    env.reset(seed=1)
    env.step(np.array([0.5]))
    with pytest.raises(ValueError, match=r"action .*; accepted: (1$|numbers from 0 to 1)"):
        env.step(action)
    after = env.step(np.array([0.5]))
    env.reset(seed=1)
    env.step(np.array([0.5]))
    assert str(env.step(np.array([0.5]))) == str(after)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at": "bottleneck.que"}, "bottleneck.que is no queue of the experiment; accepted: "
         "bottleneck.queue, bottleneck.return.queue"),
        ({"interval": "0 s"}, 'interval = "0 s"'),
        ({"interval": "soon"}, 'interval = "soon"'),
        ({"target": "0 s"}, 'target = "0 s": accepted'),
        ({"drop_weight": float("nan")}, "drop_weight = nan: accepted"),
        ({"set": {"bottleneck.queue": {"kind": "codel"}}}, 'is a queue of kind "codel"'),
        ({"set": {"bottleneck.rat": "1 Mbit/s"}}, "bottleneck.rat"),
        ({"experiment": "no.toml"}, "no.toml: no such file"),
        ({"experiment": 3}, "an experiment cannot be a int"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else None,
)  # fmt: skip
def test_bad_arguments_of_a_queue_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(redtail.SpecError) as caught:
        QueueEnv(**{"experiment": TOML, **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at": "traffic.bulk.tcp"}, "is of 3 flows; accepted: a group with flows = 1"),
        ({"at": "traffic.x.tcp"}, "accepted: traffic.agent.tcp, traffic.bulk.tcp"),
        ({"knob": "cwnd"}, "knob = 'cwnd'; accepted: 'window', 'rate'"),
    ],
)
def test_bad_arguments_of_a_controller_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(redtail.SpecError) as caught:
        ControllerEnv(TOML, **arguments)
    assert message in str(caught.value)


def test_experiments_that_cannot_be_steered_are_refused(tmp_path: Path) -> None:
    web = '[[traffic]]\nname = "web"\nkind = "web"\nmodel = "http2"\nload = 0.3\n[factors]'
    with pytest.raises(redtail.SpecError, match=r"traffic\.web\.load: is an offered load"):
        QueueEnv(edited("[factors]", web))
    (tmp_path / "own.py").write_text("import redtail\nclass Own(redtail.Queue):\n    pass\n")
    text = SHORT.replace('"tail-drop", limit', '"plugin", class = "own.py:Own", limit', 1)
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(redtail.SpecError, match="is code of your own"):
        QueueEnv(tmp_path / "own.toml", at="bottleneck.return.queue")
    real = edited('tcp = "cubic"', 'tcp = { preset = "cubic", kernel_control = "nv" }')
    with pytest.raises(redtail.SpecError, match="is a congestion control of a Linux kernel"):
        QueueEnv(real)


@pytest.mark.parametrize(
    "options", [{"case": 2}, {"case": -1}, {"case": [0, 1]}, {"replication": 1.5}, {"x": 1}]
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(redtail.SpecError, match="options"):
        QueueEnv(TOML).reset(options=options)


def test_a_step_needs_a_run() -> None:
    env, envs = QueueEnv(TOML), QueueVectorEnv(2, TOML)
    for each in (env, envs):
        with pytest.raises(gymnasium.error.ResetNeeded):
            each.step(each.action_space.sample())
    episode(env, np.zeros(1))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1))
    env.reset()
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1))


def test_the_example_s_policy_keeps_the_queue_short() -> None:
    spec = importlib.util.spec_from_file_location("agent", ROOT / "examples/gym/agent.py")
    assert spec is not None and spec.loader is not None
    agent = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(agent)
    envs = QueueVectorEnv(2, agent.TRAIN, set={"duration": "5 s", "warmup": "2 s"})
    seen, infos = envs.reset(seed=1)
    weights = agent.trained()
    while "metrics" not in infos:
        seen, _, _, _, infos = envs.step(agent.actions(weights, seen))
    # Tail drop lets it grow to 240 ms.
    assert all(0 < each["queue_delay_mean"] < 0.03 for each in infos["metrics"])
    assert set(agent.FEATURES) == json.loads(agent.WEIGHTS.read_text()).keys()


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_is_freed() -> None:
    envs = QueueVectorEnv(64, TOML)
    envs.reset(seed=1)
    envs.reset(seed=1)
    gc.collect()
    before = resident()
    for _ in range(20):
        envs.reset(seed=1)
        envs.step(np.zeros((64, 1)))
    gc.collect()
    # 20 times 64 runs of at least 64 KiB would be 80 MiB more.
    assert resident() - before < 20 * 2**20
