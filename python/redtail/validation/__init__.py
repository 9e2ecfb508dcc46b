"""The simulator against a real kernel: a committed matrix of experiments, run under both.

The code must not know a queue, or the reason of a gap: experiments and explanations are data
(`matrix`, `explanations.toml`). `study` runs the matrix under several backends, `report` writes
what comes out (docs/how-to/compare-with-a-kernel.md).

`matrix` has experiment files, each of which `redtail run` and `redtail compare` take as well. They
are not the full product of queues, loads, rates, workloads and congestion controls. Each of these
is varied where it matters, from one common case (endless downloads of CUBIC at 10 Mbit/s):

    fast       every queue, 1, 4, 16 and 64 flows
    slow       every queue at 140 kbit/s, 1 and 4 flows of Reno (of 14 places 16 have less than one)
    web        every queue, pages for Web users
    web-slow   the same at 140 kbit/s, a queue of each family: tail drop, RED, PIE, fair queueing
    ecn        RED and FQ-CoDel with TCP that asks for ECN, 1, 4, 16 and 64 flows
    tcp        Reno and BBR on a queue of each family, DCTCP on the step that it is made for
    htb        two classes, with Web users in one and 1, 4, 16 and 64 flows in the other
    htb-slow   two classes at 140 kbit/s

A *cell* is one metric of one case. Its name is that of the file and the labels of the case's
factors: `fast/red/16`. Each run lasts 40 s, of which 15 s are warm-up: almost four times the start
of the flows (0 to 4 s), and some hundred round trips. At 140 kbit/s, where packets are few, it is
60 s with 20 s of warm-up. There are five replications.

Every queue is one that a kernel has, with keys that `tc` can express (docs/reference/tc.md): RED's
thresholds are bytes, PIE is updated every 16 ms (the ticks of a kernel with 250 of them in a
second), CoDel's root is Newton's.
"""

from redtail.validation.study import (
    Cell,
    Explanation,
    Validation,
    names,
    read_explanations,
    validate,
)

__all__ = ["Cell", "Explanation", "Validation", "names", "read_explanations", "validate"]
