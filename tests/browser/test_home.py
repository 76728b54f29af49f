"""The home page: write or choose a kernel, say what to compile it for, and go to its trace."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Faults, Server

BROKEN = "import triton\n\n@triton.jit\ndef kernel(x_ptr:\n    pass\n"
UNLAUNCHED = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)
"""


def editor(page: Page) -> Locator:
    return page.locator(".cm-content")


def kernel(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Kernel")


def write(page: Page, source: str) -> None:
    editor(page).focus()
    page.keyboard.press("ControlOrMeta+a")
    editor(page).evaluate(
        "(content, text) => { const data = new DataTransfer(); data.setData('text/plain', text);"
        " const paste = {clipboardData: data, bubbles: true, cancelable: true};"
        " content.dispatchEvent(new ClipboardEvent('paste', paste)); }",
        source,
    )


def target(page: Page, arch: str) -> Locator:
    return page.locator(f'input[name="targets"][value="{arch}"]')


def choose_target(page: Page, arch: str) -> None:
    page.locator("label.target", has_text=re.compile(rf"^\s*{arch}\b")).click()


def test_opens_with_a_kernel_ready_to_compile(page: Page) -> None:
    page.goto("/")
    expect(editor(page)).to_contain_text("softmax_kernel")
    expect(kernel(page)).to_have_value("softmax_kernel")
    expect(target(page, "sm_90")).to_be_checked()
    expect(page.get_by_text("taken from there")).to_be_visible()
    expect(page.get_by_label("num_warps")).to_have_attribute("placeholder", "4")


def test_compile_button_opens_the_trace(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url(re.compile(r"/t/[\w-]{22}"))
    page.goto("/")
    row = page.locator(".recent li").first
    expect(row).to_contain_text("sm_90")
    expect(row.locator('[data-state="ok"]')).to_be_visible(timeout=60_000)


def test_control_enter_in_the_editor_compiles(page: Page) -> None:
    page.goto("/?example=vector_add")
    editor(page).focus()
    page.keyboard.press("ControlOrMeta+Enter")
    page.wait_for_url(re.compile(r"/t/[\w-]{22}"))


def test_several_targets_open_a_group(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    choose_target(page, "sm_80")
    expect(page.get_by_text("for 2 targets, one group")).to_be_visible()
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url(re.compile(r"/g/[\w-]{22}"))
    expect(page.locator("thead th")).to_have_count(3)


def test_a_source_that_launches_nothing_asks_for_arguments(page: Page, server: Server) -> None:
    page.goto("/")
    write(page, UNLAUNCHED)
    expect(kernel(page)).to_have_value("scale")
    expect(page.get_by_text("does not launch this kernel")).to_be_visible()
    page.get_by_label("x_ptr", exact=True).fill("*fp32")
    page.get_by_label("n", exact=True).fill("i32")
    page.get_by_label("factor", exact=True).fill("fp32")
    page.get_by_label("BLOCK", exact=True).fill("256")
    page.get_by_label("num_warps").fill("8")
    page.keyboard.press("ControlOrMeta+Enter")
    page.wait_for_url(re.compile(r"/t/[\w-]{22}"))
    trace = page.url.split("/t/")[1][:22]
    found = server.wait(f"/api/v1/traces/{trace}", lambda t: t["status"] in ("ok", "failed"), 60)
    assert found["status"] == "ok"
    told = {item["name"]: item for item in found["manifest"]["kernel"]["arguments"]}
    assert (told["x_ptr"]["type"], told["x_ptr"]["divisibility"]) == ("*fp32", 16)
    assert told["BLOCK"]["value"] == 256
    assert found["manifest"]["options"]["num_warps"] == 8


def test_an_empty_argument_is_refused_at_its_field(page: Page) -> None:
    page.goto("/")
    write(page, UNLAUNCHED)
    page.get_by_label("BLOCK", exact=True).fill("")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("BLOCK needs a value, such as 1024.")).to_be_visible()
    expect(page.get_by_label("BLOCK", exact=True)).to_be_focused()
    expect(page.get_by_label("BLOCK", exact=True)).to_have_attribute("aria-invalid", "true")
    page.keyboard.insert_text("128")
    expect(page.get_by_text("BLOCK needs a value")).to_be_hidden()


def test_an_option_of_the_wrong_kind_is_refused_at_its_field(page: Page) -> None:
    page.goto("/")
    page.get_by_label("num_stages", exact=True).fill("three")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("num_stages is a whole number")).to_be_visible()
    expect(page.get_by_label("num_stages", exact=True)).to_be_focused()


def test_no_target_is_refused(page: Page) -> None:
    page.goto("/")
    choose_target(page, "sm_90")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("Choose at least one target.")).to_be_visible()


def test_a_syntax_error_is_marked_in_the_editor(page: Page) -> None:
    page.goto("/")
    write(page, BROKEN)
    strip = page.locator(".strip")
    expect(strip).to_be_visible()
    jump = strip.get_by_role("button", name=re.compile(r"line \d"))
    line = int(jump.inner_text().split()[1])
    expect(page.locator(".cm-faultLine")).to_have_text(BROKEN.splitlines()[line - 1])
    jump.click()
    expect(page.locator(".cm-activeLine")).to_have_text(BROKEN.splitlines()[line - 1])
    write(page, UNLAUNCHED)
    expect(strip).to_be_hidden()
    expect(page.locator(".cm-faultLine")).to_have_count(0)


def test_the_gallery_loads_into_the_editor_and_back_returns(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Vector addition").click()
    expect(page).to_have_url(re.compile(r"\?example=vector_add$"))
    expect(editor(page)).to_contain_text("add_kernel")
    expect(page.get_by_role("link", name="Vector addition")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(editor(page)).to_contain_text("softmax_kernel")


def test_an_edited_source_survives_a_reload(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    write(page, UNLAUNCHED)
    expect(page).to_have_url(re.compile(r"/$"))
    page.reload()
    expect(editor(page)).to_contain_text("def scale")


def test_options_left_at_their_defaults_are_not_sent(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(kernel(page)).not_to_have_value("")
    page.get_by_text("more options").click()
    page.get_by_label("sanitize_overflow").select_option("off")
    expect(page.get_by_text("more options, 1 set")).to_be_visible()
    with page.expect_request("**/api/v1/compiles") as sent:
        page.get_by_role("button", name="Compile").click()
    assert sent.value.post_data_json["options"] == {"sanitize_overflow": False}
    page.wait_for_url(re.compile(r"/t/"))


def test_options_are_those_of_the_chosen_targets(page: Page) -> None:
    page.goto("/")
    expect(kernel(page)).not_to_have_value("")
    expect(page.get_by_label("maxnreg")).to_be_visible()
    expect(page.get_by_label("waves_per_eu")).to_be_hidden()
    expect(page.get_by_label("num_stages", exact=True)).to_have_attribute("placeholder", "3")
    page.get_by_label("maxnreg").fill("64")
    choose_target(page, "gfx942")
    expect(page.get_by_text("the options that both have")).to_be_visible()
    expect(page.get_by_label("maxnreg")).to_be_hidden()
    expect(page.get_by_label("num_stages", exact=True)).to_have_attribute("placeholder", "3 or 2")
    expect(page.get_by_label("num_stages", exact=True)).to_have_attribute("title", "3 on NVIDIA, 2 on AMD")
    choose_target(page, "sm_90")
    expect(page.get_by_text("the options that both have")).to_be_hidden()
    page.get_by_label("waves_per_eu").fill("2")
    with page.expect_request("**/api/v1/compiles") as sent:
        page.get_by_role("button", name="Compile").click()
    body = sent.value.post_data_json
    assert (body["targets"], body["options"]) == (["gfx942"], {"waves_per_eu": 2})
    page.wait_for_url(re.compile(r"/t/"))


def test_a_kernel_for_amd_is_read_down_to_amdgcn(page: Page, server: Server) -> None:
    page.goto("/?example=softmax")
    expect(kernel(page)).not_to_have_value("")
    choose_target(page, "sm_90")
    choose_target(page, "gfx942")
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url(re.compile(r"/t/"))
    page.locator('#list a[data-address="amdgcn"]').click()
    expect(page.locator("#right .cm-content")).to_contain_text("s_load_dword")
    for kind in "vosknc":
        expect(page.locator(f"#right .tok-{kind}").first).to_be_attached()
    expect(page.locator("#right .cm-content")).not_to_contain_text(".loc")
    page.get_by_label("locations").check()
    expect(page.locator("#right .cm-content")).to_contain_text("; kernel.py:")
    for words in ("VGPRs", "spills", "LDS", "waves/SIMD", "AMDGCN"):
        expect(page.locator("#facts")).to_contain_text(words)
    trace = server.wait(f"/api/v1/traces/{page.url.split('/t/')[1][:22]}", lambda found: found["status"] == "ok", 60)
    page.locator("#tab-resources").click()
    sheet = page.locator("#sheet-resources")
    for label, field in [("VGPRs", "registers"), ("SGPRs", "sgprs"), ("occupancy", "occupancy"), ("LDS", "shared")]:
        fact = sheet.locator("dl > div").filter(has=page.get_by_text(label, exact=True))
        expect(fact.locator("b")).to_have_text(f"{trace['resources'][field]:,}")


def test_a_trace_can_be_opened_for_change(page: Page, compile_example: Callable[..., dict[str, Any]]) -> None:
    trace = compile_example("vector_add", targets=["sm_80"], options={"num_warps": 8})["traces"][0]
    page.goto(f"/?from={trace['id']}")
    expect(editor(page)).to_contain_text("add_kernel")
    expect(target(page, "sm_80")).to_be_checked()
    expect(target(page, "sm_90")).not_to_be_checked()
    expect(page.get_by_label("num_warps")).to_have_value("8")


def test_an_unknown_trace_or_example_is_said(page: Page, faults: Faults) -> None:
    faults.allow("404")
    page.goto("/?example=nothing")
    expect(page.get_by_role("status")).to_contain_text("There is no example nothing")
    page.goto("/?from=" + "x" * 22)
    expect(page.get_by_role("status")).to_contain_text("There is no trace")


def test_a_server_that_is_gone_is_said(page: Page, faults: Faults) -> None:
    page.goto("/")
    expect(kernel(page)).to_have_value("softmax_kernel")
    faults.allow("ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("Loupe does not answer")).to_be_visible()
    expect(page.get_by_role("button", name="Compile")).to_be_enabled()


def test_escape_then_tab_leaves_the_editor(page: Page) -> None:
    page.goto("/")
    editor(page).focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor(page)).not_to_be_focused()


def test_the_form_works_without_javascript(plain_page: Page) -> None:
    plain_page.goto("/?example=vector_add")
    source = plain_page.get_by_label("Kernel source")
    expect(source).to_have_value(re.compile("add_kernel"))
    plain_page.get_by_role("button", name="Compile").click()
    plain_page.wait_for_url(re.compile(r"/t/[\w-]{22}"))


def test_without_javascript_a_refusal_keeps_what_was_entered(plain_page: Page, faults: Faults) -> None:
    faults.allow("422")
    plain_page.goto("/")
    plain_page.get_by_label("Kernel source").fill(UNLAUNCHED)
    plain_page.get_by_label("Options", exact=True).fill("num_wraps=8")
    plain_page.get_by_role("button", name="Compile").click()
    expect(plain_page.get_by_text("there is no option num_wraps")).to_be_visible()
    expect(plain_page.get_by_label("Kernel source")).to_have_value(UNLAUNCHED)


@pytest.mark.parametrize("width", [700, 1000, 1440])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/")
    expect(kernel(page)).to_have_value("softmax_kernel")
    assert page.evaluate("document.documentElement.scrollWidth") == width
