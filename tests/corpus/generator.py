"""Random kernels for hypothesis: loads of several types, then statements over what is known so far, then a store.

Most are valid; where types do not fit, Triton has its own words for that, which a trace must tell too.
"""

from __future__ import annotations

from hypothesis import strategies as st

HEAD = """import triton
import triton.language as tl


class Array:
    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 4096


@triton.jit
"""
TYPES = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "fp8e5": "float8e5", "i1": "int1",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u32": "uint32",
}  # fmt: skip
FLOAT_UNARY = ("exp", "exp2", "log", "sqrt", "rsqrt", "sigmoid", "sin", "floor", "erf")
UNARY = ("abs", "flip", "ravel")
BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "==", ">=")
PAIRWISE = ("maximum", "minimum", "fdiv", "umulhi")
REDUCTIONS = ("sum", "max", "min", "xor_sum", "argmax", "argmin")
SCANS = ("cumsum", "cumprod", "sort", "softmax")
NUMBERS = ("0", "1", "3", "-2", "0.5", "1e-6", "float('inf')", "True")


@st.composite
def statements(draw: st.DrawFn, known: list[str], name: str) -> list[str]:
    """Draw what gives ``name`` a value; some kinds take several lines."""
    kind = draw(
        st.sampled_from(("binary", "binary", "unary", "cast", "where", "reduce", "scan", "loop", "unroll", "if"))
    )
    a, b, c = (draw(st.sampled_from([*known, draw(st.sampled_from(NUMBERS))])) for _ in range(3))
    tensor = draw(st.sampled_from([each for each in known if each != "n"]))
    operator = draw(st.sampled_from(BINARY))
    dtype = draw(st.sampled_from(sorted(TYPES.values())))
    if kind == "binary":
        pairwise = f"tl.{draw(st.sampled_from(PAIRWISE))}({tensor}, {b})"
        return [f"{name} = {draw(st.sampled_from((f'{tensor} {operator} {b}', f'{a} {operator} {tensor}', pairwise)))}"]
    if kind == "unary":
        floats = f"tl.{draw(st.sampled_from(FLOAT_UNARY))}({tensor}.to(tl.float32))"
        return [
            f"{name} = {draw(st.sampled_from((floats, f'tl.{draw(st.sampled_from(UNARY))}({tensor})', f'-{tensor}')))}"
        ]
    if kind == "cast":
        return [f"{name} = {tensor}.to(tl.{dtype})"]
    if kind == "where":
        return [f"{name} = tl.where({tensor} {draw(st.sampled_from(('<', '>', '==', '!=')))} {b}, {a}, {c})"]
    if kind == "reduce":
        return [f"{name} = tl.{draw(st.sampled_from(REDUCTIONS))}({tensor}, axis=0)"]
    if kind == "scan":
        return [f"{name} = tl.{draw(st.sampled_from(SCANS))}({tensor})"]
    if kind == "if":
        return [
            f"{name} = {a}",
            f"if n {draw(st.sampled_from(('>', '==')))} {draw(st.integers(0, 64))}:",
            f"    {name} = {name} + {b}",
        ]
    loop = "range(n)" if kind == "loop" else f"tl.static_range({draw(st.integers(0, 3))})"
    return [f"{name} = {tensor}.to(tl.float32)", f"for i in {loop}:", f"    {name} = {name} {operator} {b}"]


@st.composite
def kernels(draw: st.DrawFn) -> str:
    """Draw the text of a file with one kernel and its launch."""
    inputs = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3))
    block = draw(st.sampled_from((16, 64, 256)))
    masked = draw(st.booleans())
    mask = ", mask=at < n" if masked else ""
    body = ["at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"]
    for i in range(len(inputs)):
        other = draw(st.sampled_from(("", ", other=0"))) if masked else ""
        body.append(f"x{i} = tl.load(p{i} + at{mask}{other})")
    known = ["at", "n", *(f"x{i}" for i in range(len(inputs)))]
    for i in range(draw(st.integers(1, 6))):
        body += draw(statements(known, f"v{i}"))
        known.append(f"v{i}")
    body.append(f"tl.store(out + at, {known[-1]}{draw(st.sampled_from(('', '.to(tl.float32)')))}{mask})")
    pointers = [f"p{i}" for i in range(len(inputs))]
    arrays = [f'Array("{each}")' for each in (*inputs, draw(st.sampled_from(sorted(TYPES))))]
    values = [*arrays, str(draw(st.sampled_from((1, 16, 100, 1 << 40))))]
    return (
        f"{HEAD}def kernel({', '.join(pointers)}, out, n, BLOCK: tl.constexpr):\n"
        + "".join(f"    {line}\n" for line in body)
        + f"\n\nkernel[(1,)]({', '.join(values)}, BLOCK={block}, num_warps={draw(st.sampled_from((1, 4)))})\n"
    )
