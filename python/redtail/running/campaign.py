"""Several experiments run as one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from redtail import experiment
from redtail.analysis.results import Results, Rows
from redtail.engine.plans import Plan
from redtail.errors import RedtailWarning, SpecError
from redtail.experiment import Source
from redtail.extras import extra
from redtail.options import PlanOptions, RunOptions, split
from redtail.running import runner
from redtail.store.format import slug

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Campaign:
    """Several experiments, files or objects, that are checked together and run as one.

    Args:
        experiments: the experiments; in a mapping, by the names under which results are asked for.
            Otherwise they go by the names that they have.

    Examples:
        >>> campaign = Campaign(["examples/quickstart.toml"])
        >>> [plan.name for plan in campaign.check().values()]
        ['Quickstart']
    """

    def __init__(self, experiments: Mapping[str, Source] | Iterable[Source]) -> None:
        self._named: list[tuple[str | None, Source]]
        if isinstance(experiments, str | os.PathLike):
            raise SpecError(f"experiments: a list is wanted, for example [{experiments!r}]")
        if isinstance(experiments, Mapping):
            self._named = [(str(name), source) for name, source in experiments.items()]
        else:
            self._named = [(None, source) for source in experiments]

    def check(self, **options: Unpack[PlanOptions]) -> dict[str, Plan]:
        """Check all experiments without running any; arguments as for `redtail.check`.

        Raises:
            SpecError: one is not valid, or two would have their results in one folder.
        """
        return self._plans(lambda source: experiment.check(source, **options))

    def _plans(self, check: Callable[[Source], Plan]) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        folders: dict[str, str] = {}
        for name, source in self._named:
            plan = check(source)
            other = folders.setdefault(slug(plan.name), plan.name)
            if slug(plan.name) in [slug(known.name) for known in plans.values()]:
                raise SpecError(
                    f"name = {plan.name!r}: another experiment of the campaign, {other!r}, has its "
                    "results in the same folder; accepted: a name of its own"
                )
            plans[name or plan.name] = plan
        return plans

    def run(self, **options: Unpack[RunOptions]) -> CampaignResults:
        """Run all experiments; arguments and errors as for `redtail.run`.

        All are checked before the first one is run, and `progress` counts all of them together.
        They run one after the other. The next one begins before the last runs of one have ended.
        """
        checking, running = split(options)
        backend = running.get("backend")
        plans = self._plans(
            lambda source: experiment.prepare(source, backend=backend, load=False, **checking)
        )
        for (name, plan), (_, source) in zip(plans.items(), self._named, strict=True):
            # No code is executed before all experiments are known to be valid.
            if plan.code:
                plans[name] = experiment.prepare(source, backend=backend, **checking)
        for plan in plans.values():
            for text in plan.warnings:
                warnings.warn(f"{plan.name}: {text}", RedtailWarning, stacklevel=2)
        found = runner.execute_all(list(plans.values()), **running)
        return CampaignResults(dict(zip(plans, found, strict=True)))


class CampaignResults(Mapping[str, Results]):
    """The results of each experiment, by its name, in the order in which they were run."""

    def __init__(self, results: Mapping[str, Results]) -> None:
        self._results = dict(results)

    def __getitem__(self, name: str) -> Results:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"<CampaignResults of {', '.join(map(repr, self._results))}>"

    @property
    def failed(self) -> int:
        """Number of runs that failed and are missing here."""
        return sum(results.failed for results in self._results.values())

    def to_arrow(self, rows: Rows = "replications") -> pa.Table:
        """Return the tables of all experiments as one, with a column `experiment` in front.

        A column that an experiment does not have is null there; a factor that has numbers in one
        and texts in another has texts.
        """
        import pyarrow as pa

        tables = [results.to_arrow(rows) for results in self._results.values()]
        kinds: dict[str, set[Any]] = {}
        for table in tables:
            for each in table.schema:
                kinds.setdefault(each.name, set()).add(each.type)
        named = []
        for name, table in zip(self._results, tables, strict=True):
            for place, column in enumerate(table.column_names):
                if len(kinds[column]) > 1:
                    table = table.set_column(place, column, table[column].cast(pa.string()))
            named.append(table.add_column(0, "experiment", pa.array([name] * table.num_rows)))
        return pa.concat_tables(named, promote_options="default")

    def to_pandas(self, rows: Rows = "replications") -> pd.DataFrame:
        """Return `to_arrow(rows)` as a pandas data frame.

        Raises:
            RedtailError: pandas is not installed.
        """
        with extra("pandas", "to_pandas"):
            import pandas  # noqa: F401 (Arrow uses it)
        frame: pd.DataFrame = self.to_arrow(rows).to_pandas()
        return frame

    def to_polars(self, rows: Rows = "replications") -> pl.DataFrame:
        """Return `to_arrow(rows)` as a polars data frame.

        Raises:
            RedtailError: polars is not installed.
        """
        with extra("polars", "to_polars"):
            import polars as pl

        frame = pl.from_arrow(self.to_arrow(rows))
        assert isinstance(frame, pl.DataFrame)
        return frame
