"""The parts of an experiment file with their parameters, read from its JSON schema.

The schema is made from the Rust types, where each parameter is defined once. From here come
`redtail list`, the reference page and the Python classes.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from redtail import escape, facts
from redtail import metrics as names
from redtail.display.index import index
from redtail.errors import SpecError
from redtail.measured import Measured
from redtail.metrics import DEFINITIONS, Definition, nearest, phase

Schema: TypeAlias = dict[str, Any]

_WIDTH = 96
"""Columns of running text on a screen that is wider."""


@dataclass(frozen=True)
class Parameter:
    """A key of the experiment file.

    Attributes:
        key: its name.
        schema: its part of the schema, references resolved one level.
        required: whether it must be given.
        type: what it takes, in words.
        default: what it is when left out, as in the file; empty when there is no fixed one.
        description: what it means.
        source: where the default or the definition comes from; may be empty.
    """

    key: str
    schema: Schema
    required: bool
    type: str
    default: str
    description: str
    source: str


@dataclass(frozen=True)
class Choice:
    """A named value of a parameter, with its meaning."""

    value: Any
    description: str


@dataclass(frozen=True)
class Section:
    """A table of the experiment file.

    Attributes:
        name: what the schema calls it.
        kind: the `kind` that selects it; None for a table without `kind`.
        description: what it means.
        schema: its part of the schema.
        parameters: its keys, `kind` left out.
    """

    name: str
    kind: str | None
    description: str
    schema: Schema
    parameters: tuple[Parameter, ...]


class Catalog:
    """The tables, keys and values that a schema describes.

    Args:
        schema: the JSON schema of the experiment file.
    """

    def __init__(self, schema: Schema) -> None:
        self.root = schema
        self.definitions: dict[str, Schema] = schema.get("$defs", {})

    def resolve(self, schema: Any) -> Schema:
        """Follow references; the keys next to a reference override those that it points to."""
        found: Schema = dict(schema) if isinstance(schema, dict) else {}
        while "$ref" in found:
            siblings = {key: value for key, value in found.items() if key != "$ref"}
            target = self.definitions[found["$ref"].rpartition("/")[2]]
            found = {**target, **siblings}
        return found

    def reference(self, schema: Any) -> str | None:
        """Return the name of the definition a schema points to."""
        if isinstance(schema, dict) and "$ref" in schema:
            name: str = schema["$ref"].rpartition("/")[2]
            return name
        return None

    def property(self, *path: str) -> Schema:
        """Return the schema at a path of keys from the root; an item of a list has no key."""
        found = self.root
        for key in path:
            found = self.resolve(self.without_null(found))
            if "items" in found:
                found = self.resolve(found["items"])
            found = found["properties"][key]
        found = self.resolve(self.without_null(found))
        return self.resolve(found["items"]) if "items" in found else found

    def without_null(self, schema: Any) -> Any:
        """Return the schema of a value that is present: an Option in Rust may also be null."""
        if not isinstance(schema, dict):
            return schema
        parts = schema.get("anyOf")
        if isinstance(parts, list) and {"type": "null"} in parts:
            rest = [part for part in parts if part != {"type": "null"}]
            siblings = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**siblings, **(rest[0] if len(rest) == 1 else {"anyOf": rest})}
        kinds = schema.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            rest = [kind for kind in kinds if kind != "null"]
            return {**schema, "type": rest[0] if len(rest) == 1 else rest}
        return schema

    def kinds(self, schema: Any) -> list[Section]:
        """Return the alternatives that `kind` chooses from; empty where it does not."""
        return [self.section(kind, merged, kind=kind) for kind, merged in self._variants(schema)]

    def _variants(self, schema: Any) -> Iterator[tuple[str, Schema]]:
        """Yield the alternatives that `kind` chooses from, without looking into them.

        A queue may hold queues, so for these only the kinds are listed.
        """
        for variant in _parts(self.resolve(schema)):
            merged = self.flattened(variant)
            const = merged.get("properties", {}).get("kind", {}).get("const")
            if const is not None:
                yield str(const), merged

    def flattened(self, schema: Any) -> Schema:
        """Return a table's schema with what it includes by reference or `allOf` put in one."""
        found = self.resolve(schema)
        merged: Schema = {key: value for key, value in found.items() if key != "allOf"}
        merged["properties"] = dict(found.get("properties", {}))
        merged["required"] = list(found.get("required", []))
        if isinstance(schema, dict) and "$ref" in schema:
            base = self.definitions[schema["$ref"].rpartition("/")[2]]
            merged["properties"] = {**base.get("properties", {}), **merged["properties"]}
            merged["required"] = [*base.get("required", []), *merged["required"]]
        for part in found.get("allOf", []):
            other = self.flattened(part)
            merged["properties"] = {**other["properties"], **merged["properties"]}
            merged["required"] = [*other["required"], *merged["required"]]
        return merged

    def section(self, name: str, schema: Any, kind: str | None = None) -> Section:
        """Return a table with its keys."""
        table = self.flattened(schema)
        required = set(table["required"])
        parameters = tuple(
            self.parameter(key, each, key in required)
            for key, each in table["properties"].items()
            if key != "kind"
        )
        description, _ = _source(table)
        return Section(name, kind, description, table, parameters)

    def listed(self, section: Section) -> Iterator[tuple[str, Section]]:
        """Yield the tables that a section's lists hold and those in their lists, each once.

        With each comes the key of its list.
        """
        met: set[str] = set()
        waiting = [section]
        while waiting:
            for parameter in waiting.pop(0).parameters:
                for part in (parameter.schema, *_parts(parameter.schema)):
                    name = self.reference(part.get("items"))
                    if name is None or name in met or "properties" not in self.definitions[name]:
                        continue
                    met.add(name)
                    table = self.section(name, self.definitions[name])
                    waiting.append(table)
                    yield parameter.key, table

    def parameter(self, key: str, schema: Any, required: bool) -> Parameter:
        """Return a key of a table."""
        schema = self.without_null(schema)
        # A key's own text comes first; that of its type says what may be written.
        description, source = _source(schema if isinstance(schema, dict) else {})
        resolved = self.resolve(schema)
        default = resolved.get("default")
        if isinstance(default, dict) and "preset" in default:
            default = default["preset"]  # without the parameters that it sets
        return Parameter(
            key=key,
            schema=schema if isinstance(schema, dict) else {},
            required=required,
            type=self.type_text(schema),
            default="" if default is None else toml(default),
            description=description or _source(resolved)[0],
            source=source,
        )

    def choices(self, schema: Any) -> list[Choice]:
        """Return the named values a schema accepts; empty when it accepts others too."""
        found = self.resolve(schema)
        if "const" in found:
            return [Choice(found["const"], found.get("description", ""))]
        if "enum" in found:
            return [Choice(value, "") for value in found["enum"]]
        choices = []
        for part in _parts(found):
            inner = self.choices(part)
            if not inner:
                return []
            choices.extend(inner)
        return choices

    def laws(self, schema: Any) -> tuple[list[Choice], list[Section]]:
        """Return the laws that a key chooses from, each a name or a table of its constants.

        Both lists are empty for a key that chooses no law.
        """
        parts = _parts(self.resolve(self.without_null(schema)))
        if len(parts) != 2:
            return [], []
        names, tables = self.choices(parts[0]), self.kinds(parts[1])
        return (names, tables) if names and tables else ([], [])

    def type_text(self, schema: Any) -> str:
        """Return what a schema accepts, in words."""
        found = self.resolve(self.without_null(schema))
        names, tables = self.laws(found)
        if tables:
            text = " or ".join(toml(name.value) for name in names)
            return f"{text}, or a table with the constants of one of these and perhaps its kind"
        choices = self.choices(found)
        if choices:
            return " or ".join(toml(choice.value) for choice in choices)
        kinds = [kind for kind, _ in self._variants(found)]
        if kinds:
            return "a table with kind = " + " or ".join(f'"{kind}"' for kind in kinds)
        name = self.reference(self.without_null(schema))
        if found.get("type") == "string" and name is not None:
            # A quantity's definition says what it is and how it is written.
            about = str(self.definitions[name].get("description", "text"))
            return (about[:1].lower() + about[1:]).rstrip(".")
        parts = _parts(found)
        if parts:
            texts = list(dict.fromkeys(self.type_text(part) for part in parts))
            if len(texts) >= 2 and texts[1] == f"a list, each {texts[0]}":
                texts[1] = "a list of these"
            return ", or ".join(texts)
        match found.get("type"):
            case "array":
                return f"a list, each {self.type_text(found.get('items', {}))}"
            case "boolean":
                return "true or false"
            case "integer" | "number" as kind:
                text = "a whole number" if kind == "integer" else "a number"
                low, high = found.get("minimum"), found.get("maximum")
                if low is not None and high is not None:
                    return f"{text} from {low:g} to {high:g}"
                return f"{text}, at least {low}" if low and kind == "integer" else text
            case "string":
                return str(found.get("x-form", "a text"))
            case "object":
                keys = list(found.get("properties", {}))
                if not keys:
                    return "a table"
                return f"a table with {', '.join(keys[:5])}{', …' if len(keys) > 5 else ''}"
            case _:
                return "any value"

    @cached_property
    def queues(self) -> list[Section]:
        """The queue disciplines."""
        return self.kinds(self.property("bottleneck", "queue"))

    @cached_property
    def traffic(self) -> list[Section]:
        """The traffic models."""
        return self.kinds(self.property("traffic"))

    @cached_property
    def tcp(self) -> tuple[list[Choice], Section]:
        """The TCP presets, and the table of parameters that can depart from them."""
        bulk = next(section for section in self.traffic if section.kind == "bulk")
        spec = self.resolve(bulk.schema["properties"]["tcp"])
        for part in _parts(spec):
            resolved = self.resolve(part)
            if "preset" in resolved.get("properties", {}):
                table = self.section("tcp", resolved)
                return self.choices(resolved["properties"]["preset"]), table
        raise SpecError("the schema has no table of TCP parameters")

    @cached_property
    def tcp_laws(self) -> list[tuple[str, Section]]:
        """The laws of TCP with their constants, each behind the key that chooses it."""
        _, table = self.tcp
        return [
            (parameter.key, law)
            for parameter in table.parameters
            for law in self.laws(parameter.schema)[1]
        ]


def law_name(value: Any) -> Any:
    """Return the name of a law in place of the table of its constants, and else the value.

    >>> law_name({"kind": "cubic", "beta": 0.7}), law_name(10)
    ('cubic', 10)
    """
    return value["kind"] if isinstance(value, dict) and "kind" in value else value


def toml(value: Any) -> str:
    """Return a JSON value as the experiment file writes it.

    >>> toml({"kind": "red", "max_p": 0.1}), toml([1, True])
    ('{ kind = "red", max_p = 0.1 }', '[1, true]')
    """
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def listing(part: str, kind: str | None, width: int = _WIDTH) -> str:
    """Return what `redtail list` prints: a line for each, then each with its parameters.

    Args:
        part: "queues", "tcp", "laws" or "traffic".
        kind: one of them alone, by its `kind` or preset.
        width: columns of the screen.

    Raises:
        SpecError: there is no such kind.
    """
    catalog = Catalog(facts.schema())
    if part == "tcp":
        return _tcp_listing(catalog, kind, width)
    if part == "laws":
        return _law_listing(catalog, kind, width)
    sections = catalog.queues if part == "queues" else catalog.traffic
    chosen = [section for section in sections if kind in (None, section.kind)]
    if not chosen:
        known = [str(section.kind) for section in sections]
        hint = facts.hint(kind or "", known)
        raise SpecError(f"there is no kind {kind!r} of {part}; accepted: {', '.join(known)}{hint}")
    blocks = ["\n".join(_section_lines(catalog, section, width)) for section in chosen]
    if kind is None:
        rows = [(str(section.kind), section.description) for section in sections]
        blocks = ["\n".join([*index(rows, width), *_more(part, width)]), *blocks]
    return "\n\n".join(blocks)


def _more(part: str, width: int) -> list[str]:
    """Return the lines between an index and what it is an index of."""
    return [
        "",
        *_wrapped(f"Each with its parameters; `redtail list {part} NAME` has one alone.", 0, width),
    ]


def event_listing(kind: str | None, width: int = _WIDTH) -> str:
    """Return what `redtail list events` prints: what each kind of events of a log means.

    Args:
        kind: one of them alone.
        width: columns of the screen.

    Raises:
        SpecError: there is no such kind.
    """
    kinds = facts.event_kinds()
    chosen = [each for each in kinds if kind in (None, each["name"])]
    if not chosen:
        known = [each["name"] for each in kinds]
        hint = facts.hint(kind or "", known)
        raise SpecError(f"there is no event {kind!r}; accepted: {', '.join(known)}{hint}")
    blocks = []
    for each in chosen:
        lines = [f"{each['name']} (of a {each['of']})", *_wrapped(plain(each["meaning"]), 2, width)]
        if each["value"]:
            lines += _wrapped(f"value: {each['value']}", 2, width)
        for reason in each["reasons"]:
            lines += _wrapped(f"reason {reason['name']}: {plain(reason['meaning'])}", 2, width)
        if each["only_when_named"]:
            lines += _wrapped("recorded only if `kinds` names it", 2, width)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def metric_listing(
    measured: Measured | None,
    *,
    as_json: bool = False,
    long: bool = False,
    wanted: str | None = None,
    width: int = _WIDTH,
) -> str:
    """Return what `redtail list metrics` prints.

    Args:
        measured: those of an experiment alone, with their names; None for all.
        as_json: as JSON instead of text.
        long: with definitions, instead of a line for each metric.
        wanted: the definition of this one alone, by the last part of its name.
        width: columns of the screen, for definitions.

    Raises:
        SpecError: there is no metric of the name that is wanted.
    """
    found: dict[Definition, list[str]] = {each: [] for each in DEFINITIONS}
    if wanted is not None:
        found = {each: [] for each in found if each.name == names.base(wanted)}
        if not found:
            known = [each.name for each in DEFINITIONS]
            raise SpecError(f"{wanted}: no metric has this name{nearest(known, wanted)}")
    if measured is not None:
        for name, definition in measured.names.items():
            if phase(name) is None:
                found.setdefault(definition, []).append(name)
        found = {each: here for each, here in found.items() if here}
    if as_json:
        rows = [
            {
                "name": each.name,
                "unit": each.metric.unit,
                "title": each.metric.title,
                "scope": each.scope,
                "phases": each.phases,
                "of": each.of,
                "definition": plain(each.text),
            }
            | ({"names": here} if measured is not None else {})
            for each, here in found.items()
        ]
        return json.dumps(rows, indent=2, ensure_ascii=False)
    if long or wanted is not None:
        lines = _definitions(found, width)
    elif measured is None:
        rows_of = [(each.form, each.measure, f"{each.metric.title}; {each.of}") for each in found]
        lines = _in_columns(rows_of)
    else:
        about = {name: each for each, here in found.items() for name in here}
        ordered = [name for name in measured.names if name in about]
        lines = _in_columns(
            [(escape.name(name), about[name].measure, names.title_of(name)) for name in ordered]
        )
    if measured is not None and measured.phases:
        lines.append(f"Of each phase: phase1. to phase{measured.phases}. in front of the name")
    if measured is not None and measured.free:
        lines.append(f"Named by queues of your own: {', '.join(measured.free)}NAME")
    return "\n".join(lines)


def _definitions(found: Mapping[Definition, Sequence[str]], width: int) -> list[str]:
    """Return metrics with their definitions, and the names that they have."""
    lines = []
    for each, here in found.items():
        phases = ", in each phase too" if each.phases else ""
        lines.append(f"{each.name}: {each.measure}; {each.scope}{phases}; {each.of}")
        lines += _wrapped(plain(each.text), 6, width)
        if here:
            lines += _wrapped(f"Here: {', '.join(map(escape.name, here))}", 6, width)
    return lines


def _in_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows as lines, whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row[:-1], widths, strict=True)), row[-1]])
        for row in rows
    ]


def plain(markdown: str) -> str:
    """Return Markdown without links and emphasis.

    >>> plain("a [rate](../rates.md) that *changes*")
    'a rate that changes'
    """
    return re.sub(r"\*([^*]+)\*", r"\1", re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", markdown))


def _tcp_listing(catalog: Catalog, kind: str | None, width: int) -> str:
    presets, table = catalog.tcp
    values = facts.presets()
    chosen = [preset for preset in presets if kind in (None, preset.value)]
    if not chosen:
        known = [str(preset.value) for preset in presets]
        hint = facts.hint(kind or "", known)
        raise SpecError(f"there is no TCP preset {kind!r}; accepted: {', '.join(known)}{hint}")
    lines = []
    if kind is None:
        rows = [(str(preset.value), preset.description) for preset in presets]
        lines += [*index(rows, width), *_more("tcp", width), ""]
    for preset in chosen:
        lines += [f'tcp = "{preset.value}"', *_wrapped(preset.description, 2, width)]
        own = values.get(preset.value, {})
        if kind is not None:
            lines += [f"  {key} = {toml(value)}" for key, value in own.items()]
        elif preset is not presets[0]:
            common = values.get(presets[0].value, {})
            departs = [
                f"{key} = {toml(law_name(own[key]))}" for key in own if own[key] != common.get(key)
            ]
            lines += _wrapped(
                f"Beside what {presets[0].value} sets: {', '.join(departs)}", 2, width
            )
        else:
            lines += _wrapped(f"`redtail list tcp {preset.value}` has all that it sets.", 2, width)
        lines.append("")
    lines.append("Every preset's parameters can be changed, as in")
    lines.append('tcp = { preset = "sack", initial_window = 4 }')
    lines.append("")
    for parameter in table.parameters:
        lines += _parameter_lines(catalog, parameter, "default as the preset has it", width)
    return "\n".join(lines)


def _law_listing(catalog: Catalog, kind: str | None, width: int) -> str:
    laws = catalog.tcp_laws
    chosen = [(key, law) for key, law in laws if kind in (None, law.kind)]
    if not chosen:
        known = list(dict.fromkeys(str(law.kind) for _, law in laws))
        hint = facts.hint(kind or "", known)
        raise SpecError(f"there is no law {kind!r}; accepted: {', '.join(known)}{hint}")
    blocks = []
    if kind is None:
        rows = [(f"{key} {law.kind}", law.description) for key, law in laws]
        blocks.append("\n".join([*index(rows, width), *_more("laws", width)]))
    for key, law in chosen:
        lines = [f'tcp.{key}: kind = "{law.kind}"', *_wrapped(law.description, 2, width), ""]
        for parameter in law.parameters:
            lines += _parameter_lines(catalog, parameter, "optional", width)
        if not law.parameters:
            lines.append("  no constants")
        blocks.append("\n".join(lines))
    blocks.append('A constant is changed as in tcp = { preset = "cubic", growth = { beta = 0.5 } }')
    return "\n\n".join(blocks)


def _section_lines(catalog: Catalog, section: Section, width: int) -> Iterator[str]:
    yield f'kind = "{section.kind}"'
    yield from _wrapped(section.description, 2, width)
    yield ""
    for parameter in section.parameters:
        yield from _parameter_lines(catalog, parameter, "optional", width)
    for key, table in catalog.listed(section):
        yield ""
        yield f"each {key}:"
        for parameter in table.parameters:
            yield from _parameter_lines(catalog, parameter, "optional", width)


def _parameter_lines(
    catalog: Catalog, parameter: Parameter, optional: str, width: int
) -> Iterator[str]:
    state = f"default {parameter.default}" if parameter.default else optional
    yield f"  {parameter.key}: {parameter.type}; {'required' if parameter.required else state}"
    yield from _wrapped(parameter.description, 6, width)
    schema = catalog.without_null(parameter.schema)
    for choice in catalog.choices(schema) or catalog.laws(schema)[0]:
        if choice.description:
            yield from _wrapped(f"{toml(choice.value)}: {choice.description}", 8, width)
    if parameter.source:
        yield from _wrapped(f"Source: {parameter.source}", 6, width)


def _wrapped(text: str, indent: int, width: int) -> list[str]:
    space = " " * indent
    return [
        line
        for paragraph in text.split("\n")
        for line in textwrap.wrap(
            paragraph,
            min(width, _WIDTH),
            initial_indent=space,
            subsequent_indent=space,
            break_on_hyphens=False,
        )
    ]


def _parts(schema: Schema) -> list[Any]:
    """Return the alternatives of a schema."""
    parts: list[Any] = schema.get("oneOf") or schema.get("anyOf") or []
    return parts


def _source(schema: Schema) -> tuple[str, str]:
    """Return a description and the source it names.

    In Rust a source is the last paragraph of a doc comment, "Source: …".
    """
    text = str(schema.get("description", ""))
    described, _, named = text.partition("Source:")
    described = " ".join(described.split())
    return described, str(schema.get("x-source", " ".join(named.split())))
