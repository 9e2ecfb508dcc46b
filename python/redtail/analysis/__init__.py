"""What follows from the runs: results, intervals, comparisons, and what has no interval.

It must not know how runs are made, by which backend, or in which order. It reads what is stored.
What it prints or draws of itself is made by `display`, which is loaded when it is called.

    results        the results of an experiment: what users call, made by the modules below
    case           what the replications of one case measured: estimates and values
    stored         results written to the store and read back
    tables         rows for replications, estimates and loss events; `export`: xarray and JSON
    failures       runs that failed, and why
    stats          intervals over replications; `digits`: how many digits of an estimate are shown
    flows          every flow, and fairness over time
    distributions  shares with intervals, from histograms or flows; `responses`: of response times
    places, parts  which queues a number is about; groups that a number of all of them hides
    loads          the users found for a load
    stopping       when a case has had enough replications
    story          what the events of a run tell, in sentences

Differences, and what may be said of them:

    paired       differences by replication, and the one rule that judges them
    compare      paired comparisons of cases
    equivalence  whether cases are equal within a margin
    gap          differences of backends, against `tolerances`
    moved        differences of two results of one experiment
    exact        whether two results agree bit for bit
    provenance   the experiment as it was given

What has no interval, or one that promises too much:

    stalls     flows that made no progress
    rare       metrics whose mean depends on events in few replications
    lockstep   replications that are too alike, because flows are synchronized
    copies     replications that are one run
    along      factors that change along with another
    censoring  times of which some did not finish
"""
