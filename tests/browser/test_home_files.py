"""Several files on the home page: dropped, opened, named, closed, kept, and sent; installed modules."""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Faults, Server
from tests.browser.test_home import editor, kernel, write
from tests.pipelines.triton_path.test_packages import KERNEL, LAUNCH, PACKAGE

FLAT = {
    "norm.py": LAUNCH,
    "kernels.py": KERNEL.replace("..util", ".util"),
    "util.py": PACKAGE["pkg/util.py"],
}
DROP = """(target, files) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([Uint8Array.from(text)], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


def drop(page: Page, files: Mapping[str, str | bytes]) -> None:
    data = [[name, list(text.encode() if isinstance(text, str) else text)] for name, text in files.items()]
    editor(page).evaluate(DROP, data)


def zipped(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return out.getvalue()


def tab(page: Page, name: str) -> Locator:
    return page.locator(f'[role="tab"][data-file="{name}"]')


def names(page: Page) -> list[str]:
    return page.locator('.filetabs [role="tab"]').evaluate_all("tabs => tabs.map(tab => tab.dataset.file)")


def launched(page: Page) -> None:
    """Wait until the page knows what the files launch."""
    expect(kernel(page)).to_have_value("scale")


def compiled(page: Page, server: Server) -> Any:
    launched(page)
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url(re.compile(r"/t/[\w-]{22}"))
    trace = page.url.split("/t/")[1][:22]
    found = server.wait(f"/api/v1/traces/{trace}", lambda told: told["status"] in ("ok", "failed"), 90)
    assert found["status"] == "ok", found["failure"]
    return found


def test_dropped_files_compile_as_a_package(page: Page, server: Server) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    drop(page, FLAT)
    expect(tab(page, "norm.py")).to_have_attribute("aria-selected", "true")
    expect(tab(page, "norm.py")).to_contain_text("run first")
    assert set(names(page)) == set(FLAT)
    told = compiled(page, server)
    assert told["manifest"]["kernel"]["name"] == "scale"
    assert [item["name"] for item in told["manifest"]["kernel"]["files"]] == ["kernels.py", "util.py"]


def test_a_dropped_zip_takes_the_place_of_what_was_there(page: Page, server: Server) -> None:
    page.goto("/")
    write(page, "x = 1\n")
    drop(page, {"repo.zip": zipped({f"repo-1/{path}": text for path, text in {**PACKAGE, "a.md": ""}.items()})})
    expect(tab(page, "pkg/ops/norm.py")).to_have_attribute("aria-selected", "true")
    assert set(names(page)) == set(PACKAGE)
    expect(page.get_by_text("1 file left out")).to_be_visible()
    assert compiled(page, server)["manifest"]["kernel"]["file"] == "pkg/ops/norm.py"


def test_a_file_dropped_beside_the_editor_does_not_take_the_page_away(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    taken = (
        "(target) => { window.left = null; addEventListener('drop', (event) => { left = event.defaultPrevented }); }"
    )
    settings = page.locator(".settings")
    settings.evaluate(taken)
    settings.evaluate(DROP, [["a.py", list(b"x = 1")]])
    assert page.evaluate("window.left") is True
    expect(page.locator("[data-notice]")).to_contain_text("on the editor")
    expect(kernel(page)).to_have_value("add_kernel")


def test_files_open_with_the_button_and_stay_after_a_reload(page: Page) -> None:
    page.goto("/")
    expect(kernel(page)).to_have_value("softmax_kernel")
    page.locator("[data-choose]").set_input_files(
        [{"name": name, "mimeType": "text/x-python", "buffer": text.encode()} for name, text in FLAT.items()]
    )
    expect(tab(page, "util.py")).to_be_visible()
    tab(page, "util.py").click()
    expect(editor(page)).to_contain_text("def square")
    page.reload()
    assert set(names(page)) == set(FLAT)
    expect(tab(page, "norm.py")).to_contain_text("run first")
    write(page, "import triton\n")
    drop(page, {"more.py": "y = 1\n"})
    expect(tab(page, "more.py")).to_be_visible()
    assert set(names(page)) == {*FLAT, "more.py"}


def test_tabs_work_with_the_keyboard_alone(page: Page) -> None:
    page.goto("/")
    drop(page, FLAT)
    tab(page, "norm.py").focus()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "kernels.py")).to_be_focused()
    page.keyboard.press("End")
    expect(tab(page, "util.py")).to_be_focused()
    page.keyboard.press("F2")
    field = page.get_by_label("New name of util.py")
    expect(field).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("lib/helpers")
    page.keyboard.press("Enter")
    expect(tab(page, "lib/helpers.py")).to_be_focused()
    page.get_by_role("button", name="Start here").click()
    expect(tab(page, "lib/helpers.py")).to_contain_text("run first")
    tab(page, "lib/helpers.py").focus()
    page.keyboard.press("Delete")
    expect(tab(page, "kernels.py")).to_be_focused()
    assert names(page) == ["norm.py", "kernels.py"]


@pytest.mark.parametrize("name", ["../up", "a b", "norm", ".hidden"])
def test_names_that_cannot_be_are_refused(page: Page, name: str) -> None:
    page.goto("/")
    drop(page, FLAT)
    tab(page, "util.py").dblclick()
    page.get_by_label("New name of util.py").fill(name)
    page.keyboard.press("Enter")
    expect(page.locator("[data-notice]")).to_be_visible()
    assert set(names(page)) == set(FLAT)


def test_each_file_keeps_its_own_undo(page: Page) -> None:
    page.goto("/")
    drop(page, FLAT)
    write(page, "first = 1\n")
    tab(page, "util.py").click()
    expect(editor(page)).to_contain_text("def square")
    write(page, "second = 2\n")
    tab(page, "norm.py").click()
    expect(editor(page)).to_contain_text("first = 1")
    editor(page).focus()
    page.keyboard.press("ControlOrMeta+z")
    expect(editor(page)).to_contain_text("from .kernels import scale")


def test_a_new_file_is_named_at_once(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="New file").click()
    field = page.get_by_label("New name of util.py")
    expect(field).to_be_focused()
    page.keyboard.type("helpers")
    page.keyboard.press("Enter")
    expect(tab(page, "helpers.py")).to_have_attribute("aria-selected", "true")
    expect(tab(page, "kernel.py")).to_contain_text("run first")


def test_changing_a_trace_brings_all_its_files_back(page: Page, server: Server) -> None:
    made = server.post("/api/v1/compiles", {"files": PACKAGE, "targets": ["sm_90"]})
    server.wait(f"/api/v1/traces/{made['traces'][0]}", lambda told: told["status"] == "ok", 90)
    page.goto(f"/?from={made['traces'][0]}")
    expect(tab(page, "pkg/ops/norm.py")).to_have_attribute("aria-selected", "true")
    assert set(names(page)) == set(PACKAGE)
    tab(page, "pkg/util.py").click()
    expect(editor(page)).to_contain_text("x * x")
    page.get_by_role("button", name="Start here").click()
    assert json.loads(page.evaluate("localStorage.getItem('draft-package')"))["entry"] == "pkg/util.py"


def test_an_installed_module_opens_by_its_name(page: Page) -> None:
    page.goto("/")
    field = page.get_by_label("Installed module")
    field.fill("triton.tools.ragged_tma")
    field.press("Enter")
    expect(tab(page, "triton/tools/ragged_tma.py")).to_be_visible()
    expect(editor(page)).to_contain_text("ragged")
    expect(kernel(page).locator("option", has_text="store_ragged")).to_have_count(1)
    page.reload()
    expect(field).to_have_value("triton.tools.ragged_tma")


def test_a_module_that_is_not_installed_is_told(page: Page, faults: Faults) -> None:
    faults.allow(r"/api/v1/modules/nolib")
    page.goto("/")
    field = page.get_by_label("Installed module")
    field.fill("nolib.ops")
    field.press("Enter")
    expect(page.get_by_text("no library nolib is installed")).to_be_visible()


def test_an_error_of_another_file_leads_there(page: Page, server: Server) -> None:
    files = {**PACKAGE, "pkg/util.py": PACKAGE["pkg/util.py"].replace("x * x", "x * y")}
    made = server.post("/api/v1/compiles", {"files": files, "targets": ["sm_90"]})
    server.wait(f"/api/v1/traces/{made['traces'][0]}", lambda told: told["status"] == "failed", 90)
    page.goto(f"/t/{made['traces'][0]}?tab=diagnostics")
    page.locator("a", has_text="pkg/util.py:7").first.click()
    expect(page).to_have_url(re.compile(r"pass=source:pkg(/|%2F)util\.py#L7"))
    expect(page.locator("#source")).to_contain_text("return x * y")
    expect(page.locator("#source .source-remark").first).to_contain_text("y is not defined")
    expect(page.locator('#source-files [aria-current="page"]')).to_have_text("pkg/util.py")
    page.locator("#source-files a", has_text="pkg/ops/norm.py").click()
    expect(page.locator("#source")).to_contain_text("from .kernels import scale")
    page.go_back()
    expect(page.locator("#source")).to_contain_text("return x * y")
    page.reload()
    expect(page.locator("#source")).to_contain_text("return x * y")
