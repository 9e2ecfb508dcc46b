"""Looks for inputs that break redtail: damaged files, killed campaigns, figures that disagree.

`make attack` runs it. Each part makes its cases from a seed and a number alone:

    mutate      experiment files with seeded damage: each is refused with a message, or runs
    recordings  recordings with seeded damage: each is refused with a message, or tells what a
                line can have, in memory and time bounded by the file
    identities  runs of every queue, preset and kind of traffic, whose figures must agree
    schema      random experiments of the whole schema: refused by a key, or run with figures,
                captured packets, threads and a second run that agree
    kills       campaigns that are killed at random moments and finished: as if never killed
    validate    the same of `redtail validate`
    watch       the same of `redtail runs watch`, beside a campaign
"""

import sys
from pathlib import Path

# What the tests of the store have for killed commands is used here too.
sys.path.append(str(Path(__file__).parents[1] / "store"))
