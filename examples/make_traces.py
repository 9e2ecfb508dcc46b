"""Makes flows.csv and sample.cvec, the made-up tables of connections beside this file."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SECONDS = 60


def flows(draw: np.random.Generator) -> str:
    """Downloads of Pareto sizes and a tenth of uploads, on paths of 45 to 240 ms."""
    start = np.sort(draw.uniform(0, SECONDS, 400))
    lines = ["start_s,size_bytes,direction,rtt_s,request_bytes,service_s"]
    for at in start:
        size = min(int(2000 * (1 + draw.pareto(1.3))), 300_000)
        way = "up" if draw.uniform() < 0.1 else "down"
        rtt = draw.choice([0.045, 0.08, 0.12, 0.24], p=[0.4, 0.3, 0.2, 0.1])
        service = draw.exponential(0.01)
        lines.append(f"{at:.6f},{size},{way},{rtt},{draw.integers(200, 800)},{service:.6f}")
    return "\n".join(lines) + "\n"


def vectors(draw: np.random.Generator) -> str:
    """Connections of one to four epochs, in the original form and in the alternate one."""
    lines = ["# Made up; times in microseconds."]
    for number, at in enumerate(np.sort(draw.uniform(0, SECONDS * 1e6, 60)).astype(int)):
        epochs = int(draw.integers(1, 5))
        original = number % 2 == 0
        lines.append(f"{'SEQ' if original else 'S'} {at} {epochs} 1 {number}")
        lines += [f"r {draw.choice([45_000, 80_000, 120_000])}", "l 0.0 0.0"]
        think = 0
        for _ in range(epochs):
            request = draw.integers(200, 800)
            size = min(int(3000 * (1 + draw.pareto(1.3))), 300_000)
            service = draw.integers(100, 20_000)
            if original:
                lines += [f"t {think}"] * (think > 0)
                lines += [f"> {request}", f"t {service}", f"< {size}"]
            else:
                lines += [f"I 0 {think} {request}", f"A 0 {service} {size}"]
            think = int(draw.integers(10_000, 2_000_000))
        lines.append("t 1000" if original else "A 1000 0 0")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    draw = np.random.default_rng(2026)
    (HERE / "flows.csv").write_text(flows(draw))
    (HERE / "sample.cvec").write_text(vectors(draw))
