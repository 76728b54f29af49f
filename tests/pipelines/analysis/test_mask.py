from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.mask import LOCATION, count_lines, line_keys
from pipelines.trace import Syntax

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"

NESTED = r"(?:[^()\"\n]|\"[^\"\n]*\"|\((?:[^()\"\n]|\"[^\"\n]*\"|\([^()\n]*\))*\))*"
RULES: dict[Syntax, list[tuple[str, str]]] = {
    "mlir": [
        (rf"\s*(?<![\w.$-])loc\({NESTED}\)", ""),
        (r"\s*// (?:\d+ )?preds?:.*$", ""),
        (r"%[\w.$-]+", "%"),
        (r"\^[\w.$-]+", "^"),
        (r"(?<![\w.$-])#(\w*?)\d+\b(?![.$])", r"#\1"),
    ],
    "llvm": [
        (r",?\s*!dbg !\d+", ""),
        (r"\s*; preds = .*$", ""),
        (r"^[\w.$-]+:", ":"),
        (r"%[\w.$-]+", "%"),
        (r"([#!])\d+", r"\1"),
    ],
    "ptx": [(r"%(\w*?)\d+\b", r"%\1"), (r"\$\w+", "$")],
    "amdgcn": [(r"\.L(?:BB|tmp)\w+", "."), (r"(?<![\w.$-])BB\d\w*", "B"), (r"%bb\.[\w.$-]+", "%")],
}
LOCATIONS: dict[Syntax, str] = {
    "mlir": r"#loc\d* = ",
    "llvm": r"!llvm\.dbg\.cu |!\d+ = (?:distinct )?!DI",
    "ptx": r"\s*(?:\.loc|\.file|\$L__(?:tmp|func_begin|func_end))",
    "amdgcn": r"\s*\.(?:loc\s|file\s|cfi_|L(?:tmp|func_begin|func_end))",
}


def masked(line: str, syntax: Syntax) -> str | None:
    """The specification, slow: the line's masked text, or None for a line that is only location."""
    if re.match(LOCATIONS[syntax], line):
        return None
    strings: list[str] = []
    line = re.sub(r'"[^"]*"', lambda m: strings.append(m[0]) or f'"{len(strings) - 1}"', line)
    for pattern, by in RULES[syntax]:
        line = re.sub(pattern, by, line)
    return re.sub(r'"(\d+)"', lambda m: strings[int(m[1])], line).lstrip(" \t")


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("matmul-cf.mlir", "mlir"),
        ("matmul-scf.mlir", "mlir"),
        ("matmul-layouts.mlir", "mlir"),
        ("softmax-llvm.mlir", "mlir"),
        ("softmax.ll", "llvm"),
        ("softmax.ptx", "ptx"),
        ("softmax.amdgcn", "amdgcn"),
        ("loop.amdgcn", "amdgcn"),
    ],
)
def test_keys_partition_the_lines_of_a_real_text_as_the_masked_lines_do(name: str, syntax: Syntax) -> None:
    text = (GOLDEN / name).read_text()
    if syntax in ("ptx", "amdgcn"):
        text = text[: text.index("\t.section\t.debug_")]
    keys = line_keys(text.encode(), syntax).tolist()
    lines = [masked(line, syntax) for line in text.split("\n")]
    assert [key == LOCATION for key in keys] == [line is None for line in lines]
    assert len(set(zip(keys, lines, strict=True))) == len(set(keys)) == len(set(lines))


def same(a: str, b: str, syntax: Syntax = "mlir") -> bool:
    first, second = line_keys(a.encode(), syntax), line_keys(b.encode(), syntax)
    return first.tolist() == second.tolist()


@pytest.mark.parametrize(
    ("syntax", "a", "b"),
    [
        ("mlir", "  %0 = arith.addi %a, %b : i32 loc(#loc3)", "    %c = arith.addi %9, %c-1_i32 : i32"),
        ("mlir", '} loc("f(\\"x) y"(#loc1))', "} loc(unknown)"),
        ("mlir", '^bb1(%0: i32 loc(callsite("a"("k.py":1:2) at #loc7))):  // 2 preds: ^bb0, ^bb4', "^bb12(%1: i32):"),
        ("mlir", "tt.load %0 : tensor<4xf32, #blocked>", "tt.load %1 : tensor<4xf32, #blocked12>"),
        ("llvm", "  %3 = add i32 %1, %2, !dbg !7", "  %.pn16 = add i32 %x, %y"),
        ("llvm", "26:                ; preds = %12, %14", "._crit_edge:"),
        ("llvm", "define void @k(ptr %0) #1 !dbg !4 {", "define void @k(ptr %1) #0 {"),
        ("ptx", "\tmov.u32 \t%r18, %ctaid.x;", "\tmov.u32 \t%r1, %ctaid.x;"),
        ("ptx", "@%p1 bra \t$L__BB0_2;", "@%p12 bra \t$L__BB0_3;"),
        ("amdgcn", "\ts_cbranch_scc1 .LBB0_4", "\ts_cbranch_scc1 .LBB1_12"),
        ("amdgcn", ".LBB0_2:  ;   in Loop: Header=BB0_1 Depth=1", ".LBB0_12:  ;   in Loop: Header=BB0_9 Depth=1"),
        ("amdgcn", "; %bb.3:", "; %bb.12:"),
        ("sass", "  /*0010*/   @P0 BRA `(.L_x_1) ;", "  /*02f0*/   @P0 BRA `(.L_x_22) ;"),
    ],
)
def test_lines_that_differ_only_in_names_and_locations_have_one_key(syntax: Syntax, a: str, b: str) -> None:
    assert same(a, b, syntax)


@pytest.mark.parametrize(
    ("syntax", "a", "b"),
    [
        ("mlir", "%0 = arith.addi %a, %b : i32", "%0 = arith.subi %a, %b : i32"),
        ("mlir", "%0 = use %1#0 : i32", "%0 = use %1#1 : i32"),
        ("mlir", "x : tensor<4xf32, #blocked1>", "x : tensor<4xf32, #mma1>"),
        ("mlir", "x : #ttg.dot_op1<a>", "x : #ttg.dot_op2<a>"),
        ("mlir", 'asm "mov %r1" : i32', 'asm "mov %r2" : i32'),
        ("mlir", "myloc(1)", "myloc(2)"),
        ("mlir", "loc(1", "loc(2"),
        ("llvm", 'asm "st %1", !dbg !3', 'asm "st %2", !dbg !3'),
        ("ptx", "mov.b32 %r1, %f2;", "mov.b32 %r1, %r2;"),
        ("ptx", "mov.b32 %r1, 1;", "mov.b32 %r1, 2;"),
        ("amdgcn", "\tv_mov_b32_e32 v1, v2", "\tv_mov_b32_e32 v1, v3"),
        ("amdgcn", "\t.set .Lkernel.num_vgpr, 24", "\t.set .Lkernel.num_agpr, 24"),
        ("amdgcn", "BBQ1", "BBQ2"),
        ("sass", "  /*0010*/   IADD3 R1, R2, R3, RZ ;", "  /*0010*/   IADD3 R1, R2, R4, RZ ;"),
        ("python", "    a = 1", "  a = 1"),
        ("text", "%1", "%2"),
    ],
)
def test_lines_that_differ_in_anything_else_have_two_keys(syntax: Syntax, a: str, b: str) -> None:
    assert not same(a, b, syntax)


@pytest.mark.parametrize(
    ("syntax", "line", "location"),
    [
        ("mlir", "#loc = loc(unknown)", True),
        ("mlir", '#loc12 = loc("x"(#loc3))', True),
        ("mlir", '#di_file = #llvm.di_file<"k.py" in ".">', True),
        ("mlir", "#location = 1", False),
        ("mlir", "#blocked = #ttg.blocked<{}>", False),
        ("llvm", "!0 = distinct !DICompileUnit(language: DW_LANG_C)", True),
        ("llvm", "!23 = !DILocation(line: 1, column: 2, scope: !3)", True),
        ("llvm", "    #dbg_value(i32 %0, !1, !DIExpression(), !2)", True),
        ("llvm", '!2 = !{i32 2, !"Debug Info Version", i32 3}', False),
        ("ptx", "\t.loc\t1 4 9                           // kernel.py:4:9", True),
        ("ptx", '\t.file\t1 "kernel.py"', True),
        ("ptx", "$L__tmp0:", True),
        ("ptx", "$L__BB0_1:", False),
        ("amdgcn", "\t.loc\t1 4 9                           ; kernel.py:4:9", True),
        ("amdgcn", '\t.file\t2 "<triton>/language" "standard.py"', True),
        ("amdgcn", "\t.cfi_undefined 16", True),
        ("amdgcn", ".Ltmp12:", True),
        ("amdgcn", ".Lfunc_end0:", True),
        ("amdgcn", ".LBB0_1:", False),
        ("amdgcn", "\t.size\tkernel, .Lfunc_end0-kernel", False),
        ("sass", '\t//## File "kernel.py", line 3', True),
        ("sass", "//--------------------- .text.softmax", False),
    ],
)
def test_lines_that_are_only_location(syntax: Syntax, line: str, location: bool) -> None:
    assert bool(line_keys(line.encode(), syntax)[0] == LOCATION) is location


def test_debug_sections_of_ptx_are_location_up_to_their_brace() -> None:
    text = (GOLDEN / "softmax.ptx").read_text()
    lines, keys = text.split("\n"), line_keys(text.encode(), "ptx")
    first = next(n for n, line in enumerate(lines) if line.startswith("\t.section\t.debug_abbrev"))
    assert (keys[first : len(lines) - 1] == LOCATION).all()
    assert keys[lines.index("}")] != LOCATION


def test_debug_sections_of_amdgcn_are_location_up_to_the_next_section() -> None:
    text = (GOLDEN / "softmax.amdgcn").read_text()
    lines, keys = text.split("\n"), line_keys(text.encode(), "amdgcn")
    first = next(n for n, line in enumerate(lines) if line.startswith("\t.section\t.debug_abbrev"))
    after = next(n for n, line in enumerate(lines) if line.startswith('\t.section\t".note'))
    assert (keys[first:after] == LOCATION).all()
    assert LOCATION not in keys[after : lines.index("\t.end_amdgpu_metadata")]
    assert (keys[lines.index('\t.section\t.debug_line,"",@progbits') : -1] == LOCATION).all()


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\r\nb\r\n", "\0\n\0\0", "\n\n\n", "é\u2028x\n\x0c"])
@pytest.mark.parametrize("syntax", ["mlir", "llvm", "ptx", "sass", "amdgcn", "text", "python"])
def test_the_browser_counts_the_same_lines(text: str, syntax: Syntax) -> None:
    assert count_lines(text.encode()) == line_keys(text.encode(), syntax).size == len(text.split("\n"))


WORDS = (
    rb'%a %12 #1 #blocked3 ^bb1 !7 loc( ) ( " \ = : ; // pred .loc /*0010*/ } .section .debug_x tt.func @f $L__tmp1 '
    rb".LBB0_1 .Ltmp3: %bb.7: Header=BB0_3 .cfi_x"
)

PIECES = st.lists(
    st.sampled_from(
        [*WORDS.split(b" "), *(bytes([c]) for c in b" \n\r\t\0\xff"), b", !dbg !3", b"; preds = ", b"// 2 preds"]
    ),
    max_size=60,
).map(b"".join)


@given(PIECES | st.binary(max_size=200), st.sampled_from(["mlir", "llvm", "ptx", "sass", "amdgcn", "text"]))
def test_any_bytes_give_one_key_a_line_that_depends_on_the_line_alone(text: bytes, syntax: Syntax) -> None:
    keys = line_keys(text, syntax).tolist()
    lines = text.split(b"\n")
    assert len(keys) == count_lines(text) == len(lines)
    if b".debug_" not in text:
        assert keys == [int(line_keys(line, syntax)[0]) for line in lines]


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=40))
def test_plain_text_lines_share_a_key_only_if_they_are_equal(lines: list[bytes]) -> None:
    keys = line_keys(b"\n".join(lines), "text").tolist()
    assert len(set(keys)) == len(set(lines or [b""]))


def test_a_long_line_has_one_key_wherever_it_stands() -> None:
    line = bytes(range(11, 256)) * 600
    for shift in (0, 1, 32_767, 32_768, 65_535):
        keys = line_keys(b"x" * shift + b"\n" + line + b"\n" + line + b"\n" + line[:-1], "text").tolist()
        assert keys[1] == keys[2] != keys[3]
        assert keys[1] == int(line_keys(line, "text")[0])


def test_keys_are_the_same_in_another_process() -> None:
    text = "%0 = arith.addi %1, %2 : i32 loc(#loc)\n}"
    code = f"from pipelines.analysis.mask import line_keys; print(line_keys({text.encode()!r}, 'mlir').tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(line_keys(text.encode(), "mlir").tolist())


HOSTILE = {
    "one line": b"%x = tt.op loc(#loc1) " * 190_000,
    "opened parens": b"loc(" * 1_000_000,
    "nested parens": b"loc(" * 600_000 + b")" * 600_000,
    "sigils": b"%" * 4_000_000,
    "one name": b"%" + b"a" * 4_000_000,
    "digits": b"#" + b"1" * 4_000_000,
    "blanks": b" " * 4_000_000,
    "quotes": b'"' * 4_000_000,
    "newlines": b"\n" * 4_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_of_4_mb_take_linear_time(name: str) -> None:
    text = HOSTILE[name]
    start = time.process_time()
    assert line_keys(text, "mlir").size == count_lines(text)
    # A quadratic step on any of them takes minutes; the honest time is at most 0.5 s.
    assert time.process_time() - start < 10
