"""The laboratory on the site: its built page as `lab/`, a button, and a scene on each queue's page.

Without `make lab` there is no page, and the site has none of this.
"""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path

import redtail
from redtail.experiment import toml_key, toml_value

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "target" / "lab"
SCENES = ROOT / "lab" / "scenes"
LOAD_STEP = ROOT / "docs" / "queues" / "load-step.toml"

BESIDE = "tail-drop"
"""The kind of queue that others are shown beside."""

PICTURE = "figures/lab.png"

BUTTON = '<p><a class="md-button md-button--primary" href="{to}">Open the laboratory</a></p>'

FRAME = """

## In the laboratory

{says} Your browser simulates it.

<iframe class="lab" loading="lazy" src="../lab/embed.html#{fragment}" title="{title}"></iframe>
"""


def files(built: Path = BUILT) -> dict[str, Path]:
    """Return the files of the built page by their names on the site; none if it is not built."""
    if not (built / "index.html").is_file():
        return {}
    return {
        f"lab/{path.relative_to(built).as_posix()}": path
        for path in sorted(built.rglob("*"))
        if path.is_file()
    }


def experiments() -> dict[str, str]:
    """Return the experiment of each kind of queue without a scene, by its name on the site."""
    return {f"lab/queues/{kind}.toml": load_step(kind) for kind in _cases() if not scene_of(kind)}


def with_button(markdown: str) -> str:
    """Put a button before the picture of the laboratory."""
    at = markdown.rindex("\n![", 0, markdown.index(PICTURE)) + 1
    return f"{markdown[:at]}{BUTTON.format(to='lab/index.html')}\n\n{markdown[at:]}"


def with_scene(markdown: str, kind: str) -> str:
    """Put a scene at the end of a queue's page; the pages of no queue stay as they are."""
    if kind not in _cases():
        return markdown
    scene = scene_of(kind)
    if scene:
        fragment = f"scene={scene}"
        says = _told(scene)["summary"]
    else:
        fragment = f"file=queues/{kind}.toml"
        says = "The load step beside tail drop: 20 bulk flows, and 40 from 50 s to 150 s."
    title = html.escape(f"{kind} in the laboratory", quote=True)
    return markdown + FRAME.format(says=says, fragment=fragment, title=title)


@cache
def scene_of(kind: str) -> str | None:
    """Return the first scene of the menu that is about a kind of queue, if there is one."""
    names = json.loads((SCENES / "index.json").read_text())
    return next((name for name in names if kind in _told(name)["queues"]), None)


def load_step(kind: str) -> str:
    """Return the load step of a kind of queue beside that of tail drop, as an experiment file."""
    text = LOAD_STEP.read_text()
    shared = text[text.index("name =") : text.index("\n# A queue with the example")]
    cases = "".join(
        f"\n[[case]]\nname = {toml_value(each)}\n"
        + "".join(f"{toml_key(key)} = {toml_value(it)}\n" for key, it in _cases()[each].items())
        for each in (BESIDE, kind)
    )
    return shared.replace("replications = 1\n", "replications = 3\n") + cases


@cache
def _cases() -> dict[str, dict[str, object]]:
    """Return what the load step sets for each kind of queue."""
    return {
        case.labels["bottleneck.queue"]: dict(case.factors)
        for case in redtail.check(LOAD_STEP).cases
    }


@cache
def _told(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((SCENES / f"{name}.json").read_text())
    return found
