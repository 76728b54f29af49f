from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis import diff as diff_module
from pipelines.analysis.diff import Diff, Lines, align
from pipelines.analysis.mask import line_keys
from pipelines.trace import Syntax

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"
LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\s*// (?:\d+ )?preds?:.*")


def lines(text: str | bytes, syntax: Syntax = "mlir") -> Lines:
    data = text if isinstance(text, bytes) else text.encode()
    return Lines(data, syntax, line_keys(data, syntax))


def between(a: str | bytes, b: str | bytes, syntax: Syntax = "mlir") -> Diff:
    return align(lines(a, syntax), lines(b, syntax))


def golden(name: str) -> str:
    return (GOLDEN / name).read_text().rstrip("\n")


def removed_and_added(a: str, b: str) -> tuple[list[str], list[str]]:
    minus: list[str] = []
    plus: list[str] = []
    for kind, i1, i2, j1, j2 in between(a, b).ops:
        if kind == 2:
            minus += a.split("\n")[i1:i2]
            plus += b.split("\n")[j1:j2]
    return [LOC.sub("", line).strip() for line in minus], [LOC.sub("", line).strip() for line in plus]


def check(a: bytes, b: bytes, result: Diff) -> None:
    """Ops cover both texts in order, and say what is true of the lines they cover."""
    lines_a, lines_b = a.split(b"\n"), b.split(b"\n")
    i = j = plus = minus = renamed = 0
    for kind, i1, i2, j1, j2 in result.ops:
        assert (i1, j1) == (i, j)
        assert i2 >= i1
        assert j2 >= j1
        assert i2 - i1 + j2 - j1 > 0
        if kind in (0, 1):
            assert i2 - i1 == j2 - j1
        if kind == 1:
            renamed += i2 - i1
        if kind == 2:
            minus, plus = minus + i2 - i1, plus + j2 - j1
        i, j = i2, j2
    assert (i, j) == (len(lines_a), len(lines_b))
    assert (result.plus, result.minus, result.renamed) == (plus, minus, renamed)


def test_cse_that_merges_nothing_only_renames() -> None:
    a, b = golden("softmax-sccp.mlir"), golden("softmax-cse.mlir")
    result = between(a, b)
    check(a.encode(), b.encode(), result)
    assert (result.plus, result.minus, result.fallback) == (0, 0, False)
    assert result.renamed > 10


def test_removed_operations_are_all_that_a_canonicalization_of_llvm_shows() -> None:
    a, b = golden("softmax-llvm.mlir"), golden("softmax-llvm-cse.mlir")
    result = between(a, b)
    check(a.encode(), b.encode(), result)
    assert (result.plus, result.minus) == (0, 57)
    assert len(a.split("\n")) - len(b.split("\n")) == 57
    assert result.renamed > 150


def test_control_flow_lowering_shows_the_loop_and_not_its_indented_body() -> None:
    minus, plus = removed_and_added(golden("matmul-scf.mlir"), golden("matmul-cf.mlir"))
    assert [line.split(" ")[0] for line in minus] == ["%acc_66:13", "scf.yield", "}", "%8"]
    assert [line.split(" ")[0] for line in plus] == [
        "cf.br", "^bb1(%acc_66:", "%acc_79", "cf.cond_br", "^bb2:", "%acc_127", "cf.br", "^bb3:", "%9",
    ]  # fmt: skip


def test_another_layout_is_a_change_even_under_the_same_alias() -> None:
    minus, plus = removed_and_added(golden("matmul-f32-dot.mlir"), golden("matmul-layouts.mlir"))
    assert "%acc_14 = tt.splat %sam : i32 -> tensor<128x1xi32, #blocked3>" in minus
    assert "%acc_19 = tt.splat %sam : i32 -> tensor<128x1xi32, #blocked1>" in plus
    a = "#blocked = #ttg.blocked<{order = [0]}>\n%0 = tt.splat %1 : tensor<4xi32, #blocked>"
    b = "#blocked = #ttg.blocked<{order = [1]}>\n%0 = tt.splat %1 : tensor<4xi32, #blocked>"
    assert [op.kind for op in between(a, b).ops] == [2, 2]


def test_an_alias_that_only_moves_is_renamed() -> None:
    first, second = "= #ttg.blocked<{order = [0]}>", "= #ttg.blocked<{order = [1]}>"
    use = "%0 = tt.splat %1 : i32 -> tensor<4xi32, #blocked{}>"
    a = f"#blocked {first}\n#blocked1 {second}\n" + use.format(1)
    b = f"#blocked {second}\n#blocked1 {first}\n" + use.format("")
    assert between(a, b).ops[-1] == (1, 2, 3, 2, 3)
    assert between(a, f"#blocked {second}\n#blocked1 {first}\n" + use.format(1)).ops[-1] == (2, 2, 3, 2, 3)


def test_an_alias_is_what_the_aliases_in_it_are() -> None:
    text = "#mma = #ttg.mma<{{v = {}}}>\n#dot = #ttg.dot<{{parent = #mma}}>\n%0 = tt.dot : tensor<4xi32, #dot>"
    assert [op.kind for op in between(text.format(2), text.format(3)).ops] == [2, 2]


def test_an_operand_replaced_by_another_is_a_change_though_the_masked_lines_agree() -> None:
    a = "%p = tt.arg 0\n%q = tt.arg 1\n%x = tt.load %p"
    b = "%p = tt.arg 0\n%q = tt.arg 1\n%x = tt.load %q"
    assert between(a, b) == Diff([(0, 0, 2, 0, 2), (2, 2, 3, 2, 3)], 1, 1, 0, fallback=False)
    inserted = "%p = tt.arg 0\n%c = ttg.convert_layout %p\n%q = tt.arg 1\n%x = tt.load %c"
    assert removed_and_added(a, inserted) == (["%x = tt.load %p"], ["%c = ttg.convert_layout %p", "%x = tt.load %c"])


def test_uses_of_a_value_that_was_replaced_by_another_are_renamed() -> None:
    a = "%p = tt.arg 0\n%q = tt.copy %p\n%x = tt.load %q\n%y = tt.load %q"
    b = "%p = tt.arg 0\n%x = tt.load %p\n%y = tt.load %p"
    assert between(a, b) == Diff([(0, 0, 1, 0, 1), (2, 1, 2, 1, 1), (1, 2, 4, 1, 3)], 0, 1, 2, fallback=False)


def test_another_result_of_the_same_operation_is_another_operand() -> None:
    assert removed_and_added("%0:2 = a\nuse %0#0", "%0:2 = a\nuse %0#1") == (["use %0#0"], ["use %0#1"])


def test_block_arguments_and_several_results_define() -> None:
    a = "^bb1(%0: i32, %1: i32):\n%2, %3 = op %1\nuse %0, %3"
    b = "^bb7(%a: i32, %b: i32):\n%c, %d = op %b\nuse %a, %d"
    assert [op.kind for op in between(a, b).ops] == [1]
    swapped = "^bb7(%a: i32, %b: i32):\n%c, %d = op %b\nuse %a, %c"
    assert [op.kind for op in between(a, swapped).ops] == [1, 2]


def test_names_start_anew_in_each_function() -> None:
    f = "tt.func @f(%0: i32) {\nuse %0\n}\n"
    g = "tt.func @g(%0: i32, %1: i32) {\nuse %1\n}"
    renamed = f + g.replace("%1", "%x").replace("%0", "%1")
    assert {op.kind for op in between(f + g, renamed).ops} == {0, 1}


def test_locations_inside_a_line_leave_it_the_same() -> None:
    a = '%0 = op %1 : i32 loc(#loc1)\n} loc("x"(#loc))'
    b = "%0 = op %1 : i32 loc(callsite(#loc3 at #loc4))\n} loc(unknown)"
    assert between(a, b).ops == [(0, 0, 2, 0, 2)]


def test_lines_that_are_only_location_count_for_nothing() -> None:
    a = "#loc = loc(unknown)\n#loc1 = loc(1)\nmodule {\n}\n#loc2 = loc(2)"
    b = "#loc = loc(unknown)\nmodule {\nnew\n}\n#loc2 = loc(2)"
    assert between(a, b) == Diff(
        [(3, 0, 2, 0, 1), (0, 2, 3, 1, 2), (2, 3, 3, 2, 3), (0, 3, 5, 3, 5)], 1, 0, 0, fallback=False
    )


def test_location_lines_between_changed_lines_stay_apart_from_them() -> None:
    a = ".loc 1 1 0\nadd.s32 %r1, %r2, 1;\n.loc 1 2 0\nret;"
    b = ".loc 1 3 0\nsub.s32 %r1, %r2, 1;\n.loc 1 4 0\nneg.s32 %r1, %r2;\nret;"
    result = between(a, b, "ptx")
    check(a.encode(), b.encode(), result)
    assert [op.kind for op in result.ops] == [3, 2, 3, 2, 0]
    assert (result.plus, result.minus) == (2, 1)


def test_across_dialects_all_is_changed_and_nothing_is_lost() -> None:
    a, b = golden("matmul-cf.mlir"), golden("softmax-llvm.mlir")
    result = between(a, b)
    check(a.encode(), b.encode(), result)
    assert result.plus > 300
    assert result.minus > 150


def test_texts_past_the_bound_align_only_head_and_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_module, "MAX_LINES", 3)
    result = between("a\nb\nc\nd\nz", "a\nc\nx\ny\nd\nz")
    assert result == Diff([(0, 0, 1, 0, 1), (2, 1, 3, 1, 4), (0, 3, 5, 4, 6)], 3, 2, 0, fallback=True)


def test_keys_of_another_text_are_refused() -> None:
    with pytest.raises(ValueError, match="belong to another text"):
        align(lines("a\nb"), Lines(b"a", "mlir", line_keys(b"a\nb\nc", "mlir")))


@pytest.mark.parametrize("syntax", ["llvm", "ptx"])
def test_renumbered_registers_and_metadata_are_renamed(syntax: Syntax) -> None:
    a = golden("softmax.ll" if syntax == "llvm" else "softmax.ptx")
    pattern = r"%(\d+)" if syntax == "llvm" else r"%r(\d+)\b"
    b = re.sub(pattern, lambda m: m[0].replace(m[1], str(int(m[1]) + 1000)), a)
    result = between(a, b, syntax)
    check(a.encode(), b.encode(), result)
    assert (result.plus, result.minus) == (0, 0)
    assert result.renamed > 100


def program(seed: int, size: int, extra: int) -> str:
    """A well-formed text of operations on values in scope, with a share of repeated ones and locations."""
    source = random.Random(seed)
    values = ["%arg0", "%arg1"]
    body = ["#loc = loc(unknown)", "module {", "  tt.func @f(%arg0: i32, %arg1: i32) {"]
    for number in range(size):
        operation = source.choice(["arith.addi", "arith.muli", "tt.load", "llvm.insertvalue"])
        operands = ", ".join(source.choices(values[-6:], k=2))
        body.append(f"    %v{number + extra} = {operation} {operands} : i32 loc(#loc{source.randrange(4)})")
        values.append(f"%v{number + extra}")
    return "\n".join([*body, "  }", "} loc(#loc)", '#loc1 = loc("k.py":1:2)'])


PROGRAMS = st.builds(program, st.integers(0, 5), st.integers(0, 40), st.just(0))


@given(PROGRAMS)
def test_a_text_against_itself_is_all_the_same(text: str) -> None:
    twin = text + "\n#loc9 = loc(unknown)"
    count = len(text.split("\n"))
    assert between(text, text) == Diff([(0, 0, count, 0, count)], 0, 0, 0, fallback=False)
    assert [op.kind for op in between(text, twin).ops if op.i1 < count - 1] == [0]


@given(PROGRAMS, st.randoms(use_true_random=False))
def test_a_consistent_renaming_of_all_values_changes_nothing(text: str, source: random.Random) -> None:
    names = sorted(set(re.findall(r"%\w+", text)))
    renamed = dict(zip(names, (f"%{n}" for n in source.sample(range(1000), len(names))), strict=True))
    other = re.sub(r"%\w+", lambda m: renamed[m[0]], text)
    result = between(text, other)
    check(text.encode(), other.encode(), result)
    assert (result.plus, result.minus) == (0, 0)
    assert result.renamed == sum("%" in line for line in text.split("\n"))


def apply(a: bytes, b: bytes, result: Diff) -> bytes:
    """Rebuild b from a's lines where ops say they are the same, and from what ops add elsewhere."""
    lines_a, lines_b = a.split(b"\n"), b.split(b"\n")
    out: list[bytes] = []
    for kind, i1, i2, j1, j2 in result.ops:
        out += lines_a[i1:i2] if kind == 0 else lines_b[j1:j2]
    return b"\n".join(out)


EDITED = st.lists(
    st.sampled_from([b"", b"a", b"b", b"%0 = x %1", b"%1 = x %0", b"#loc = loc(1)", b"#loc1 = loc(2)", b" a"])
)


@given(EDITED.map(b"\n".join), EDITED.map(b"\n".join))
def test_ops_cover_both_texts_and_rebuild_the_second_from_the_first(a: bytes, b: bytes) -> None:
    result = between(a, b)
    check(a, b, result)
    assert apply(a, b, result) == b


@given(PROGRAMS, PROGRAMS)
def test_ops_rebuild_programs_apart_from_locations(a: str, b: str) -> None:
    result = between(a, b)
    check(a.encode(), b.encode(), result)
    rebuilt = apply(a.encode(), b.encode(), result).decode()
    assert re.sub(r" loc\(#loc\d*\)", "", rebuilt) == re.sub(r" loc\(#loc\d*\)", "", b)


@given(
    st.binary(max_size=120), st.binary(max_size=120), st.sampled_from(["mlir", "llvm", "ptx", "sass", "amdgcn", "text"])
)
def test_any_bytes_can_be_compared(a: bytes, b: bytes, syntax: Syntax) -> None:
    check(a, b, between(a, b, syntax))


@given(EDITED.map(b"\n".join))
def test_plain_text_is_the_same_line_by_line_or_changed(a: bytes) -> None:
    b = a.replace(b"%1", b"%2").replace(b"b", b"a")
    result = between(a, b, "text")
    check(a, b, result)
    assert result.renamed == 0
    assert apply(a, b, result) == b


def test_shuffled_lines_of_the_largest_size_stay_bounded() -> None:
    rows = [f"{n % 50_000}" for n in range(100_000)]
    other = random.Random(0).sample(rows, len(rows))
    start = time.process_time()
    result = between("\n".join(rows), "\n".join(other), "text")
    assert not result.fallback
    # The honest time is 0.4 s; an unbounded search takes minutes.
    assert time.process_time() - start < 20
