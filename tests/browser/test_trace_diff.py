"""Diffs: side by side, unified, folds, locations, and what a pass is compared with."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.trace_page import TracePage

PASS = "tritongpu-coalesce"


@pytest.fixture
def trace(page: Page, server: Server, compile_example: Callable[..., dict[str, Any]]) -> TracePage:
    group = compile_example("softmax", targets=["sm_90"])
    return TracePage(page, server, group["traces"][0]["id"])


@pytest.fixture
def coalesce(trace: TracePage) -> str:
    """The address of a pass that adds and removes lines."""
    item = next(item for item in trace.manifest["stages"][1]["passes"] if item["name"] == PASS)
    return f"ttgir:{item['ordinal']}"


def tops(trace: TracePage, selector: str) -> list[float]:
    return trace.page.eval_on_selector_all(selector, "list => list.map((e) => e.getBoundingClientRect().top)")


def numbers(trace: TracePage) -> set[str]:
    return set(trace.page.locator("#right .cm-number .cm-gutterElement:visible").all_inner_texts())


def test_sides_stand_row_by_row(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    trace.expect_mode("diff")
    added = trace.page.locator("#right .cm-line.is-added")
    assert added.count() == trace.rows[coalesce]["plus"]
    assert trace.page.locator("#left .cm-line.is-removed").count() == trace.rows[coalesce]["minus"]
    left, right = (tops(trace, f"#{side} .cm-line:not(.is-added, .is-removed)") for side in ("left", "right"))
    both = min(len(left), len(right))
    assert both > 10
    assert left[:both] == pytest.approx(right[:both], abs=0.5)


def test_scrolling_one_side_scrolls_the_other(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    trace.page.locator("#left .cm-scroller").evaluate("(e) => { e.scrollTop = 0; e.scrollLeft = 120; }")
    right = trace.page.locator("#right .cm-scroller")
    trace.page.wait_for_function(
        "() => { const [a, b] = ['left', 'right'].map((id) => document.querySelector(`#${id} .cm-scroller`));"
        " return a.scrollTop === b.scrollTop && a.scrollLeft === b.scrollLeft && b.scrollLeft > 0; }"
    )
    assert right.evaluate("(e) => e.scrollTop") == 0


def test_what_changed_is_marked_in_paired_lines(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    load = trace.page.locator("#right .cm-line.is-added", has_text="tt.load")
    words = load.locator(".is-added-word").all_inner_texts()
    assert words
    assert all(word.startswith(("%", "#")) for word in words)


def test_folds_say_how_much_they_hide_and_open(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    fold = trace.page.locator("#right .fold-row").first
    hidden = int(re.match(r"(\d+) lines", fold.inner_text())[1])  # type: ignore[index]  # the words are asserted by the match
    folds, before = trace.page.locator("#right .fold-row").count(), numbers(trace)
    fold.click()
    expect(trace.page.locator("#right .fold-row")).to_have_count(folds - 1)
    expect(trace.page.locator("#left .fold-row")).to_have_count(folds - 1)
    assert len(numbers(trace) - before) == hidden


def test_u_interleaves_and_d_shows_the_text(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    trace.press("u")
    trace.expect_mode("unified")
    row = trace.rows[coalesce]
    expect(trace.page.locator("#right .cm-line.is-added")).to_have_count(row["plus"])
    expect(trace.page.locator("#right .cm-line.is-removed")).to_have_count(row["minus"])
    signs = trace.page.locator("#right .cm-sign .cm-gutterElement").all_inner_texts()
    assert signs.count("+") == row["plus"]
    trace.press("d")
    trace.expect_mode("text")
    expect(trace.page).to_have_url(re.compile("view=text"))
    trace.press("d")
    trace.expect_mode("diff")


def test_the_text_is_the_stored_one(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}&view=text&locations=1")
    stored = trace.text(coalesce)
    drawn = trace.lines().all_inner_texts()
    assert len(drawn) > 30
    assert drawn == stored[: len(drawn)]


def test_before_shows_what_the_pass_received(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}&view=before&locations=1")
    received = trace.text(trace.rows[coalesce]["against"])
    drawn = trace.lines().all_inner_texts()
    assert drawn == received[: len(drawn)]


def test_locations_are_hidden_until_asked_and_numbers_stay(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}&view=text")
    stored = trace.text(coalesce)
    assert any(line.startswith("#loc") for line in stored)
    expect(trace.page.locator("#right .cm-content")).not_to_contain_text("loc(")
    module = next(number for number, line in enumerate(stored, 1) if line.startswith("module"))
    expect(trace.number(module)).to_be_visible()
    trace.press("l")
    expect(trace.page.locator("#right .cm-content")).to_contain_text("#loc = loc(")
    expect(trace.page.locator("#locations")).to_be_checked()
    expect(trace.page).to_have_url(re.compile("locations=1"))
    trace.press("l")
    expect(trace.page.locator("#right .cm-content")).not_to_contain_text("loc(")


@pytest.mark.parametrize("locations", [False, True], ids=["hidden", "shown"])
def test_copying_takes_what_is_shown(trace: TracePage, coalesce: str, locations: bool) -> None:
    trace.open(f"?pass={coalesce}&view=text{'&locations=1' if locations else ''}")
    trace.page.locator("#right .cm-content").click()
    trace.press("Control+a")
    copied = trace.page.evaluate(
        "() => { const data = new DataTransfer();"
        " const event = new ClipboardEvent('copy', {clipboardData: data, bubbles: true, cancelable: true});"
        " document.querySelector('#right .cm-content').dispatchEvent(event); return data.getData('text/plain'); }"
    )
    stored = trace.text(coalesce)
    if locations:
        assert copied.split("\n") == stored
    else:
        assert "loc(" not in copied
        assert "#loc" not in copied
        drawn = [text for text in trace.lines().all_inner_texts() if text.strip()]
        assert [line for line in copied.split("\n") if line.strip()][: len(drawn)] == drawn


def test_locations_are_hidden_in_diffs_too(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    for side in ("left", "right"):
        expect(trace.page.locator(f"#{side} .cm-content")).not_to_contain_text("loc(")
    trace.press("l")
    expect(trace.page.locator("#right .cm-content")).to_contain_text("loc(")


def test_any_other_snapshot_can_be_compared_with(trace: TracePage, coalesce: str) -> None:
    trace.open(f"?pass={coalesce}")
    trace.page.locator("#against").select_option("ttgir:0")
    expect(trace.page).to_have_url(re.compile("against=ttgir:0"))
    diff = trace.server.get(f"/api/v1/traces/{trace.id}/diff?from=ttgir:0&to={coalesce}")
    expect(trace.page.locator("#sizes")).to_contain_text(f"before · {diff['from']['lines']} lines")
    trace.page.locator("#against").select_option("ttir:1")
    expect(trace.page).to_have_url(re.compile("against=ttir:1"))
    trace.expect_mode("diff")
    trace.press("J")
    expect(trace.page).not_to_have_url(re.compile("against"))


def test_brackets_walk_the_changes(trace: TracePage, coalesce: str) -> None:
    trace.page.set_viewport_size({"width": 1440, "height": 460})
    trace.open(f"?pass={coalesce}")
    scroller = trace.page.locator("#right .cm-scroller")
    start = scroller.evaluate("(e) => e.scrollTop")
    trace.press("]")
    trace.page.wait_for_function(f"() => document.querySelector('#right .cm-scroller').scrollTop > {start}")
    trace.press("[")
    trace.page.wait_for_function(f"() => document.querySelector('#right .cm-scroller').scrollTop <= {start}")


def test_raw_encodings_come_with_r(trace: TracePage) -> None:
    trace.open("?pass=sass")
    encoding = re.compile(r"/\* 0x[0-9a-f]{16} \*/")
    expect(trace.page.locator("#right .cm-content")).not_to_contain_text(encoding)
    trace.press("r")
    expect(trace.page.locator("#right .cm-content")).to_contain_text(encoding)
    expect(trace.page.locator("#raw")).to_be_checked()
    expect(trace.page).to_have_url(re.compile("raw=1"))


def test_two_languages_stand_side_by_side_as_they_are(trace: TracePage) -> None:
    last = f"llvm-dialect:{len(trace.manifest['stages'][2]['passes'])}"
    trace.open(f"?pass=llvm-ir&against={last}")
    trace.expect_mode("diff")
    expect(trace.page.locator("#note")).to_have_text("two languages, side by side")
    expect(trace.page.locator("#left .cm-content")).to_contain_text("llvm.func")
    expect(trace.page.locator("#right .cm-content")).to_contain_text("target datalayout")
    expect(trace.page.locator("#panes .is-added, #panes .is-removed")).to_have_count(0)


def test_the_place_stays_when_the_view_changes(trace: TracePage) -> None:
    address = next(a for a in trace.changed if a.startswith("llvm-dialect:") and trace.rows[a]["lines"] > 400)
    trace.open(f"?pass={address}&view=text")
    trace.page.locator("#right .cm-scroller").evaluate("(e) => { e.scrollTop = 19 * 200; }")
    line = trace.number(trace_line := first_line(trace))
    for key, mode in [("d", "diff"), ("u", "unified"), ("d", "text")]:
        trace.press(key)
        trace.expect_mode(mode)
        expect(line).to_be_in_viewport()
    assert abs(first_line(trace) - trace_line) <= 2


def first_line(trace: TracePage) -> int:
    """The first line whose number is inside the pane."""
    script = """(cells) => Math.min(...cells.filter((cell) => {
      const top = document.querySelector('#right').getBoundingClientRect().top;
      return cell.textContent && cell.getBoundingClientRect().top >= top - 1;
    }).map((cell) => Number(cell.textContent)))"""
    return int(trace.page.locator("#right .cm-pick .cm-gutterElement:visible").evaluate_all(script))
