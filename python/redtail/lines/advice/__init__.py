"""Which queue to set on a line, and with which parameters (docs/how-to/choose-a-queue.md).

It must not know routers' commands, recordings or how results are drawn. It runs its experiment as
any other.

    access      overheads and shapers of access technologies
    loads       what people do at a line
    candidates  queues with parameters and sources
    simulated   the experiment that an advice is judged by
    objectives  what queues are ranked by, each with a margin
    ranking     from values by objective to places and verdicts
    advise      runs it
    answer      what comes out; `report`: how it is printed
    parameters  rules for one queue on one link (`redtail parameters`)
"""
