"""One page to hand over: an HTML file with results, figures and all it takes to repeat them.

The file needs no network: its script, its style and Plotly's basic bundle are in it, and a policy
in its head (CSP) forbids the browser to fetch anything or to run another script. What users name
is escaped twice: `escape.name` for what cannot be seen, Jinja for HTML.
"""

from redtail.page.render import page, write

__all__ = ["page", "write"]
