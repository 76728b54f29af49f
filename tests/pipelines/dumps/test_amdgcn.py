from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import amdgcn
from pipelines.dumps.place import Place, in_file
from tests.growth import LINEAR, growth

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"
LIBRARY = "<triton>/language/standard.py"


def softmax() -> str:
    return (GOLDEN / "softmax.amdgcn").read_text()


def test_every_line_of_a_real_kernel_that_is_code_is_an_instruction() -> None:
    for text in (softmax(), (GOLDEN / "loop.amdgcn").read_text()):
        body = text[: text.index("s_endpgm\n") + len("s_endpgm")].split("\n")
        code = [row for row, line in enumerate(body, 1) if line.startswith("\t") and not line.startswith("\t.")]
        found = amdgcn.parse(text)
        assert [item.row for item in found] == code
        assert len(found) == amdgcn.count_instructions(text)
        rows = text.split("\n")
        assert all(rows[item.row - 1].startswith(f"\t{item.opcode}") for item in found)
        assert found[-1].opcode == "s_endpgm"


def test_instructions_carry_the_place_of_the_loc_before_them() -> None:
    rows = softmax().split("\n")
    by_opcode: dict[str, amdgcn.Instruction] = {}
    for item in amdgcn.parse(softmax()):
        by_opcode.setdefault(item.opcode, item)
    load = by_opcode["buffer_load_dwordx4"].stack
    assert load == (Place("kernel.py", 8, 9),)
    deepest = by_opcode["v_max3_f32"].stack
    assert deepest == (Place(LIBRARY, 196, 12), Place(LIBRARY, 216, 16), Place("kernel.py", 9, 20))
    assert in_file(deepest, "kernel.py") == Place("kernel.py", 9, 20)
    assert "max" in rows[by_opcode["v_max3_f32"].row - 1]


def test_resources_are_those_of_the_metadata() -> None:
    found = amdgcn.parse_resources(softmax(), 16)
    assert found is not None
    assert found.model_dump(exclude_none=True) == {
        "registers": 24, "agprs": 0, "sgprs": 20, "vgpr_spills": 0, "sgpr_spills": 0, "stack": 0, "shared": 16,
        "occupancy": 8, "instructions": 191,
    }  # fmt: skip


METADATA = """\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     107
    .args:
      - .offset:         8
        .size:           8
        .vgpr_count:     7
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 76
    .sgpr_count:     52
    .sgpr_spill_count: 3
    .vgpr_count:     235
    .vgpr_spill_count: 18
  - .vgpr_count:     1
v_add v0
...
\t.end_amdgpu_metadata
"""


def test_a_kernel_that_spills_and_has_lds_of_both_kinds() -> None:
    found = amdgcn.parse_resources(f"\tv_nop\n; Occupancy: 2\n{METADATA}", 4096)
    assert found is not None
    assert found.model_dump(exclude_none=True) == {
        "registers": 235, "agprs": 107, "sgprs": 52, "vgpr_spills": 18, "sgpr_spills": 3, "stack": 76, "shared": 5120,
        "occupancy": 2, "instructions": 1,
    }  # fmt: skip
    assert amdgcn.parse_resources("\tv_nop\n; Occupancy: 2\n", 16) is None
    assert amdgcn.parse_resources("", None) is None


def test_errors_of_the_assembler_name_the_code() -> None:
    stderr = (
        "noise\ntriton-amdgpu-assembler:51:2: error: invalid instruction\n\tv_nonsense v1, v1\n\t^\n"
        "triton-amdgpu-assembler:52:1: error: not a valid operand.\n"
    )
    first, second = amdgcn.parse_errors(stderr)
    assert (first.line, first.column, first.message) == (51, 2, "invalid instruction: v_nonsense v1, v1")
    assert (first.file, first.address, second.line) == ("kernel.amdgcn", "amdgcn", 52)


def test_errors_without_a_place_are_told_once() -> None:
    stderr = "noise\nerror: could not allocate output register\nerror: could not allocate output register\n  error: x\n"
    (only,) = amdgcn.parse_complaints(stderr)
    assert only.message.startswith("could not allocate output register; LLVM went on")
    assert (only.severity, only.address, only.line) == ("error", "amdgcn", None)


def test_labels_comments_directives_and_inline_assembly() -> None:
    found = amdgcn.parse(
        "kernel:                                 ; @kernel\n"
        "; %bb.0:\n\t;;#ASMSTART\n\tv_add_f32 v0, v0, v0 ; inline\n\n\t;;#ASMEND\n"
        ".LBB0_2:                                ; =>This Inner Loop Header: Depth=1\n"
        "\ts_waitcnt vmcnt(0) lgkmcnt(0)\n\ts_endpgm\n\t.set n, 24\n"
    )
    assert [(item.row, item.opcode) for item in found] == [(4, "v_add_f32"), (8, "s_waitcnt"), (9, "s_endpgm")]


def test_two_files_of_one_name_are_not_confused() -> None:
    text = (
        '\t.file 1 "a" "ops.py"\n\t.file 2 "b" "ops.py"\n\t.file 3 "." "kernel.py"\n'
        "\t.loc 1 5 6 is_stmt 0 ; ops.py:5:6 @[ ops.py:7:8 @[ kernel.py:9:10 ] ]\n\ts_nop 0\n"
    )
    (item,) = amdgcn.parse(text)
    assert item.stack == (Place("a/ops.py", 5, 6), Place("ops.py", 7, 8), Place("kernel.py", 9, 10))


def test_a_file_that_is_missing_has_an_empty_name() -> None:
    (item,) = amdgcn.parse("\t.loc 3 5 1\n\ts_nop 0")
    assert item.stack == (Place("", 5, 1),)


def test_the_number_of_instructions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amdgcn, "MAX_INSTRUCTIONS", 3)
    assert amdgcn.count_instructions("\ts_nop 0\n" * 10) == 3


WORDS = (
    '.loc\t1 2 3|; k.py:2:3 @[ k.py:1:1 ]|.file 1 "a" "k.py"|\n|\t|v_add_f32 |v0|s[0:1]|.LBB0_1:|;|\0| |é|---|@[ |:1|'
    "triton-amdgpu-assembler:1:1: error: x"
)
PIECES = st.lists(
    st.sampled_from([*WORDS.split("|"), METADATA, "\t.amdgpu_metadata\n", "    .vgpr_count: 3\n"]), max_size=50
).map("".join)


@given(PIECES | st.text(max_size=200))
def test_no_text_makes_it_fail(garbage: str) -> None:
    for item in amdgcn.parse(garbage):
        assert item.opcode in garbage.split("\n")[item.row - 1]
    amdgcn.parse_resources(garbage, 1)
    amdgcn.parse_errors(garbage)
    amdgcn.parse_complaints(garbage)


@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "\t",
        "a",
        "@[ ",
        "@[ a:1 ",
        "\t.loc 1 1 1 ; k:1 @[ k:1:1 ]\n",
        "\t.amdgpu_metadata\n",
        " .a: 1\n",
        "; Occ\n",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        amdgcn.parse,
        amdgcn.parse_errors,
        amdgcn.parse_complaints,
        lambda text: amdgcn.parse_resources(f"{METADATA}{text}"),
    ],
)
def test_hostile_texts_take_linear_time(call: Callable[[str], object], piece: str) -> None:
    assert growth(call, lambda size: piece * (size // len(piece)), 1_000_000) < LINEAR
