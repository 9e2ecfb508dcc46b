"""What is shown: tables on screen, and figures (docs/how-to/figures.md).

It must not know how runs are made, or compute what it shows: numbers, intervals and verdicts come
from `analysis`. Names of users are shown through `redtail.escape`.

    tables   tables on screen; `texts`: tables as text for other programs
    index    names with a line each
    plots    which figures there are; `drawn`: the record of those that are drawn
    style    looks, sizes, legends, captions and files of all figures
    layout   load, lines and panels; `axes`: where axes end

A module for each kind of figure:

    values         means, paired differences, quartiles
    heat           two factors
    plane          delay against goodput
    losses         packets lost in a row
    responses      response times
    lengths        a queue over time
    gaps           backends
    distributions  cumulative, and complementary
    series         a run over time; `recorded` chooses whether a run draws this or distributions
"""
