"""The URL holds the page's whole state: reload, marks, back and forward."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Faults, Server
from tests.browser.trace_page import TracePage


@pytest.fixture
def trace(page: Page, server: Server, compile_example: Callable[..., dict[str, Any]]) -> TracePage:
    group = compile_example("softmax", targets=["sm_90"])
    return TracePage(page, server, group["traces"][0]["id"])


def test_a_reload_shows_the_same(trace: TracePage) -> None:
    address = trace.changed[3]
    trace.open(f"?pass={address}")
    trace.press("u", "l")
    trace.expect_mode("unified")
    expect(trace.page).to_have_url(re.compile(r"view=unified.*locations=1"))
    trace.page.reload()
    trace.expect_mode("unified")
    trace.expect_at(address)
    expect(trace.page.locator("#locations")).to_be_checked()


def test_a_single_step_is_in_the_url_at_once(trace: TracePage) -> None:
    trace.open(f"?pass={trace.changed[3]}")
    show = "queueMicrotask(() => (document.title = location.search))"
    trace.page.evaluate(f"() => addEventListener('keydown', () => {show}, {{ once: true }})")
    trace.press("u")
    expect(trace.page).to_have_title(re.compile("view=unified"))


def test_clicks_on_numbers_mark_lines_and_the_url_keeps_them(trace: TracePage) -> None:
    trace.open("?pass=ttgir:1&view=text&locations=1")
    trace.number(8).click()
    expect(trace.page).to_have_url(re.compile("#L8$"))
    trace.number(11).click(modifiers=["Shift"])
    expect(trace.page).to_have_url(re.compile("#L8-L11$"))
    expect(trace.page.locator("#right .cm-line.is-marked")).to_have_count(4)
    trace.page.reload()
    expect(trace.page.locator("#right .cm-line.is-marked")).to_have_count(4)
    expect(trace.page.locator("#right .cm-line.is-marked").first).to_have_text(trace.text("ttgir:1")[7])
    trace.press("Escape")
    expect(trace.page.locator("#right .cm-line.is-marked")).to_have_count(0)
    expect(trace.page).not_to_have_url(re.compile("#L"))


@pytest.mark.parametrize("view", ["text", "diff", "unified"])
def test_marked_lines_are_in_view(trace: TracePage, view: str) -> None:
    address = next(a for a in trace.changed if a.startswith("llvm-dialect:") and trace.rows[a]["lines"] > 400)
    stored = trace.text(address)
    line = next(n for n in range(320, len(stored)) if " = llvm." in stored[n - 1])
    trace.open(f"?pass={address}&view={view}#L{line}")
    marked = trace.page.locator("#right .cm-line.is-marked")
    expect(marked).to_have_count(1)
    expect(marked).to_be_in_viewport()
    head = stored[line - 1].split(" loc(")[0]
    assert marked.inner_text()[:200] == head[:200]


def test_marks_stay_with_their_text(trace: TracePage) -> None:
    trace.open("?pass=ttgir:1&view=text#L9")
    trace.press("j")
    expect(trace.page).not_to_have_url(re.compile("#L"))
    expect(trace.page.locator("#right .cm-line.is-marked")).to_have_count(0)


def test_jumps_are_in_the_history_and_steps_are_not(trace: TracePage) -> None:
    first, second = trace.changed[0], trace.changed[4]
    trace.open(f"?pass={first}")
    trace.page.locator(f'#list a[data-address="{second}"]').click()
    trace.expect_at(second)
    trace.press("J", "J", "K")
    trace.expect_at(trace.changed[5])
    trace.page.go_back()
    trace.expect_at(first)
    trace.page.go_forward()
    trace.expect_at(trace.changed[5])


def test_tabs_are_in_the_url(trace: TracePage) -> None:
    trace.open()
    for name, query, words in [
        ("Resources", "tab=resources", "registers"),
        ("About this trace", "tab=about", trace.manifest["toolchain"]["tools"][0]["version"]),
        ("Source", "pass=source", "@triton.jit"),
    ]:
        tab = trace.page.get_by_role("tab", name=name, exact=True)
        tab.click()
        expect(trace.page).to_have_url(re.compile(re.escape(query)))
        expect(tab).to_have_attribute("aria-selected", "true")
        panel = trace.page.locator(f"#{tab.get_attribute('aria-controls')}")
        expect(panel).to_be_visible()
        expect(panel).to_contain_text(words)
        trace.page.reload()
        expect(panel).to_contain_text(words)
    trace.page.get_by_role("tab", name="Passes").click()
    expect(trace.page.locator("#work")).to_be_visible()


def test_about_names_versions_options_and_commands(trace: TracePage) -> None:
    trace.open("?tab=about")
    sheet = trace.page.locator("#sheet-about")
    for tool in trace.manifest["toolchain"]["tools"]:
        expect(sheet.get_by_role("row", name=f"{tool['name']} {tool['version']}").first).to_be_visible()
    for option in trace.manifest["options"]:
        expect(sheet.locator(".options")).to_contain_text(option)
    for command in trace.manifest["toolchain"]["commands"]:
        expect(sheet.locator(".commands")).to_contain_text(command)


def test_an_address_that_names_nothing_says_so(trace: TracePage, faults: Faults) -> None:
    faults.allow("404")
    trace.page.goto(f"/t/{trace.id}?pass=ttgir:999")
    expect(trace.page.get_by_role("alert")).to_contain_text("there is no ttgir:999")
    trace.page.get_by_role("link", name="Show the trace from its start").click()
    expect(trace.page.locator("#title-address")).to_have_text(trace.changed[0])
