"""The group page: traces side by side, what differs marked, live while they compile."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, Server

Compile = Callable[..., dict[str, Any]]


def test_traces_stand_side_by_side(page: Page, compile_example: Compile) -> None:
    group = compile_example("matmul", targets=["sm_80", "sm_90"])
    page.goto(group["url"])
    expect(page.locator("thead a")).to_have_text(["sm_80", "sm_90"])
    registers = page.get_by_role("row", name=re.compile("^registers"))
    expect(registers.locator("td")).to_have_text([str(t["resources"]["registers"]) for t in group["traces"]])
    expect(page.get_by_role("row", name=re.compile("^ttgir")).first).to_contain_text("changed")
    expect(page.get_by_role("row", name=re.compile("^num_warps"))).not_to_have_attribute("data-differs", "")
    page.locator("thead a").first.click()
    page.wait_for_url(re.compile("/t/" + group["traces"][0]["id"]))


def test_only_differences_can_be_shown(page: Page, compile_example: Compile) -> None:
    page.goto(compile_example("matmul", targets=["sm_80", "sm_90"])["url"])
    switch = page.get_by_role("switch", name=re.compile("Only differences"))
    same, different = page.get_by_role("row", name=re.compile("^num_warps")), page.locator("tr[data-differs]").first
    expect(same).to_be_visible()
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(page).to_have_url(re.compile(r"\?only=differences$"))
    expect(same).to_be_hidden()
    expect(different).to_be_visible()
    page.reload()
    expect(same).to_be_hidden()
    page.keyboard.press("d")
    expect(same).to_be_visible()
    expect(page).to_have_url(re.compile(r"/g/[\w-]{22}$"))


def test_only_differences_works_without_javascript(plain_page: Page, compile_example: Compile) -> None:
    plain_page.goto(compile_example("matmul", targets=["sm_80", "sm_90"])["url"])
    same = plain_page.get_by_role("row", name=re.compile("^num_warps"))
    expect(same).to_be_visible()
    plain_page.get_by_role("switch", name=re.compile("Only differences")).click()
    expect(same).to_be_hidden()


def test_autotune_configs_are_columns_headed_by_what_tells_them_apart(page: Page, compile_example: Compile) -> None:
    group = compile_example("matmul_autotuned")
    assert len(group["traces"]) > 1
    page.goto(group["url"])
    expect(page.locator("thead ul.config")).to_have_count(len(group["traces"]))
    heads = page.locator("thead ul.config").all_inner_texts()
    assert len(set(heads)) == len(heads)
    assert not any("num_ctas" in head for head in heads)


def test_a_failed_trace_says_why_in_one_line(page: Page, compile_example: Compile) -> None:
    group = compile_example("fails_in_ptxas", targets=["sm_80", "sm_90"])
    page.goto(group["url"])
    expect(page.locator('thead [data-state="failed"]').first).to_be_visible()
    why = page.locator("thead .why").first
    first_line = group["traces"][0]["failure"]["message"].splitlines()[0]
    expect(why).to_contain_text(first_line)


def test_the_page_follows_compilations(page: Page, server: Server) -> None:
    source = (ROOT / "examples" / "rms_norm.py").read_text(encoding="utf-8") + "\n# not compiled before\n"
    made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_75", "sm_120"]})
    page.goto(made["url"])
    expect(page.locator('thead [data-state="ok"]')).to_have_count(2, timeout=60_000)
    expect(page.get_by_role("row", name=re.compile("^machine instructions"))).to_be_visible()
