"""The command behind `make attack`; it goes on where it was stopped.

    python -m attack [PART ...] [--seed N] [--seconds S] [--rounds N]
    python -m attack --repeat FILE

Each round is so many cases of each part. What was found is in target/attack/found: the input, and
beside it what went wrong and the command that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from attack import identities, kills, mutate, recordings, schema
from attack.inputs import ROOT, copy_data

FOLDER = ROOT / "target" / "attack"
PARTS = ("mutate", "recordings", "identities", "schema", "kills", "validate", "watch")
# Cases of each part in a round.
ROUND = {
    "mutate": 300,
    "recordings": 1000,
    "identities": 100,
    "schema": 200,
    "kills": 1,
    "validate": 1,
    "watch": 1,
}

# Of so many experiments of the schema one is also run on one thread and on two.
_THREADS_EVERY = 50

# Far more than a check or a limited run takes, on a machine that is busy too.
_SECONDS = 120.0
_REPLICATIONS = 5
# A process estimates so many recordings.
_ESTIMATES = 1000


class Worker:
    """A process that checks files; a new one takes the place of one that died.

    Args:
        module: what it runs.
    """

    def __init__(self, module: str = "attack.worker") -> None:
        self.module = module
        self.process: subprocess.Popen[bytes] | None = None

    def attempt(self, path: Path) -> dict[str, str]:
        """Return what the worker says of a file, or how it died of it."""
        if self.process is None:
            tests = str(Path(__file__).parents[1])
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": tests},
                cwd=path.parent,
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has died since
            self.process.stdin.write(f"{path.name}\n".encode())
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], _SECONDS)
        line = self.process.stdout.readline() if ready else b""
        if line:
            answer: dict[str, str] = json.loads(line)
            return answer
        self.close()
        if not ready:
            return {"fault": f"no answer within {_SECONDS:.0f} s"}
        return {"fault": "the process died of it"}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Attack:
    """An attack with one seed.

    Args:
        seed: what all cases are made from.
        folder: where the state and what was found are kept.
    """

    def __init__(self, seed: int, folder: Path = FOLDER) -> None:
        self.seed = seed
        self.folder = folder
        self.state = folder / f"state-{seed}.json"
        self.done: dict[str, int] = dict.fromkeys(PARTS, 0)
        self.ends: dict[str, int] = {}
        self.faults: list[str] = []
        if self.state.exists():
            kept = json.loads(self.state.read_text())
            self.done |= kept["done"]
            self.ends = kept["ends"]
            # What somebody has taken away is dealt with.
            self.faults = [each for each in kept["faults"] if (folder / "found" / each).exists()]
        self.worker = Worker()
        self.estimator = Worker("attack.estimating")
        self._expected: dict[str, bytes] | None = None
        self._validation: kills.Validation | None = None
        copy_data(folder / "work")

    def one(self, part: str) -> None:
        """Make the next case of a part."""
        number = self.done[part]
        getattr(self, part)(number)
        self.done[part] += 1
        kept = {"done": self.done, "ends": self.ends, "faults": self.faults}
        aside = self.state.with_suffix(".new")
        aside.write_text(json.dumps(kept, indent=1))
        aside.replace(self.state)

    def mutate(self, number: int) -> None:
        """Check, and perhaps run, a damaged file."""
        name, data = mutate.mutant(self.seed, number)
        path = self.folder / "work" / "mutant.toml"
        path.write_bytes(data)
        answer = self.worker.attempt(path)
        end = answer.get("end", "fault")
        self.ends[end] = self.ends.get(end, 0) + 1
        if "fault" in answer:
            self.keep(f"mutate-{self.seed}-{number}.toml", data, f"from {name}\n{answer['fault']}")

    def recordings(self, number: int) -> None:
        """Estimate a line from a damaged recording."""
        name, data = recordings.mutant(self.seed, number)
        path = self.folder / "work" / f"recording-{self.seed}"
        path.write_bytes(data)
        answer = self.estimator.attempt(path)
        end = f"recording {answer.get('end', 'fault')}"
        self.ends[end] = self.ends.get(end, 0) + 1
        if "fault" in answer:
            self.keep(f"recordings-{self.seed}-{number}", data, f"from {name}\n{answer['fault']}")
        if number % _ESTIMATES == 0:
            self.estimator.close()  # what one process has freed hides what a recording takes

    def identities(self, number: int) -> None:
        """Run an experiment and look at its figures."""
        queue, text = identities.scenario(self.seed, number)
        try:
            wrong = identities.wrong(queue, text)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            name = f"identities-{queue}-{self.seed}-{number}.toml"
            self.keep(name, text.encode(), "\n".join(wrong))

    def schema(self, number: int) -> None:
        """Draw an experiment, run it, and look at its figures and packets."""
        text, wrong, valid = schema.experiment(self.seed, number)
        end = "valid" if valid else "never valid"
        self.ends[end] = self.ends.get(end, 0) + 1
        if valid:
            try:
                wrong += schema.wrong(text, threads=number % _THREADS_EVERY == 0)
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")
        if wrong:
            self.keep(f"schema-{self.seed}-{number}.toml", text.encode(), "\n".join(wrong))

    def kills(self, number: int) -> None:
        """Kill a campaign some times."""
        folder = self.folder / "killed"
        wrong = kills.wrong(self.seed, number, folder, self.expected, _REPLICATIONS)
        if wrong:
            self.keep(f"kills-{self.seed}-{number}.txt", b"", "\n".join(wrong))

    def close(self) -> None:
        """End the processes."""
        self.worker.close()
        self.estimator.close()

    def validate(self, number: int) -> None:
        """End a validation some times."""
        if self._validation is None:
            self._validation = kills.Validation(self.folder / "validation", kills.backends())
        if wrong := self._validation.wrong(self.seed, number):
            self.keep(f"validate-{self.seed}-{number}.txt", b"", "\n".join(wrong))

    def watch(self, number: int) -> None:
        """End a campaign and what watches it."""
        folder = self.folder / "watched"
        wrong = kills.watch_wrong(self.seed, number, folder, self.expected, _REPLICATIONS)
        if wrong:
            self.keep(f"watch-{self.seed}-{number}.txt", b"", "\n".join(wrong))

    @property
    def expected(self) -> dict[str, bytes]:
        """What a campaign leaves that nobody kills."""
        if self._expected is None:
            self._expected = kills.undisturbed(self.folder / "undisturbed", _REPLICATIONS)
        return self._expected

    def keep(self, name: str, data: bytes, fault: str) -> None:
        """Keep an input with what went wrong."""
        found = self.folder / "found"
        copy_data(found)
        path = found / name
        path.write_bytes(data)
        again = f"PYTHONPATH=tests {sys.executable} -m attack --repeat {path}"
        path.with_suffix(".why").write_text(f"{again}\n\n{fault}\n")
        self.faults.append(name)
        print(f"FOUND {path}\n{fault[-800:]}\nrepeat with: {again}", flush=True)

    def told(self) -> str:
        """How far it is, in a line."""
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        return (
            f"seed {self.seed}: {self.done['mutate']} files, {self.done['recordings']} recordings "
            f"({ends}), "
            f"{self.done['identities']} runs, {self.done['schema']} drawn experiments, "
            f"{self.done['kills']} killed campaigns, {self.done['validate']} validations, "
            f"{self.done['watch']} watched campaigns; "
            f"{len(self.faults)} faults"
        )


def repeat(path: Path) -> int:
    """Make one case again; 1 if it goes wrong again."""
    part, *_ = path.name.split("-")
    if part in ("mutate", "recordings"):
        worker = Worker("attack.worker" if part == "mutate" else "attack.estimating")
        answer = worker.attempt(path.resolve())
        worker.close()
        print(answer.get("fault") or answer["end"])
        return "fault" in answer
    if part == "schema":
        wrong = schema.wrong(path.read_text(), threads=True)
    elif part == "identities":
        queue = path.stem.removeprefix("identities-").rsplit("-", 2)[0]
        wrong = identities.wrong(queue, path.read_text())
    else:
        seed, number = map(int, path.stem.split("-")[1:])
        if part == "validate":
            wrong = kills.Validation(FOLDER / "validation", kills.backends()).wrong(seed, number)
        else:
            expected = kills.undisturbed(FOLDER / "undisturbed", _REPLICATIONS)
            made = kills.wrong if part == "kills" else kills.watch_wrong
            wrong = made(seed, number, FOLDER / "again", expected, _REPLICATIONS)
    print("\n".join(wrong) or "nothing is wrong")
    return bool(wrong)


def main() -> int:
    """Attack for so long, or so many rounds."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--repeat", type=Path)
    options = parser.parse_args()
    if options.repeat is not None:
        return repeat(options.repeat)
    if strangers := set(options.parts) - set(PARTS):
        parser.error(f"{', '.join(sorted(strangers))}: accepted: {', '.join(PARTS)}")
    attack = Attack(options.seed)
    end = time.monotonic() + options.seconds
    try:
        for _ in range(options.rounds):
            for part in options.parts or PARTS:
                for _ in range(ROUND[part]):
                    if time.monotonic() > end:
                        return bool(attack.faults)
                    attack.one(part)
            print(attack.told(), flush=True)
        return bool(attack.faults)
    finally:
        attack.close()
        print(attack.told())


if __name__ == "__main__":
    sys.exit(main())
