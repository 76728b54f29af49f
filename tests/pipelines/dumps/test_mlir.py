from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.mlir import MARK, HeaderFollower, parse_header, read_records

CANONICALIZE = (
    "canonicalize{cse-between-iterations=false    max-iterations=10 max-num-rewrites=-1 "
    "region-simplify=normal test-convergence=false top-down=true}"
)


def test_triton_header_keeps_the_exact_argument_string(golden: Path):
    records = list(read_records((golden / "triton-3.9-scale-sm80.mlir").read_bytes()))
    headers = [record.header for record in records]
    assert [h.name for h in headers][:6] == [
        "inline",
        "canonicalize",
        "canonicalize",
        "canonicalize",
        "triton-rewrite-tensor-descriptor-to-pointer",
        "canonicalize",
    ]
    assert headers[1].argument == CANONICALIZE
    assert (headers[1].anchor, headers[1].function) == ("tt.func", "__main__.double__fp32S128S") or headers[1].function
    assert all(h.when == "before" for h in headers)


def test_texts_are_everything_between_headers(golden: Path):
    data = (golden / "triton-3.9-scale-sm80.mlir").read_bytes()
    records = list(read_records(data))
    assert len(records) == data.count(MARK)
    for record in records:
        assert record.text in data
        assert b"module" in record.text
        assert not record.text.endswith(b"\n")
    assert sum(len(r.text) for r in records) > len(data) * 0.8


def test_upstream_header_names_pass_and_operation(golden: Path):
    records = list(read_records((golden / "mlir-22-before-nested.txt").read_bytes()))
    seen = [(r.header.when, r.header.name, r.header.anchor, r.header.function) for r in records]
    assert seen[:2] == [
        ("before", "canonicalize", "func.func", "scale"),
        ("before", "cse", "func.func", "scale"),
    ]
    assert seen[4] == ("before", "convert-scf-to-cf", "builtin.module", None)


def test_upstream_after_dumps(golden: Path):
    records = list(read_records((golden / "mlir-22-after.txt").read_bytes()))
    assert [(r.header.when, r.header.name) for r in records] == [
        ("after", "canonicalize"),
        ("after", "cse"),
        ("after", "canonicalize"),
        ("after", "cse"),
        ("after", "convert-scf-to-cf"),
    ]


def test_pipeliner_steps(golden: Path):
    records = list(read_records((golden / "triton-3.9-pipeliner.mlir").read_bytes()))
    assert [(r.header.when, r.header.name) for r in records] == [
        ("before", "tritongpu-pipeline"),
        ("step", "LowerLoops"),
        ("step", "ExpandLoops"),
        ("before", "canonicalize"),
    ]


@pytest.mark.parametrize(
    ("line", "when", "name", "argument", "anchor"),
    [
        (
            "// -----// IR Dump After ConvertTritonGPUToLLVM Failed: convert-triton-gpu-to-llvm{compute-capability=90 "
            "ptx-version=94} ('builtin.module' operation) //----- //",
            "failed",
            "convert-triton-gpu-to-llvm",
            "convert-triton-gpu-to-llvm{compute-capability=90 ptx-version=94}",
            "builtin.module",
        ),
        ("// -----// IR Dump After CSE Failed (cse) //----- //", "failed", "cse", "cse", ""),
        ("// -----// IR Dump Before CSE //----- //", "before", "CSE", "CSE", ""),
        (
            "// -----// IR Dump Before (anonymous namespace)::Mine (mine{a=b(c)}) ('x.y' operation: @f) //----- //",
            "before",
            "mine",
            "mine{a=b(c)}",
            "x.y",
        ),
        (
            "// -----// IR Dump Before (anonymous namespace)::Verify: unknown<(anonymous namespace)::Verify> "
            "('builtin.module' operation) //----- //",
            "before",
            "Verify",
            "unknown<(anonymous namespace)::Verify>",
            "builtin.module",
        ),
    ],
)
def test_header_forms(line: str, when: str, name: str, argument: str, anchor: str):
    header = parse_header(line)
    assert header is not None
    assert (header.when, header.name, header.argument, header.anchor) == (when, name, argument, anchor)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data: bytes):
    list(read_records(data))
    list(read_records(MARK + data))


@given(st.data())
def test_following_in_pieces_finds_what_the_whole_holds(golden: Path, data: st.DataObject):
    whole = (golden / "triton-3.9-pipeliner.mlir").read_bytes() + (golden / "mlir-22-before-nested.txt").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    follower = HeaderFollower()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += follower.feed(whole[start:end])
    assert found == [record.header for record in read_records(whole)]


def test_a_header_that_never_ends_is_bounded():
    follower = HeaderFollower()
    follower.feed(MARK)
    for _ in range(100):
        assert follower.feed(b"x" * 65_536) == []
    assert follower.feed(b"\n// -----// IR Dump Before CSE (cse) //----- //\n")[-1].name == "cse"
