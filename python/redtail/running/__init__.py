"""What runs: it plans, makes, repeats and interrupts the runs of experiments.

It must not know what makes a run (it asks a backend for batches of them), how files are laid out
(it asks the store), or what is shown.

    runner       makes the runs that are missing, of one experiment
    campaign     of several experiments; `gaps`: of one under several backends
    pool         hands runs to threads or to an executor
    calibration  finds how many users offer a load, with trial runs before the runs are planned
    forecast     what a campaign will take: `--dry-run`
    captures     the packets of one run
    events       the events of one run, which is made again if it has none; `explaining`: its story
    shell        a run in real time with programs of the user
    interrupts   Ctrl-C
    watching     how far a campaign is, for other processes

A batch is made in one thread, without the GIL; what it measured comes back in columns.
"""
