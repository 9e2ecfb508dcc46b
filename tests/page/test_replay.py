"""The picture that moves, read as a file and used in a browser."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsing import Browsed
from redtail.page import moving

HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>"

CHANGED = "before => document.querySelector('.stage').toDataURL() !== before"


def picture(name: str = "ftp") -> moving.Picture:
    """Return five packets of 1000 B at 1 Mbit/s, with room for two: the last two are dropped."""
    ms = 1e-3
    packets = moving.Packets(
        arrival_s=ms * np.arange(5.0),
        out_s=ms * np.array([0.0, 8.0, 16.0, 3.0, 4.0]),
        flow=np.array([0, 1, 0, 1, 0]),
        bytes=np.full(5, 1000.0),
        fate=np.array([moving.SENT] * 3 + [moving.DROPPED] * 2),
        mark=np.array([0, 0, moving.AT_DEPARTURE, 0, 0]),
        reason=np.array([0, 0, 0, 1, 1]),
    )
    return moving.Picture(
        title=name,
        facts=[("Link", name)],
        window=(0.0, 30 * ms),
        start_s=0.0,
        groups=[name],
        flows=[(0, 0), (0, 1)],
        reasons=["", "limit"],
        packets=packets,
        told=[moving.Told(20 * ms, "timeout", f"timeout after 19 ms {name}", 1)],
        curve_times_s=[0.0, 15 * ms, 30 * ms],
        curves=[moving.Curve("cwnd", np.array([3.0, 4.0, np.nan]), 0)],
        rate_bps=1e6,
        limit=2.0,
    )


def numbers(data: str) -> Iterator[int]:
    """Yield numbers without sign, seven bits a byte, the lowest first."""
    value = shift = 0
    for byte in zlib.decompress(base64.b64decode(data)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def test_packets_are_encoded_to_the_tick() -> None:
    random = np.random.default_rng(46)
    count = 1000
    arrival = 12.0 + np.cumsum(random.exponential(1e-3, count))
    given = moving.Packets(
        arrival_s=arrival[::-1],
        out_s=(arrival + random.exponential(0.1, count))[::-1],
        flow=random.integers(0, 300, count),
        bytes=random.integers(40, 9000, count),
        fate=random.integers(0, 3, count),
        mark=random.integers(0, 3, count),
        reason=random.integers(0, 5, count),
    )
    found = moving.encoded(given)
    assert found["count"] == count
    columns = np.array(list(numbers(found["data"])), np.float64).reshape(5, count)
    came = found["base_s"] + np.cumsum(columns[0]) * found["tick_s"]
    assert np.abs(came - arrival).max() <= found["tick_s"]
    wait = (given.out_s - given.arrival_s)[::-1]
    assert np.abs(columns[1] * found["tick_s"] - wait).max() <= 2 * found["tick_s"]
    code = given.fate + 3 * given.mark + 9 * given.reason
    for column, expected in zip(columns[2:], (given.flow, given.bytes, code), strict=True):
        assert (column == expected[::-1]).all()
    assert len(found["data"]) < 12 * count


def test_a_picture_without_packets_is_a_page() -> None:
    nothing = np.array([])
    empty = moving.Packets(*[nothing] * 7)
    assert moving.encoded(empty)["count"] == 0


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Browsed]:
    found = Browsed(browser, moving.html(picture()), tmp_path / "replay.html")
    found.view.wait_for_selector('[data-name="play"]')
    yield found
    found.close()


def stage(opened: Browsed) -> str:
    return str(opened.view.evaluate("() => document.querySelector('.stage').toDataURL()"))


def words(opened: Browsed) -> tuple[str, str]:
    view = opened.view
    label = view.locator(".stage").get_attribute("aria-label")
    return view.locator('[data-text="time"]').text_content(), label


def test_steps_by_keyboard_show_what_happens(opened: Browsed) -> None:
    view = opened.view
    pictures = [stage(opened)]
    for _ in range(2):
        view.keyboard.press("ArrowRight")
        pictures.append(stage(opened))
    assert words(opened) == ("0.0020 s", "2 packets wait in the queue")
    assert len(set(pictures)) == 3
    view.keyboard.press("n")
    assert view.locator(".happened li").all_text_contents() == [
        "0.0030 s: ftp 1: packet of 1000 B dropped (limit)"
    ]
    assert "dropped (limit)" in view.locator('[data-text="spoken"]').text_content()
    view.keyboard.press("p")
    assert words(opened)[0] == "0.0000 s"
    view.keyboard.press("End")
    told = view.locator(".happened li").all_text_contents()
    assert told[0] == "0.0200 s: ftp 1: timeout after 19 ms ftp"
    assert told[1] == "0.0160 s: ftp 0: packet of 1000 B marked after 14 ms in the queue"
    facts = view.locator('[data-facts="now"] div').all_text_contents()
    assert "Dropped in the window2" in facts and "Marked in the window1" in facts
    view.keyboard.press("-")
    before = view.locator('[data-text="speed"]').text_content()
    view.keyboard.press("+")
    assert view.locator('[data-text="speed"]').text_content() != before


def test_it_plays_pauses_and_is_moved_by_its_slider(opened: Browsed) -> None:
    view = opened.view
    slider = view.locator('[data-name="time"]')
    slider.focus()
    view.keyboard.press("ArrowRight")
    assert float(slider.input_value()) > 0
    for _ in range(8):  # so slow that it does not end by itself: in 40 s
        view.keyboard.press("-")
    before = stage(opened)
    play = view.locator('[data-name="play"]')
    play.click()
    assert play.text_content() == "Pause"
    view.wait_for_function(CHANGED, arg=before)
    view.locator("h1").click()
    view.keyboard.press("Space")
    assert play.text_content() == "Play"


def test_nothing_flies_where_motion_is_not_wanted(opened: Browsed) -> None:
    opened.view.keyboard.press("ArrowRight")
    flying = stage(opened)
    opened.view.emulate_media(reduced_motion="reduce")
    opened.view.wait_for_function(CHANGED, arg=flying)
    still = stage(opened)
    opened.view.get_by_role("button", name="Dark").press("Enter")
    assert stage(opened) != still


def test_names_of_users_are_harmless(browser: Any, tmp_path: Path) -> None:
    text = moving.html(picture(HOSTILE))
    assert text.lower().count("</script") == 2 and "<img" not in text
    assert len(text) < moving.LARGEST / 10
    opened = Browsed(browser, text, tmp_path / "replay.html")
    opened.view.wait_for_selector('[data-name="play"]')
    opened.view.keyboard.press("End")
    assert HOSTILE in opened.view.locator(".happened li").first.text_content()
    assert opened.view.locator("h1").text_content() == HOSTILE
    assert opened.view.evaluate("() => window.hit") is None
    assert opened.view.locator("img").count() == 0
    opened.close()
