import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels.signature import ArgumentType, SignatureError, parse_argument


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*fp16:16", ArgumentType("*fp16", 16)),
        ("i32", ArgumentType("i32")),
        (" fp32 ", ArgumentType("fp32")),
        ("i32:16", ArgumentType("i32", 16)),
        ("None", ArgumentType(None)),
        ("*kbf16", ArgumentType("*kbf16")),
        ("*fp32 : 16", ArgumentType("*fp32", 16)),
        ("*i1", ArgumentType("*i1")),
        ("*fp16:16:32", ArgumentType("*fp16", 16, pointer_range=32)),
        ("*fp16 : 1 : 32", ArgumentType("*fp16", 1, pointer_range=32)),
        ("tensordesc<fp16[128,64]>", ArgumentType("tensordesc<fp16[128,64]>")),
        ("tensordesc<i32[1]>", ArgumentType("tensordesc<i32[1]>")),
        ("tensordesc<fp16[128, 64]>", ArgumentType("tensordesc<fp16[128, 64]>")),
    ],
)
def test_readable(text: str, expected: ArgumentType):
    assert parse_argument("x", text) == expected


REFUSED = [
    "",
    "float",
    "*fp17",
    "i32:3",
    "i32:x",
    "i32:0",
    "*fp16:-16",
    "*fp32:",
    "*fp32: ",
    "*fp32:\u00b2",
    "*fp32:\u0661\u0666",
    "*fp32:16_0",
    "*fp32:99999999999999999999",
    "fp32:16:16",
    "fp32:16:32",
    "*fp32:16:16",
    "*fp32:16:",
    "*fp32:16:32:32",
    "*fp32::32",
    "None:16",
    "ki32",
    "kfp32",
    "k*fp16",
    "*k*fp16",
    "**fp32",
    "*",
    "*k",
    "*void",
    "void",
    "nvTmaDesc",
    "constexpr",
    "tensordesc",
    "tensordesc<fp16>",
    "tensordesc<fp16[]>",
    "tensordesc<fp16[3, 4]>",
    "tensordesc<fp16[0]>",
    "tensordesc<fp16[4096, 4096]>",
    "tensordesc<i1[16, 16]>",
    "tensordesc<*fp16[16]>",
    "tensordesc<fp16[16], __import__('os')>",
    "tensordesc<fp16[16],x>",
    "tensordesc<fp16[\u0661\u0666]>",
    "*" * 1000,
    "\ufeffi32",
    "i32\n",
    "1024",
]


@pytest.mark.parametrize("text", [text for text in REFUSED if text != "i32\n"])
def test_refused_with_the_argument_named(text: str):
    with pytest.raises(SignatureError, match="argument x_ptr") as error:
        parse_argument("x_ptr", text)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("value", ["64", "-1", "1.5", ".5", "1e-5", "0x10", "True", "False", "tl.float16", "'tf32'"])
def test_a_value_is_told_from_a_type(value: str):
    with pytest.raises(SignatureError, match="is a value") as error:
        parse_argument("B", value)
    assert f"--const B={value}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("k*fp16", r"\*kfp16"), ("*k*fp16", r"\*kfp16"), ("**fp32", r"\*i64"), ("tensordesc<fp16[3]>", "powers of two")],
)
def test_a_near_miss_says_what_would_be_right(text: str, words: str):
    with pytest.raises(SignatureError, match=words):
        parse_argument("x", text)


@given(st.text(max_size=30) | st.text(alphabet="*kifpu1632:[]<>, tensordescNone", max_size=30))
def test_any_text_is_a_type_or_an_error(text: str):
    try:
        found = parse_argument("x", text)
    except SignatureError:
        return
    again = found.type or "None"
    assert (
        parse_argument(
            "x",
            again + (f":{found.divisibility}" if found.divisibility else "") + (":32" if found.pointer_range else ""),
        )
        == found
    )


ACCEPTED = ["i1", "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"]
ACCEPTED += ["fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16"]
TYPES = [*ACCEPTED, *(f"*{kind}" for kind in ACCEPTED), *(f"*k{kind}" for kind in ACCEPTED)]
TYPES += ["tensordesc<fp16[64, 64]>", "tensordesc<i32[1]>", "tensordesc<fp8e5[16,32]>"]


def test_triton_knows_every_type_that_is_accepted():
    """Read by Triton's own reader in a process of its own; what it does not know is a KeyError there."""
    accepted = [parse_argument("x", kind).type for kind in TYPES]
    script = "import sys, triton.language as tl\nfor kind in sys.argv[1:]: tl.str_to_ty(kind, None)"
    subprocess.run([sys.executable, "-c", script, *map(str, accepted)], check=True)
