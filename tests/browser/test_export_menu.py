"""The export menu of a trace page, the zip of a group, and a trace that goes from one server to another."""

from __future__ import annotations

import base64
import io
import re
import time
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import COMPILE_SECONDS, ROOT, Faults, Server, serve
from tests.browser.trace_page import TracePage


@pytest.fixture
def group(compile_example: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return compile_example("softmax", targets=["sm_90"])


@pytest.fixture
def trace(page: Page, server: Server, group: dict[str, Any]) -> TracePage:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return TracePage(page, server, group["traces"][0]["id"])


def menu(page: Page) -> Locator:
    return page.locator("#export")


def copied(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_it_opens_moves_and_closes_by_keyboard(trace: TracePage) -> None:
    trace.open()
    page = trace.page
    trace.press("e")
    expect(menu(page).get_by_role("link", name="HTML")).to_be_focused()
    trace.press("ArrowDown")
    expect(menu(page).get_by_role("link", name="Zip")).to_be_focused()
    trace.press("End")
    expect(menu(page).get_by_role("button", name="Copy link")).to_be_focused()
    trace.press("ArrowDown")
    expect(menu(page).get_by_role("link", name="HTML")).to_be_focused()
    trace.press("Escape")
    expect(menu(page)).not_to_have_attribute("open", re.compile(""))
    expect(menu(page).locator("summary")).to_be_focused()
    trace.press("Enter")
    expect(menu(page).get_by_role("link", name="HTML")).to_be_visible()
    page.locator("#work").click(position={"x": 5, "y": 5})
    expect(menu(page).get_by_role("link", name="HTML")).to_be_hidden()
    trace.press("?")
    expect(page.locator("#help")).to_contain_text("export")


def test_marked_lines_are_copied_as_markdown(trace: TracePage) -> None:
    trace.open("?pass=ptx&view=text#L3-L5")
    trace.press("e")
    expect(menu(trace.page)).to_contain_text("3 marked lines of ptx")
    menu(trace.page).get_by_role("button", name="Copy as Markdown").click()
    expect(trace.page.locator("[data-notice]")).to_contain_text("Copied as Markdown")
    text = copied(trace.page)
    lines = "\n".join(trace.text("ptx")[2:5])
    assert f"```ptx\n{lines}\n```" in text
    assert f"{trace.server.url}/t/{trace.id}?pass=ptx&view=text#L3-L5" in text
    assert text.startswith("# `softmax_kernel` for sm_90")


def test_a_diff_is_copied_as_markdown(trace: TracePage) -> None:
    address = trace.changed[1]
    trace.open(f"?pass={address}")
    trace.expect_mode("diff")
    trace.press("e")
    menu(trace.page).get_by_role("button", name="Copy as Markdown").click()
    expect(trace.page.locator("[data-notice]")).to_contain_text("Copied as Markdown")
    row = trace.rows[address]
    assert f"+{row['plus']} -{row['minus']}" in copied(trace.page)
    assert "```diff\n@@" in copied(trace.page)


def test_every_link_saves_a_file(trace: TracePage) -> None:
    trace.open("?pass=ttgir:2&view=text")
    kernel = trace.manifest["kernel"]["name"]
    for name, suffix in {"HTML": "html", "Zip": "zip", "Markdown the": "md", ".loupe": "loupe"}.items():
        trace.press("e")
        with trace.page.expect_download() as download:
            menu(trace.page).get_by_role("link", name=name).click()
        assert download.value.suggested_filename == f"{kernel}-sm_90.{suffix}"
    assert Path(download.value.path()).read_bytes().startswith(b"LOUPE")


def test_the_menu_comes_when_a_compilation_ends(page: Page, server: Server) -> None:
    source = (ROOT / "examples" / "vector_add.py").read_text() + f"\n# {time.time_ns()}\n"
    made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_80"]})
    page.goto(made["url"])
    expect(page.locator("#main")).to_have_attribute("data-status", "ok", timeout=COMPILE_SECONDS * 1000)
    page.keyboard.press("e")
    expect(menu(page).get_by_role("link", name="HTML")).to_be_focused()
    page.keyboard.press("Escape")
    page.goto(f"/g/{made['group']}")
    expect(page.get_by_role("link", name="Zip")).to_be_visible()


def test_a_page_without_javascript_has_the_links(plain_page: Page, server: Server, group: dict[str, Any]) -> None:
    plain_page.goto(group["traces"][0]["url"])
    plain_page.locator("#export summary").click()
    expect(plain_page.locator("#export a:visible")).to_have_count(4)
    expect(plain_page.locator("#export button:visible")).to_have_count(0)
    for link in plain_page.locator("#export a").all():
        with urllib.request.urlopen(server.url + (link.get_attribute("href") or ""), timeout=30) as answer:
            assert answer.status == 200


def test_a_group_page_offers_its_zip(page: Page, server: Server, group: dict[str, Any]) -> None:
    page.goto(group["url"])
    link = page.get_by_role("link", name="Zip")
    with urllib.request.urlopen(server.url + (link.get_attribute("href") or ""), timeout=30) as answer:
        found = zipfile.ZipFile(io.BytesIO(answer.read())).namelist()
    assert "01-softmax_kernel-sm_90/kernel.ptx" in found


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("other")) as running:
        yield running


@pytest.fixture
def other_faults(other: Server) -> Iterator[Faults]:
    faults = Faults(other.url)
    yield faults
    assert faults.unexpected() == []


@pytest.fixture
def importing(browser: Browser, other: Server, other_faults: Faults) -> Iterator[Page]:
    """The other server's home page."""
    context = browser.new_context(base_url=other.url)
    context.set_default_timeout(15_000)
    other_faults.watch(context)
    page = context.new_page()
    page.goto("/")
    yield page
    context.close()


@pytest.fixture
def loupe_file(server: Server, group: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "softmax.loupe"
    with urllib.request.urlopen(f"{server.url}/api/v1/traces/{group['traces'][0]['id']}/file", timeout=30) as answer:
        path.write_bytes(answer.read())
    return path


DROP = """([text, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
  const how = { dataTransfer: data, bubbles: true, cancelable: true };
  const editor = document.querySelector(".cm-content");
  for (const type of ["dragover", "drop"]) editor.dispatchEvent(new DragEvent(type, how));
}"""


@pytest.mark.parametrize("how", ["button", "drop"])
def test_another_server_imports_the_file(
    importing: Page, server: Server, other: Server, group: dict[str, Any], loupe_file: Path, how: str
) -> None:
    if how == "button":
        with importing.expect_file_chooser() as chooser:
            importing.get_by_role("button", name="Import .loupe").click()
        chooser.value.set_files(loupe_file)
    else:
        expect(importing.locator(".cm-content")).to_be_visible()
        importing.evaluate(DROP, [base64.b64encode(loupe_file.read_bytes()).decode(), loupe_file.name])
    importing.wait_for_url("**/t/*")
    expect(importing.locator("#panes")).to_have_attribute("data-shown", re.compile("."))
    imported = urllib.parse.urlsplit(importing.url).path.rpartition("/")[2]
    trace_id = group["traces"][0]["id"]
    assert imported != trace_id
    own, theirs = (one.get(f"/api/v1/traces/{name}") for one, name in ((server, trace_id), (other, imported)))
    assert own["content"] == theirs["content"]
    assert own["manifest"] == theirs["manifest"]
    assert own["summary"] == theirs["summary"]


def test_a_file_that_is_no_trace_is_told(importing: Page, other_faults: Faults, tmp_path: Path) -> None:
    other_faults.allow("422")
    path = tmp_path / "no.loupe"
    path.write_bytes(b"PK\x03\x04")
    with importing.expect_file_chooser() as chooser:
        importing.get_by_role("button", name="Import .loupe").click()
    chooser.value.set_files(path)
    expect(importing.locator("[data-notice]")).to_contain_text("no.loupe: The file is not a sound trace")
