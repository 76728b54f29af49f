from __future__ import annotations

import re
import time
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import lexers
from pipelines.lexers import CLASSES, css_class, highlight_html, lexer_for
from pipelines.trace import Syntax

GOLDEN = Path(__file__).parents[1] / "golden" / "analysis"
SYNTAXES: tuple[Syntax, ...] = ("mlir", "llvm", "ptx", "sass", "amdgcn", "python", "text")

REAL: list[tuple[str, Syntax]] = [
    ("matmul-cf.mlir", "mlir"),
    ("matmul-scf.mlir", "mlir"),
    ("softmax-llvm.mlir", "mlir"),
    ("softmax.ll", "llvm"),
    ("softmax.ptx", "ptx"),
    ("softmax-sm90.hex.sass", "sass"),
    ("scale-sm100.sass", "sass"),
    ("scale-sm75.sass", "sass"),
    ("softmax.amdgcn", "amdgcn"),
    ("loop.amdgcn", "amdgcn"),
]


def kinds(line: str, syntax: Syntax) -> list[tuple[str, str]]:
    """The coloured pieces of a line: class letter and text."""
    (html,) = highlight_html(line, syntax)
    return [(m[1], unescape(m[2]).strip()) for m in re.finditer(r'<span class="tok-(\w)">(.*?)</span>', html)]


@pytest.mark.parametrize(("name", "syntax"), REAL)
def test_every_character_of_a_real_text_is_understood(name: str, syntax: Syntax) -> None:
    text = (GOLDEN / name).read_text()
    tokens = list(lexer_for(syntax).get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in tokens) == text
    unknown = {value for _, kind, value in tokens if str(kind) in ("Token.Error", "Token.Text") and value.strip()}
    assert unknown == set()


def test_mlir() -> None:
    line = "    %x_5:2 = tt.load %x_4#1, %cst {tt.div = 16 : i32} : tensor<8x?x!tt.ptr<f32>, #blocked> loc(#loc30)"
    assert kinds(line, "mlir") == [
        ("v", "%x_5:2"), ("o", "tt.load"), ("v", "%x_4#1"), ("v", "%cst"), ("n", "16"), ("t", "i32"), ("t", "tensor"),
        ("t", "8x?x!tt.ptr"), ("t", "f32"), ("l", "#blocked"), ("c", "loc"), ("l", "#loc30"),
    ]  # fmt: skip
    assert kinds("^bb1(%0: i32): // pred: ^bb0", "mlir") == [
        ("s", "^bb1"),
        ("v", "%0"),
        ("t", "i32"),
        ("c", "// pred: ^bb0"),
    ]
    assert kinds('%1 = "tt.reduce"(%0) <{axis = -1 : si64, s = "a\\"b"}>', "mlir") == [
        ("v", "%1"), ("o", '"tt.reduce"'), ("v", "%0"), ("n", "-1"), ("t", "si64"), ("s", '"a\\"b"'),
    ]  # fmt: skip
    assert kinds("module attributes {dense<0xFF800000> : f8E4M3FN, 1.5e-3}", "mlir") == [
        ("k", "module attributes"), ("k", "dense"), ("n", "0xFF800000"), ("t", "f8E4M3FN"), ("n", "1.5e-3"),
    ]  # fmt: skip
    assert kinds("!llvm.struct<(f32, f32, ptr<1>, i1)> -> @f", "mlir") == [
        ("t", "!llvm.struct"), ("t", "f32, f32, ptr<1>, i1"), ("s", "@f"),
    ]  # fmt: skip


def test_llvm_ir() -> None:
    assert kinds("  %8 = tail call i32 @llvm.f(float %0, i1 true), !dbg !12", "llvm") == [
        ("v", "%8"), ("k", "tail"), ("o", "call"), ("t", "i32"), ("s", "@llvm.f"), ("t", "float"), ("v", "%0"),
        ("t", "i1"), ("k", "true"), ("l", "!dbg !12"),
    ]  # fmt: skip
    assert kinds("  %9 = fcmp ult float %1, %2 ; note", "llvm")[1] == ("o", "fcmp")


def test_ptx() -> None:
    assert kinds("\t@!%p1 st.shared::cta.b32 [%r1+4], %tid.x; // x", "ptx") == [
        ("l", "@!%p1"), ("o", "st.shared::cta.b32"), ("v", "%r1"), ("n", "4"), ("v", "%tid.x"), ("c", "// x"),
    ]  # fmt: skip
    assert kinds("$L__BB0_2:", "ptx") == [("s", "$L__BB0_2:")]
    assert kinds("\t.reg .b32 \t%r<586>;", "ptx") == [("k", ".reg"), ("t", ".b32"), ("v", "%r"), ("n", "586")]
    assert kinds("\tmov.b32 %f1, 0f3F800000;", "ptx") == [("o", "mov.b32"), ("v", "%f1"), ("n", "0f3F800000")]


def test_sass() -> None:
    assert kinds("   /*02f0*/  @!P1 LDG.E R13, desc[UR8][R4.64+0x800] ;  /* 0x0000080804001981 */", "sass") == [
        ("c", "/*02f0*/"), ("l", "@!P1"), ("o", "LDG.E"), ("v", "R13"), ("t", "desc"), ("v", "UR8"), ("v", "R4.64"),
        ("n", "0x800"), ("c", "/* 0x0000080804001981 */"),
    ]  # fmt: skip
    assert kinds("   /*0ce0*/  BRA `(.L_x_0);", "sass") == [("c", "/*0ce0*/"), ("o", "BRA"), ("s", "`(.L_x_0)")]
    assert kinds(".L_x_0:", "sass") == [("s", ".L_x_0:")]
    assert kinds('\t//## File "kernel.py", line 3', "sass") == [("c", '//## File "kernel.py", line 3')]
    assert kinds("   /*0010*/  S2R R12, SR_TID.X ;", "sass")[-1] == ("t", "SR_TID.X")


def test_amdgcn() -> None:
    assert kinds("\tv_mov_b32_dpp v5, -v4 row_shr:8 bound_ctrl:1 ; note", "amdgcn") == [
        ("o", "v_mov_b32_dpp"), ("v", "v5"), ("v", "v4"), ("k", "row_shr"), ("n", "8"), ("k", "bound_ctrl"),
        ("n", "1"), ("c", "; note"),
    ]  # fmt: skip
    assert kinds("\tbuffer_load_dwordx4 v[2:5], v6, s[8:11], 0 offen", "amdgcn")[:3] == [
        ("o", "buffer_load_dwordx4"), ("v", "v"), ("n", "2"),
    ]  # fmt: skip
    assert kinds("\ts_mov_b64 vcc, exec_lo", "amdgcn") == [("o", "s_mov_b64"), ("v", "vcc"), ("v", "exec_lo")]
    assert kinds("\ts_cbranch_scc1 .LBB0_4", "amdgcn") == [("o", "s_cbranch_scc1"), ("s", ".LBB0_4")]
    assert kinds(".LBB0_4:  ; in", "amdgcn") == [("s", ".LBB0_4:"), ("c", "; in")]
    assert kinds("\t.amdhsa_next_free_vgpr 24", "amdgcn") == [("k", ".amdhsa_next_free_vgpr"), ("n", "24")]


def test_python_keeps_its_state_over_the_lines_of_a_window() -> None:
    html = highlight_html(['"""a', "b", '"""', "def f(): pass"], "python")
    assert [line[:20] for line in html[:3]] == ['<span class="tok-s">'] * 3
    assert html[3].startswith('<span class="tok-k">def </span><span class="tok-o">f</span>')


def test_the_table_holds_the_eight_classes_of_the_page() -> None:
    assert set(CLASSES.values()) == {f"tok-{letter}" for letter in "voltknsc"}
    assert {css_class(kind) for kind in CLASSES} == set(CLASSES.values())


def check(lines: list[str], syntax: Syntax) -> None:
    html = highlight_html(lines, syntax)
    assert len(html) == len(lines)
    for line, piece in zip(lines, html, strict=True):
        tags = re.findall(r"<[^>]*>", piece)
        assert all(tag == "</span>" or re.fullmatch(r'<span class="tok-[voltknsc]">', tag) for tag in tags)
        assert tags[::2] == [tag for tag in tags if tag != "</span>"]
        assert unescape(re.sub(r"<[^>]*>", "", piece)) == line


@pytest.mark.parametrize(("name", "syntax"), REAL)
def test_html_of_a_real_text_is_balanced_line_by_line(name: str, syntax: Syntax) -> None:
    check((GOLDEN / name).read_text().split("\n"), syntax)


WORDS = (
    '% # ! @ ^ " \\ / // /* */ ` ( ) < > & ; : . - -> 0x1 1e5 f32, i32 ptr<1> tt.load loc( R1 P0 .L_x: $L %r1 c[ é "a"'
)
PIECES = st.lists(st.sampled_from([*WORDS.split(" "), *" \t\r\0\n"]), max_size=50).map("".join)


@given(PIECES | st.text(max_size=100), st.sampled_from(SYNTAXES))
def test_tokens_join_to_the_text_and_html_is_balanced(text: str, syntax: Syntax) -> None:
    assert "".join(value for _, _, value in lexer_for(syntax).get_tokens_unprocessed(text)) == text
    check(text.split("\n"), syntax)


def test_script_in_a_text_stays_text() -> None:
    for syntax in SYNTAXES:
        (html,) = highlight_html('"<script>alert(1)</script>" <img src=x> &amp;', syntax)
        assert "<script" not in html
        assert "<img" not in html


def test_long_lines_and_what_follows_the_bound_stay_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexers, "MAX_LINE", 10)
    monkeypatch.setattr(lexers, "MAX_TEXT", 12)
    long = "%a < %bcdefghi"
    assert highlight_html(["%a", long, "%b", "%c", "%d", "%e"], "mlir") == [
        '<span class="tok-v">%a</span>',
        "%a &lt; %bcdefghi",
        '<span class="tok-v">%b</span>',
        '<span class="tok-v">%c</span>',
        '<span class="tok-v">%d</span>',
        "%e",
    ]


HOSTILE = '" \\\\" loc( a. a.b- a-a- 1- 1x ?x /* @! `( < a$ 0x 1e % %" ::a R1. x: .a 0xF A.b= "a.b f32,_ i1,_ _ ;_'


@pytest.mark.parametrize("syntax", ["mlir", "llvm", "ptx", "sass", "amdgcn"])
@pytest.mark.parametrize("piece", HOSTILE.split(" "))
def test_no_pattern_is_worse_than_linear(syntax: Syntax, piece: str) -> None:
    lexer = lexer_for(syntax)
    times = []
    for size in (3_000, 12_000):
        text = piece.replace("_", " ") * (size // len(piece)) + ","
        start = time.process_time()
        for _ in lexer.get_tokens_unprocessed(text):
            pass
        times.append(time.process_time() - start)
    # Four times the text: about 4 if linear, 16 if quadratic; short times are noise.
    assert times[1] < 0.1 or times[1] < 9 * times[0]
