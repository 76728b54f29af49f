"""The same page while its trace is compiled: stages and passes tick in, then it shows them."""

import time

from playwright.sync_api import Page, expect

from tests.browser.conftest import COMPILE_SECONDS, ROOT, Server
from tests.browser.trace_page import TracePage


def test_passes_tick_in_and_the_page_becomes_the_trace(page: Page, server: Server) -> None:
    source = (ROOT / "examples" / "softmax.py").read_text() + f"\n# {time.time_ns()}\n"
    made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_86"]})
    trace_id = made["traces"][0]
    page.goto(f"/t/{trace_id}")
    expect(page.locator("#list .stage").first).to_be_visible(timeout=COMPILE_SECONDS * 1000)
    main = page.locator("#main")
    expect(main).to_have_attribute("data-ready", "", timeout=COMPILE_SECONDS * 1000)
    expect(page.locator("#panes")).to_have_attribute("data-mode", "diff")
    expect(page.locator("#right .cm-line.is-added").first).to_be_visible()
    expect(main).to_have_attribute("data-status", "ok", timeout=COMPILE_SECONDS * 1000)
    trace = TracePage(page, server, trace_id)
    expect(page.locator('#list a[data-address="sass"]')).to_be_visible()
    expect(page.locator("#list .pending")).to_have_count(0)
    expect(page.locator("#facts")).to_contain_text(f"{trace.manifest['resources']['registers']} registers")
    expect(page.locator(".crumb")).to_contain_text(trace.manifest["kernel"]["name"])
    expect(page.locator("#progress")).to_be_hidden()
    trace.press("J")
    trace.expect_at(trace.changed[1])


def test_without_javascript_the_page_says_that_it_works(plain_page: Page, server: Server) -> None:
    source = (ROOT / "examples" / "softmax.py").read_text() + f"\n# {time.time_ns()}\n"
    made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_89"]})
    plain_page.goto(f"/t/{made['traces'][0]}")
    expect(plain_page.locator("#list a[data-address]").first).to_be_visible(timeout=COMPILE_SECONDS * 1000)
    expect(plain_page.locator(".plain .line").first).to_be_visible()


def test_a_page_opened_late_lists_each_stage_once(page: Page, server: Server) -> None:
    source = (ROOT / "examples" / "softmax.py").read_text() + f"\n# {time.time_ns()}\n"
    trace_id = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_75"]})["traces"][0]
    server.wait(f"/api/v1/traces/{trace_id}", lambda trace: trace["manifest"] is not None, COMPILE_SECONDS)
    page.goto(f"/t/{trace_id}")
    expect(page.locator("#main")).to_have_attribute("data-status", "ok", timeout=COMPILE_SECONDS * 1000)
    for stage in ("ttir", "ttgir", "llvm-dialect"):
        expect(page.locator(f'#list section[data-stage="{stage}"]')).to_have_count(1)
