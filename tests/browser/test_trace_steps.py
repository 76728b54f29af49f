"""Stepping through passes: keyboard, list, strip, folds and filter."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.trace_page import TracePage


@pytest.fixture
def trace(page: Page, server: Server, compile_example: Callable[..., dict[str, Any]]) -> TracePage:
    group = compile_example("softmax", targets=["sm_90"])
    return TracePage(page, server, group["traces"][0]["id"])


def test_it_opens_at_the_first_pass_that_changed_something(trace: TracePage) -> None:
    trace.open()
    expect(trace.page.locator("#title-address")).to_have_text(trace.changed[0])
    trace.expect_mode("diff")


def test_capital_j_and_k_walk_the_passes_that_changed_something(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[0]}")
    for address in trace.changed[1:6]:
        trace.press("J")
        trace.expect_at(address)
    for address in reversed(trace.changed[:5]):
        trace.press("K")
        trace.expect_at(address)


def test_j_and_k_walk_every_pass_and_stop_at_the_ends(trace: TracePage) -> None:
    first = f"{trace.manifest['stages'][0]['name']}:0"
    trace.open(f"?pass={first}")
    trace.press("k")
    trace.expect_at(first)
    for ordinal in range(1, 5):
        trace.press("j")
        trace.expect_at(f"ttir:{ordinal}")


def test_keys_reach_the_artifacts(trace: TracePage) -> None:
    trace.open("?pass=ptx")
    trace.press("J")
    artifacts = [item["name"] for item in trace.manifest["artifacts"] if not item["binary"]]
    trace.expect_at(artifacts[artifacts.index("ptx") + 1])


def test_a_pass_that_changed_nothing_shows_its_text_and_says_so(trace: TracePage) -> None:
    rows = trace.rows
    same = next(
        address
        for address, row in rows.items()
        if row["against"] and trace.digest(address) == trace.digest(row["against"])
    )
    trace.open(f"?pass={same}")
    trace.expect_mode("text")
    expect(trace.page.locator("#note")).to_contain_text("the same as")
    expect(trace.page.locator("#chips")).to_contain_text("changed nothing")


def test_the_list_says_what_each_pass_did(trace: TracePage) -> None:
    trace.open()
    address = trace.changed[1]
    row = trace.page.locator(f'#list a[data-address="{address}"]')
    expect(row.locator("ins")).to_have_text(f"+{trace.rows[address]['plus']:,}")
    expect(row.locator("del")).to_contain_text(f"{trace.rows[address]['minus']:,}")
    for stage in trace.manifest["stages"]:
        own = [item for item in stage["passes"] if item["parent"] is None]
        heading = trace.page.locator(f'#list section[data-stage="{stage["name"]}"] h2 small')
        expect(heading).to_contain_text(f"{len(own)} passes")
    every = sum(len(stage["passes"]) for stage in trace.manifest["stages"])
    expect(trace.page.locator("[data-filter-count]")).to_have_text(f"{every} passes")
    expect(trace.page.locator("#list a[data-address]")).to_have_count(
        every + len(trace.manifest["stages"]) + sum(not item["binary"] for item in trace.manifest["artifacts"])
    )


def test_folds_open_for_the_pass_one_stands_on_and_close_behind(trace: TracePage) -> None:
    quiet = next(a for a, row in trace.rows.items() if a.startswith("ttgir:") and row["against"] and not row["changed"])
    trace.open(f"?pass={quiet}")
    link = trace.page.locator(f'#list a[data-address="{quiet}"]')
    expect(link).to_be_visible()
    trace.press("J")
    expect(link).to_be_hidden()
    fold = trace.page.locator("#list .fold > summary", has_text="changed nothing").first
    fold.click()
    row = fold.locator("xpath=following-sibling::ol//a").first
    expect(row).to_be_visible()
    trace.press("J")
    expect(row).to_be_visible()


def test_nested_passes_stand_under_their_parent(trace: TracePage) -> None:
    child = next(item for item in trace.manifest["stages"][0]["passes"] if item["parent"])
    trace.open(f"?pass=ttir:{child['ordinal']}")
    link = trace.page.locator(f'#list a[data-address="ttir:{child["ordinal"]}"]')
    expect(link).to_be_visible()
    fold = link.locator("xpath=ancestor::details[1]")
    expect(fold.locator("summary").first).to_contain_text("inside")
    parent = fold.locator("xpath=../preceding-sibling::li[1]/a")
    expect(parent).to_have_attribute("data-address", f"ttir:{child['parent']}")
    expect(trace.page.locator("#card")).to_contain_text(f"ttir:{child['parent']}")


def test_the_card_keeps_the_exact_argument(trace: TracePage) -> None:
    pipelined = next(item for item in trace.manifest["stages"][1]["passes"] if "{" in item["argument"])
    trace.open(f"?pass=ttgir:{pipelined['ordinal']}")
    card = trace.page.locator("#card .argument")
    expect(card).to_contain_text(pipelined["name"])
    for option in re.findall(r"[\w-]+=\S+(?=[ }])", pipelined["argument"]):
        expect(card).to_contain_text(option)


def test_filter_finds_by_words_and_enter_goes_there(trace: TracePage) -> None:
    trace.open()
    trace.press("f")
    expect(trace.page.locator("[data-filter]")).to_be_focused()
    trace.page.keyboard.type("ttgir coalesce")
    shown = trace.page.locator("#list a[data-address]:visible")
    names = shown.all_inner_texts()
    assert names
    assert all("coalesce" in name for name in names)
    expect(trace.page.locator("[data-filter-count]")).to_contain_text(f"{len(names)} of ")
    address = shown.first.get_attribute("data-address")
    assert address
    trace.press("Enter")
    trace.expect_at(address)
    trace.press("Escape")
    expect(trace.page.locator("[data-filter]")).to_have_value("")
    expect(trace.page.locator("#list .fold").first).to_be_visible()


def test_the_strip_goes_to_a_pass(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[0]}")
    slider = trace.page.get_by_role("slider", name="Place in the pipeline")
    expect(slider).to_have_attribute("aria-valuetext", trace.changed[0])
    box = slider.bounding_box()
    assert box
    trace.page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 40)
    last = list(trace.rows)[: int(slider.get_attribute("aria-valuemax") or 0)][-1]
    trace.expect_at(last)
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuenow", str(int(slider.get_attribute("aria-valuemax") or 0) - 1))


def test_keys_typed_in_a_field_are_text(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[1]}")
    trace.press("/")
    trace.page.keyboard.type("jJkd")
    expect(trace.page.locator("[data-find] input")).to_have_value("jJkd")
    trace.expect_at(trace.changed[1])


def test_help_lists_the_keys_and_closes(trace: TracePage) -> None:
    trace.open()
    trace.press("?")
    expect(trace.page.get_by_role("dialog", name="Keys")).to_be_visible()
    trace.press("Escape")
    expect(trace.page.get_by_role("dialog", name="Keys")).to_be_hidden()
