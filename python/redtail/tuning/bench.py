"""Runs an experiment with other queues, or other laws of TCP, in place of its own."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redtail import experiment, facts
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.catalog import Catalog, Section
from redtail.engine.plans import Plan
from redtail.errors import SpecError
from redtail.experiment import Source, override_texts, toml_value
from redtail.options import PlanOptions
from redtail.scenario import hop_names


@dataclass(frozen=True)
class Queue:
    """A queue with its label; or a law of TCP, which has a `kind` and keys as well.

    Attributes:
        label: what tables and figures call it.
        table: its keys, as the file has them.
    """

    label: str
    table: Mapping[str, Any]

    @property
    def toml(self) -> str:
        """The table as the file has it."""
        return toml_value({**self.table, "label": self.label})


class Bench:
    """An experiment in which a queue or a law of TCP is replaced.

    Args:
        source: the experiment.
        checking: options for checking it.
        key: the dotted key of the queue or law.

    Raises:
        SpecError: the experiment is not valid, or its cases set the queue in another way.
    """

    def __init__(self, source: Source, checking: PlanOptions, key: str) -> None:
        self.source = source
        self.key = key
        if checking.get("until") is not None:
            raise SpecError(
                "until: a search compares queues over the same replications; accepted: replications"
            )
        self.sets = override_texts(checking.get("set"))
        self.checking: PlanOptions = {**checking, "set": self.sets}
        self.plan = experiment.check(source, **self.checking)
        self.replications = self.plan.at_least
        self.scenarios = [
            json.loads(self.plan.example(case)) for case in range(len(self.plan.cases))
        ]
        self._refuse_cases()

    def _refuse_cases(self) -> None:
        for case in self.plan.cases:
            for own in case.settings or case.factors:
                whole = own == self.key and case.settings is None
                if (own == self.key or own.startswith(f"{self.key}.")) and not whole:
                    raise SpecError(
                        f"{self._place}{own}: the loads of a search cannot set the queue that is "
                        f"varied; accepted: {self.key} as a factor of its own, or in the file",
                        file=self.plan.file,
                        key=own,
                    )

    @property
    def _place(self) -> str:
        return f"{self.plan.file}: " if self.plan.file else ""

    @property
    def loads(self) -> int:
        """Number of loads: cases of the file that differ in more than the queue."""
        others = {
            tuple(label for key, label in case.labels.items() if key != self.key)
            for case in self.plan.cases
        }
        return len(others)

    @property
    def _law(self) -> str | None:
        """The key in a `tcp` table that chooses the law; None for a queue."""
        *_, table, key = ["", *self.key.split(".")]
        return key if table == "tcp" else None

    def sections(self, catalog: Catalog) -> list[Section]:
        """Return what can stand here: all queues, or all laws."""
        if self._law is None:
            return catalog.queues
        return [law for key, law in catalog.tcp_laws if key == self._law]

    def own_queues(self) -> list[Queue]:
        """Return the queues that the file has here."""
        found = {
            case.labels[self.key]: case.factors[self.key]
            for case in self.plan.cases
            if self.key in case.factors
        }
        if found:
            return [
                Queue(label, {key: value for key, value in table.items() if key != "label"})
                for label, table in found.items()
            ]
        table = self._in_file()
        label = str(table.pop("label", table["kind"]))
        return [Queue(label, table)]

    def _in_file(self) -> dict[str, Any]:
        """Return the only queue of the file: as it is written, or with all defaults."""
        here: Any = self.scenarios[0]
        whole = _at(here, self.key)
        if not isinstance(whole, dict) or "kind" not in whole:
            raise SpecError(
                f"{self._place}at: the experiment has no queue {self.key}; accepted: the key of a "
                "queue, such as bottleneck.queue, bottleneck.return.queue or chain.hop1.queue, or "
                "of a law, such as traffic.ftp.tcp.growth or traffic.ftp.tcp.slow_start",
                file=self.plan.file,
                key=self.key,
            )
        if self._law is not None:
            return _without_defaults(whole, self.sections(Catalog(facts.schema())))
        if not any(text.startswith(f"{self.key.split('.')[0]}.") for text in self.sets):
            text, _, form = experiment.read(self.source)
            written = _at(tomllib.loads(text) if form == "toml" else json.loads(text), self.key)
            if isinstance(written, dict):
                return dict(written)
        return dict(whole)

    def chosen(self, wanted: str, kinds: Sequence[str]) -> Queue:
        """Return the queue to tune.

        Args:
            wanted: a label or a kind of the file's queues, another kind, or a table in TOML.
            kinds: all kinds of queues.

        Raises:
            SpecError: there is no such queue.
        """
        if wanted.lstrip().startswith("{"):
            try:
                table = tomllib.loads(f"queue = {wanted}")["queue"]
            except tomllib.TOMLDecodeError as error:
                raise SpecError(f"queue {wanted}: not a table in TOML: {error}") from None
            if table.get("kind") not in kinds:
                raise SpecError(
                    f"queue {wanted}: kind is missing or unknown{facts.hint(wanted, kinds)}"
                )
            return Queue(str(table.pop("label", table["kind"])), table)
        own = self.own_queues()
        for queue in own:
            if queue.label == wanted:
                return queue
        for queue in own:
            if queue.table.get("kind") == wanted:
                return queue
        if wanted in kinds:
            return Queue(wanted, {"kind": wanted})
        labels = [queue.label for queue in own]
        what = "queue" if self._law is None else "law"
        raise SpecError(
            f"queue {wanted!r}: neither a label nor a kind of {what}{facts.hint(wanted, kinds)}; "
            f"accepted: {', '.join(dict.fromkeys([*labels, *kinds]))}",
            key=self.key,
        )

    def why_not(self, queue: Mapping[str, Any]) -> str | None:
        """Return why the experiment is not valid with a queue; None when it is."""
        try:
            experiment.check(self.source, **self._with([Queue("queue", queue)]))
        except SpecError as error:
            # Without the list of queues that it was given.
            before, sign, reason = str(error).partition("}]: ")
            return reason if sign else before
        return None

    def planned(
        self,
        queues: Sequence[Queue],
        name: str,
        seed: int,
        replications: int,
    ) -> Plan:
        """Return the experiment with these queues, ready to be run."""
        options = self._with(queues, f"name={toml_value(name)}", f"seed={seed}")
        options["replications"] = replications
        return experiment.prepare(self.source, **options)

    def by_queue(self, results: Results) -> dict[str, tuple[CaseResult, ...]]:
        """Return the cases of each queue, one for each load, by the queue's label."""
        found: dict[str, list[CaseResult]] = {}
        for case in results.cases:
            found.setdefault(case.labels[self.key], []).append(case)
        return {label: tuple(cases) for label, cases in found.items()}

    def _with(self, queues: Sequence[Queue], *sets: str) -> PlanOptions:
        listed = f"factors.{self.key}=[{', '.join(queue.toml for queue in queues)}]"
        return {**self.checking, "set": [*self.sets, listed, *sets]}


def _without_defaults(law: Mapping[str, Any], sections: Sequence[Section]) -> dict[str, Any]:
    """Return a law with those of its constants that are not the defaults."""
    section = next(each for each in sections if each.kind == law["kind"])
    defaults = {each.key: each.schema.get("default") for each in section.parameters}
    return {key: value for key, value in law.items() if value != defaults.get(key)}


def _at(tree: Any, key: str) -> Any:
    """Return what stands at a dotted key; None if nothing does.

    A hop of a chain and a group of traffic go by their names.
    """
    for step in key.split("."):
        if isinstance(tree, list):
            tree = next((each for each in tree if each.get("name") == step), None)
            continue
        if not isinstance(tree, dict):
            return None
        if step != "hop" and isinstance(hops := tree.get("hop"), list):
            tree = dict(zip(hop_names(hops), hops, strict=True)).get(step)
        else:
            tree = tree.get(step)
    return tree
