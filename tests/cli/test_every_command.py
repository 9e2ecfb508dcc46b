"""What all commands have in common: encodings, closed streams, and where results may be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import typer
from typer.testing import CliRunner

import redtail
from redtail.cli import app
from redtail.store.format import RUN_NAME

from conftest import some_weekly

EXPERIMENT = """
name = "Ουρά, 5 µs ± 1 😀"
duration = "2 s"
warmup = "1 s"
replications = 2
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
start = "uniform 0..100 ms"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "10 packets", label = "naïve ‮" },
  { kind = "tail-drop", limit = "20 packets", label = "NaN" },
]
"""


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its name."""

    def below(command: Any, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        if hasattr(command, "commands"):
            for word, each in command.commands.items():
                yield from below(each, (*name, word))
        else:
            yield name, command.loaded()

    yield from below(typer.main.get_command(app), ())


NAMES = tuple(name for name, _ in commands())

# Runs commands, each in a process of its own that has everything loaded; says how each ended.
SCRIPT = textwrap.dedent(
    """
    import json, os, sys, traceback
    import redtail, redtail.cli, redtail.analysis.results, redtail.display.tables, redtail.packing
    import redtail.cli.parts, redtail.cli.run, redtail.cli.stored, redtail.cli.diff

    def run(words, closed, name):
        # Plain files: a pipe would fill up, and nobody reads it yet.
        for number in (1, 2):
            os.dup2(os.open(f"{name}.{number}", os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        for number in closed:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        if 2 in closed:
            sys.excepthook = lambda *error: open(f"{name}.2", "w").write(
                "Traceback " + "".join(traceback.format_exception(*error))
            )
        sys.argv = ["redtail", *words]
        try:
            redtail.cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 99
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)

    codes = []
    for words, closed, name in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            run(words, closed, name)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    json.dump(codes, sys.stdout)
    """
)


def ended(
    cases: list[tuple[list[str], list[int]]], encoding: str, folder: Path
) -> list[tuple[int, str, str]]:
    """Return exit code, standard output and standard error of commands.

    Args:
        cases: the words of each command, and the streams that are closed.
        encoding: of its streams.
        folder: where they run.
    """
    names = [str(folder / f".said-{number}") for number in range(len(cases))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps([(*case, name) for case, name in zip(cases, names, strict=True)]),
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [
        (code, *(Path(f"{name}.{n}").read_text(encoding) for n in (1, 2)))
        for code, name in zip(json.loads(done.stdout), names, strict=True)
    ]


@pytest.mark.parametrize("closed", [[], [1], [2], [0, 1, 2]])
def test_help_of_every_command(closed: list[int], tmp_path: Path) -> None:
    cases = [([*name, "--help"], closed) for name in ((), ("runs",), ("kernel",), *NAMES)]
    for (words, _), (code, said, told) in zip(cases, ended(cases, "ascii", tmp_path), strict=True):
        assert (code, told) == (0, ""), (words, told)
        assert said.isascii() and (1 in closed or "Usage" in said), words


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "é.toml").write_text(EXPERIMENT, encoding="utf-8")
    redtail.run(folder / "é.toml", out=folder / "runs")
    return folder


def outputs(made: Path) -> list[list[str]]:
    """Return commands that print much of what there is to print."""
    (experiment,) = (path.name for path in (made / "runs").iterdir() if path.is_dir())
    runs = sorted(each.name for each in (made / "runs" / experiment).iterdir())
    key = next(name for name in runs if RUN_NAME.fullmatch(name))
    results = f"runs/{experiment}"
    return [
        ["--version"],
        *(["list", part] for part in ("queues", "tcp", "traffic", "metrics")),
        ["list", "queues", "red"],
        ["schema"],
        ["init"],
        ["doctor", "--json"],
        ["check", "é.toml"],
        ["check", "none-é.toml"],
        ["check", "\udcff.toml"],
        ["run", "é.toml", "--no-figures"],
        ["run", "é.toml", "--json"],
        ["run", "é.toml", "--format", "markdown"],
        ["run", "é.toml", "--dry-run"],
        ["report", results],
        ["replay", results, "--case", "0", "--output", "é.html"],
        ["explain", results, "--case", "0"],
        ["explain", results, "--case", "1", "--flow", "0", "--json"],
        ["figures", results, "--list"],
        ["compare", results, "--metric", "goodput"],
        ["compare", results, "--metric", "goodput", "--json"],
        ["diff", results, results],
        ["diff", results, results, "--json"],
        ["pack", results, "-o", "é.zip"],
        ["run", "é.zip", "--verify"],
        ["run", "é.zip", "--verify", "--json"],
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["runs", "show", experiment],
        ["runs", "show", key, "--json"],
        ["runs", "verify"],
        ["runs", "watch"],
        ["runs", "gc"],
        ["kernel", "list"],
        ["measure", "127.0.0.1:1"],
        ["parameters", "red", "--rate", "10 Mbit/s", "--rtt", "100 ms"],
        ["é"],
    ]


@pytest.mark.parametrize("part", some_weekly(range(4), lambda part: part > 0))
def test_outputs_with_any_encoding_and_closed_streams(part: int, made: Path) -> None:
    cases = outputs(made)[part::4]
    plain = ended([(words, []) for words in cases], "utf-8", made)
    for encoding, closed in (("ascii", []), ("latin-1", [1])):
        found = ended([(words, closed) for words in cases], encoding, made)
        for words, wanted, (code, said, told) in zip(cases, plain, found, strict=True):
            assert "Traceback" not in told, (words, told)
            assert code == wanted[0], (words, encoding, closed, told)
            if encoding == "ascii":
                assert said.isascii() and told.isascii(), words
            if "--json" in words and not closed:
                assert json.loads(said) == json.loads(wanted[1]), words


@pytest.mark.parametrize("words", [["list", "queues"], ["run", "é.toml", "--json"], ["--help"]])
def test_a_reader_that_ends_early_gets_no_traceback(words: list[str], made: Path) -> None:
    command = [sys.executable, "-c", "from redtail.cli import main; main()", *words]
    with subprocess.Popen(
        command, cwd=made, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=4096
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 1)


# --- Where results may be -------------------------------------------------------------------

URL = "memory://bucket/runs"

NAME = "given"

# Commands that read results which are in an object store, by name and by URL.
READ = {
    ("report",): [[NAME, "--out", URL], [f"{URL}/{NAME}"], ["Given!", "--out", f"{URL}/"]],
    ("explain",): [[NAME, "--case", "0", "--out", URL], [f"{URL}/{NAME}", "--case", "1"]],
    ("replay",): [[NAME, "--case", "0", "--out", URL], [f"{URL}/{NAME}", "--case", "1"]],
    ("figures",): [[NAME, "--list", "--out", URL], [f"{URL}/{NAME}", "--list"]],
    ("qlog",): [[NAME, "--out", URL, "--case", "0"], [f"{URL}/{NAME}", "--case", "1"]],
    ("pack",): [[NAME, "--out", URL], [f"{URL}/{NAME}"]],
    ("diff",): [[NAME, NAME, "--out", URL], [f"{URL}/{NAME}", NAME, "--out", URL]],
    ("compare",): [[f"{URL}/{NAME}", "--metric", "goodput"]],
    ("runs", "list"): [["--out", URL]],
    ("runs", "show"): [[NAME, "--out", URL]],
    ("runs", "verify"): [["--out", URL], [NAME, "--out", URL]],
}

# Commands that make runs; `tests/store/test_objects.py` has what is common to them.
MAKE = {("run",), ("expect",), ("shell",), ("advise",), ("tune",), ("validate",)}

# Commands for folders alone, of which the help says so.
FOLDERS = {
    ("evaluate",): ["rfc7928"],
    ("reproduce",): ["iscc2001"],
    ("runs", "watch"): [],
    ("runs", "gc"): [],
}


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results in an object store, and no copy of them here."""
    monkeypatch.setenv("REDTAIL_CACHE", str(tmp_path / "cache"))
    fsspec.filesystem("memory").store.clear()
    text = EXPERIMENT.replace("Ουρά, 5 µs ± 1 😀", "Given!")
    (tmp_path / "given.toml").write_text(text, encoding="utf-8")
    redtail.run(tmp_path / "given.toml", out=URL)
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_with_out_says_whether_it_takes_a_url() -> None:
    helps = {
        name: option.help
        for name, command in commands()
        for option in command.params
        if "--out" in option.opts and name not in (("init",), ("import",))
    }
    assert helps.keys() == READ.keys() | MAKE | FOLDERS.keys(), "a new command is missing here"
    for name, text in helps.items():
        assert ("URL" in text) == (name not in FOLDERS), name


@pytest.mark.parametrize("name", READ, ids=" ".join)
def test_results_are_read_from_an_object_store(name: tuple[str, ...], there: Path) -> None:
    for words in READ[name]:
        shutil.rmtree(there / "cache", ignore_errors=True)
        done = invoked(*name, *words)
        assert done.exit_code == 0, (words, done.output)
        assert "/redtail-" not in done.output, "a temporary folder, which is gone"
    none = [each.replace(NAME, "none") for each in READ[name][0]]
    if name == ("compare",) or "none" not in " ".join(none):
        return
    done = invoked(*name, *none)
    assert done.exit_code == 1
    assert "none" in done.output and NAME in done.output and URL in done.output, done.output
    assert "/redtail-" not in done.output


@pytest.mark.parametrize("name", FOLDERS, ids=" ".join)
def test_other_commands_refuse_a_url(name: tuple[str, ...], there: Path) -> None:
    done = invoked(*name, *FOLDERS[name], "--out", URL)
    assert done.exit_code == 2 and f"--out {URL}" in done.output


def test_an_archive_of_results_in_an_object_store_repeats(there: Path) -> None:
    assert invoked("pack", NAME, "--out", URL, "-o", "there.zip").exit_code == 0
    assert invoked("run", "there.zip", "--verify").exit_code == 0
    redtail.run(there / "given.toml", out=there / "runs")
    assert invoked("pack", NAME, "-o", "here.zip").exit_code == 0

    def names(archive: str) -> set[str]:
        import zipfile

        return set(zipfile.ZipFile(archive).namelist())

    assert names("there.zip") == names("here.zip")
