"""What a shell completes, asked by the script that `redtail --show-completion` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import ROOT

RUNS = ROOT / "tests" / "store" / "fixtures" / "results-0.1.0" / "runs"

_BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(_BASH is None, reason="there is no bash")

# What bash itself does when a user presses the tabulator, for several lines.
_ASK = r"""
eval "$(_REDTAIL_COMPLETE=source_bash redtail)"
complete -p redtail
while read -ra COMP_WORDS; do
    [ "${COMP_WORDS[-1]}" = . ] && COMP_WORDS[-1]=
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _redtail_completion redtail
    echo "${COMPREPLY[*]}"
done
"""


def _completed(lines: Sequence[str], folder: Path) -> list[list[str]]:
    """What bash offers for each line; a last word `.` stands for none begun."""
    done = subprocess.run(
        [str(_BASH), "--norc", "-c", _ASK],
        input="".join(f"{line}\n" for line in lines),
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "REDTAIL_KERNELS": str(folder),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    registered, *found = done.stdout.splitlines()
    # Where nothing is offered bash completes names of files.
    assert registered == "complete -o default -F _redtail_completion redtail"
    return [line.split() for line in found]


def test_bash_completes_the_names_that_redtail_knows(tmp_path: Path) -> None:
    asked = {
        "redtail va": ["validate"],
        "redtail list queues fq-": ["fq-codel", "fq-pie"],
        "redtail list tcp bbr3-": ["bbr3-google"],
        "redtail list laws linux-": ["linux-cubic", "linux-reno"],
        "redtail list metrics page_time_p": ["page_time_p50", "page_time_p95", "page_time_p99"],
        "redtail reproduce isc": ["iscc2001"],
        "redtail init small": ["small-office"],
        "redtail run x.toml --backend live": ["live", "live-tc"],
        "redtail compare x.toml --metric goo": ["goodput"],
        "redtail advise --access pp": ["pppoe-vdsl2", "pppoe-fibre"],
        "redtail advise --provider po": ["policer"],
        "redtail advise --rates sp": ["speed-test"],
        "redtail advise --use calls,ga": ["calls,games"],
        "redtail advise --objective ga": ["games"],
        "redtail advise --effort t": ["thorough"],
        "redtail advise --device op": ["openwrt", "opnsense"],
        # Of the folder of results, which is not there at first.
        "redtail runs show fold": [],
        f"redtail runs show --out {RUNS} fold": ["folders"],
        "redtail runs show --out s3://bucket/runs fold": [],
        "redtail kernel remove .": [],
        # Files are completed by the shell.
        "redtail run .": [],
    }
    assert dict(zip(asked, _completed(list(asked), tmp_path), strict=True)) == asked
