"""How far two backends may be apart in a metric: `1.5 %`, `3 packets`, `15 % or 0.2 points`."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from redtail import metrics as names
from redtail.errors import SpecError
from redtail.files import path_of

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([^\s0-9.].*?)?\s*")

# What a value in the unit of a metric can be written in, and how much of that unit each is.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "bit/s": {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    "packets": {"packets": 1.0, "packet": 1.0},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6},
    "1/s": {"1/s": 1.0},
}
_POINTS = {"points": 0.01, "point": 0.01}

DEFAULTS: dict[str, str] = {
    "utilization": "1.5 %",
    "goodput": "1.5 %",
    "loss": "15 % or 0.2 points",
    "mark": "15 % or 0.2 points",
    "queue_length_mean": "10 % or 3 packets",
    "response_time_p50": "15 %",
    "page_time_p50": "15 %",
    "completion_time_mean": "15 %",
}
"""The metrics that are compared when none is named, by the last part of their name.

Source: the tolerances of redtail's agreement with Linux 6.1
(`tests/reference/test_linux_reference.py`).
"""

TIMES = "15 %"
"""The tolerance of any other time that is asked for. Source: as for `DEFAULTS`."""


@dataclass(frozen=True)
class Tolerance:
    """How large a difference may be.

    Attributes:
        text: as it was given.
        relative: a share of the first backend's mean; None without one.
        absolute: a value in the metric's unit (SI); None without one.
    """

    text: str
    relative: float | None
    absolute: float | None

    def allowed(self, reference: float) -> float:
        """Return the largest difference that is inside; with two alternatives the larger one.

        Args:
            reference: the first backend's mean, in the metric's unit.

        >>> round(parse("loss", "15 % or 0.2 points").allowed(0.1), 6)
        0.015
        >>> parse("loss", "15 % or 0.2 points").allowed(0.001)
        0.002
        """
        found = [] if self.relative is None else [self.relative * abs(reference)]
        found += [] if self.absolute is None else [self.absolute]
        return max(found)


def parse(metric: str, text: str, where: str = "") -> Tolerance:
    """Return the tolerance that a text describes.

    Args:
        metric: the metric's name, which decides what units are accepted.
        text: a share ("1.5 %"), a value in the metric's unit ("5 ms"; "0.2 points" of a share),
            or one of each ("15 % or 0.2 points").
        where: what stands before it, for the message.

    Raises:
        SpecError: it is none of these.

    >>> parse("ftp.response_time_p50", "5 ms").absolute
    0.005
    """
    relative: float | None = None
    absolute: float | None = None
    units = _units(metric)
    for part in text.split(" or "):
        found = _NUMBER.fullmatch(part)
        number, unit = (float(found[1]), found[2] or "") if found else (math.nan, "")
        if not (0 < number < math.inf):
            raise _refused(metric, text, where)
        if unit == "%" and relative is None:
            relative = number / 100
        elif unit in units and absolute is None:
            absolute = number * units[unit]
        else:
            raise _refused(metric, text, where)
    return Tolerance(text.strip(), relative, absolute)


def _units(metric: str) -> dict[str, float]:
    """Return what a difference of a metric can be written in."""
    about = names.describe(metric)
    if about.unit == "1" and about.shown_unit == "%":
        return _POINTS
    return UNITS.get(about.unit, {"": 1.0})


def _refused(metric: str, text: str, where: str) -> SpecError:
    unit = next(iter(_units(metric)))
    value = f"0.5 {unit}".rstrip()
    return SpecError(
        f"{where}{metric} = {text!r}: not a tolerance of {metric}; accepted: a share above 0 such "
        f"as '1.5 %', a difference above 0 such as '{value}', or '1.5 % or {value}'"
        + (f" ({', '.join(_units(metric))})" if len(_units(metric)) > 2 else ""),
        key=metric,
    )


class Tolerances:
    """The tolerance of each metric: those that are given, and `DEFAULTS` for the others.

    Args:
        given: texts by metric. A whole name (`web.goodput`) goes before its last part (`goodput`).
        where: what stands before a metric in messages; or of each metric.
        own: names of metrics of the experiment, of which those that it derives have tolerances too.

    Raises:
        SpecError: a metric that does not exist, or a text that is no tolerance.

    >>> Tolerances({"goodput": "3 %"}).of("web.goodput").text
    '3 %'
    >>> Tolerances().of("web.response_time_p99").text, Tolerances().of("fairness")
    ('15 %', None)
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        where: str | Mapping[str, str] = "",
        own: Iterable[str] = (),
    ) -> None:
        self.given = dict(given or {})
        self.own: dict[str, str] = {name: name for name in own if isinstance(name, names.Own)}
        self.where = {name: where for name in self.given} if isinstance(where, str) else where
        for name, text in self.given.items():
            place = self.where.get(name, "")
            # Queues of users name their own metrics.
            unknown = name not in self.own and names.base(name) not in names.METRICS
            if unknown and "queue" not in name.split(".")[:-1]:
                near = get_close_matches(names.base(name), [*self.own, *names.METRICS], n=3)
                raise SpecError(
                    f"{place}{name} = {text!r}: there is no metric {name}; accepted: one that "
                    "`redtail list metrics` lists"
                    + (f"; nearest: {', '.join(near)}" if near else ""),
                    key=name,
                )
            if not isinstance(text, str):
                raise _refused(name, str(text), place)
            parse(self.own.get(name, name), text, place)

    def of(self, metric: str) -> Tolerance | None:
        """Return the tolerance of a metric; None when it has none."""
        for name in (metric, names.base(metric)):
            if name in self.given:
                return parse(metric, self.given[name])
        text = DEFAULTS.get(names.base(metric))
        if text is None and names.describe(metric).unit == "s":
            text = TIMES
        return None if text is None else parse(metric, text)

    def explicit(self, metric: str) -> Tolerance | None:
        """Return the tolerance of a metric if it was given; None otherwise.

        >>> Tolerances({"loss": "1 point"}).explicit("goodput") is None
        True
        """
        for name in (metric, names.base(metric)):
            if name in self.given:
                return parse(metric, self.given[name])
        return None

    def updated(self, other: Tolerances) -> Tolerances:
        """Return these with those that `other` gives in their place."""
        return Tolerances(
            {**self.given, **other.given},
            {**self.where, **other.where},
            {**self.own, **other.own}.values(),
        )


def of_options(texts: list[str], own: Iterable[str] = ()) -> Tolerances:
    """Return the tolerances of texts `METRIC=VALUE`, as `--tolerance` takes them.

    Args:
        texts: one for each metric.
        own: as for `Tolerances`.

    Raises:
        SpecError: one is of another form.
    """
    given = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise SpecError(
                f"--tolerance {text}: accepted: METRIC=VALUE, for example 'loss=15 % or 0.2 points'"
            )
        given[name.strip()] = value.strip()
    return Tolerances(given, "--tolerance ", own)


def read(file: str | os.PathLike[str], own: Iterable[str] = ()) -> Tolerances:
    """Read tolerances from a TOML file, a line `METRIC = "VALUE"` for each.

    Names with a dot are quoted: `"web.goodput" = "3 %"`.

    Args:
        file: its path.
        own: as for `Tolerances`.

    Raises:
        SpecError: the file cannot be read, or a line is not valid.
    """
    path = path_of(file)
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{path}: not a text file in UTF-8 (byte {error.start})", file=str(path)
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: {error}", file=str(path)) from None
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read: {error.strerror or error}", file=str(path)
        ) from None
    where = {name: f"{path}{_line_of(text, name)}: " for name in found}
    for name, value in found.items():
        if isinstance(value, dict):
            raise SpecError(
                f'{where[name]}{name}: a table; accepted: METRIC = "VALUE", with a name that has '
                'a dot in quotes ("web.goodput" = "3 %")',
                file=str(path),
                key=name,
            )
    return Tolerances(found, where, own)


def _line_of(text: str, name: str) -> str:
    """Return `:LINE` of the line that begins with a key; nothing if there is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"\s*[\"'\[]?{re.escape(name)}\b", line):
            return f":{number}"
    return ""
