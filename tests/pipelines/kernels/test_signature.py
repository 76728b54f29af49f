import pytest

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
        ("tensordesc<fp16[128, 64]>", ArgumentType("tensordesc<fp16[128, 64]>")),
    ],
)
def test_readable(text: str, expected: ArgumentType):
    assert parse_argument("x", text) == expected


@pytest.mark.parametrize("text", ["", "float", "*fp17", "i32:3", "i32:x", "*fp16:-16", "fp32:16:16", "*" * 1000])
def test_refused_with_the_argument_named(text: str):
    with pytest.raises(SignatureError, match="argument x_ptr"):
        parse_argument("x_ptr", text)
