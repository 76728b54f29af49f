"""What comes to a finished trace on demand: LLVM's own passes, and the times of passes."""

import json
import re
import time
import urllib.request
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import COMPILE_SECONDS, ROOT, Compile, Server
from tests.browser.trace_page import TracePage

PATIENCE = COMPILE_SECONDS * 1000


def fresh_trace(server: Server) -> str:
    """Compile softmax as nobody has compiled it before, so that nothing was added to it."""
    source = (ROOT / "examples" / "softmax.py").read_text() + f"\n# {time.time_ns()}\n"
    trace_id = str(server.post("/api/v1/compiles", {"source": source, "targets": ["sm_80"]})["traces"][0])
    server.wait(f"/api/v1/traces/{trace_id}", lambda trace: trace["status"] == "ok", COMPILE_SECONDS)
    return trace_id


def llvm_rows(server: Server, trace_id: str) -> dict[str, Any]:
    rows = server.get(f"/api/v1/traces/{trace_id}")["summary"]["rows"]
    return {address: row for address, row in rows.items() if address.startswith("llvm-ir:")}


def test_llvm_passes_are_asked_for_stepped_through_and_there_after_a_reload(page: Page, server: Server) -> None:
    trace = TracePage(page, server, fresh_trace(server))
    trace.open()
    stages = page.locator('#list section[data-stage^="llvm-ir"], #list section[data-stage="llvm-codegen"]')
    expect(stages).to_have_count(0)
    page.get_by_role("button", name="Show LLVM passes").click()
    expect(stages).to_have_count(2, timeout=PATIENCE)
    expect(page.get_by_role("button", name="Show LLVM passes")).to_have_count(0)
    stage = page.locator('#list section[data-stage="llvm-ir"]')
    expect(stage.locator(".stage small")).to_contain_text(re.compile(r"\d+ passes · \d+ changed"))
    expect(stage.locator(".fold").first).to_contain_text("changed nothing")

    rows = llvm_rows(server, trace.id)
    changed = [address for address, row in rows.items() if row["changed"]]
    first = changed[0]
    stage.locator(f'a[data-address="{first}"]').click()
    trace.expect_at(first)
    trace.expect_mode("diff")
    expect(page.locator("#right .cm-line.is-added").first).to_be_visible()
    expect(page.locator("#chips")).to_contain_text(f"{rows[first]['minus']} line")
    trace.press("J")
    trace.expect_at(changed[1])
    trace.press("K", "k")
    before = f"llvm-ir:{int(first.split(':')[1]) - 1}"
    trace.expect_at(before)
    trace.press("j")
    trace.expect_at(first)

    page.reload()
    trace.expect_at(first)
    expect(page.locator("#panes")).to_have_attribute("data-shown", re.compile("."))
    expect(page.locator("#right .cm-line.is-added").first).to_be_visible()
    expect(page.locator("#foot-what")).to_contain_text("LLVM")


def test_progress_of_the_second_compilation_is_told(page: Page, server: Server, compile_example: Compile) -> None:
    trace_id = compile_example("matmul", targets=["sm_80"])["traces"][0]["id"]
    trace = TracePage(page, server, trace_id)
    trace.open()
    page.get_by_role("button", name="Show LLVM passes").click()
    expect(page.locator('[data-addendum="llvm-passes"] [data-said]')).to_contain_text(re.compile(r"\d+ passes: \w+"))
    expect(page.locator('#list section[data-stage="llvm-codegen"]')).to_be_visible(timeout=PATIENCE)


def test_pass_times_stand_beside_the_passes_and_in_their_sheet(page: Page, server: Server) -> None:
    trace = TracePage(page, server, fresh_trace(server))
    trace.open()
    expect(page.locator("#list .time")).to_have_count(0)
    page.get_by_role("button", name="Time the passes").click()
    expect(page.locator('#list a[data-address="ttgir:1"] .time')).to_contain_text(" ms", timeout=PATIENCE)
    times = server.get(f"/api/v1/traces/{trace.id}/pass-times")["times"]
    slowest = max(times["passes"], key=lambda item: item["median"])
    page.goto(f"/t/{trace.id}?tab=about")
    row = page.locator(".pass-times tbody tr").first
    expect(row).to_contain_text(slowest["address"])
    expect(row).to_contain_text(f"{1000 * slowest['median']:.1f} ms")


def test_upload_says_why_it_has_no_llvm_passes(page: Page, server: Server) -> None:
    trace_id = fresh_trace(server)
    with urllib.request.urlopen(f"{server.url}/api/v1/traces/{trace_id}/file") as answer:
        data = answer.read()
    request = urllib.request.Request(
        f"{server.url}/api/v1/traces", data, {"Content-Type": "application/octet-stream"}, method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        uploaded = json.load(answer)["id"]
    page.goto(f"/t/{uploaded}")
    expect(page.locator('[data-addendum="llvm-passes"]')).to_contain_text("uploaded")
    expect(page.get_by_role("button", name="Show LLVM passes")).to_have_count(0)
