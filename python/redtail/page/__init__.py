"""One page to hand over: an HTML file with results, figures and all it takes to repeat them.

The file needs no network: its script, its style and Plotly's basic bundle are in it, and a policy
in its head (CSP) forbids the browser to fetch anything or to run another script. What users name
is escaped twice: `escape.name` for what cannot be seen, Jinja for HTML
(docs/decisions/0013-report-page.md).

It must not know how runs are made, `display` or Matplotlib. All that it shows is data of `model`.

    model    all that the page shows, as plain data
    answer   the answer in lines
    network  what is drawn of the network
    curves   time series and distributions
    marks    events on time series
    render   the page
    moving   the picture of `redtail replay`: a queue packet by packet
    filled   templates as one file; `templates`: HTML, styles, scripts, and Plotly's basic bundle
"""

from redtail.page.render import page, write

__all__ = ["page", "write"]
