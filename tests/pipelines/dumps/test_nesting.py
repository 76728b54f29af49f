from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.mlir import Header, read_records
from pipelines.dumps.nesting import MAX_PIPELINE, MAX_PLANNED, Planned, parse_pipeline, place
from tests.growth import LINEAR, growth

TTIR = (
    "any(inline{default-pipeline=canonicalize max-iterations=4 },triton-rewrite-tensor-descriptor-to-pointer,"
    "canonicalize{a=b region-simplify=normal},triton-combine,triton-reorder-broadcast,cse,symbol-dce,"
    "triton-loop-unroll)"
)
TTGIR = (
    "any(convert-triton-to-tritongpu{num-ctas=1},tritongpu-coalesce,tritongpu-F32DotTC{emu-tf32=true},never-reached)"
)


def top(name: str) -> Planned:
    return Planned(frozenset({name}), "")


def header(name: str, anchor: str = "builtin.module") -> Header:
    return Header("before", name, name, anchor)


def test_pipeline_string():
    text = "builtin.module(a{x=1,y=(2)},func.func(b,c{z=q}),d)"
    assert parse_pipeline(text) == [top("a"), Planned(frozenset({"b", "c"}), "func.func"), top("d")]


def test_pipeline_string_with_a_nameless_pass():
    assert parse_pipeline("any(a,unknown<(anonymous namespace)::Verify>,b)") == [top("a"), top("Verify"), top("b")]


def test_inliner_runs_canonicalizers_inside_itself(golden: Path):
    headers = [r.header for r in read_records((golden / "triton-3.9-scale-sm80.mlir").read_bytes())]
    places = place(headers, [parse_pipeline(TTIR), parse_pipeline(TTGIR)])
    assert [p.parent for p in places] == [None, 0, 0, 0] + [None] * (len(headers) - 4)
    assert [p.run for p in places] == [0] * 11 + [1] * 3


def test_a_pass_not_in_the_pipeline_belongs_to_the_one_before():
    headers = [header("optimize"), header("canonicalize"), header("canonicalize"), header("cse")]
    places = place(headers, [[top("optimize"), top("canonicalize"), top("cse")]])
    assert [p.parent for p in places] == [None, 0, None, None]


def test_passes_nested_on_functions_run_once_for_each(golden: Path):
    headers = [r.header for r in read_records((golden / "mlir-22-before-nested.txt").read_bytes())]
    plan = parse_pipeline("builtin.module(func.func(canonicalize,cse),convert-scf-to-cf,symbol-dce)")
    assert [p.parent for p in place(headers, [plan])] == [None] * 6


def test_a_run_cut_off_by_a_failure():
    headers = [header("inline"), header("canonicalize", "tt.func"), header("cse")]
    places = place(headers, [[top("inline"), top("cse"), top("symbol-dce")], [top("coalesce")]])
    assert [(p.run, p.parent) for p in places] == [(0, None), (0, 0), (0, None)]


def test_without_a_pipeline_nothing_is_lost():
    assert len(place([header("cse"), header("canonicalize")], [])) == 2
    assert place([], [[top("cse")]]) == []


@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_every_planned_pass_is_found(plan: list[str], data: st.DataObject):
    headers: list[Header] = []
    for name in plan:
        headers.append(header(name))
        inner = data.draw(st.lists(st.just("inner"), max_size=2))
        headers += [header(item, "tt.func") for item in inner]
    places = place(headers, [[top(name) for name in plan]])
    assert [h.name for h, p in zip(headers, places, strict=True) if p.parent is None] == plan
    for at in places:
        assert at.parent is None or headers[at.parent].name != "inner"


@given(st.text(alphabet="ab,(){} ", max_size=60))
def test_any_pipeline_text_is_read(text: str):
    parse_pipeline(text)


@given(st.text(alphabet="ab,(){}<> :", max_size=60))
def test_no_pass_that_is_read_is_nameless(text: str):
    assert all(name for item in parse_pipeline(text) for name in item.names)


PIECES = ["a,", "a", "(", ")", "a(", "a),", "{", "}", "{},", "<", "unknown<", ",", " ", "any(f(a,b),"]


@pytest.mark.parametrize("piece", PIECES)
def test_a_hostile_pipeline_costs_its_length(piece: str):
    assert growth(parse_pipeline, lambda size: "any(f(" + piece * (size // len(piece)), 20_000) < LINEAR


def test_many_passes_on_one_operation_cost_their_number():
    def nested(size: int) -> str:
        return f"any(f({','.join(f'a{n}' for n in range(size))}))"

    assert len(parse_pipeline(nested(MAX_PLANNED))[0].names) == MAX_PLANNED
    assert growth(parse_pipeline, nested, MAX_PLANNED // 2) < LINEAR


def test_a_pipeline_beyond_the_bounds_is_read_as_far_as_they_go():
    assert len(parse_pipeline(f"any({','.join('a' * (3 * MAX_PLANNED))})")) == MAX_PLANNED
    assert parse_pipeline("a," + " " * MAX_PIPELINE + ",b") == [top("a")]


@pytest.mark.parametrize("planned", ["a", "abc", "inner"])
def test_placing_costs_the_length_of_plan_and_dump(planned: str):
    def cost(size: int) -> str:
        return "x" * size

    def call(text: str) -> object:
        headers = [header(planned[n % len(planned)]) for n in range(len(text))]
        return place(headers, [[top(name) for name in planned] * (len(text) // 3)] * 3)

    assert growth(call, cost, 2_000) < LINEAR
