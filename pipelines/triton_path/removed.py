"""What to use instead: hints for features that Triton has removed, renamed or never had, by the error they give.

After Triton 3.9's own source and the release notes of 2.1 to 3.9.
"""

from __future__ import annotations

import re

_DESCRIPTOR = (
    "tl.make_tensor_descriptor(base, shape, strides, block_shape), and its load([offsets]) and store([offsets], value)"
)
_LIBDEVICE = "from triton.language.extra import libdevice"

# The first that matches counts; each is written against the message that Triton 3.9 gives.
_HINTS = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (
            r"Block pointers have been removed|has no attribute '(make_block_ptr|advance)'",
            f"Triton 3.9 has no block pointers (tl.make_block_ptr, tl.advance). Use {_DESCRIPTOR}; offsets take the "
            "place of tl.advance.",
        ),
        (
            r"load\(\) got an unexpected keyword argument '(boundary_check|padding_option)'"
            r"|store\(\) got an unexpected keyword argument 'boundary_check'",
            "boundary_check belonged to block pointers, which Triton 3.9 has no more. A tensor descriptor checks its "
            f"bounds by itself: {_DESCRIPTOR}.",
        ),
        (
            r"has no attribute '_?experimental_(descriptor_(load|store)|make_tensor_descriptor)'"
            r"|has no attribute '_experimental_\w+'|tools\.experimental_descriptor|create_[12]d_tma_descriptor",
            f"The experimental descriptors became tensor descriptors: {_DESCRIPTOR} in the kernel, or "
            "triton.tools.tensor_descriptor.TensorDescriptor(base, shape, strides, block_shape) in the launch code.",
        ),
        (
            r"TensorDescriptor\.__init__\(\) missing .*'block_shape'|TensorDescriptor.*block_shape",
            "A descriptor made in the launch code needs the block that the kernel loads: "
            "TensorDescriptor(base, shape, strides, block_shape), or TensorDescriptor.from_tensor(x, block_shape).",
        ),
        (
            r"has no attribute 'libdevice'|module 'triton\.language\.math' has no attribute '\w+'",
            f"Device functions beyond tl.math's few are in libdevice: {_LIBDEVICE}, then libdevice.tanh(x).",
        ),
        (
            r"has no attribute 'float8e4'",
            "tl.float8e4 became tl.float8e4nv (NVIDIA) and tl.float8e4b8 (AMD).",
        ),
        (
            r"dot\(\) got an unexpected keyword argument 'trans_[ab]'",
            "tl.dot has no trans_a and trans_b; transpose the operand: tl.dot(tl.trans(a), b).",
        ),
        (
            r"(?<!static_)range\.__init__\(\) got an unexpected keyword argument 'loop_unroll'",
            "The argument of tl.range is loop_unroll_factor.",
        ),
        (
            r"static_range\.__init__\(\) got an unexpected keyword argument",
            "tl.static_range is unrolled whole and takes only its bounds; other hints are tl.range's.",
        ),
        (
            r"has no attribute 'async_task'|unexpected keyword argument '(num_consumer_groups|num_buffers_warp_spec|"
            r"reg_dec_producer|reg_inc_consumer)'",
            "Warp specialization is asked for by tl.range(..., warp_specialize=True) since Triton 3.3.",
        ),
        (
            r"No module named 'triton\.ops",
            "triton.ops left Triton; its kernels live in github.com/triton-lang/kernels. Paste the kernel itself.",
        ),
        (
            r"cannot import name '\w+' from 'triton\.(compiler|runtime)",
            "This name of Triton's insides is gone in 3.9. Leave the import out: a launch needs none.",
        ),
        (
            r"arange's arguments must be of type tl\.constexpr",
            "A block's size must be known to the compiler: annotate the parameter, BLOCK: tl.constexpr.",
        ),
        (
            r"arange's range must be a power of 2|[Ss]hape element \d+ must be a power of 2",
            "A block's sides are powers of two: take triton.next_power_of_2(n) and mask what is beyond n.",
        ),
        (
            r"cannot cast (fp|bf|int|i|u)\w*(\[\])? to pointer<|cannot cast .* to pointer<",
            "Only a 64-bit integer becomes a pointer: load addresses from an *i64 argument (an array of pointers is an "
            "int64 tensor of data_ptr()s), then .to(tl.pointer_type(tl.float16)).",
        ),
        (
            r"^ModuleNotFoundError: No module named '(?!triton|torch)(\w+)",
            "Only Python, Triton and NumPy are there. Give the package's files too (a folder or a zip), install it "
            "into Loupe's environment, or paste the kernel alone and give its arguments.",
        ),
    )
)


def hint_of(message: str) -> str | None:
    """Return what to use instead, or None where nothing is known of the error."""
    said = message[:2000]
    return next((hint for pattern, hint in _HINTS if pattern.search(said)), None)
