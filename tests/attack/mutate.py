"""Experiment files with seeded damage."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from attack.inputs import files

LEFT_OUT: tuple[str, ...] = ()
"""Keys whose values are not changed, while a fault that they show is not mended."""

# A key and its value on one line, also within an inline table.
_PAIR = re.compile(
    r"""(?P<key>[A-Za-z0-9_."-]+)\ *=\ *
        (?P<value>"(?:[^"\\\n]|\\.)*" | [-+]?[0-9][0-9.eE_+-]* | true | false | \[[^\[\]\n]*\])""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

NUMBERS = (
    *("0", "-0", "-1", "1", "2", "0.5", "1e-300", "5e-324", "1e308", "1e309", "nan", "inf", "-inf"),
    *("1e19", "65535", "65536", "0x10", "1_000", "00", "1.", ".5", "1e", "0.1e-7"),
    *map(str, (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64)),
    str(2**128),
)
UNITS = (
    *("ps", "ns", "us", "µs", "ms", "s", "min", "h"),
    *("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B", "kB", "MB", "GB", "packets", "%", "Hz"),
    *("", "fortnights", "Mbit", "MiB", "packets packets", "\N{OHM SIGN}"),
)
VALUES = (
    *("true", "3", "-1", "1.5", "nan", '""', '"x"', '"1"', '"10 ms"', '"10 Mbit/s"'),
    *('"20 packets"', "[]", "[1]", '["1 ms", "2 ms"]', "[[]]", "{}", "{x=1}", '{kind="red"}'),
    *("1979-05-27", "07:32:00", '"uniform 0..1 s"', '"exponential mean 1 s"', '"1..2 ms in 0"'),
    *('"pareto mean 1 kB shape 0"', '"0..9 s in 4294967295"'),
)
TEXTS = (
    "\N{GREEK SMALL LETTER ALPHA}",
    "\N{ZERO WIDTH SPACE}",
    "\N{RIGHT-TO-LEFT OVERRIDE}",
    "\N{COMBINING ACUTE ACCENT}" * 40,
    "\N{SNOWMAN}" * 200,
    "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT NINE}",
    "\\u0000",
    "\\U0010FFFF",
    "\0",
    "\ufeff",
    "\r",
    "${HOME}",
    "../../x",
    "%s{0}[bold]",
)

Operator = Callable[[random.Random, str], str]


def mutant(seed: int, number: int) -> tuple[str, bytes]:
    """Return the file that this one comes from, and the file."""
    draw = random.Random(f"mutate {seed} {number}")
    known = files()
    name = draw.choice(sorted(known))
    text = known[name]
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5))):
        text = draw.choice(OPERATORS)(draw, text)
    data = text.encode("utf-8", "surrogatepass")
    if draw.random() < 0.05:
        data = _bytes(draw, data)
    return name, data


def _pairs(text: str) -> list[re.Match[str]]:
    return [pair for pair in _PAIR.finditer(text) if pair["key"] not in LEFT_OUT]


def _put(text: str, pair: re.Match[str], value: str) -> str:
    return text[: pair.start("value")] + value + text[pair.end("value") :]


def _lines(draw: random.Random, text: str) -> str:
    """Delete, double, swap or cut lines."""
    lines = text.split("\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines.insert(other, lines[one])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines = lines[: one + 1]
    return "\n".join(lines)


def _swap(draw: random.Random, text: str) -> str:
    """Swap two values."""
    pairs = _pairs(text)
    if len(pairs) < 2:
        return text
    first, second = sorted(draw.sample(pairs, 2), key=lambda pair: pair.start())
    if second.start() < first.end():
        return text
    return _put(_put(text, second, first["value"]), first, second["value"])


def _number(draw: random.Random, text: str) -> str:
    """Put a number at an edge in the place of one, which keeps its unit."""
    pairs = [pair for pair in _pairs(text) if _NUMBER.search(pair["value"])]
    if not pairs:
        return text
    pair = draw.choice(pairs)
    new = draw.choice(NUMBERS)
    if draw.random() < 0.2:
        new = str(round(float(draw.randrange(1, 10)) * 10.0 ** draw.randrange(-12, 20), 12))
    places = list(_NUMBER.finditer(pair["value"]))
    place = draw.choice(places)
    value = pair["value"][: place.start()] + new + pair["value"][place.end() :]
    return _put(text, pair, value)


def _scale(draw: random.Random, text: str) -> str:
    """Make a number larger or smaller: most such files are still valid."""
    pairs = [pair for pair in _pairs(text) if re.match(r'"?[0-9.]+ ?[A-Za-z/%]*"?$', pair["value"])]
    if not pairs:
        return text
    pair = draw.choice(pairs)
    number = _NUMBER.search(pair["value"])
    assert number is not None
    new = float(number[0]) * draw.choice((0.001, 0.1, 0.5, 2, 3, 10, 1000, 1e6))
    value = f"{new:.9g}" if "." in number[0] or new != int(new) else str(int(new))
    return _put(text, pair, pair["value"].replace(number[0], value, 1))


def _unit(draw: random.Random, text: str) -> str:
    """Give a quantity another unit."""
    pairs = [pair for pair in _pairs(text) if re.match(r'"[0-9.]+ ?[A-Za-z/%]+"$', pair["value"])]
    if not pairs:
        return text
    pair = draw.choice(pairs)
    number = _NUMBER.search(pair["value"])
    assert number is not None
    return _put(text, pair, f'"{number[0]} {draw.choice(UNITS)}"')


def _type(draw: random.Random, text: str) -> str:
    """Put a value of another type in the place of one."""
    pairs = _pairs(text)
    if not pairs:
        return text
    return _put(text, draw.choice(pairs), draw.choice(VALUES))


def _text(draw: random.Random, text: str) -> str:
    """Insert odd letters anywhere, or in a value."""
    odd = draw.choice(TEXTS)
    quoted = [pair for pair in _pairs(text) if pair["value"].startswith('"')]
    if quoted and draw.random() < 0.7:
        pair = draw.choice(quoted)
        return _put(text, pair, f'"{odd}{pair["value"][1:]}')
    at = draw.randrange(len(text) + 1)
    return text[:at] + odd + text[at:]


def _deep(draw: random.Random, text: str) -> str:
    """Put deeply nested lists, tables or keys in the place of a value."""
    pairs = _pairs(text)
    if not pairs:
        return text
    depth = draw.choice((2, 20, 100, 200, 5000, 100_000))
    nested = draw.choice(
        (
            "[" * depth + "]" * depth,
            "[" * depth,
            "{a=" * depth + "1" + "}" * depth,
            "{" + ".".join("a" * depth) + "=1}",
            "[" + "1," * depth + "]",
            '"' + "x" * depth + '"',
        )
    )
    return _put(text, draw.choice(pairs), nested)


def _stranger(draw: random.Random, text: str) -> str:
    """Rename a key, or take one over from another file."""
    pairs = _pairs(text)
    other = draw.choice(_pairs(files()[draw.choice(sorted(files()))]))
    if not pairs:
        return text
    pair = draw.choice(pairs)
    if draw.random() < 0.4:
        return text[: pair.start("key")] + other["key"] + text[pair.end("key") :]
    if draw.random() < 0.5:
        return _put(text, pair, other["value"])
    start = text.rfind("\n", 0, pair.start()) + 1
    return f"{text[:start]}{other[0]}\n{text[start:]}"


def _splice(draw: random.Random, text: str) -> str:
    """Go on with the rest of another file."""
    other = files()[draw.choice(sorted(files()))].split("\n")
    lines = text.split("\n")
    return "\n".join(lines[: draw.randrange(len(lines))] + other[draw.randrange(len(other)) :])


def _bytes(draw: random.Random, data: bytes) -> bytes:
    """Change bytes, whatever they mean."""
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.randbytes(draw.randrange(5)) + data[at + draw.randrange(5) :]


OPERATORS: tuple[Operator, ...] = (
    _lines,
    _swap,
    _number,
    _number,
    _number,
    *(_scale,) * 12,
    _unit,
    _type,
    _type,
    _text,
    _deep,
    _stranger,
    _stranger,
    _splice,
)
