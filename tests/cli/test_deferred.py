"""Values of options, which commands read without pydantic where they can."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
import typer

from redtail.cli.deferred import Deferred, group

GOT: dict[str, Any] = {}


class Colour(StrEnum):
    red = "red"
    green = "green"


def paint(
    file: Annotated[Path, typer.Argument()],
    colour: Annotated[Colour | None, typer.Option()] = None,
    least: Annotated[Colour, typer.Option()] = Colour.green,
    text: Annotated[str, typer.Option()] = "as it is",
    texts: Annotated[list[str] | None, typer.Option("--text-of")] = None,
    places: Annotated[list[Path] | None, typer.Option("--place")] = None,
    rest: Annotated[list[str], typer.Option("--rest")] = ["one"],  # noqa: B006
    count: Annotated[int, typer.Option(min=2)] = 5,
    share: Annotated[float | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
) -> None:
    """Paint."""
    GOT.clear()
    GOT.update(locals())


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    module = ModuleType("redtail.cli.painting")
    module.paint = paint  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "redtail.cli.painting", module)
    # The command of the module and, beside it, the same as Typer alone makes it.
    alone = typer.Typer(add_completion=False)
    alone.command("paint")(paint)
    commands = {
        "redtail": group("top", "Paint.", {"paint": ("painting.paint", "Paint.")}),
        "typer": typer.main.get_command(alone),
    }

    def call(which: str, *words: str) -> tuple[int, str, dict[str, Any]]:
        GOT.clear()
        given = ["paint", *words] if which == "redtail" else list(words)
        with pytest.raises(SystemExit) as end:
            commands[which].main(given, prog_name="top")
        told = capsys.readouterr()
        return int(end.value.code or 0), told.out + told.err, dict(GOT)

    return call


GIVEN = [
    ["file"],
    ["file", "--colour", "red", "--least", "red", "--text", "a", "--count", "7", "--share", "0.5"],
    ["file", "--text-of", "a", "--text-of", "b", "--place", "x/y", "--rest", "two", "--no-flag"],
    ["./a/../b", "--text", "", "--text-of", ""],
    ["-", "--count", "2"],
]
WRONG = [
    [],
    ["file", "--colour", "blue"],
    ["file", "--count", "1"],
    ["file", "--count", "some"],
    ["file", "--share", "much"],
    ["file", "more"],
    ["file", "--no"],
]


@pytest.mark.parametrize("words", GIVEN, ids=" ".join)
def test_values_are_those_that_typer_reads(words: list[str], invoke: Any) -> None:
    code, output, got = invoke("redtail", *words)
    assert code == 0, output
    wanted = invoke("typer", *words)[2]
    assert got == wanted
    assert {name: type(value) for name, value in got.items()} == {
        name: type(value) for name, value in wanted.items()
    }


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words) or "nothing")
def test_wrong_values_are_refused_in_plain_text(words: list[str], invoke: Any) -> None:
    code, output, got = invoke("redtail", *words)
    assert code == 2 == invoke("typer", *words)[0]
    assert not got
    assert "\nError: " in output and "─" not in output


def test_help_is_plain_text(invoke: Any) -> None:
    code, output, _ = invoke("redtail", "--help")
    assert code == 0
    assert "--count" in output and "─" not in output
    assert isinstance(Deferred("paint", "painting.paint", "Paint.").loaded().help, str)
