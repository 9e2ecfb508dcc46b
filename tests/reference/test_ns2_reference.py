"""Agreement with ns-2: the scenarios of ``reference/ns2.json``, within its tolerances.

The seeds are fixed, so a pass is a pass; with other seeds the widest interval (the mean
queue of four flows) would leave its tolerance in a few runs of a hundred.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import redtail

REFERENCE = Path(__file__).parent
SCENARIOS: dict[str, Any] = json.loads((REFERENCE / "ns2.json").read_text())

#: Ours: ns-2's name, factor from our unit to theirs, relative and absolute tolerance.
TOLERANCES = {
    "goodput": ("goodput_mbps", 1e-6, 0.01, 0.0),
    "utilization": ("util_mbps", 10.0, 0.01, 0.0),
    "loss": ("loss", 1.0, 0.10, 0.001),
    "udp_loss": ("udp_loss", 1.0, 0.15, 0.002),
    "queue_length_mean": ("q_mean", 1.0, 0.05, 3.0),
    "queue_length_std": ("q_std", 1.0, 0.25, 0.0),
}


def queue(settings: dict[str, str]) -> str:
    """The queue of a scenario, as a TOML table."""
    limit = int(settings.get("buf", 300))
    if settings["aqm"] == "DropTail":
        return f'{{ kind = "tail-drop", limit = "{limit - 1} packets" }}'
    flags = {key: "true" if settings.get(key) == "1" else "false" for key in ("gentle", "ecn")}
    if settings["aqm"] == "PI":
        return (
            f'{{ kind = "pi", limit = "{limit} packets", q_ref = "50 packets", '
            f'a = 1.822e-5, b = 1.816e-5, sampling = "170 Hz", ecn = {flags["ecn"]} }}'
        )
    kind = "adaptive-red" if settings.get("adaptive") == "1" else "red"
    return (
        f'{{ kind = "{kind}", limit = "{limit} packets", spacing = "wait", flavour = "ns-2", '
        f'min_th = "{settings.get("minth", 45)} packets", '
        f'max_th = "{settings.get("maxth", 195)} packets", '
        f"max_p = {settings.get('maxp', 0.1)}, w_q = {settings.get('wq', 0.002)}, "
        f'gentle = {flags["gentle"]}, ecn = {flags["ecn"]}, mean_packet = "500 B" }}'
    )


def tcp(settings: dict[str, str]) -> str:
    """The TCP of a scenario, as a TOML table."""
    preset = {"Sack1": "ns2-sack", "Newreno": "ns2-newreno", "Reno": "ns2-reno"}
    flags = {key: "true" if settings.get(key) == "1" else "false" for key in ("delack", "ecn")}
    return (
        f'{{ preset = "{preset[settings.get("tcp", "Sack1")]}", '
        f"delayed_ack = {flags['delack']}, ecn = {flags['ecn']} }}"
    )


def experiment(settings: dict[str, str]) -> str:
    """The experiment file of a scenario."""
    text = (REFERENCE / "ns2.toml").read_text()
    if settings.get("udp") == "0":
        text = text[: text.rindex("[[traffic]]")]
    return text


@pytest.mark.parametrize("name", SCENARIOS)
def test_metrics_agree_with_ns2(name: str, tmp_path: Path) -> None:
    settings = SCENARIOS[name]["settings"]
    file = tmp_path / f"{name}.toml"
    file.write_text(experiment(settings))
    results = redtail.run(
        file,
        set=[
            f"traffic.ftp.flows={settings['n']}",
            f"bottleneck.queue={queue(settings)}",
            f"traffic.ftp.tcp={tcp(settings)}",
        ],
        out=tmp_path / "runs",
    )
    (case,) = results.as_json()["cases"]
    wrong = []
    for metric, (theirs, factor, relative, absolute) in TOLERANCES.items():
        if metric not in case["metrics"]:
            assert SCENARIOS[name]["metrics"][theirs]["mean"] == 0, metric
            continue
        ours = case["metrics"][metric]["mean"] * factor
        reference = SCENARIOS[name]["metrics"][theirs]["mean"]
        if abs(ours - reference) > max(relative * reference, absolute):
            wrong.append(f"{metric}: {ours:.5g} here, {reference:.5g} in ns-2")
    assert not wrong, "\n".join(wrong)
