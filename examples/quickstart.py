"""The comparison of quickstart.toml, in Python."""

import redtail

queues = [
    redtail.TailDrop(limit="100 packets", label="tail drop"),
    redtail.Red(limit="100 packets", min_th="15 packets", max_th="65 packets", label="RED"),
]
experiment = redtail.Experiment(
    name="Quickstart",
    duration="30 s",
    warmup="10 s",
    replications=5,
    bottleneck=redtail.Bottleneck(rate="10 Mbit/s", delay="20 ms", queue=queues[0]),
    traffic=[redtail.Bulk(name="ftp", flows=16, start="uniform 0..2 s")],
    factors={"bottleneck.queue": queues},
)
for case in redtail.run(experiment).cases:
    delay, goodput = case.metric("queue_delay_mean"), case.metric("goodput")
    print(f"{case.title}: waits {1e3 * delay.mean:.1f} ± {1e3 * delay.ci95:.1f} ms,", end=" ")
    print(f"delivers {goodput.mean / 1e6:.2f} ± {goodput.ci95 / 1e6:.2f} Mbit/s")
