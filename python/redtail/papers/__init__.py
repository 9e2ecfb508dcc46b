"""Published evaluations, repeated: experiment files, and findings as data.

A paper is a folder here, without code of its own:

    NAME/paper.toml       what is run, how long, which figures and tables are made, then and now
    NAME/findings.toml    each finding in our words, with the checks that would show it
    NAME/expected.toml    the verdicts at quick scale, which CI compares with runs
    NAME/*.toml           ordinary experiment files, which `redtail run` takes as well

`congestion-controls` is one with statements of many papers. Nothing here may know one paper: what
a paper needs stands in its folder.

    definition    reads such a folder
    agreement     whether the queues, loads and metrics that it names are there
    reproduction  runs it
    grid          lays its results out by queue and load
    checks        the tests that findings name
    report        what comes out

    >>> from redtail import papers
    >>> "iscc2001" in papers.names()
    True
    >>> papers.load("iscc2001").findings[1].id
    'ISCC-2'
"""

from __future__ import annotations

from redtail.papers.definition import Paper, load, names
from redtail.papers.reproduction import Reproduction, reproduce

__all__ = ["Paper", "Reproduction", "load", "names", "reproduce"]
