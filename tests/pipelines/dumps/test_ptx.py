from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import ptx
from pipelines.dumps.place import Place, in_file

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"
LIBRARY = "<triton>/language/standard.py"


def softmax() -> str:
    return (GOLDEN / "softmax.ptx").read_text()


def test_every_statement_of_a_real_kernel_is_an_instruction_or_a_declaration() -> None:
    text = softmax()
    found = ptx.parse(text)
    statements = [line for line in text.split("\n") if ";" in line.split("//")[0] and not line.strip().startswith(".")]
    assert len(found) == len(statements) == ptx.count_instructions(text) == 159
    rows = text.split("\n")
    assert all(item.opcode in rows[item.row - 1] for item in found)


def test_instructions_carry_the_place_of_the_loc_before_them() -> None:
    rows = softmax().split("\n")
    by_text = {rows[item.row - 1].strip(): item for item in ptx.parse(softmax())}
    assert by_text["ld.param.b64 	%rd17, [softmax_param_0];"].stack == (Place("kernel.py", 3, 0),)
    assert by_text["mov.u32 	%r18, %ctaid.x;"].stack == (Place("kernel.py", 4, 9),)
    shift = by_text["shr.u32 	%r32, %r20, 3;"].stack
    assert shift == (Place(LIBRARY, 216, 16), Place("kernel.py", 7, 9))
    deepest = by_text["max.f32 	%r39, %r1, %r3;"].stack
    assert deepest == (Place(LIBRARY, 196, 12), Place(LIBRARY, 216, 16), Place("kernel.py", 7, 9))
    assert in_file(deepest, "kernel.py") == Place("kernel.py", 7, 9)


def test_predicates_labels_braces_and_inline_assembly() -> None:
    found = ptx.parse(
        """
{
	.reg .pred complete;
	waitLoop:
	mbarrier.try_wait.parity.shared::cta.b64 complete, [%r240], %r239;
	@!complete bra.uni waitLoop;
}
	{ .reg .pred p; @!%p1 st.shared.b32 [%r1], %r2; bar.sync 0; }
$L__BB0_2: @%p3 bra $L__BB0_2;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
		{ %f1, %f2 },
		// operands go on
		{ %r1, %r2 };
	ret;
"""
    )
    assert [(item.row, item.predicate, item.opcode) for item in found] == [
        (5, None, "mbarrier.try_wait.parity.shared::cta.b64"),
        (6, "!complete", "bra.uni"),
        (8, "!%p1", "st.shared.b32"),
        (8, None, "bar.sync"),
        (9, "%p3", "bra"),
        (10, None, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (14, None, "ret"),
    ]


def test_a_place_that_is_inlined_at_an_unknown_one_still_names_it() -> None:
    (item,) = ptx.parse('.loc 2 5 1, function_name $L0, inlined_at 1 7 9\nret;\n.file 1 "a.py"\n.file 2 "b.py"')
    assert item.stack == (Place("b.py", 5, 1), Place("a.py", 7, 9))


def test_a_file_that_is_missing_has_an_empty_name() -> None:
    (item,) = ptx.parse(".loc 3 5 1\nret;")
    assert item.stack == (Place("", 5, 1),)


def test_the_number_of_instructions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "MAX_INSTRUCTIONS", 3)
    assert ptx.count_instructions("ret;\n" * 10) == ptx.count_instructions("ret;" * 10) == 3


PIECES = st.lists(
    st.sampled_from(
        [
            ".loc 1 2 3",
            ", inlined_at 1 2 3",
            ", inlined_at 2 2 2",
            '.file 1 "a"',
            "\n",
            ";",
            "mov.b32 ",
            "%r1",
            "@%p1 ",
            "{",
            "}",
            "$L1:",
            "//",
            "\0",
            " ",
            "\t",
            "é",
            "::",
        ]
    ),
    max_size=50,
).map("".join)


@given(PIECES | st.text(max_size=200))
def test_no_text_makes_it_fail(garbage: str) -> None:
    for item in ptx.parse(garbage):
        assert item.opcode in garbage.split("\n")[item.row - 1]


@pytest.mark.parametrize(
    "hostile",
    [" " * 4_000_000, "{" * 4_000_000, "; " * 2_000_000, "a" * 4_000_000, ".loc 1 1 1, inlined_at 1 1 1\n" * 100_000],
    ids=["blanks", "braces", "statements", "word", "chain"],
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    start = time.process_time()
    ptx.parse(hostile)
    assert time.process_time() - start < 10
