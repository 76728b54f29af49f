"""The exported page, opened from disk by a browser that is offline."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pipelines import tracefile
from pipelines.tracefile import TraceFile
from tests.app.helpers import build
from tests.app.hostile import hostile
from tests.browser.conftest import COMPILE_SECONDS, Faults, Server
from tests.browser.test_trace_addenda import fresh_trace
from tests.browser.trace_page import TracePage


@pytest.fixture
def disk(browser: Browser) -> Iterator[Page]:
    """A page that reaches nothing but files; it fails the test on errors and on any request to elsewhere."""
    faults = Faults("file://")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    context.set_default_timeout(15_000)
    faults.watch(context)
    yield context.new_page()
    context.close()
    assert faults.unexpected() == []


class Exported(TracePage):
    """A trace page in a file."""

    path: Path

    def open(self, query: str = "") -> None:
        """Go to the file and wait for its first text."""
        self.page.goto("about:blank")
        self.page.goto(f"file://{self.path}#{query.removeprefix('?')}" if query else f"file://{self.path}")
        expect(self.page.locator("#panes")).to_have_attribute("data-shown", re.compile("."))

    def expect_at(self, address: str) -> None:
        """Wait until the page shows an address, in its heading, list and URL."""
        shown = address if ":" in address else ""
        expect(self.page.locator("#title-address")).to_have_text(shown)
        expect(self.page.locator('#list [aria-current="true"]')).to_have_attribute("data-address", address)
        expect(self.page).to_have_url(re.compile(rf"[#&]pass={re.escape(address)}(&|$)"))


def export(server: Server, trace_id: str, path: Path) -> Path:
    with urllib.request.urlopen(f"{server.url}/api/v1/traces/{trace_id}/export.html", timeout=60) as answer:
        path.write_bytes(answer.read())
    return path


@pytest.fixture(scope="module")
def attention(
    server: Server, compile_example: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    trace = compile_example("attention")["traces"][0]["id"]
    return trace, export(server, trace, tmp_path_factory.mktemp("export") / "attention kernel.html")


@pytest.fixture
def trace(disk: Page, server: Server, attention: tuple[str, Path]) -> Exported:
    page = Exported(disk, server, attention[0])
    page.path = attention[1]
    return page


def test_it_steps_through_passes_by_keyboard(trace: Exported) -> None:
    trace.open()
    changed = trace.changed
    expect(trace.page.locator("#title-address")).to_have_text(changed[0])
    trace.expect_mode("diff")
    for address in changed[1:5]:
        trace.press("J")
        trace.expect_at(address)
    trace.press("K")
    trace.expect_at(changed[3])
    trace.press("j", "k")
    trace.expect_at(changed[3])
    trace.page.reload()
    expect(trace.page.locator("#title-address")).to_have_text(changed[3])


@pytest.mark.parametrize("address", ["ttgir:2", "llvm-ir", "ptx", "sass", "llvm-dialect:13"])
def test_texts_are_those_of_the_server(trace: Exported, address: str) -> None:
    trace.open(f"?pass={address}&view=text&locations=1")
    expected = trace.text(address)
    expect(trace.lines().first).to_have_text(expected[0])
    trace.press("Control+End")
    scroller = trace.page.locator("#right .cm-scroller")
    scroller.evaluate("(element) => { element.scrollTop = element.scrollHeight }")
    last = next(line for line in reversed(expected) if line.strip())
    expect(trace.lines().filter(has_text=last.strip()).last).to_be_visible()


def test_raw_sass_has_its_encodings(trace: Exported) -> None:
    trace.open("?pass=sass&view=text")
    expect(trace.page.locator("#right .cm-content")).not_to_contain_text("/* 0x")
    trace.press("r")
    expect(trace.page.locator("#right .cm-content")).to_contain_text("/* 0x")


def test_it_shows_what_a_pass_changed_as_the_server_does(trace: Exported, server: Server) -> None:
    address = next(name for name in trace.changed if name.startswith("ttgir:") and trace.rows[name]["plus"])
    against = trace.rows[address]["against"]
    trace.open(f"?pass={address}&view=unified")
    trace.expect_mode("unified")
    expect(trace.page.locator("#foot-what")).not_to_contain_text("aligned here")
    diff = server.get(f"/api/v1/traces/{trace.id}/diff?from={against}&to={address}")
    added = next(op for op in diff["ops"] if op[0] == 2 and op[4] > op[3])
    trace.open(f"?pass={address}&view=unified&lines=L{added[3] + 1}")
    expect(trace.page.locator("#right .cm-gutterElement.is-marked").first).to_be_visible()


def test_any_two_passes_are_compared_and_it_says_how(trace: Exported) -> None:
    trace.open("?pass=ttgir:30&against=ttgir:3")
    trace.expect_mode("diff")
    expect(trace.page.locator("#foot-what")).to_contain_text("aligned here, names not followed")
    trace.page.locator("#against").select_option("ttgir:5")
    expect(trace.page).to_have_url(re.compile("against=ttgir:5"))


def test_filter_search_source_remarks_and_resources_are_there(trace: Exported) -> None:
    page = trace.page
    trace.open()
    trace.press("f")
    page.keyboard.type("coalesce")
    expect(page.locator("[data-filter-count]")).to_contain_text("of")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    trace.press("/")
    page.keyboard.type("warp_group_dot")
    expect(page.locator("#hits a").first).to_contain_text("warp_group_dot")
    page.locator("#hits a").first.click()
    expect(page).to_have_url(re.compile(r"#pass=ttgir:\d+&view=text&lines=L\d+"))
    page.locator("#tab-source").click()
    expect(page.locator("#source .cm-content")).to_contain_text("import triton")
    page.locator("#tab-resources").click()
    expect(page.locator("#sheet-resources")).to_contain_text("registers")
    page.locator("#tab-about").click()
    expect(page.locator("#sheet-about")).to_contain_text("num_warps")
    expect(page.locator(".crumb")).to_contain_text("triton 3.9.0")


def test_an_endless_search_ends_and_the_page_goes_on(trace: Exported) -> None:
    page = trace.page
    trace.open()
    page.locator("[data-regex]").click()
    # Only the source, which is not in view, has a line to try this on.
    page.keyboard.type("Flash attention(.+)+(.+)+(.+)+!!")
    expect(page.locator("#hits")).to_contain_text("takes too long", timeout=30_000)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    address = trace.changed[-1]
    page.evaluate("(address) => { location.hash = `pass=${address}&view=text` }", address)
    trace.expect_at(address)


def test_its_link_themes_and_file_work(
    trace: Exported, server: Server, attention: tuple[str, Path], tmp_path: Path
) -> None:
    page = trace.page
    trace.open()
    page.locator("[data-theme-toggle]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    trace.press("e")
    link = page.locator("#export").get_by_role("link", name="Open on the server")
    expect(link).to_have_attribute("href", f"{server.url}/t/{attention[0]}")
    with page.expect_download() as download:
        page.locator("#export").get_by_role("button", name=".loupe").click()
    download.value.save_as(tmp_path / "saved.loupe")
    saved = TraceFile.open(tmp_path / "saved.loupe")
    saved.verify()
    assert saved.content == server.get(f"/api/v1/traces/{attention[0]}")["content"]


def test_a_link_opened_in_a_new_tab_finds_its_pass(trace: Exported) -> None:
    trace.page.goto(f"file://{trace.path}?pass=ttgir:5&view=text#L40")
    expect(trace.page.locator("#title-address")).to_have_text("ttgir:5")
    expect(trace.page.locator("#right .cm-gutterElement.is-marked").first).to_have_text("40")


def test_without_javascript_it_says_what_it_is(browser: Browser, attention: tuple[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(f"file://{attention[1]}")
    expect(page.locator(".unscripted")).to_contain_text("needs JavaScript")
    expect(page.locator(".unscripted pre")).to_contain_text("@triton.jit")
    context.close()


def test_the_file_is_small(attention: tuple[str, Path], server: Server) -> None:
    size = attention[1].stat().st_size
    with urllib.request.urlopen(f"{server.url}/api/v1/traces/{attention[0]}/file", timeout=60) as answer:
        trace = TraceFile(answer.read())
    assert size < 2 * len(trace.data) + (600 << 10)
    assert size < trace.text_size / 5


def test_passes_of_llvm_that_were_asked_for_are_there(disk: Page, server: Server, tmp_path: Path) -> None:
    trace_id = fresh_trace(server)
    server.post(f"/api/v1/traces/{trace_id}/llvm-passes", {})
    path = f"/api/v1/traces/{trace_id}"
    server.wait(path, lambda trace: trace["llvm_passes"]["status"] == "done", COMPILE_SECONDS)
    page = Exported(disk, server, trace_id)
    page.path = export(server, trace_id, tmp_path / "llvm.html")
    changed = [address for address in page.changed if address.startswith("llvm-ir:")]
    page.open(f"?pass={changed[0]}")
    page.expect_mode("diff")
    expect(disk.locator("#foot-what")).not_to_contain_text("aligned here")
    page.press("J")
    page.expect_at(changed[1])
    expect(disk.locator("[data-ask]")).to_have_count(0)
    with urllib.request.urlopen(f"{server.url}{path}/export.md?diff={changed[1]}", timeout=30) as answer:
        assert b"```diff\n@@" in answer.read()


def upload(server: Server, data: bytes) -> str:
    kind = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{server.url}/api/v1/traces", data, kind)
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: str = json.load(answer)["id"]
    return found


def test_a_trace_of_the_first_schema_is_shown(disk: Page, server: Server, golden: Path, tmp_path: Path) -> None:
    data = (golden / "traces" / "schema-1.loupe").read_bytes()
    page = Exported(disk, server, upload(server, data))
    page.path = export(server, page.id, tmp_path / "old.html")
    page.open()
    page.press("J")
    page.expect_at(page.changed[1])
    disk.locator("#tab-source").click()
    expect(disk.locator("#source .cm-content")).to_contain_text("@triton.jit")


def test_a_hostile_trace_is_shown_as_text(disk: Page, server: Server, golden: Path, tmp_path: Path) -> None:
    built = hostile(build(golden))
    trace_id = upload(server, tracefile.write(built.manifest, built.blobs))
    path = export(server, trace_id, tmp_path / "hostile.html")
    disk.goto(f"file://{path}#pass=ttir:1&view=text")
    expect(disk.locator("#right .cm-line").first).to_contain_text("</script><script>alert(1)</script>")
    disk.keyboard.press("d")
    expect(disk.locator("#panes")).to_have_attribute("data-mode", "diff")
    disk.keyboard.press("J")
    expect(disk.locator("#title-address")).not_to_have_text("ttir:1")
