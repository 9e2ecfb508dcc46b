"""Results as xarray and JSON have them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.analysis.tables import in_si
from redtail.extras import extra

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

JSON_FORMAT = 1
"""Version of what `redtail run --json` prints."""


def dataset(results: Results) -> Any:
    """Return an `xarray.Dataset`; see `Results.to_xarray`."""
    with extra("notebook", "to_xarray"):
        import xarray
    import numpy as np

    along_cases = {key: _settings(results, key) for key in results.factors}
    settings = {key: list(dict.fromkeys(values)) for key, values in along_cases.items()}
    short = {key: key.rpartition(".")[2] for key in results.factors}
    titles = {
        key: short[key] if list(short.values()).count(short[key]) == 1 else key
        for key in results.factors
    }
    known = sorted({number for case in results.cases for number in case.runs})
    cells = np.full((len(results.metric_names), len(results.cases), len(known)), np.nan)
    for at, case in enumerate(results.cases):
        for along, number in enumerate(known):
            run = case.runs.get(number)
            for metric, name in enumerate(results.metric_names):
                if run is not None:
                    cells[metric, at, along] = run.metrics.get(name, np.nan)
    shape = [len(values) for values in settings.values()]
    coords: dict[str, Any] = {"replication": known}
    if math.prod(shape) == len(results.cases):
        # The last factor changes fastest, in the cases as in the array.
        dims = list(titles.values())
        cells = cells.reshape(len(results.metric_names), *shape, len(known))
        placed = {key: (titles[key], values) for key, values in settings.items()}
    else:
        dims = ["case"]
        placed = {key: ("case", values) for key, values in along_cases.items()}
    for key, (dim, values) in placed.items():
        found = in_si(results, key)
        coords[titles[key]] = (dim, values, {} if found is None else {"units": found[1]})
        if found is not None:
            labels = [case.labels.get(key, "") for case in results.cases]
            if dim != "case":
                label_of = dict(zip(found[0], labels, strict=True))
                labels = [label_of[value] for value in values]
            coords[f"{titles[key]}_label"] = (dim, labels)
    variables = {
        name: (
            [*dims, "replication"],
            cells[metric],
            {"long_name": names.describe(name).title, "units": names.describe(name).unit},
        )
        for metric, name in enumerate(results.metric_names)
    }
    about = {"experiment": results.name, "description": results.description}
    return xarray.Dataset(variables, coords, about)


def _settings(results: Results, key: str) -> list[Any]:
    """Return a factor's setting in each case: numbers, in SI units, or else labels."""
    given = [case.factors.get(key) for case in results.cases]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return given
    found = in_si(results, key)
    return [case.labels.get(key, "") for case in results.cases] if found is None else found[0]


def as_json(results: Results) -> dict[str, Any]:
    """Return what `redtail run --json` prints, as Python objects; see `Results.to_json`."""

    def tail(case: CaseResult, link: str) -> list[dict[str, Any]]:
        return [
            {"losses": size, **found.as_json()}
            for size, found in enumerate(case.exceedance(link), start=1)
        ]

    return {
        "format": JSON_FORMAT,
        "version": results.provenance.version,
        "experiment": results.name,
        "backend": results.backend,
        "made_by": results.made_by,
        "seed": results.provenance.seed,
        "units": {name: names.describe(name).unit for name in results.metric_names},
        "cases": [
            {
                "factors": case.factors,
                "labels": case.labels,
                "metrics": {name: case.metric(name).as_json() for name in results.metric_names},
                "consecutive_loss_exceeds": [
                    {"queue": link, **row} for link in results.links[:1] for row in tail(case, link)
                ],
                "consecutive_loss_exceeds_at": {link: tail(case, link) for link in results.links},
            }
            for case in results.cases
        ],
    }
