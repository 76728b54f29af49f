"""The page in narrow windows, with columns closed, in both themes; search; the source with remarks."""

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


def test_everything_is_on_one_screen(trace: TracePage) -> None:
    trace.open()
    for selector in ("#list", "#strip svg", "#views", "#panes", "#card", "#foot"):
        expect(trace.page.locator(selector)).to_be_in_viewport()
    assert trace.page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert trace.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_below_1100_the_details_are_a_tab(trace: TracePage) -> None:
    trace.page.set_viewport_size({"width": 1000, "height": 800})
    trace.open()
    expect(trace.page.locator("#card")).to_be_hidden()
    trace.page.get_by_role("tab", name="Details").click()
    expect(trace.page.locator("#card")).to_be_visible()
    expect(trace.page.locator("#work")).to_be_hidden()
    expect(trace.page.locator("#passes")).to_be_visible()


def test_below_760_the_passes_are_a_drawer(trace: TracePage) -> None:
    trace.page.set_viewport_size({"width": 700, "height": 900})
    trace.open()
    expect(trace.page.locator("#passes")).to_be_hidden()
    button = trace.page.locator("[data-drawer]")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    trace.page.locator(f'#list a[data-address="{trace.changed[2]}"]').click()
    trace.expect_at(trace.changed[2])
    expect(trace.page.locator("#passes")).to_be_hidden()
    trace.press("f")
    expect(trace.page.locator("[data-filter]")).to_be_focused()
    trace.press("Escape", "Escape")
    expect(trace.page.locator("#passes")).to_be_hidden()
    assert trace.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("name", "column"), [("Pass list", "#passes"), ("Details", "#card")])
def test_side_columns_close_and_stay_closed(trace: TracePage, name: str, column: str) -> None:
    trace.open()
    button = trace.page.get_by_role("button", name=name, exact=True)
    width = trace.page.locator("#work").bounding_box()["width"]  # type: ignore[index]  # it is visible
    button.click()
    expect(trace.page.locator(column)).to_be_hidden()
    assert trace.page.locator("#work").bounding_box()["width"] > width + 200  # type: ignore[index]  # it is visible
    trace.page.reload()
    expect(trace.page.locator(column)).to_be_hidden()
    button.click()
    expect(trace.page.locator(column)).to_be_visible()


def test_the_themes_colour_the_code(trace: TracePage) -> None:
    trace.open("?pass=ttgir:1&view=text")
    colour = "(e) => getComputedStyle(e).color"
    token = trace.page.locator("#right .tok-v").first
    light = token.evaluate(colour)
    trace.page.locator("[data-theme-toggle]").click()
    expect(trace.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert token.evaluate(colour) != light


def test_search_marks_this_text_and_lists_all_passes(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[0]}&view=text")
    trace.press("/")
    trace.page.keyboard.type("tt.load")
    expect(trace.page.locator("#right .is-match").first).to_have_text("tt.load")
    here = sum(line.count("tt.load") for line in trace.text(trace.changed[0]))
    expect(trace.page.locator("[data-matches]")).to_have_text(str(here))
    hit = trace.page.locator("#hits a", has_text="tt.load").last
    expect(hit).to_be_visible()
    target = re.search(r"pass=([^&]+)&view=text#L(\d+)", hit.get_attribute("href") or "")
    assert target
    hit.click()
    trace.expect_at(target[1])
    expect(trace.page.locator("#right .cm-line.is-marked")).to_contain_text("tt.load")


def test_an_expression_that_costs_too_much_is_ended_and_the_page_goes_on(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[0]}&view=text")
    trace.press("/")
    field = trace.page.locator("[data-find] input")
    trace.page.locator("[data-regex]").click()
    trace.page.keyboard.insert_text("(.+)+(.+)+(.+)+!!")
    expect(trace.page.locator("[data-matches]")).to_have_text("takes too long", timeout=30_000)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(trace.page.locator("#hits")).to_contain_text("takes too long", timeout=30_000)
    field.fill("tt\\.load")
    expect(trace.page.locator("#right .is-match").first).to_have_text("tt.load")
    expect(trace.page.locator("[data-matches]")).to_have_text(re.compile(r"^\d+$"))
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_search_takes_regular_expressions_and_forgives_unfinished_ones(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[0]}&view=text")
    trace.press("/")
    field = trace.page.locator("[data-find] input")
    trace.page.locator("[data-regex]").click()
    trace.page.keyboard.type("tt\\.(load|st")
    expect(field).to_have_attribute("aria-invalid", "true")
    trace.page.keyboard.type("ore)")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(trace.page.locator("#right .is-match").first).to_have_text(re.compile(r"^tt\.(load|store)$"))
    trace.press("Enter")
    expect(trace.page.locator("#right .is-match").first).to_be_in_viewport()
    trace.press("Escape")
    expect(field).to_have_value("")
    expect(trace.page.locator("#right .is-match")).to_have_count(0)


def test_tokens_are_coloured_in_each_language(trace: TracePage) -> None:
    for address, kinds in [("ttgir:1", "voltns"), ("llvm-ir", "votk"), ("ptx", "votkn"), ("sass", "vonk")]:
        trace.open(f"?pass={address}&view=text")
        for kind in kinds:
            expect(trace.page.locator(f"#right .tok-{kind}").first).to_be_attached()


def test_the_header_counts_resources(trace: TracePage) -> None:
    trace.open()
    has = trace.manifest["resources"]
    facts = trace.page.locator("#facts")
    expect(facts).to_contain_text(f"{has['registers']} registers")
    expect(facts).to_contain_text(f"{has['instructions']:,} SASS")
    expect(trace.page.locator(".crumb")).to_contain_text(trace.manifest["target"]["arch"])
    expect(trace.page.locator(".crumb .tag").last).to_have_text(trace.manifest["toolchain"]["name"])


def test_nothing_shifts_while_it_loads(trace: TracePage) -> None:
    trace.page.add_init_script(
        "window.shifted = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries())"
        " window.shifted += entry.value; }).observe({ type: 'layout-shift', buffered: true });"
    )
    trace.open(f"?pass={trace.changed[2]}")
    expect(trace.page.locator("#chips .chip").first).to_be_visible()
    assert trace.page.evaluate("window.shifted") < 0.02


def test_a_held_key_ends_where_it_was_released(trace: TracePage) -> None:
    trace.open("?pass=ttgir:0")
    for _ in range(30):
        trace.page.keyboard.down("j")
    trace.page.keyboard.up("j")
    trace.expect_at("ttgir:30")
    expect(trace.page.locator("#panes")).to_have_attribute("data-shown", re.compile(trace.digest("ttgir:30")))
