"""The laboratory's page in Chromium, with the engine in it."""

from __future__ import annotations

import base64
import csv
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import redtail
from lab_site import BUILT, Lab, served

HOSTILE = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def lab(browser: Any, site: str) -> Iterator[Lab]:
    made = Lab(browser, site)
    yield made
    made.close()


def packed(value: object) -> str:
    """The value as the page packs it into a link."""
    return deflated(json.dumps(value).encode())


def deflated(data: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(data, wbits=-15)).decode().rstrip("=")


def test_the_default_tells_a_story(lab: Lab) -> None:
    lab.open().settle()
    assert [lab.knob(f"queues.{side}.kind").input_value() for side in (0, 1)] == [
        "tail-drop",
        "fq-codel",
    ]
    assert "±" in lab.part("side-0").locator("dl").inner_text()
    table = {row[0]: row[1:] for row in lab.table()}
    assert table["Queueing delay, 95 %"][2].startswith("lower by ")
    # Ten runs see none in which the call shares a bucket with a download: there is no interval.
    call = table["Call quality (1 to 5), calls"]
    assert "±" in call[0]
    assert call[2].startswith("undecided")
    assert "share a bucket" in call[1]
    assert "means of 10 runs" in lab.part("runs").inner_text()
    # Charts are not blank, and the two queues differ.
    left, right = lab.charts(0), lab.charts(1)
    assert len(left) == len(right) == 2
    assert left[0] != right[0]


def test_a_knob_changes_what_is_drawn(lab: Lab) -> None:
    lab.open()
    before, numbers = lab.charts(0), lab.settle().table()
    drawn = lab.draws()
    lab.knob("buffer").focus()
    lab.view.keyboard.press("ArrowLeft")
    lab.await_draw(drawn).settle()
    assert lab.field("buffer") == "200"
    assert lab.charts(0)[0] != before[0]
    assert lab.table() != numbers
    assert 'limit = "200 ms"' in lab.toml()
    drawn = lab.draws()
    lab.knob("queues.1.kind").select_option("red")
    lab.await_draw(drawn)
    assert 'kind = "red", limit = "200 ms", min_th = "33 ms", max_th = "100 ms"' in lab.toml()
    lab.view.locator("details.parameters summary").nth(1).click()
    drawn = lab.draws()
    lab.view.locator("[data-parameter='1.max_p']").fill("0.3")
    lab.view.locator("[data-parameter='1.max_p']").press("Enter")
    lab.await_draw(drawn)
    assert "max_p = 0.3" in lab.toml()


def test_a_value_of_one_run_is_said_to_be_one(lab: Lab) -> None:
    lab.open().set("replications", "1")
    assert all("one run" in row[1] and row[3].startswith("undecided") for row in lab.table())
    assert "of one run" in lab.part("runs").inner_text()
    assert "±" not in lab.part("side-0").locator("dl").inner_text()


def test_a_link_restores_the_scene(lab: Lab, browser: Any, site: str) -> None:
    lab.open().set("rate", "7").set("replications", "3")
    drawn = lab.draws()
    lab.knob("ecn").check()
    lab.await_draw(drawn).settle()
    lab.view.wait_for_url(re.compile("#k="))
    text = lab.toml()
    assert "ecn = true" in text
    # What is written after the last change has settled is what the page is at.
    lab.part("copy-link").click()
    other = Lab(browser, site).open(lab.view.url.partition("#")[2]).settle()
    assert other.toml() == text
    assert (other.field("rate"), other.field("replications")) == ("7", "3")
    assert other.table() == lab.table()
    other.close()


def test_a_text_becomes_knobs_or_runs_as_it_is(lab: Lab) -> None:
    lab.open()
    text = lab.toml()
    drawn = lab.draws()
    lab.run(
        "# shorter\n"
        + text.replace('duration = "30 s"', 'duration = "12 s"').replace('"5 s"', '"2 s"')
    )
    lab.await_draw(drawn)
    assert lab.field("duration") == "12"
    assert lab.part("file").is_hidden()
    drawn = lab.draws()
    own = text.replace('name = "Laboratory"', f"name = {json.dumps(HOSTILE)}").replace(
        "Tail drop", "A <b>"
    )
    lab.run(own)
    lab.await_draw(drawn)
    assert lab.part("knobs").is_hidden()
    assert lab.part("side-0").locator("h2").inner_text() == "A <b>"
    assert lab.toml() == own
    lab.view.wait_for_url(re.compile("#t="))
    assert lab.view.evaluate("() => [window.hit, document.images.length]") == [None, 0]


def test_faults_are_told_with_line_and_key(lab: Lab) -> None:
    lab.open()
    lines = (
        lab.toml().replace('rate = "20 Mbit/s"', 'rate = "20 Mbit/s"\nunknown_key = 1').splitlines()
    )
    line = 1 + next(i for i, each in enumerate(lines) if "unknown_key" in each)
    lab.run("\n".join(lines))
    fault = lab.part("faults").locator("p").first
    fault.wait_for()
    assert f"{line}" in fault.inner_text()
    assert "unknown_key" in fault.inner_text()
    # The next good text takes the fault away.
    drawn = lab.draws()
    lab.run(
        "\n".join(each for each in lines if "unknown_key" not in each).replace(
            "seed = 1", "seed = 2"
        )
    )
    lab.await_draw(drawn)
    assert lab.part("faults").is_hidden()


def test_what_strangers_give_does_nothing(lab: Lab) -> None:
    # lab/tests/link.test.ts has the others.
    wrong = [
        f"k={packed({'knobs': {HOSTILE: 1}})}",
        f"t={deflated(bytes(10_000_000))}",
        f"scene={HOSTILE}",
    ]
    for fragment in wrong:
        lab.open(fragment)
        assert lab.part("faults").is_visible()
        assert lab.field("rate") == "20"
    view = {"cases": [0, 1], "open": "queue"}
    lab.open()
    given = {"name": HOSTILE, "text": f"name = {json.dumps(HOSTILE)}\n{HOSTILE}", "files": {}}
    lab.view.goto(f"{lab.page}#t={packed({'file': given, 'view': view})}")
    lab.part("faults").locator("p").first.wait_for()
    assert lab.view.title().startswith(HOSTILE)
    # A file of 10 MB is refused before anything reads it.
    lab.part("toml").click()
    large = {"name": "large.toml", "mimeType": "application/toml", "buffer": b"#" * 10_000_000}
    lab.part("open-file").set_input_files(large)
    lab.part("faults").get_by_text("accepted: up to").wait_for()
    assert lab.view.evaluate("() => [window.hit, document.images.length]") == [None, 0]


def test_the_slow_motion_goes_by_keys(lab: Lab) -> None:
    lab.open()
    stage, clock = lab.view.locator("canvas.stage").first, lab.part("packets").locator("output")
    lab.part("packets").get_by_text("Space: play, pause").wait_for()
    lab.part("packets").locator("h2").click()
    seen = {clock.inner_text(): stage.evaluate("it => it.toDataURL()")}
    for key in ("ArrowRight", "n", "Shift+ArrowLeft"):
        lab.view.keyboard.press(key)
        seen[clock.inner_text()] = stage.evaluate("it => it.toDataURL()")
    assert len(seen) == len(set(seen.values())) == 4
    assert re.fullmatch(r"Tail drop: \d+ packets wait", stage.get_attribute("aria-label") or "")
    lab.part("moment").fill("21.5")
    lab.part("moment").press("Enter")
    clock.filter(has_text="21.5000 s").wait_for()
    lab.part("packets").locator("h2").click()
    lab.view.keyboard.press(" ")
    lab.part("packets").get_by_role("button", name="Pause").wait_for()
    before = clock.inner_text()
    lab.part("packets").locator("output").filter(has_not_text=before).wait_for()
    lab.view.keyboard.press(" ")
    lab.part("packets").get_by_role("button", name="Play").wait_for()


def test_what_is_kept(lab: Lab, tmp_path: Path) -> None:
    lab.open()
    with lab.view.expect_download() as picture:
        lab.part("picture").click()
    picture.value.save_as(tmp_path / "lab.png")
    assert (tmp_path / "lab.png").read_bytes().startswith(b"\x89PNG")
    with lab.view.expect_download(lambda it: "series" in it.suggested_filename) as series:
        lab.part("csv").click()
    series.value.save_as(tmp_path / "series.csv")
    head, *rows = (tmp_path / "series.csv").read_text().splitlines()
    assert head.startswith("case,time_s,queue_packets,queue_bytes,queue_delay_s,drops,marks,")
    assert {row.partition(",")[0] for row in rows} == {"Tail drop", "FQ-CoDel"}


def test_redtail_run_has_the_same_numbers(lab: Lab, tmp_path: Path) -> None:
    lab.open().set("duration", "12").set("replications", "3").settle()
    (tmp_path / "lab.toml").write_text(lab.toml(), encoding="utf-8")
    with lab.view.expect_download(lambda it: "measures" in it.suggested_filename) as measures:
        lab.part("csv").click()
    measures.value.save_as(tmp_path / "measures.csv")
    rows = (tmp_path / "measures.csv").read_text(encoding="utf-8").splitlines()
    shown = {row["metric"]: row for row in csv.DictReader(rows)}
    results = redtail.run(tmp_path / "lab.toml", out=tmp_path / "runs")
    compared = 0
    for case in results.cases:
        for name in ("queue_delay_p95", "utilization", "downloads.goodput", "calls.mos"):
            found, own = shown[name], case.metric(name)
            assert float(found[f"{case.title}: mean"]) == own.mean
            half = found[f"{case.title}: half width of 95 %"]
            # Where one has no interval, neither has the other.
            assert (half == "") == (own.ci95 is None)
            assert own.ci95 is None or float(half) == pytest.approx(own.ci95, rel=1e-9)
            compared += 1
    assert compared == 8


def test_scenes_and_the_small_form(lab: Lab, browser: Any, site: str) -> None:
    names = json.loads((BUILT / "scenes" / "index.json").read_text())
    lab.open()
    assert lab.part("scenes").locator("option").count() == len(names) + 2
    small = Lab(browser, site, "embed.html")
    small.view.set_viewport_size({"width": 700, "height": 420})
    for name in names:
        small.open(f"scene={name}")
        title = json.loads((BUILT / "scenes" / f"{name}.json").read_text())["title"]
        assert small.part("title").inner_text() == title
        assert small.part("open").get_attribute("href") == f"index.html#scene={name}"
        assert small.part("faults").is_hidden()
        assert len(small.charts(0)) == len(small.charts(1)) == 1
    small.close()


def test_small_screens_and_names_of_controls(lab: Lab) -> None:
    lab.view.set_viewport_size({"width": 400, "height": 800})
    lab.open()
    assert lab.view.evaluate("() => document.documentElement.scrollWidth") == 400
    unnamed = """() => [...document.querySelectorAll("input, select, textarea, button")]
        .filter((it) => it.offsetParent)
        .filter((it) => !(it.labels?.length || it.ariaLabel || it.textContent.trim()))
        .map((it) => it.outerHTML)"""
    assert lab.view.evaluate(unnamed) == []
    unseen = """() => [...document.querySelectorAll("[role=img]")].filter((it) => !it.ariaLabel)
        .map((it) => it.outerHTML.slice(0, 100))"""
    assert lab.view.evaluate(unseen) == []


MOVED = """async () => {
  // What this computer does in JavaScript at the same time, in ms: the least of a few tries.
  const loop = () => {
    const begun = performance.now();
    let x = 1;
    for (let i = 0; i < 20_000_000; i++) { x ^= x << 13; x ^= x >>> 17; x ^= x << 5; }
    return performance.now() - begun + (x === 0 ? 1 : 0);
  };
  const slider = document.querySelector("[data-knob='rate']");
  const drawn = () => new Promise((resolve) => {
    new MutationObserver((_, watcher) => { watcher.disconnect(); requestAnimationFrame(resolve); })
      .observe(document.body, { attributeFilter: ["data-draws"] });
  });
  const loops = [], moves = [];
  for (let i = 0; i < 6; i++) {
    loops.push(loop());
    const done = drawn(), begun = performance.now();
    slider.value = String(Number(slider.value) + (i % 2 ? 1 : -1));
    slider.dispatchEvent(new Event("input"));
    await done;
    moves.push(performance.now() - begun);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return [Math.min(...moves), Math.min(...loops)];
}"""

#: With 4 a computer on which the loop takes 50 ms shows a run 200 ms after a knob has moved. It was
#: 2 where this was written.
MOST_LOOPS = 4.0


# Other work of the computer at that moment counts: once a week, and not with each push.
@pytest.mark.weekly
def test_a_run_is_shown_at_once(lab: Lab) -> None:
    lab.open()
    move, loop = lab.view.evaluate(MOVED)
    assert move / loop < MOST_LOOPS
