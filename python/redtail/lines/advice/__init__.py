"""Which queue to set on a line, and with which parameters (docs/how-to/choose-a-queue.md).

It must not know routers' commands, recordings or how results are drawn. It runs its experiment as
any other.

    access      overheads and shapers of access technologies
    sold        lines as they are sold: ports, policers, rates of payload
    loads       what people do at a line
    candidates  queues with parameters and sources
    varied      candidates for a rate that varies; `autorate`: a shaper that follows it
    simulated   the experiment that an advice is judged by; `timing`: how long
    filled      whether the loads filled the line
    objectives  what queues are ranked by, each with a margin
    ranking     from values by objective to places; `crossed`: how sure differences are
    verdict     whether a queue helps
    advise      runs it
    answer      what comes out; `saved`: its file
    doubts      what is uncertain
    sentences   what is said of an advice; `report`: how it is printed
    words       rates and sizes
    parameters  rules for one queue on one link (`redtail parameters`)
"""
