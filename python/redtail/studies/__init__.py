"""Studies: experiments, and what is asked of their results, as data.

A study is a folder without code (docs/how-to/study.md):

    study.toml      what is compared, how long it runs, measures, figures, tables, settings
    findings.toml   findings with the checks that would show them; they may stand in study.toml
    expected.toml   the verdicts at some scale, which later runs are compared with
    *.toml          ordinary experiment files, which `redtail run` takes as well

Built-in ones are below this package, by kind: `papers` has published evaluations, `suites` what
examines queues and congestion controls (docs/how-to/evaluate.md). Nothing here may
know one study, the lines of users, or a search of parameters: those use it.

    reading     tables of TOML as dataclasses, and where a mistake stands
    definition  what a study consists of; `agreement`: whether what it names is there
    runner      runs experiments as one piece of work
    grid        lays results out by queue and load
    checks      the tests that findings name; `verdicts`: what follows from them
    results     what comes out; `report`: how it is shown
    evaluation  runs a suite; `subjects`: what it examines in place of its control; `league`: their
                ranks; `sheet`: how it is shown
    expect      whether what an experiment file expects holds; `over_time`: its values of time
                series; `expect_report`: how it is shown

    >>> from redtail import studies
    >>> "iscc2001" in studies.names()
    True
    >>> studies.load("iscc2001").findings[1].id
    'ISCC-2'
"""

from __future__ import annotations

from redtail.studies.definition import Study, load, names
from redtail.studies.results import StudyResults, run

__all__ = ["Study", "StudyResults", "load", "names", "run"]
