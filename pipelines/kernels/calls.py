"""Which functions of ``triton.language`` and Gluon say what of their arguments, as tables by name."""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions whose first argument is an address, and how it is used.
MEMORY = {
    "load": "loaded from",
    "store": "stored to",
    "atomic_add": "added to atomically",
    "atomic_max": "compared with atomically",
    "atomic_min": "compared with atomically",
    "atomic_and": "changed atomically",
    "atomic_or": "changed atomically",
    "atomic_xor": "changed atomically",
    "atomic_xchg": "exchanged atomically",
    "atomic_cas": "exchanged atomically",
    "make_block_ptr": "the base of a block",
    "make_tensor_descriptor": "the base of a descriptor",
    "prefetch": "prefetched from",
}
ADDRESSES = ("pointer", "ptr", "base")
# Atomic operations that only whole numbers of 32 bits and more have.
WORDS = _set("atomic_and atomic_or atomic_xor atomic_xchg atomic_cas")
# Those that halves have none of.
HALFLESS = _set("atomic_max atomic_min")
DESCRIBED = _set("make_block_ptr make_tensor_descriptor")
DESCRIPTOR_METHODS = _set("load store gather scatter atomic_add atomic_max atomic_min reduce")

INDICES = _set("program_id num_programs arange cdiv range static_range argmax argmin")
COUNTED = _set("range static_range cdiv arange")
# They take fp32 and fp64 only: a half is refused.
SINGLE = _set(
    "exp exp2 log log2 sqrt sqrt_rn rsqrt sin cos tan tanh erf floor ceil div_rn sigmoid softmax acos asin atan "
    "atan2 sinh cosh log1p expm1 pow round trunc rint cbrt lgamma"
)
WIDENED = _set("max min dot dot_scaled")
RANDOM = _set("rand randn rand4x randn4x uint_to_uniform_float")
# They give what their first argument is: the same values, or the same address with more known of it.
ALIKE = _set(
    "multiple_of max_contiguous max_constancy broadcast_to broadcast expand_dims reshape view trans permute "
    "advance ravel flip sort topk sum cumsum cumprod reduce associative_scan abs clamp convert_layout split "
    "squeeze unsqueeze maximum minimum where join cat interleave fma gather"
)
FILLED = _set("zeros full empty allocate_shared_memory")
DTYPE_KEYWORDS = _set("dtype out_dtype acc_dtype")
CASTS = _set("to cast")

# Types by the last part of their name, as they are annotated or cast to.
TYPES = {
    "int1": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "int": "i32",
    "float": "fp32",
    "bool": "i1",
}
