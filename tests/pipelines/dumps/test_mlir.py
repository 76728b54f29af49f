from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import mlir
from pipelines.dumps.mlir import MARK, Header, HeaderFollower, parse_header, read_records
from pipelines.trace import MAX_HEADER
from tests.growth import LINEAR, growth

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


CLASSES = st.from_regex(r"(\(anonymous namespace\)::)?[A-Z]\w{0,9}(<[\w:<>,]{0,9}>)?", fullmatch=True)
ARGUMENTS = st.from_regex(
    r"[a-z][a-z-]{0,9}(\{[a-z]{1,4}=[\w()<>,:-]{0,9}( [a-z]{1,4}=[\w(): -]{0,9})?\})?", fullmatch=True
)
SYMBOLS = st.from_regex(r"[\w.$(): -]{1,30}", fullmatch=True).filter(str.strip)


@given(
    st.sampled_from(["before", "after", "failed"]),
    CLASSES,
    st.none() | st.tuples(st.sampled_from([": %s", " (%s)"]), ARGUMENTS),
    st.none() | st.tuples(st.sampled_from(["builtin.module", "tt.func"]), st.none() | SYMBOLS),
)
def test_every_header_that_a_compiler_prints_is_read(
    when: str, owner: str, argument: tuple[str, str] | None, operation: tuple[str, str | None] | None
):
    anchor, function = operation or ("", None)
    line = f"// -----// IR Dump {'Before' if when == 'before' else 'After'} {owner}"
    line += " Failed" * (when == "failed") + (argument[0] % argument[1] if argument else "")
    line += f" ('{anchor}' operation{': @' + function if function else ''})" if operation else ""
    header = parse_header(line + " //----- //")
    said = argument[1] if argument else owner
    assert header == Header(when, mlir.pass_name(said), said, anchor, function)


@pytest.mark.parametrize(
    "line",
    [
        "// -----// IR Dump Before CSE (cse)",
        "// -----// IR Dump Before  //----- //",
        "// -----// IR Dump Before //----- //",
        "// -----// IR Dump During CSE (cse) //----- //",
        "// -----// internal IR Dump After: x",
        "// -----// a-b internal IR Dump After: x",
        "IR Dump Before CSE //----- //",
        "",
    ],
)
def test_what_only_resembles_a_header_is_none(line: str):
    assert parse_header(line) is None


HOSTILE = [
    ": ",
    " (",
    " ('",
    "' operation",
    ": @",
    "(anonymous namespace)::",
    " Failed",
    "a",
    " ",
    "('' operation: @",
    "<",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("end", ["", " //----- //", " ('m' operation: @f) //----- //", "'"])
def test_a_hostile_header_costs_its_length(piece: str, end: str):
    def line(size: int) -> str:
        return "// -----// IR Dump Before " + piece * (size // len(piece)) + end

    assert growth(parse_header, line, MAX_HEADER // 2 - 100) < LINEAR


@given(
    st.lists(st.sampled_from([*HOSTILE, "CSE", "cse", " //----- //", "IR Dump Before ", " internal IR Dump After: "]))
)
def test_any_pieces_of_headers_are_read(pieces: list[str]):
    parse_header("// -----// IR Dump After " + "".join(pieces))
    parse_header("// -----// " + "".join(pieces))


def test_a_dump_of_nothing_but_headers_is_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mlir, "MAX_RECORDS", 50)
    data = b"// -----// IR Dump Before CSE (cse) //----- //\n" * 200
    assert len(list(read_records(data))) == 50


@pytest.mark.parametrize("length", [MAX_HEADER, MAX_HEADER + 1])
def test_a_header_is_bounded_in_bytes_alike_whole_and_in_pieces(length: int):
    line = b"// -----// IR Dump Before CSE (cse" + "é".encode() * 100
    line += b"x" * (length - len(line) - 12) + b") //----- //"
    assert len(line) == length
    read = [r.header for r in read_records(line + b"\nmodule\n")]
    assert len(read) == (length == MAX_HEADER)
    follower = HeaderFollower()
    assert [h for n in range(0, length, 999) for h in follower.feed(line[n : n + 999])] + follower.feed(b"\n") == read


def test_a_mark_inside_a_line_is_no_header():
    follower = HeaderFollower()
    line = b"x // -----// IR Dump Before CSE (cse) //----- //\n"
    assert [h for n in range(len(line)) for h in follower.feed(line[n : n + 1])] == []
    assert list(read_records(line)) == []


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
