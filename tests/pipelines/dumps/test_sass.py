from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import sass
from pipelines.dumps.place import Place, in_file

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"
KERNELS = ("scale-sm75", "softmax-sm90", "scale-sm100")


def text(name: str) -> str:
    return (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", KERNELS)
def test_without_encodings_the_text_is_what_nvdisasm_prints_without_hex(name: str) -> None:
    plain = text(f"{name}.sass")
    assert sass.strip_encodings(text(f"{name}.hex.sass")) == plain
    assert sass.strip_encodings(text(f"{name}.hex.sass").encode()) == plain.encode()
    assert sass.strip_encodings(plain) == plain


def test_stripping_encodings_leaves_no_newline_behind_where_the_text_ends_in_one() -> None:
    row = "        /*0000*/                   EXIT ;      /* 0x000000000000794d */\n"
    row += "                                               /* 0x000fea0003800000 */"
    assert sass.strip_encodings(row) == "        /*0000*/                   EXIT ;"


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_has_its_offset_and_both_words(name: str) -> None:
    (function,) = sass.parse(text(f"{name}.hex.sass"))
    assert function.name == name.split("-")[0]
    assert [item.offset for item in function.instructions] == list(range(0, 16 * len(function.instructions), 16))
    assert all(len(item.encoding) == 2 for item in function.instructions)
    rows = text(f"{name}.hex.sass").split("\n")
    assert all(f"/*{item.offset:04x}*/" in rows[item.row - 1] for item in function.instructions)


def test_plain_and_encoded_texts_hold_the_same_instructions() -> None:
    (plain,), (encoded,) = (sass.parse(text(f"softmax-sm90{end}")) for end in (".sass", ".hex.sass"))
    fields = [
        [(i.offset, i.predicate, i.opcode, i.operands, i.stack) for i in function.instructions]
        for function in (plain, encoded)
    ]
    assert fields[0] == fields[1]
    assert plain.labels == encoded.labels


def test_fields_of_known_instructions() -> None:
    (function,) = sass.parse(text("softmax-sm90.hex.sass"))
    first = function.instructions[0]
    assert (first.offset, first.predicate, first.opcode, first.operands) == (0, None, "LDC", "R1, c[0x0][0x28]")
    assert first.encoding == (0x00000A00FF017B82, 0x000FE20000000800)
    by_offset = {item.offset: item for item in function.instructions}
    assert (by_offset[0x2F0].predicate, by_offset[0x2F0].opcode) == ("!P1", "LDG.E")
    assert by_offset[0x2F0].operands == "R13, desc[UR8][R4.64+0x800]"


def test_inlined_places_are_a_stack_with_the_innermost_first() -> None:
    (function,) = sass.parse(text("softmax-sm90.sass"))
    by_offset = {item.offset: item.stack for item in function.instructions}
    library = "<triton>/language/standard.py"
    assert by_offset[0x0] == (Place("kernel.py", 3),)
    assert by_offset[0x330] == (Place(library, 216), Place("kernel.py", 7))
    assert by_offset[0x360] == (Place(library, 196), Place(library, 216), Place("kernel.py", 7))
    assert by_offset[0x370] == by_offset[0x360]
    assert in_file(by_offset[0x360], "kernel.py") == Place("kernel.py", 7)
    assert in_file(by_offset[0x360], "other.py") is None


def test_labels_give_offsets_also_behind_the_last_instruction() -> None:
    (function,) = sass.parse(text("scale-sm75.sass"))
    assert function.labels == {"scale": 0, ".L_x_1": 0xD0, ".L_x_0": 0xE0, ".L_x_2": 0x150, ".L_x_3": 0x180}


def test_padding_is_not_counted() -> None:
    (function,) = sass.parse(text("scale-sm75.sass"))
    assert [item.opcode for item in function.instructions[-3:]] == ["BRA", "NOP", "NOP"]
    assert function.length == len(function.instructions) - 2 == sass.count_instructions(text("scale-sm75.hex.sass"))


def test_each_section_is_a_function_and_others_hold_no_code() -> None:
    body = "\n        /*0000*/   EXIT ;\n"
    two = f'\t.section\t.text.f,"ax",@progbits{body}\t.section\t.nv.info,""{body}\t.section\t.text.g,"ax"{body}.L_x_0:'
    f, g = sass.parse(two)
    assert (f.name, f.length, g.name, g.length) == ("f", 1, "g", 1)
    assert (f.labels, g.labels) == ({}, {".L_x_0": 16})


def test_the_number_of_instructions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "MAX_INSTRUCTIONS", 3)
    (function,) = sass.parse("\t.section .text.f\n" + "  /*0000*/  NOP ;\n" * 10)
    assert len(function.instructions) == 3


PIECES = st.lists(
    st.sampled_from(
        [
            "\t.section\t.text.f,",
            "/*0010*/ ",
            "@!P0 ",
            "BRA ",
            "`(.L_x_0)",
            ";",
            " /* 0x000fe20000000800 */",
            "\n",
            ".L_x_0:",
            '//## File "a", line 3',
            ' inlined at "b", line 4',
            " ",
            "\t",
            "\0",
            "é",
            "/* 0x",
            "*/",
        ]
    ),
    max_size=50,
).map("".join)


@given(PIECES | st.text(max_size=200))
def test_no_text_makes_it_fail(garbage: str) -> None:
    count = sum(len(function.instructions) for function in sass.parse(garbage))
    assert 0 <= sass.count_instructions(garbage) <= count <= garbage.count("/*")
    assert len(sass.strip_encodings(garbage)) <= len(garbage)


@pytest.mark.parametrize(
    "hostile",
    [
        " " * 4_000_000,
        "/*" * 2_000_000,
        "; " * 2_000_000,
        "\n" * 1_000_000,
        ";" + " " * 4_000_000,
        "a:" * 2_000_000,
        "\t.section\t.text.f\n" + '//## File "a", line 1 inlined at "b\n' * 100_000,
    ],
    ids=["blanks", "comments", "statements", "newlines", "tail", "labels", "chain"],
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    start = time.process_time()
    sass.parse(hostile)
    sass.strip_encodings(hostile)
    assert time.process_time() - start < 10
