"""Searches the parameters of a queue over the loads of an experiment: `redtail tune`.

It must not know any queue: what can be varied, and from where to where, comes from the schema. It
runs experiments as any other (docs/how-to/tune.md).

    search   asks Optuna for candidates; finalists are run with seeds of their own
    bench    runs an experiment with other queues in place of its own
    space    ranges of keys
    aims     objectives and bounds
    found    the result; `file`: its experiment file, `figures`: its figures
"""
