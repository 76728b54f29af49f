"""A failed trace shows everything up to the failure, what was said, and where in the source."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import COMPILE_SECONDS, Server
from tests.browser.trace_page import TracePage

Compile = Callable[..., dict[str, Any]]


def test_a_failing_pass_is_marked_and_shown_first(page: Page, server: Server, compile_example: Compile) -> None:
    trace = TracePage(page, server, compile_example("fails_in_pass")["traces"][0]["id"])
    failure = trace.manifest["failure"]
    page.goto(f"/t/{trace.id}")
    expect(page.get_by_role("alert")).to_contain_text(failure["message"].splitlines()[0][:60])
    expect(page.locator("#title-address")).to_have_text(failure["address"])
    row = page.locator(f'#list a[data-address="{failure["address"]}"]')
    expect(row).to_contain_text("failed")
    expect(row).to_have_attribute("aria-current", "true")
    expect(page.locator("#right .cm-line").first).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator("#title-address")).not_to_have_text(failure["address"])


def test_what_the_compiler_said_leads_to_the_line(page: Page, server: Server, compile_example: Compile) -> None:
    trace = TracePage(page, server, compile_example("fails_in_pass")["traces"][0]["id"])
    said = next(item for item in trace.manifest["diagnostics"] if item["line"])
    page.goto(f"/t/{trace.id}")
    link = page.locator(f'#card a[data-source-line="{said["line"]}"]').first
    link.click()
    expect(page).to_have_url(re.compile(rf"pass=source#L{said['line']}$"))
    expect(page.locator("#source .cm-line.is-marked")).to_be_in_viewport()
    expect(page.locator("#source .source-remark").first).to_contain_text(said["message"][:40])
    page.locator("#source .source-remark a").first.click()
    expect(page.locator("#work")).to_be_visible()


def test_the_remarks_tab_lists_all(page: Page, server: Server, compile_example: Compile) -> None:
    trace = TracePage(page, server, compile_example("fails_in_pass")["traces"][0]["id"])
    page.goto(f"/t/{trace.id}")
    page.get_by_role("tab", name=re.compile("^Remarks")).click()
    expect(page.locator("#sheet-diagnostics tbody tr")).to_have_count(len(trace.manifest["diagnostics"]))


def test_a_kernel_that_ptxas_refuses_keeps_its_ptx(page: Page, server: Server, compile_example: Compile) -> None:
    trace = TracePage(page, server, compile_example("fails_in_ptxas")["traces"][0]["id"])
    page.goto(f"/t/{trace.id}")
    expect(page.locator('#list a[data-address="ptx"]')).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("#right .cm-content")).to_contain_text(".version")
    expect(page.locator("#facts")).to_have_text("failed")


def test_errors_in_ptx_stand_under_their_lines(page: Page, server: Server, compile_example: Compile) -> None:
    trace = TracePage(page, server, compile_example("fails_in_ptxas")["traces"][0]["id"])
    said = next(item for item in trace.manifest["diagnostics"] if item["address"] == "ptx" and item["line"])
    trace.open("?pass=llvm-ir")
    page.get_by_role("tab", name=re.compile("^Remarks")).click()
    page.locator(f'#sheet-diagnostics a[data-line="{said["line"]}"]').first.click()
    expect(page).to_have_url(re.compile(rf"pass=ptx&view=text#L{said['line']}$"))
    marked = page.locator("#right .cm-line.is-marked")
    expect(marked).to_be_in_viewport()
    expect(marked.locator("xpath=following-sibling::*[1]")).to_contain_text(said["message"][:40])


def test_an_error_in_the_source_is_shown_under_its_line(page: Page, server: Server) -> None:
    source = "import triton\n\nimport nothing_of_this_name\n"
    made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_90"]})
    trace_id = made["traces"][0]
    server.wait(f"/api/v1/traces/{trace_id}", lambda trace: trace["status"] == "failed", COMPILE_SECONDS)
    page.goto(f"/t/{trace_id}")
    expect(page.get_by_role("tab", name="Source", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("alert")).to_contain_text("nothing_of_this_name")
    remark = page.locator("#source .source-remark")
    expect(remark).to_contain_text("nothing_of_this_name")
    expect(page.locator("#source .cm-line", has_text="import nothing")).to_be_visible()
    page.get_by_role("tab", name="Passes").click()
    expect(page.locator("#list")).to_contain_text("No pass ran.")


def test_the_failure_of_a_guess_leads_to_the_fields(page: Page, server: Server) -> None:
    source = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, n):\n    tl.store(x, n + missing)\n"
    )
    trace = server.post("/api/v1/compiles", {"source": source, "args": {}, "targets": ["sm_90"]})["traces"][0]
    told = server.wait(f"/api/v1/traces/{trace}", lambda told: told["status"] in ("ok", "failed"), COMPILE_SECONDS)
    assert (told["status"], told["manifest"]["kernel"]["origin"]) == ("failed", "guessed")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"/t/{trace}")
    tag = page.locator(".crumb .guessed")
    expect(tag).to_be_in_viewport(ratio=1)
    assert tag.evaluate("tag => tag.scrollWidth <= tag.clientWidth")
    tag.click()
    expect(page.locator("#sheet-about")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/t/{trace}\?.*tab=about"))
    page.go_back()
    page.get_by_role("alert").get_by_role("link", name="change and compile again").click()
    expect(page.locator('[data-origin] [aria-pressed="true"]')).to_have_text("guessed")
