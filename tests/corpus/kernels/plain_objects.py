"""No torch: whatever has a dtype and an address can be launched. Large strides, odd addresses, doubles, booleans, const."""

from dataclasses import dataclass

import triton
import triton.language as tl


@dataclass
class Array:
    dtype: object
    address: int = 1 << 20

    def data_ptr(self):
        return self.address


@triton.jit
def huge_strides_kernel(x_ptr, y_ptr, stride_batch, stride_row, n_cols, BLOCK: tl.constexpr):
    """Strides past 32 bits come as 64-bit arguments."""
    base = tl.program_id(1) * stride_batch + tl.program_id(0) * stride_row
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + base + at, tl.load(x_ptr + base + at, mask=at < n_cols), mask=at < n_cols)


@triton.jit
def where_kernel(condition_ptr, x_ptr, y_ptr, out_ptr, scalar, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    condition = tl.load(condition_ptr + at, mask=mask, other=0)
    x = tl.load(x_ptr + at, mask=mask)
    y = scalar if y_ptr is None else tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, tl.where(condition, x, y), mask=mask)


@triton.jit
def axpy_kernel(alpha: "fp64", x_ptr: "const *fp64", y_ptr, n: "i64", flag: tl.int1, BLOCK: tl.constexpr = 128):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    step = alpha * tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.where(flag, y + step, y - step), mask=at < n)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr"])
def unspecialized_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, at.to(x_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def convert_kernel(x_ptr, y_ptr, n, SATURATE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if SATURATE:
        x = tl.clamp(x.to(tl.float32), -448.0, 448.0)
    tl.store(y_ptr + at, x.to(y_ptr.dtype.element_ty), mask=at < n)


if __name__ == "__main__":
    f16 = Array(tl.float16)
    huge_strides_kernel[(4, 4)](f16, f16, 1 << 33, (1 << 31) + 1, 100, BLOCK=128)
    huge_strides_kernel[(4, 4)](f16, Array("fp16", (1 << 20) + 2), 4096, 1, 64, BLOCK=128)
    condition = Array("u1")
    where_kernel[(1,)](condition, f16, f16, f16, 0, 100, BLOCK=128)
    where_kernel[(1,)](condition, f16, None, f16, 1.5, 100, BLOCK=128)
    axpy_kernel[(1,)](2.0, Array("fp64"), Array("fp64", 8), 100, True)
    for n in (1, 16, 17):
        unspecialized_kernel[(1,)](Array("i16", 2), n, BLOCK=64)
    for source, target in (("fp32", "fp8e5"), ("bf16", "fp8e4nv"), ("i8", "fp16"), ("fp8e5", "fp16"), ("u8", "fp32")):
        convert_kernel[(1,)](Array(source), Array(target), 100, SATURATE=target == "fp8e4nv", BLOCK=128)
