from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import llvm
from pipelines.dumps.llvm import Header, Record, RecordReader, parse_header
from pipelines.trace import MAX_HEADER
from tests.growth import LINEAR, growth


def read(data: bytes, piece: int = 1 << 20) -> list[Record]:
    reader = RecordReader()
    records: list[Record] = []
    for start in range(0, len(data), piece):
        records += reader.feed(data[start : start + piece])
    return records + reader.finish()


def told(records: list[Record]) -> list[tuple[str, str, str | None, str]]:
    return [(r.header.name, r.header.ran_on, r.header.function, r.holds) for r in records]


def test_optimizer_prints_whole_modules_whatever_a_pass_ran_on(golden: Path):
    records = read((golden / "llvm-optimizer-sm80.txt").read_bytes())
    assert told(records) == [
        ("CoroEarlyPass", "module", None, "module"),
        ("PostOrderFunctionAttrsPass", "scc", "total", "module"),
        ("LICMPass", "loop", "total", "module"),
        ("LoopRotatePass", "loop", "total", "module"),
        ("GVNPass", "function", "total", "module"),
        ("ExpandMaskedDivRemPass", "module", None, "module"),
    ]
    assert all(r.header.when == "after" for r in records)
    assert records[-1].header.argument == "(anonymous namespace)::ExpandMaskedDivRemPass"


def test_code_generation_prints_modules_blocks_and_machine_code(golden: Path):
    records = read((golden / "llvm-codegen-gfx942.txt").read_bytes())
    assert told(records) == [
        ("amdgpu-lower-ctor-dtor", "", None, "module"),
        ("amdgpu-always-inline", "", None, "module"),
        ("unify-loop-exits", "function", "total", "module"),
        ("structurizecfg", "", None, "blocks"),
        ("structurizecfg", "", None, "blocks"),
        ("canon-freeze", "loop", None, "module"),
        ("amdgpu-isel", "machine-function", None, "machine-function"),
        ("machine-sink", "machine-function", None, "machine-function"),
    ]
    assert records[2].header.argument.startswith("Fixup each natural loop to have a single exit block")


@pytest.mark.parametrize("name", ["llvm-optimizer-sm80.txt", "llvm-codegen-gfx942.txt"])
def test_texts_are_the_ir_alone_and_complete(golden: Path, name: str):
    data = (golden / name).read_bytes()
    records = read(data)
    lines = data.split(b"\n")
    for record in records:
        text = record.text or b""
        assert text in data
        assert text == text.strip(b"\n")
        assert not any(line.startswith((b"Running ", b"Invalidating ")) for line in text.split(b"\n"))
        assert b"IR Dump" not in text
    # All that is left out are headers, blank lines and the pass manager's log.
    kept = {line for record in records for line in (record.text or b"").split(b"\n")}
    rest = [line for line in lines if line and line not in kept]
    assert all(line.startswith((b"Running ", b"Invalidating ", b"; *** IR", b"*** IR", b"# *** IR")) for line in rest)


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (
            "; *** IR Dump Before SROAPass on kernel ***",
            Header("before", "SROAPass", "SROAPass", "function", "kernel"),
        ),
        (
            "; *** IR Dump After LoopDeletionPass on loop %5 in function f (invalidated) ***",
            Header("after", "LoopDeletionPass", "LoopDeletionPass", "loop", "f"),
        ),
        (
            "; *** IR Dump After GVNPass on f omitted because no change ***",
            Header("after", "GVNPass", "GVNPass", "function", "f"),
        ),
        (
            "*** IR Dump After Promote alignment of return values (NVPTX) (nvptx-promote) ***",
            Header("after", "nvptx-promote", "Promote alignment of return values (NVPTX) (nvptx-promote)"),
        ),
        ("*** IR Dump After Verify *** (function: a b)", Header("after", "Verify", "Verify", "function", "a b")),
        ("# *** IR Dump After X (y) ***:", Header("after", "y", "X (y)", "machine-function")),
        ("; *** IR Dump During X on f ***", None),
        ("; *** IR Dump After X on f", None),
        ("; *** IR Dump After  ***", None),
        ("> *** IR Dump After X on f ***", None),
        ("; *** IR Dump After " + "x" * MAX_HEADER + " ***", None),
    ],
)
def test_headers(line: str, header: Header | None):
    assert parse_header(line) == header


def test_marks_inside_a_line_belong_to_the_ir():
    data = (
        b'; *** IR Dump After A on f ***\n@s = c"; *** IR Dump After B on f ***"\n x ; *** IR Dump After C on f ***\n'
    )
    (record,) = read(data)
    assert record.header.name == "A"
    assert (record.text or b"").count(b"IR Dump") == 2


def test_text_that_is_too_long_is_left_out_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(llvm, "MAX_TEXT", 1 << 16)
    long = b"; *** IR Dump After A on f ***\n" + b"x\n" * (1 << 16) + b"; *** IR Dump After B on f ***\ny\n"
    for piece in (1 << 12, 1 << 15):
        records = read(long, piece)
        assert [(r.header.name, r.text) for r in records] == [("A", None), ("B", b"y")]


lines = st.one_of(
    st.sampled_from(
        [
            "; *** IR Dump After LICMPass on loop %5 in function f ***",
            "; *** IR Dump After GVNPass on f ***",
            "*** IR Dump After Early CSE (early-cse) *** (function: f)",
            "# *** IR Dump After Machine code sinking (machine-sink) ***:",
            "; *** IR Dump Nonsense",
            "*** IR Dump ",
            "Running pass: GVNPass on f",
            "",
            "define void @f() {",
        ]
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=40),
)


@given(st.lists(lines, max_size=60), st.integers(1, 50))
def test_pieces_give_the_records_of_the_whole(parts: list[str], piece: int):
    data = "".join(part + "\n" for part in parts).encode()
    whole = read(data, max(1, len(data)))
    assert read(data, piece) == whole
    expected = [header for part in parts if (header := parse_header(part)) is not None]
    assert [record.header for record in whole] == expected
    for record in whole:
        assert record.text is not None
        assert record.text in data


@given(st.text(max_size=300))
def test_any_line_is_a_header_or_none(line: str):
    header = parse_header(f"; *** IR Dump After {line}")
    assert header is None or (header.name and header.argument in line)


@pytest.mark.parametrize(
    "unit", ["; *** IR Dump After A on f ***\nx\n", "*** IR Dump ", "; ", "Running pass: x\n", "\n*** IR Dump x"]
)
def test_cost_is_linear(unit: str):
    assert growth(lambda text: read(text.encode(), 1 << 12), lambda size: unit * size, 20_000) < LINEAR
