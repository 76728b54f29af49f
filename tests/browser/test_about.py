"""The about page, the error pages, and what all pages have in common."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Faults, Server

PAGES = ("/", "/about", "/nothing-here")


def test_about_names_the_toolchain_and_what_confines(page: Page, server: Server) -> None:
    about = server.get("/about.json")
    page.goto("/about")
    for tool in about["toolchain"]["tools"]:
        expect(page.get_by_role("row", name=re.compile(f"^{re.escape(tool['name'])} "))).to_contain_text(tool["sha256"])
    for name, mechanism in about["confinement"].items():
        if name != "trusted":
            expect(page.locator("dt", has_text=re.compile(f"^{name}$")).first).to_be_visible()
            expect(page.locator("dd", has_text=mechanism).first).to_be_visible()
    expect(page.get_by_text("60 s a process")).to_be_visible()


@pytest.mark.parametrize("path", ["/nothing-here", "/t/" + "x" * 22, "/g/" + "x" * 22])
def test_an_error_page_says_what_happened_where_and_what_to_do(page: Page, faults: Faults, path: str) -> None:
    faults.allow("404")
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text(path)
    expect(page.locator("main")).to_contain_text("Check the address")
    page.get_by_role("link", name="Compile a kernel").click()
    expect(page).to_have_url(re.compile("/$"))


def test_the_theme_follows_the_system_until_chosen(page: Page) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    page.emulate_media(color_scheme="dark")
    page.goto("/about")
    dark = page.evaluate(background)
    page.get_by_role("button", name="Switch to the light theme").click()
    light = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == light
    page.get_by_role("button", name="Switch to the dark theme").click()
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == light


@pytest.mark.parametrize("path", PAGES)
def test_content_does_not_move_while_a_page_loads(page: Page, faults: Faults, path: str) -> None:
    faults.allow("404")
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => {"
        " for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;"
        "}).observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.shift") < 0.02


@pytest.mark.parametrize("path", PAGES)
def test_every_control_has_a_name(page: Page, faults: Faults, path: str) -> None:
    faults.allow("404")
    page.goto(path)
    page.wait_for_load_state("networkidle")
    nameless = page.evaluate(
        "[...document.querySelectorAll('a[href], button, input, select, textarea, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility())"
        ".filter((e) => !(e.ariaLabel || e.labels?.length || e.textContent.trim()))"
        ".map((e) => e.outerHTML)"
    )
    assert nameless == []


def test_an_injected_script_does_not_run(page: Page, faults: Faults) -> None:
    faults.allow("Content Security Policy|404")
    answer = page.goto("/")
    assert answer
    assert "unsafe" not in answer.headers["content-security-policy"]
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')")
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
