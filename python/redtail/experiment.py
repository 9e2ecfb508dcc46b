"""Where an experiment comes from: a file, TOML text, or typed objects."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Unpack

from redtail import backends, derived, expected, selection
from redtail import metrics as names
from redtail.analysis import copies, stopping
from redtail.analysis.loads import alike
from redtail.analysis.stopping import table
from redtail.engine import plans
from redtail.engine.plans import Plan
from redtail.errors import SpecError
from redtail.files import path_of
from redtail.inputs.queues import name_of
from redtail.measured import Measured, shown
from redtail.options import Overrides, PlanOptions

if TYPE_CHECKING:
    from redtail.model import Experiment

FORMAT = 1
"""The number of the format of experiment files that redtail writes."""


@dataclass(frozen=True)
class Toml:
    """An experiment as TOML text.

    Attributes:
        text: what would stand in the file.
        name: what messages call it.
        files: the text of files that it names, by name, in place of files on disk.
    """

    text: str
    name: str = "<text>"
    files: Mapping[str, str] = field(default_factory=dict)


Source: TypeAlias = "str | os.PathLike[str] | Toml | Experiment"
"""A path, TOML text, or a typed experiment."""


def check(source: Source, **options: Unpack[PlanOptions]) -> Plan:
    """Check an experiment and expand it into its runs, without running any.

    Nothing that the experiment names is executed: `Plan.code` says what running it would execute,
    and what of it has to be allowed.

    Args:
        source: a path, `Toml` text or an `Experiment`.
        set: overrides, by dotted key: `{"bottleneck.rate": "20 Mbit/s"}`, or as
            `["bottleneck.rate=20 Mbit/s"]`.
        replications: overrides the experiment's number of replications.
        until: overrides it with a rule, such as `"queue_delay_p99 within 5 %"`: replications go on
            until half the width of the metric's 95 % interval is at most this share of its mean,
            for every case. In a list all have to hold.
        at_least: with a rule, replications before it is looked at; 10 by default.
        at_most: with a rule, replications that no case exceeds; 50 by default.
        metrics: names of the metrics that tables and figures show, which may have wildcards
            (`"web.*"`); by default those of the file's [report], else what suits the traffic.
        allow_code: files and folders with code that is allowed, as for `redtail.run`.

    Returns:
        The plan: cases, replications, and warnings about set-ups that are legal but degenerate.

    Raises:
        SpecError: the experiment is not valid.
    """
    plan = _planned(source, options)
    return replace(plan, warnings=(*plan.warnings, *_copies(plan)))


def prepare(
    source: Source,
    *,
    within: Path | None = None,
    load: bool = True,
    backend: str | None = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """Check an experiment as `check` does and load the code that it names, so that it can be run.

    Code is loaded after all the rest has been found valid.

    Args:
        source: a path, `Toml` text or an `Experiment`.
        within: the folder that counts as the experiment's own, by default that of its file.
        load: without it code is refused that is not allowed, and none is loaded.
        backend: the name of what will make the runs, which says which metrics there are; by default
            what the experiment says.
        **options: as for `check`.

    Raises:
        SpecError: the experiment is not valid, names code that is not allowed, or a class that
            cannot be a queue.
    """
    return _planned(source, options, load=load, refuse=True, within=within, backend=backend)


def asking_for_events(source: Source, sets: Overrides | None) -> list[str]:
    """Return overrides that ask for an event log, in addition to those given.

    Where the experiment or an override already has [events], nothing is added.
    """
    given = override_texts(sets)
    text, _, form = read(source)
    with contextlib.suppress(ValueError):  # what is wrong is said when it is checked
        found = json.loads(text) if form == "json" else tomllib.loads(text)
        is_asked = any(each.lstrip().startswith("events") for each in given)
        if isinstance(found, dict) and "events" not in found and not is_asked:
            return [*given, "events={}"]
    return given


def _planned(
    source: Source,
    options: PlanOptions,
    *,
    load: bool = False,
    refuse: bool = False,
    within: Path | None = None,
    backend: str | None = None,
) -> Plan:
    for name in options:
        if name not in PlanOptions.__annotations__:
            accepted = ", ".join(PlanOptions.__annotations__)
            raise TypeError(f"there is no option {name!r}; accepted: {accepted}")
    text, file, form = read(source)
    sets = override_texts(options.get("set"))
    replications, until = options.get("replications"), options.get("until")
    at_least, at_most = options.get("at_least"), options.get("at_most")
    if replications is not None and until is not None:
        raise SpecError("replications and until exclude each other; at_most bounds a rule")
    if replications is not None:
        sets.append(f"replications={replications}")
    if until is not None:
        bounds = [until] if isinstance(until, str) else list(until)
        sets.append(f"replications={toml_value(table(bounds, at_least, at_most))}")
    else:
        limits = {"at_least": at_least, "at_most": at_most}
        sets += [f"replications.{key}={n}" for key, n in limits.items() if n is not None]
    plan = plans.plan(
        text,
        file=file,
        sets=sets,
        format=form,
        load=load,
        refuse=refuse,
        allow_code=options.get("allow_code", ()),
        within=within,
        given=source.files if isinstance(source, Toml) else None,
    )
    metrics = selection.split(options.get("metrics"))

    def known_metrics() -> None:
        if metrics or plan.report:
            shown(plan, metrics, backend=backend)

    _refuse_all(
        lambda: _refuse_unknown_metrics(plan, backend),
        known_metrics,
        lambda: backends.chosen(None, [plan]),
    )
    if metrics:
        plan = replace(plan, report=tuple(metrics))
    return replace(plan, warnings=(*plan.warnings, *_same_users(plan)))


def _refuse_all(*checks: Callable[[], object]) -> None:
    """Make checks of an experiment, and tell all that they refuse at once.

    Raises:
        SpecError: one of them has.
    """
    refused = []
    for check in checks:
        try:
            check()
        except SpecError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        first = refused[0]
        text = "\n".join(map(str, refused))
        raise SpecError(text, file=first.file, line=first.line, key=first.key)


def measured(source: Source) -> Measured:
    """Return the metrics that runs of an experiment can have.

    Raises:
        SpecError: the experiment is not valid.
    """
    plan = check(source)
    found = Measured.of_plan(plan)
    if found is None:
        raise SpecError("the scenarios of this experiment do not state their metrics")
    return found


def _refuse_unknown_metrics(plan: Plan, backend: str | None) -> None:
    """Refuse formulas and a stop rule about a metric that no run can have, before any is made."""
    if plan.stop is None and not plan.derived and not plan.expected:
        return
    # What the backend itself does not measure it refuses, with the reason.
    known = Measured.of_plan(plan, backend, lenient=True)
    if known is not None:
        derived.check(plan.derived, known, plan.factors)
        maker = backend or plan.backend or "sim"
        last = [
            json.loads(plan.example(case, plan.replications - 1))
            for case in range(len(plan.cases) if plan.expected else 0)
        ]
        expected.check(plan.expected, known, plan.cases, last, plan.replications, maker)
    if plan.stop is None:
        return
    where = f"{plan.file}: " if plan.file else ""
    try:
        stopping.pairs(plan.stop, plan.cases)
    except SpecError as error:
        raise SpecError(f"{where}{error}", file=plan.file, key=error.key) from None
    for bound in plan.stop.until:
        if known is not None and bound.metric not in known:
            raise SpecError(
                f'{where}replications.until = "{bound}": no run has the metric {bound.metric}'
                f"{known.nearest(bound.metric)}",
                file=plan.file,
                key="replications.until",
            )


def _copies(plan: Plan) -> list[str]:
    """Return a warning about simulated cases that draw nothing, so that replications are copies."""
    if plan.replications < 2 or backends.chosen(None, [plan]) != "sim":
        return []
    copied = [
        case
        for number, case in enumerate(plan.cases)
        if copies.draws_nothing(json.loads(plan.example(number)))
    ]
    if not copied:
        return []
    return [
        copies.warning(
            len(copied), names.counted(len(plan.cases), "case"), copied[0].title, done=False
        )
    ]


def _same_users(plan: Plan) -> list[str]:
    """Return a warning for each two loads that are about the same number of users."""
    return alike(
        (
            (case.settings or case.factors, load.group, load.link, load.share, load.text, users)
            for number, case in enumerate(plan.cases)
            for load in plan.loads(number)
            if (users := load.estimate)
        ),
        about=True,
    )


def override_texts(overrides: Overrides | None) -> list[str]:
    """Return overrides as `key=value` texts, the value in TOML.

    >>> override_texts({"bottleneck.rate": "20 Mbit/s", "seed": 3})
    ['bottleneck.rate="20 Mbit/s"', 'seed=3']
    """
    if overrides is None:
        return []
    if isinstance(overrides, str):
        raise SpecError(f"set: a list of texts is wanted, for example set=[{overrides!r}]")
    if isinstance(overrides, Mapping):
        return [f"{key}={toml_value(value, key)}" for key, value in overrides.items()]
    return list(overrides)


def toml_value(value: object, key: str = "value") -> str:
    """Return `value` as a TOML value on one line.

    Args:
        value: a text, number, truth value, list, mapping or typed object of `redtail.model`.
        key: what it is for, for the message.

    Raises:
        SpecError: TOML cannot express it.

    >>> toml_value({"kind": "tail-drop", "limit": "300 packets"})
    '{kind = "tail-drop", limit = "300 packets"}'
    """
    if dataclasses.is_dataclass(value) and hasattr(value, "as_json"):
        value = value.as_json()
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            # JSON's escapes are all TOML escapes, once DEL and surrogate pairs are kept out.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case type():
            return json.dumps(name_of(value))
        case Mapping():
            inner = ", ".join(
                f"{toml_key(str(name))} = {toml_value(part, key)}" for name, part in value.items()
            )
            return "{" + inner + "}"
        case list() | tuple():
            return "[" + ", ".join(toml_value(part, key) for part in value) + "]"
        case _:
            raise SpecError(
                f"{key} = {value!r}: a {type(value).__name__} cannot be a value in an experiment; "
                "accepted: text, numbers, true and false, lists and mappings of these",
                key=key,
            )


def toml_key(name: str) -> str:
    """Return a key of TOML, in quotes where it needs them.

    >>> toml_key("loss"), toml_key("web.loss")
    ('loss', '"web.loss"')
    """
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return json.dumps(name).replace("\x7f", "\\u007F")


def read(source: Source) -> tuple[str, str | None, str]:
    """Return the text, the name of the file and the format of a source."""
    if isinstance(source, Toml):
        return source.text, source.name, "toml"
    if isinstance(source, str | os.PathLike):
        path = path_of(source)
        try:
            return path.read_text(encoding="utf-8"), str(path), "toml"
        except FileNotFoundError:
            hint = ""
            if isinstance(source, str) and ("\n" in source or "=" in source):
                hint = "; for TOML text use redtail.Toml(text)"
                raise SpecError(f"no such file: {source[:40]!r}{hint}") from None
            raise SpecError(f"{path}: no such file", file=str(path)) from None
        except UnicodeDecodeError as error:
            raise SpecError(
                f"{path}: not a text file in UTF-8 (byte {error.start})", file=str(path)
            ) from None
        except (OSError, ValueError) as error:  # a name with a null byte, too
            reason = getattr(error, "strerror", None) or error
            raise SpecError(f"{path}: cannot be read: {reason}", file=str(path)) from None
    if hasattr(source, "to_json"):
        return source.to_json(), None, "json"
    raise SpecError(
        f"an experiment cannot be a {type(source).__name__}; "
        "accepted: a path, redtail.Toml(text), or a redtail.Experiment"
    )
