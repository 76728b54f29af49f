"""Three ways to a kernel's arguments on the home page: from the launch code, guessed, given."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import ROOT, Server
from tests.browser.test_home import UNLAUNCHED, kernel, write
from tests.pipelines.triton_path.guessable import IMPORTS, KERNELS

TUNED = IMPORTS + KERNELS["configs_and_heuristics"]

INDUCTOR = (ROOT / "tests" / "golden" / "inductor_output.py").read_text()
DECLARED = ["triton_poi_fused_add_gelu_0", "triton_per_fused_native_layer_norm_1"]


def way(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def row(page: Page, name: str) -> Locator:
    return page.locator(".argument", has=page.get_by_label(name, exact=True))


def field(page: Page, name: str) -> Locator:
    return page.get_by_label(name, exact=True)


def open_source(page: Page, source: str, name: str) -> None:
    page.goto("/")
    write(page, source)
    expect(kernel(page)).to_have_value(name)


def sent(page: Page) -> Any:
    with page.expect_request("**/api/v1/compiles") as request:
        page.get_by_role("button", name="Compile").click()
    page.wait_for_url(re.compile(r"/[tg]/[\w-]{22}"))
    return request.value.post_data_json


def test_each_guess_is_marked_and_says_why(page: Page) -> None:
    open_source(page, UNLAUNCHED, "scale")
    expect(way(page, "guessed")).to_have_attribute("aria-pressed", "true")
    expect(way(page, "from the launch code")).to_be_disabled()
    expect(field(page, "x_ptr")).to_have_value("*fp16")
    for name, why in {"x_ptr": "loaded from", "factor": "computed with", "BLOCK": "size of a block"}.items():
        expect(row(page, name)).to_contain_text(f"guessed {why}" if name == "x_ptr" else "guessed")
        expect(field(page, name)).to_have_accessible_description(re.compile(why))


def test_nothing_that_is_guessed_is_sent_as_given(page: Page, server: Server) -> None:
    open_source(page, UNLAUNCHED, "scale")
    body = sent(page)
    assert body["args"] == {}
    assert "constexprs" not in body
    trace = page.url.split("/t/")[1][:22]
    found = server.wait(f"/api/v1/traces/{trace}", lambda told: told["status"] in ("ok", "failed"), 60)
    assert found["manifest"]["kernel"]["origin"] == "guessed"
    assert all(item["guessed"] for item in found["manifest"]["kernel"]["arguments"])


def test_a_changed_field_is_given_and_loses_its_mark(page: Page) -> None:
    open_source(page, UNLAUNCHED, "scale")
    field(page, "x_ptr").fill("*fp32")
    field(page, "BLOCK").fill("256")
    expect(way(page, "given")).to_have_attribute("aria-pressed", "true")
    expect(row(page, "x_ptr")).not_to_contain_text("guessed")
    expect(row(page, "n")).to_contain_text("guessed")
    expect(page.get_by_text("What you changed is given")).to_be_visible()
    body = sent(page)
    assert (body["args"], body["constexprs"]) == ({"x_ptr": "*fp32:16"}, {"BLOCK": 256})


def test_guessed_takes_changes_back_and_given_confirms_all(page: Page) -> None:
    open_source(page, UNLAUNCHED, "scale")
    field(page, "x_ptr").fill("*fp32")
    way(page, "guessed").click()
    expect(field(page, "x_ptr")).to_have_value("*fp16")
    expect(row(page, "x_ptr")).to_contain_text("guessed")
    way(page, "given").click()
    expect(page.locator(".argument .guessed")).to_have_count(0)
    body = sent(page)
    assert body["args"] == {"x_ptr": "*fp16:16", "n": "i32", "factor": "fp32"}
    assert body["constexprs"] == {"BLOCK": 1024}


def test_arrow_keys_and_the_list_offer_the_alternatives(page: Page) -> None:
    open_source(page, UNLAUNCHED, "scale")
    field(page, "x_ptr").press("ArrowDown")
    expect(field(page, "x_ptr")).to_have_value("*bf16")
    field(page, "x_ptr").press("ArrowUp")
    expect(field(page, "x_ptr")).to_have_value("*fp16")
    page.get_by_label("Alternatives for BLOCK").select_option("256")
    expect(field(page, "BLOCK")).to_have_value("256")
    expect(field(page, "BLOCK")).to_be_focused()


def test_a_value_in_a_types_place_is_folded_into_the_kernel(page: Page) -> None:
    open_source(page, UNLAUNCHED, "scale")
    field(page, "n").fill("1")
    body = sent(page)
    assert body["constexprs"] == {"n": 1}


def test_what_the_source_says_itself_is_no_guess(page: Page) -> None:
    open_source(page, TUNED, "kernel")
    expect(page.get_by_text("autotuned, configs computed")).to_be_visible()
    expect(page.get_by_text("heuristics fill EVEN, HAS_BIAS")).to_be_visible()
    expect(row(page, "EVEN")).to_contain_text("its heuristic computes it")
    expect(row(page, "EVEN")).not_to_contain_text("guessed")
    expect(field(page, "EVEN")).to_have_value("")


def test_a_launched_kernels_arguments_can_be_changed(page: Page) -> None:
    page.goto("/?example=vector_add")
    expect(way(page, "from the launch code")).to_have_attribute("aria-pressed", "true")
    page.get_by_text("its arguments").click()
    expect(row(page, "BLOCK")).to_contain_text("as launched")
    field(page, "BLOCK").fill("512")
    expect(way(page, "from the launch code")).to_have_attribute("aria-pressed", "true")
    field(page, "x_ptr").fill("*bf16")
    expect(way(page, "given")).to_have_attribute("aria-pressed", "true")
    expect(row(page, "y_ptr")).to_contain_text("guessed")


def test_a_launchs_constexpr_alone_keeps_the_launch(page: Page) -> None:
    page.goto("/?example=vector_add")
    page.get_by_text("its arguments").click()
    field(page, "BLOCK").fill("512")
    body = sent(page)
    assert body["constexprs"] == {"BLOCK": 512}
    assert "args" not in body


def test_a_guessed_trace_says_so_and_opens_for_change(page: Page, server: Server) -> None:
    source = IMPORTS + KERNELS["a_tuple_of_tensors"]
    made = server.post("/api/v1/compiles", {"source": source, "args": {"sizes": "(i32:16,)"}, "targets": ["sm_80"]})
    trace = made["traces"][0]
    found = server.wait(f"/api/v1/traces/{trace}", lambda told: told["status"] in ("ok", "failed"), 60)
    assert found["status"] == "ok"
    page.goto(f"/t/{trace}?tab=about")
    expect(page.get_by_role("link", name="guessed signature")).to_be_visible()
    table = page.locator("table.arguments")
    expect(table.locator("tr", has=page.get_by_text("tensors", exact=True))).to_contain_text("guessed")
    expect(table.locator("tr", has=page.get_by_text("sizes", exact=True))).not_to_contain_text("guessed")
    expect(table.locator("tr", has_text="tensors[1]")).to_contain_text("*fp16")
    page.get_by_role("link", name="change and compile again").click()
    expect(field(page, "sizes")).to_have_value("(i32:16,)")
    expect(row(page, "sizes")).to_contain_text("given")
    expect(row(page, "tensors")).to_contain_text("guessed")
    expect(way(page, "given")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("width", [520, 700, 1440])
def test_the_arguments_fit_and_stay_where_they_are(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_source(page, UNLAUNCHED, "scale")
    before = field(page, "BLOCK").bounding_box()
    assert before is not None
    field(page, "BLOCK").fill("256")
    expect(row(page, "BLOCK")).to_contain_text("given")
    assert field(page, "BLOCK").bounding_box() == before
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_inductors_output_is_read_from_its_decorators(page: Page, server: Server) -> None:
    page.goto("/")
    write(page, INDUCTOR)
    expect(kernel(page).locator("option")).to_have_text(["all that the source declares", *DECLARED])
    expect(way(page, "from the source's decorators")).to_have_attribute("aria-pressed", "true")
    kernel(page).select_option(DECLARED[1])
    expect(row(page, "in_ptr0")).to_contain_text("as declared")
    body = sent(page)
    assert "args" not in body
    trace = page.url.split("/t/")[1][:22]
    found = server.wait(f"/api/v1/traces/{trace}", lambda told: told["status"] in ("ok", "failed"), 60)
    assert [found["status"], found["kernel"]] == ["ok", DECLARED[1]]
    assert found["manifest"]["kernel"]["arguments"][0]["type"] == "*bf16"
