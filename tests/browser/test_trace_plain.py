"""The same page without JavaScript shows the same text, the diff, and all the rest that needs no script."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.trace_page import TracePage


@pytest.fixture
def trace(plain_page: Page, server: Server, compile_example: Callable[..., dict[str, Any]]) -> TracePage:
    group = compile_example("softmax", targets=["sm_90"])
    return TracePage(plain_page, server, group["traces"][0]["id"])


@pytest.fixture
def large(plain_page: Page, server: Server, compile_example: Callable[..., dict[str, Any]]) -> TracePage:
    group = compile_example("attention", targets=["sm_90"])
    return TracePage(plain_page, server, group["traces"][0]["id"])


def lines(trace: TracePage) -> list[str]:
    expect(trace.page.locator(".plain .line").first).to_be_visible()
    return trace.page.locator(".plain .line code").all_text_contents()


@pytest.mark.parametrize("address", ["ttgir:1", "ptx", "sass"])
def test_the_text_is_the_stored_one(trace: TracePage, address: str) -> None:
    trace.page.goto(f"/t/{trace.id}?pass={address}&view=text")
    assert lines(trace) == trace.text(address)[:2000]
    expect(trace.page.locator(".plain .tok-o").first).to_be_attached()


def test_the_diff_counts_what_the_list_counts(trace: TracePage) -> None:
    address = trace.changed[3]
    trace.page.goto(f"/t/{trace.id}?pass={address}")
    expect(trace.page.locator('.plain .line[data-kind="add"]')).to_have_count(trace.rows[address]["plus"])
    expect(trace.page.locator('.plain .line[data-kind="del"]')).to_have_count(trace.rows[address]["minus"])


def test_passes_are_links_and_the_view_is_kept(trace: TracePage) -> None:
    trace.page.goto(f"/t/{trace.id}")
    lines(trace)
    trace.page.locator(f'#list a[data-address="{trace.changed[2]}"]').click()
    expect(trace.page.locator('#list [aria-current="true"]')).to_have_attribute("data-address", trace.changed[2])
    trace.page.get_by_role("link", name="After").click()
    expect(trace.page).to_have_url(re.compile("view=text"))
    expect(trace.page.locator('.plain .line[data-kind="add"]')).to_have_count(0)
    assert lines(trace) == trace.text(trace.changed[2])[:2000]


def test_long_texts_come_in_windows(large: TracePage) -> None:
    address = max(large.rows, key=lambda each: large.rows[each]["lines"])
    assert large.rows[address]["lines"] > 2000
    large.page.goto(f"/t/{large.id}?pass={address}&view=text")
    expect(large.page.locator(".window")).to_contain_text("lines 1 to 2000 of")
    large.page.get_by_role("link", name="later lines").click()
    expect(large.page.locator("#L2001")).to_be_attached()
    assert lines(large) == large.text(address)[2000:4000]


@pytest.mark.parametrize(
    ("query", "words"), [("pass=source", "@triton.jit"), ("tab=resources", "registers"), ("tab=about", "ptxas")]
)
def test_the_other_tabs_need_no_script(trace: TracePage, query: str, words: str) -> None:
    trace.page.goto(f"/t/{trace.id}?{query}")
    expect(trace.page.locator("main")).to_contain_text(words)


def test_nothing_that_needs_a_script_is_shown(trace: TracePage) -> None:
    trace.page.goto(f"/t/{trace.id}")
    lines(trace)
    for selector in ("[data-find]", "[data-filter]", "#against", "#strip", ".acts > [data-do=share]", "#card"):
        expect(trace.page.locator(selector)).to_be_hidden()
