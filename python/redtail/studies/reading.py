"""Reads tables of TOML files into dataclasses: the fields say which keys and values are accepted.

A field is a key, and its type is what a value has to be; one without a default has to be given.
What was read knows its place, so that whoever finds a mistake in it later can say where it stands.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from redtail.errors import SpecError
from redtail.files import is_file_name

_Path = tuple[str | int, ...]

_PLAIN: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    float | str: (int | float | str, "a number or a quantity"),
    Path: (str, "a text"),
}


def key(
    name: str | None = None,
    *,
    default: Any = MISSING,
    make: Callable[[str], Any] | None = None,
    rest: bool = False,
    file_name: bool = False,
) -> Any:
    """Return a field of a dataclass that is read from a key.

    Args:
        name: the key, if it is not the field's name.
        default: the value if the key is not there; without it the key has to be there.
        make: makes the value of a text.
        rest: whether the field takes all keys that no other field takes.
        file_name: whether the text becomes the name of a file.
    """
    about = {"key": name, "make": make, "rest": rest, "file_name": file_name}
    if default == {}:
        return dataclasses.field(default_factory=dict, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the key that a field is read from."""
    return str(field.metadata.get("key") or field.name)


@dataclass(frozen=True)
class Place:
    """Where a table stands in a file.

    Attributes:
        file: the file.
        lines: the line of each table and key, from 1.
        path: the keys that lead to the table, with the number of each that is in a list, from 0.
    """

    file: Path
    lines: Mapping[_Path, int]
    path: _Path = ()

    def below(self, *keys: str | int) -> Place:
        """Return the place of what stands below this one."""
        return dataclasses.replace(self, path=(*self.path, *keys))

    @property
    def line(self) -> int | None:
        """The line, or else that of what it stands in."""
        above = [self.path[:end] for end in range(len(self.path), 0, -1)]
        above.insert(1, (*self.path, 0))  # of several tables of a name the first
        return next((self.lines[path] for path in above if path in self.lines), None)

    def error(self, problem: str) -> SpecError:
        """Return the error for what stands here: "= 3; accepted: a text", or words."""
        line, last = self.line, self.path[-1] if self.path else ""
        name = ".".join(each for each in self.path if isinstance(each, str))
        about = f"{name} {last + 1}" if isinstance(last, int) else name
        text = f"{about}{' ' if problem.startswith('=') else ': '}{problem}" if about else problem
        where = f"{self.file}:{line}" if line else str(self.file)
        return SpecError(f"{where}: {text}", file=str(self.file), line=line, key=name or None)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Something that was read.

    Attributes:
        place: where it stands; None for what was made otherwise.
    """

    place: Place | None = dataclasses.field(default=None, compare=False, repr=False)

    def error(self, key: str, problem: str, *below: str) -> SpecError:
        """Return the error for what stands at a key: "= 3; accepted: a text", or words."""
        return (self.place or Place(Path(), {})).below(key, *below).error(problem)

    def refused(self, key: str, value: object, accepted: Iterable[object]) -> SpecError:
        """Return the error for a key's value that is none of those that are accepted."""
        return self.error(key, f"= {value!r}; accepted: {', '.join(map(str, accepted)) or 'none'}")

    @classmethod
    def read(cls, file: Path, **given: Any) -> Self:
        """Read a file as one of these.

        Args:
            file: a TOML file.
            **given: fields that are no keys of it.

        Raises:
            SpecError: it cannot be read or is not valid; the message says where, and what would be.
        """
        values, place = opened(file)
        return made(cls, values, place, **given)


def opened(file: Path) -> tuple[dict[str, Any], Place]:
    """Return what stands in a TOML file, and the place of its keys.

    Raises:
        SpecError: it cannot be read, or is no TOML.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return tomllib.loads(text), Place(file, _lines(text))
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        why = f"not a text file in UTF-8 (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        why = str(error)
    raise SpecError(f"{file}: {why}", file=str(file))


_Kind = TypeVar("_Kind", bound=Placed)


def made(kind: type[_Kind], table: Mapping[str, Any], place: Place, **given: Any) -> _Kind:
    """Return a table as a dataclass; arguments and errors as for `Placed.read`."""
    hints = get_type_hints(kind)
    left = dict(table)
    own = [each for each in dataclasses.fields(kind) if each.name not in {"place", *given}]
    rest = next((each for each in own if each.metadata.get("rest")), None)
    names = {each.name: key_of(each) for each in own if each is not rest}
    for unknown in left if rest is None else ():
        if unknown not in names.values():  # before what is missing, which may be spelled so
            accepted = ", ".join(names.values())
            raise place.below(unknown).error(f"unknown key; accepted: {accepted}")
    for each in own:
        if each is rest:
            given[each.name] = left
        elif (name := names[each.name]) in left:
            given[each.name] = _value(hints[each.name], left.pop(name), place.below(name), each)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise place.error(f"{name} is missing; accepted: {words(hints[each.name])}")
    try:
        return kind(**given, place=place)
    except SpecError as error:
        at = place.below(error.key) if error.key else place
        raise at.error(str(error)) from None


def _value(hint: Any, value: Any, place: Place, field: dataclasses.Field[Any]) -> Any:
    """Return a value of a file as a field has it."""
    if make := field.metadata.get("make"):
        try:
            return make(_value(str, value, place, dataclasses.field()))
        except ValueError as error:
            raise place.error(f"= {value!r}: {error}") from None
    hint = _given(hint)
    parts = get_args(hint)
    if hint in _PLAIN:
        if not isinstance(value, _PLAIN[hint][0]) or isinstance(value, bool) != (hint is bool):
            raise _refused(value, place, hint)
        if field.metadata.get("file_name") and not is_file_name(value):
            raise place.error(
                f"= {value!r} cannot be the name of a file in the folder of results; accepted: a "
                "name that does not begin with a dot, without control characters and without "
                '/ \\ : * ? " < > |'
            )
        return place.file.parent / value if hint is Path else value
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise _refused(value, place, hint)
        plain = dataclasses.field()
        return tuple(_value(parts[0], each, place.below(i), plain) for i, each in enumerate(value))
    if not isinstance(value, dict):
        raise _refused(value, place, hint)
    if dataclasses.is_dataclass(hint):
        return made(hint, value, place)  # type: ignore[type-var, arg-type]
    if get_origin(parts[1]) is not None:
        return {
            name: _value(parts[1], each, place.below(name), field) for name, each in value.items()
        }
    return value


def _refused(value: object, place: Place, hint: Any) -> SpecError:
    return place.error(f"= {value!r}; accepted: {words(hint)}")


def _given(hint: Any) -> Any:
    """Return the type of a value that is there, of one that may be None."""
    parts = [each for each in get_args(hint) if each is not type(None)]
    return functools.reduce(operator.or_, parts) if type(None) in get_args(hint) else hint


def words(hint: Any) -> str:
    """Return what is accepted for a type, in words."""
    hint = _given(hint)
    if hint in _PLAIN:
        return _PLAIN[hint][1]
    if get_origin(hint) is tuple:
        return f"a list, each of it {words(get_args(hint)[0])}"
    return "a table" if dataclasses.is_dataclass(hint) or get_origin(hint) else "a text"


_NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")


def _lines(text: str) -> dict[_Path, int]:
    r"""Return the line of each table and key that begins one.

    >>> _lines('a = 1\n[[b]]\nc.d = 2\n[[b]]')
    {('a',): 1, ('b', 0): 2, ('b', 0, 'c', 'd'): 3, ('b', 1): 4}
    """
    found: dict[_Path, int] = {}
    counts: dict[_Path, int] = {}
    table: _Path = ()
    listed: _Path | None = None
    count = 0
    within = False
    for number, line in enumerate(text.splitlines(), start=1):
        begins = not within
        within ^= (line.count('"""') + line.count("'''")) % 2 == 1
        if not begins:
            continue
        if header := _HEADER.match(line):
            table = ()
            *parents, last = _names(header[2])
            for name in parents:
                table = (*table, name)
                table += (counts[table] - 1,) if table in counts else ()
            table = (*table, last)
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                table = (*table, counts[table] - 1)
            found[table] = number
            listed = None
        elif start := _KEY.match(line):
            key_of = (*table, *_names(start[1]))
            found[key_of] = number
            listed = key_of if line.partition("#")[0].rstrip().endswith("[") else None
            count = 0
        elif listed and re.match(r"\s*\{[^{}]*\},?\s*(#.*)?$", line):  # a table of a list, alone
            found[(*listed, count)] = number
            count += 1
        elif line.strip() and not line.lstrip().startswith("#"):
            listed = None
    return found


def _names(dotted: str) -> list[str]:
    return [each.strip("\"'") for each in re.findall(_NAME, dotted)]
