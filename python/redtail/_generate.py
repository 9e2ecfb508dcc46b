"""Makes the files that follow from the Rust types: `python -m redtail._generate`.

    schema/experiment.schema.json        for editors
    python/redtail/model.py              typed objects
    docs/reference/experiment-file.md    every key with unit, default and source
    python/redtail/metrics.json          the definitions of metrics
    python/redtail/units.json            the units of metrics that an experiment defines
    docs/explanation/metrics.md          the tables in it, between markers
    docs/reference/events.md             what each kind of events of a log means
    docs/reference/tc.md                 the tables in it, between markers (on Linux)
    docs/reference/router-commands.md    the tables in it, between markers (on Linux)
    docs/reference/study-file.md         every key of a study, from the classes that read it
    crates/web/src/catalog.json          what the laboratory's page offers

With `--check` it writes nothing and fails when one of them is not up to date.
"""

from __future__ import annotations

import argparse
import inspect
import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from redtail import facts
from redtail.catalog import Catalog, Parameter, Section, law_name, plain, toml
from redtail.engine import kernel_queues
from redtail.lines import routers
from redtail.lines.routers import openwrt
from redtail.studies import checks, definition, gaps, pages
from redtail.studies.reading import Placed, key_of, words

_NOTE = "made by `make generate` from the Rust types; do not edit"
_WIDTH = 100

# How the schema's names end where Rust says what a type is for; users need not know.
_ENDINGS = ("Spec", "Request", "Table", "Group", "Params")

# What Python can give where the file has a text, by kind, or the class's name, and key.
_TYPES = {("plugin", "class"): "str | type[Any]", ("Tcp", "class"): "str | type[Any]"}


def main() -> None:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    options = parser.parse_args()

    schema = facts.schema()
    definitions = facts.metric_definitions()
    page = "docs/explanation/metrics.md"
    files = {
        "schema/experiment.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        "python/redtail/model.py": _formatted(model(schema)),
        "docs/reference/experiment-file.md": reference(schema, facts.presets()),
        "python/redtail/metrics.json": json.dumps(definitions, indent=1, ensure_ascii=False) + "\n",
        "python/redtail/units.json": json.dumps(facts.units(), indent=1, ensure_ascii=False) + "\n",
        page: with_tables((options.root / page).read_text(encoding="utf-8"), definitions),
        "docs/reference/study-file.md": study_page(),
        "docs/reference/events.md": events_page(facts.event_kinds()),
        "crates/web/src/catalog.json": json.dumps(
            lab_catalog(schema, definitions), indent=1, ensure_ascii=False
        )
        + "\n",
    }
    options_of_tc = kernel_queues.tc_table()
    if options_of_tc is not None:  # the native module has it on Linux only
        page = "docs/reference/tc.md"
        files[page] = with_tc((options.root / page).read_text(encoding="utf-8"), options_of_tc)
        page = "docs/reference/router-commands.md"
        files[page] = with_routers((options.root / page).read_text(encoding="utf-8"))
    stale = []
    for name, text in files.items():
        path = options.root / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if options.check and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run: make generate")


def events_page(kinds: list[dict[str, Any]]) -> str:
    """Return the page of the kinds of events."""
    lines = [
        "# The events",
        "",
        f"<!-- {_NOTE} -->",
        "",
        "What each kind of events of [`[events]`](experiment-file.md) means, what its `value` is,",
        "and which reasons it may have. `redtail list events` prints the same;",
        "[the event log](../how-to/events.md) says how to record and read them.",
    ]
    for each in kinds:
        lines += ["", f"## `{each['name']}`", "", f"Of a {each['of']}. {each['meaning']}"]
        if each["only_when_named"]:
            lines += ["", "It is recorded only if `kinds` names it."]
        if each["value"]:
            lines += ["", f"`value`: {each['value']}."]
        if each["reasons"]:
            lines += ["", "| reason | |", "|---|---|"]
            lines += [f"| `{found['name']}` | {found['meaning']} |" for found in each["reasons"]]
    return "\n".join(lines) + "\n"


def lab_catalog(schema: dict[str, Any], definitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the laboratory's page offers.

    Args:
        schema: the JSON schema of the file.
        definitions: those of the metrics.
    """
    catalog = Catalog(schema)
    examples = facts.queue_examples()
    presets, _ = catalog.tcp
    keys = ("form", "title", "short", "unit", "suffix", "scale", "shown_unit", "measure", "scope")
    return {
        "queues": [
            {
                "kind": section.kind,
                "title": plain(section.description),
                "example": examples[str(section.kind)],
                "parameters": [_offered(catalog, each) for each in section.parameters],
            }
            for section in catalog.queues
            if section.kind != "plugin"  # a page runs no code of users
        ],
        "presets": [
            {"name": preset.value, "title": plain(preset.description)} for preset in presets
        ],
        "metrics": [
            {key: each[key] for key in ("name", *keys)} | {"doc": plain(each["definition"])}
            for each in definitions
        ],
    }


def _offered(catalog: Catalog, parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as the laboratory's page reads it: `default` is as in a file."""
    found = catalog.resolve(parameter.schema)
    choices = [choice.value for choice in catalog.choices(found)]
    if "x-unit" in found:
        kind = found["x-unit"]  # "time", "rate", "bytes", "queue-size", ...
    elif choices:
        kind = "choice"
    elif found.get("type") in ("boolean", "integer", "number"):
        kind = found["type"]
    else:
        kind = "other"
    offered = {
        "name": parameter.key,
        "type": kind,
        "takes": parameter.type,
        "required": parameter.required,
        "default": found.get("default"),
        "doc": plain(parameter.description),
        "source": plain(parameter.source),
    }
    if choices:
        offered["choices"] = choices
    for key in ("minimum", "maximum"):
        if key in found:
            offered[key] = found[key]
    return offered


class _Classes:
    """The Python classes that a schema asks for, in the order in which they are met."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.sections: dict[str, Section] = {}
        self._met: set[str] = set()
        self.unions: dict[str, list[str]] = {}
        root = catalog.section("Experiment", catalog.root)
        self._fields(root)
        self.sections["Experiment"] = root

    def annotation(self, schema: Any) -> str:
        """Return the type of a schema's values."""
        catalog = self.catalog
        schema = catalog.without_null(schema)
        found = catalog.resolve(schema)
        name = catalog.reference(schema)
        choices = catalog.choices(found)
        if choices:
            return "Literal[" + ", ".join(repr(choice.value) for choice in choices) + "]"
        kinds = catalog.kinds(found)
        if kinds:
            union = f"Any{class_name(name or 'Kind')}"  # `redtail.Queue` is the base of users' own
            if union not in self.unions:
                # A law of this name may be a slow start as well as a growth.
                ending = "" if "kind" in kinds[0].schema["required"] else class_name(name or "")
                self.unions[union] = [f"{class_name(str(kind.kind))}{ending}" for kind in kinds]
                for member, kind in zip(self.unions[union], kinds, strict=True):
                    self._add(member, kind)
            return union
        parts = found.get("anyOf", found.get("oneOf"))
        if parts:
            return " | ".join(dict.fromkeys(self.annotation(part) for part in parts))
        if "properties" in found and name is not None:
            self._add(class_name(name), catalog.section(name, catalog.definitions[name]))
            return class_name(name)
        simple = {"boolean": "bool", "integer": "int", "number": "float", "string": "str"}
        if found.get("type") == "array":
            return f"Sequence[{self.annotation(found.get('items', {}))}]"
        if found.get("type") == "object":
            inner = found.get("additionalProperties")
            values = self.annotation(inner) if isinstance(inner, dict) else "Any"
            return f"Mapping[str, {values}]"
        return simple.get(str(found.get("type")), "Any")

    def _add(self, name: str, section: Section) -> None:
        if name not in self._met:
            self._met.add(name)  # a table may hold tables of its own kind
            self._fields(section)  # what a class refers to stands before it
            self.sections[name] = section

    def _fields(self, section: Section) -> None:
        for parameter in section.parameters:
            self.annotation(parameter.schema)


def class_name(name: str) -> str:
    """Return the name of the class for a definition or a `kind`.

    >>> class_name("tail-drop"), class_name("SeriesRequest"), class_name("cbr")
    ('TailDrop', 'Series', 'Cbr')
    """
    if "-" in name or name.islower():
        return "".join(part.capitalize() for part in re.split(r"[-_]", name))
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def model(schema: dict[str, Any]) -> str:
    """Return the module of typed objects."""
    classes = _Classes(Catalog(schema))
    bottleneck = classes.annotation(classes.catalog.root["properties"]["bottleneck"])
    exported = [*classes.sections, *classes.unions]
    if bottleneck != "Bottleneck":
        exported.append("Bottleneck")
    lines = [f"__all__ = {sorted(exported)!r}", ""]
    for name, section in classes.sections.items():
        lines += _class_lines(classes, name, section)
    for union, members in classes.unions.items():
        lines += ["", f'{union}: TypeAlias = "{" | ".join(members)}"']
        about = classes.catalog.definitions.get(union, {}).get("description", "")
        lines += [f'"""{about or "One of these."}"""']
    if bottleneck != "Bottleneck":
        lines += ["", f"Bottleneck: TypeAlias = {bottleneck}"]
        lines += ['"""The bottleneck of an experiment that has one."""']
    body = "\n".join(lines) + "\n"

    def needed(*names: str) -> str:
        return ", ".join(name for name in names if re.search(rf"\b{name}\b", body))

    head = [
        f'"""Typed objects for the experiment file, {_NOTE}.',
        "",
        "An attribute left at None takes redtail's default. Quantities are texts with a unit, as",
        "in the file.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        f"from collections.abc import {needed('Mapping', 'Sequence')}",
        "from dataclasses import dataclass",
        f"from typing import {needed('Any', 'ClassVar', 'Literal', 'TypeAlias')}",
        "",
        "from redtail._model import Part, Whole",
        "",
    ]
    return "\n".join(head) + body


def _class_lines(classes: _Classes, name: str, section: Section) -> Iterator[str]:
    base = "Whole" if name == "Experiment" else "Part"
    yield ""
    yield "@dataclass(kw_only=True)"
    yield f"class {name}({base}):"
    about = section.description or f"The table `{section.name}`."
    if name == "Experiment":
        about = "An experiment: what runs, how long, how often, and what is compared."
    yield from _docstring(about, section)
    if section.kind is not None:
        yield f"    _kind: ClassVar[str | None] = {section.kind!r}"
        yield ""
    # Required attributes first, as a reader wants them.
    for parameter in sorted(section.parameters, key=lambda each: not each.required):
        kind = classes.annotation(parameter.schema)
        kind = _TYPES.get((section.kind or name, parameter.key), kind)
        field = attribute(parameter.key)
        yield f"    {field}: {kind}" if parameter.required else f"    {field}: {kind} | None = None"


def _docstring(about: str, section: Section) -> Iterator[str]:
    first, *rest = textwrap.wrap(about, _WIDTH - 8)
    if rest and "; " in about:
        head, _, tail = about.partition("; ")
        first, rest = f"{head}.", textwrap.wrap(tail[:1].upper() + tail[1:], _WIDTH - 8)
    elif rest:
        head, mark, tail = about.partition(". ")
        if not mark:
            head, mark, tail = about.partition(" (")
            tail = f"({tail}"
        first, rest = f"{head.rstrip('.')}.", textwrap.wrap(tail, _WIDTH - 8)
    yield f'    r"""{first}' if "\\" in about else f'    """{first}'
    if rest:
        yield ""
        yield from (f"    {line}" for line in rest)
    if not section.parameters:
        yield '    """'
        yield ""
        return
    yield ""
    yield "    Attributes:"
    for parameter in sorted(section.parameters, key=lambda each: not each.required):
        text = f"{attribute(parameter.key)}: {parameter.description} {_takes(parameter)}"
        yield from textwrap.wrap(
            text.replace("\\", "\\\\"),
            _WIDTH,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
            break_long_words=False,
        )
    yield '    """'
    yield ""


def _takes(parameter: Parameter) -> str:
    text = parameter.type[:1].upper() + parameter.type[1:]
    if not parameter.required and parameter.default:
        text += f"; default {parameter.default}"
    return text + "."


def attribute(key: str) -> str:
    """Return the attribute for a key; words of Python's own get an underscore.

    >>> attribute("return"), attribute("rate")
    ('return_', 'rate')
    """
    return f"{key}_" if keyword.iskeyword(key) else key


def reference(schema: dict[str, Any], presets: dict[str, dict[str, Any]]) -> str:
    """Return the reference page of the experiment file.

    Args:
        schema: the JSON schema of the file.
        presets: what each TCP preset sets.
    """
    catalog = Catalog(schema)
    classes = _Classes(catalog)
    lines = [
        f"<!-- {_NOTE} -->",
        "",
        "# The experiment file",
        "",
        "An experiment is a file in TOML. A quantity is a text with its unit, for example",
        '`"10 Mbit/s"` ([units](units.md)); a key without a default must be given.',
        "`redtail check FILE` checks a file,",
        "`redtail schema` prints the JSON schema for editors, and",
        "`redtail run FILE --set KEY=VALUE` overrides a key for one run.",
        "",
        "`check` and `run` refuse a file with mistakes, and name all of them at once, up to 20,",
        "each with its line. What follows from another mistake is not named. Where a word of ns-2,",
        "ns-3, tc, Linux or iperf3 stands for one of redtail (`DropTail`, `FqCoDelQueueDisc`,",
        "`pfifo`, `TcpCubic`), the message says which.",
        "",
        "A value that a factor or every case replaces is never used, and is checked nevertheless:",
        "its kind, its keys and its units have to be right. It may lack keys, because the cases",
        "may be all that gives them.",
        "",
    ]
    rest = dict(classes.sections)
    lines += _page(catalog, "Top level", rest.pop("Experiment"))
    kinded = {member for members in classes.unions.values() for member in members}
    for name, section in reversed(rest.items()):
        if name not in kinded:
            lines += _page(catalog, _heading(name), section)
            if name == "Tcp":
                lines += _presets(catalog, presets)
    for union, members in classes.unions.items():
        lines += [f"## {_heading(union.removeprefix('Any'))}", ""]
        for member in members:
            section = rest[member]
            lines += _page(catalog, f'`kind = "{section.kind}"`', section, level=3)
    return "\n".join(lines).rstrip() + "\n"


def _heading(name: str) -> str:
    return {"Tcp": "TCP", "Hop": "Bottleneck, and hop of a chain"}.get(
        name, re.sub(r"(?<!^)(?=[A-Z])", " ", name).capitalize()
    )


def _page(catalog: Catalog, title: str, section: Section, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {title}"
    yield ""
    if title != "Top level":
        yield section.description
        yield ""
    if not section.parameters:
        yield from ("It has no constants.", "")
        return
    rows = []
    for parameter in section.parameters:
        default = "required" if parameter.required else ""
        if parameter.default:
            default = f"`{parameter.default}`"
        meaning = parameter.description
        if parameter.source:
            meaning += f"<br>Source: {parameter.source}"
        rows.append(_escaped(f"`{parameter.key}`", parameter.type, default, meaning))
    yield from pages.table(("key", "takes", "default", "meaning"), rows)
    yield ""
    for parameter in section.parameters:
        schema = catalog.without_null(parameter.schema)
        choices = catalog.choices(schema) or catalog.laws(schema)[0]
        if any(choice.description for choice in choices) and parameter.key != "preset":
            yield f"Values of `{parameter.key}`:"
            yield ""
            for choice in choices:
                yield f"- `{toml(choice.value)}`: {' '.join(choice.description.split())}"
            yield ""


def _presets(catalog: Catalog, presets: dict[str, dict[str, Any]]) -> Iterator[str]:
    choices, table = catalog.tcp
    yield "Omitted keys have the preset's values:"
    yield ""
    yield "| key | " + " | ".join(f"`{choice.value}`" for choice in choices) + " |"
    yield "|---" * (len(choices) + 1) + "|"
    for parameter in table.parameters:
        values = [presets.get(choice.value, {}).get(parameter.key) for choice in choices]
        if any(value is not None for value in values):
            cells = " | ".join(toml(law_name(value)) for value in values)
            yield f"| `{parameter.key}` | {cells} |"
    yield ""
    for choice in choices:
        yield f'- `"{choice.value}"`: {choice.description}'
    yield ""


_BEGIN = re.compile(r"<!-- metrics of (.+), made by `make generate`.* -->")
_END = "<!-- end of metrics -->"


def with_tables(page: str, definitions: list[dict[str, Any]]) -> str:
    """Return a page whose tables of metrics are up to date.

    A table stands between a marker that says what has the metrics ("UDP groups; every group", or
    "queues" for all kinds of queues) and an end marker. Every metric must be in one table.
    """
    waiting = list(definitions)
    lines: list[str] = []
    inside = False
    for line in page.splitlines():
        if line == _END:
            inside = False
        if inside:
            continue
        lines.append(line)
        begin = _BEGIN.fullmatch(line)
        if begin:
            inside = True
            owners = begin[1].split("; ")
            rows = [each for each in waiting if each["of"] in owners or _of_queue(each, owners)]
            waiting = [each for each in waiting if each not in rows]
            lines += _metric_rows(rows, with_queues="queues" in owners)
    if waiting:
        without = ", ".join(f"{each['name']} ({each['of']})" for each in waiting)
        sys.exit(f"no table of docs/explanation/metrics.md has the metrics {without}")
    return "\n".join(lines) + "\n"


def _of_queue(definition: dict[str, Any], owners: list[str]) -> bool:
    return "queues" in owners and definition["of"].startswith("queues of kind ")


def _escaped(*cells: str) -> list[str]:
    """Return texts as cells of a table in Markdown."""
    return [cell.replace("|", "\\|") for cell in cells]


def _metric_rows(definitions: list[dict[str, Any]], with_queues: bool) -> Iterator[str]:
    rows = []
    for each in definitions:
        name = f"`{each['form']}`"
        if "all TCP groups" in each["scope"]:
            name += f", `{each['name']}`"
        queues = [each["of"].removeprefix("queues of kind ")] * with_queues
        rows.append((name, each["measure"], *queues, each["definition"]))
    heads = ("metric", "unit", *["queues"] * with_queues, "what it is")
    yield from pages.table(heads, rows)


_TC_BEGIN = f"<!-- options of tc, {_NOTE} -->"
_TC_END = "<!-- end of options -->"


def with_tc(page: str, rows: list[dict[str, str]]) -> str:
    """Return a page whose tables of tc's options, between two markers, are up to date."""
    before, begin, rest = page.partition(_TC_BEGIN)
    _, end, after = rest.partition(_TC_END)
    if not begin or not end:
        sys.exit("docs/reference/tc.md lacks the markers of its tables")
    lines = [before + begin, ""]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        options = []
        for row in rows:
            if row["kind"] == kind:
                names = [row["key"], *(row["option"].split(", ") if row["option"] else [])]
                key, *words = (f"`{name}`" if name else "" for name in names)
                options.append(_escaped(key, ", ".join(words), row["unit"], row["note"]))
        heads = ("key", "option of tc", "unit and accepted values", "note")
        lines += [f"### {kind}", "", *pages.table(heads, options), ""]
    return "\n".join(lines) + end + after


_ROUTERS_BEGIN = "<!-- commands for routers, made by `make generate`; do not edit -->\n"
_ROUTERS_END = "<!-- end of commands -->"


def with_routers(page: str) -> str:
    """Return a page whose tables of settings of routers, between two markers, are up to date."""
    before, begin, rest = page.partition(_ROUTERS_BEGIN)
    _, end, after = rest.partition(_ROUTERS_END)
    if not begin or not end:
        sys.exit("docs/reference/router-commands.md lacks the markers of its tables")
    found = {device: routers.kinds(device) for device in routers.DEVICES}
    fewer = [kinds for kinds in found.values() if kinds != found["linux"]]
    shown = [kind for kind in found["linux"] if any(kind in kinds for kinds in fewer)]
    marks = [
        (f"`{kind}`", *("yes" if kind in kinds else "" for kinds in found.values()))
        for kind in shown
    ]
    lines = [before + begin, *pages.table(("queue", *found), marks)]
    others = [kind for kind in found["linux"] if kind not in shown]
    lines += ["", f"Linux also has {', '.join(f'`{kind}`' for kind in others)}.", ""]
    for device in routers.DEVICES.values():
        lines += [f"## {device.title}", "", f'`device = "{device.name}"`. {device.tested}', ""]
        lines += ["Sources:", "", *(f"- {source}" for source in device.sources), ""]
        if found[device.name] == found["linux"]:
            lines += ["The options of each queue are those of [another page](tc.md).", ""]
        elif device.name == "openwrt":
            settings = []
            for key, setting, unit in openwrt.FIELDS:
                names = ", ".join(f"`{name}`" for name in setting.split(", "))
                settings.append((f"`{key}`" if " " not in key else key, names, unit))
            lines += [*pages.table(("key", "setting of SQM", "unit"), settings), ""]
        for kind in routers.table.kinds(device.name):
            rows = [
                _escaped(
                    f"`{row.key}`",
                    f"`{row.setting}`" if row.setting else "",
                    row.unit.words,
                    row.note,
                )
                for row in routers.table.rows(device.name, kind)
            ]
            heads = ("key", "setting", "accepted", "note")
            lines += [f"### {device.title}: {kind}", "", *pages.table(heads, rows), ""]
    return "\n".join(lines) + end + after


_STUDY_HEAD = """# The files of a study

<!-- made by `make generate` from the classes that read the files; do not edit -->

All tables and keys of `study.toml`, of which [Write a study](../how-to/study.md) has an example.
The tables `[[finding]]` stand there or in `findings.toml`. A key without a default has to be there.
"""
_STUDY_TESTS = """
## Tests

What a `[[finding.check]]` and a `[[finding.condition]]` can name as `test`, and the keys of each;
those in brackets may be left out. Bounds are `at_least`, `above`, `at_most` and `below`, one or
more of them. Without `queues` or `loads` all are looked at.
"""


def study_page() -> str:
    """Return the page of all tables and keys of a study, and of the tests of findings."""
    lines = [_STUDY_HEAD, *_study_table(definition.Study, "")]
    lines += ["## `[[explanation]]` of `explanations.toml`", "", *_study_keys(gaps.Explanation)]
    rows = []
    for name, test in checks.TESTS.items():
        bounded = "above" in test.keys
        keys = {key: needed for key, (_, needed) in test.keys.items() if key not in checks.BOUNDS}
        shown = [f"`{key}`" if needed else f"[`{key}`]" for key, needed in keys.items()]
        rows.append((f"`{name}`", _first_of(test), ", ".join(["bounds"] * bounded + shown)))
    lines += [_STUDY_TESTS, *pages.table(("test", "what it looks at", "keys"), rows)]
    return "\n".join(lines) + "\n"


def _study_table(kind: type[Placed], path: str) -> Iterator[str]:
    """Yield the lines of a table's keys, then those of the tables below it."""
    yield from _study_keys(kind)
    yield ""
    for each in fields(kind):
        below = [of for of in get_args(get_type_hints(kind)[each.name]) if _is_table(of)]
        if below:
            name = f"{path}.{key_of(each)}".lstrip(".")
            listed = get_origin(get_type_hints(kind)[each.name]) is tuple
            yield from (f"## `{f'[[{name}]]' if listed else f'[{name}]'}`", "")
            yield from (_first_of(below[0]), "", *_study_table(below[0], name))


def _study_keys(kind: type[Placed]) -> list[str]:
    """Return the table of a class's keys: what each is, its values, its default."""
    hints, about = get_type_hints(kind), _attributes(kind)
    given = {"place"} | ({"name", "folder", "expected"} if kind is definition.Study else set())
    rows = []
    for each in fields(kind):
        hint = hints[each.name]
        if each.name in given or any(map(_is_table, get_args(hint))):
            continue
        default = "none" if each.default_factory is not MISSING else each.default
        if default is MISSING:
            default = ""
        elif default in ("", None, ()):
            default = "none"
        elif default != "none":
            default = f"`{toml(default)}`"
        key = "any other" if each.metadata.get("rest") else f"`{key_of(each)}`"
        rows.append((key, about[each.name], words(hint), default))
    return pages.table(("key", "what it is", "value", "default"), rows)


def _is_table(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Placed)


def _first_of(documented: Any) -> str:
    text = getattr(documented, "function", documented).__doc__
    return str(text).partition("\n")[0].rstrip(".")


def _attributes(kind: type) -> dict[str, str]:
    """Return what the docstring of a class says of its attributes."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): ((?:.|\n(?=     ))+)", text, re.M)
    return {name: " ".join(told.split()).rstrip(".") for name, told in found}


def _formatted(source: str) -> str:
    """Return Python source as the project formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "model.py", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ruff cannot format the model: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
