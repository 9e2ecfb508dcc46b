"""Programs of users in virtual machines (`kind = "program"` with `--backend linux`)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import example_programs
import pytest
from test_linux import busy, everything_of, on_this_host

import redtail
from redtail import backends, experiment
from redtail.backends import Backend
from redtail.engine.plans import Plan
from redtail.errors import RunError, SpecError
from redtail.outcomes import Outcome

pytestmark = [
    pytest.mark.linux,
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
]


# Sends 100 kB from server to client, and prints what could differ between runs: how long it took,
# random numbers, an address of memory, and the date.
TOOL = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static char data[100000];

int main(int count, char **words) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[3]))};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    inet_aton(words[2], &to.sin_addr);
    if (!strcmp(words[1], "serve")) {
        if (bind(s, (void *)&to, sizeof to) || listen(s, 1)) return 1;
        int peer = accept(s, 0, 0);
        for (size_t done = 0; done < sizeof data;)
            done += write(peer, data + done, sizeof data - done);
        return 0;
    }
    struct timespec before, after;
    unsigned long drawn;
    size_t received = 0;
    ssize_t more;
    clock_gettime(CLOCK_REALTIME, &before);
    if (connect(s, (void *)&to, sizeof to)) return 2;
    while ((more = read(s, data, sizeof data)) > 0) received += more;
    clock_gettime(CLOCK_REALTIME, &after);
    getrandom(&drawn, sizeof drawn, 0);
    printf("{\"ms\": %.6f, \"bytes\": %zu, \"random\": %lu, \"at\": \"%p\", \"second\": %ld}\n",
           (after.tv_sec - before.tv_sec) * 1e3 + (after.tv_nsec - before.tv_nsec) / 1e6, received,
           drawn, (void *)&before, (long)after.tv_sec - 1577836800); /* since 2020-01-01 */
    return 0;
}
"""

TEXT = """
name = "programs in a machine"
duration = "2 s"
replications = 2

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "fq-codel" }

[[traffic]]
name = "tool"
kind = "program"
server = "exec ./tool serve {server} {port}"
client = "./tool fetch {server} {port} && echo $WORDS >&2 && ls / >{out}/root && exit $CODE"
files = ["tool"]
environment = { WORDS = "all is well", CODE = "0" }

[traffic.measure]
time = { json = "ms", unit = "ms" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "tool.c").write_text(TOOL)
    command = [compiler, "-O1", "-o", str(tmp_path / "tool"), str(tmp_path / "tool.c")]
    subprocess.run(command, check=True)
    (tmp_path / "tool.toml").write_text(TEXT)
    return tmp_path / "tool.toml"


def made(file: Path, **options: Any) -> tuple[Plan, Backend]:
    plan = experiment.prepare(file, **options)
    return plan, backends.bound(backends.find("linux"), plan)


def all_of(outcome: Outcome) -> dict[str, Any]:
    return {**everything_of(outcome), "programs": outcome.programs}


@on_this_host
def test_programs_do_the_same_each_time_on_a_busy_computer_too(file: Path) -> None:
    plan, maker = made(file)

    def run(replication: int = 0) -> Outcome:
        return maker.run(plan.scenario(0, replication), None, None, plan.traces)

    first = run()
    with busy():
        assert all_of(run()) == all_of(first)
    server, client = sorted(first.programs, key=lambda it: it.role, reverse=True)
    assert (server.code, client.code) == (0, 0)
    told = json.loads(client.output)
    assert told["bytes"] == 100_000 and 0 <= told["second"] < 60
    assert client.errors == b"all is well\n"
    # 100 kB of data take 84 ms at this rate, after a round trip for the connection.
    assert 0.1 <= client.ended_s - client.started_s < 0.4
    # The programs see their own root filesystem, and nothing of the machine's first process.
    names = client.files["root"].decode().split()
    assert "usr" in names and "init" not in names and "modules" not in names
    # Another replication draws other random numbers, and has addresses as before.
    other = next(it for it in run(1).programs if it.role == "client")
    drawn = json.loads(other.output)
    assert drawn["random"] != told["random"] and drawn["at"] == told["at"]
    # A program that fails is told with its words, and the run has no result.
    failing, maker = made(
        file,
        set=[
            "traffic.tool.environment.CODE='3'",
            "traffic.tool.environment.WORDS='no such page'",
        ],
    )
    with pytest.raises(RunError, match=r"(?s)client of pair 0.*exit code 3.*no such page"):
        maker.run(failing.scenario(0, 0), None, None, failing.traces)


@on_this_host
def test_the_content_of_programs_is_in_the_identity(file: Path, tmp_path: Path) -> None:
    _, plain = made(file)
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/sh").write_text("one")
    identities = [plain.identity(), backends.find("linux").identity()]
    for content in ("one", "two"):
        (folder / "bin/sh").write_text(content)
        identities.append(made(file, set=["programs.root='root'"])[1].identity())
    assert len(set(identities)) == 4
    with pytest.raises(SpecError, match=r"programs\.root.*is empty|no such file or folder"):
        made(file, set=["programs.root='none'"])


@on_this_host
@pytest.mark.weekly
@pytest.mark.parametrize("name", example_programs.NAMES)
def test_the_examples_run_in_a_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = example_programs.require(name, monkeypatch, small=True)
    texts = []
    for place in ("one", "two"):
        results = redtail.run(file, out=tmp_path / place, backend="linux", replications=1)
        texts.append([case.metrics for case in results.cases])
    assert texts[0] == texts[1]
