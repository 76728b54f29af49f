"""What people name their parameters, as tables of words. Names decide only what use leaves open."""

from __future__ import annotations

import functools
import re


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words by which a parameter is a pointer, and single letters that are one in kernels everywhere.
POINTER = _set("ptr ptrs pointer pointers addr address p")
TENSORS = _set("x y z a b c w q k v o g h u dx dy dz da db dc dw dq dk dv do out in inp input output")

# A scalar of these words is a floating-point number, with the value that a constexpr of the name gets.
NUMBERS = {
    "eps": "1e-5",
    "epsilon": "1e-5",
    "scale": "1.0",
    "alpha": "1.0",
    "beta": "1.0",
    "gamma": "1.0",
    "lr": "0.001",
    "prob": "0.5",
    "dropout": "0.5",
    "momentum": "0.9",
    "softcap": "30.0",
    "cap": "30.0",
    "temperature": "1.0",
    "rate": "0.5",
    "coef": "1.0",
    "smoothing": "0.1",
    "decay": "0.01",
    "theta": "10000.0",
    "limit": "7.0",
    "threshold": "0.5",
    "thresh": "0.5",
    "slope": "0.01",
    "factor": "1.0",
    "tau": "1.0",
    "sigma": "1.0",
    "norm": "1.0",
    "correction": "1.0",
    "weight": "1.0",
    "value": "1.0",
    "fill": "1.0",
    "beta1": "0.9",
    "beta2": "0.999",
}
# A scalar of these words is a whole number, whatever else it is named.
COUNTS = _set(
    "n m k num numel size sizes dim dims stride strides len length seqlen rows cols row col columns offset "
    "offsets idx index id ids heads head batch hidden group groups block blocks start end seed step steps pid "
    "tile tiles count"
)

# The elements of pointers of these words.
INDEX_ELEMENTS = _set(
    "idx idxs index indices indexes ids id offsets offset slot slots mapping map label labels target targets "
    "position positions pos lens len seqlens seqlen counts count perm seed lock locks cu experts expert"
)
WIDE_INDICES = _set("label labels target targets indices idx index")
MASK_ELEMENTS = _set("mask masks")
SINGLE_ELEMENTS = _set(
    "lse rstd mean var scale scales amax loss losses sum sums delta logsumexp rms norm acc state states partial"
)
BYTES = _set("packed qweight int8 uint8")

FLAGS = _set(
    "has is use do with need even apply enable allow return save store causal reverse include fuse skip trans "
    "transpose compute flag inplace residual add masked"
)
DTYPES = _set("dtype type")

# What a constexpr whose use says nothing more gets, by the words of its name.
SIZES = {
    "warps": "4",
    "stages": "3",
    "group": "8",
    "groups": "8",
    "sms": "132",
    "stride": "64",
    "heads": "8",
    "splits": "4",
    "split": "4",
    "unroll": "2",
    "ndim": "2",
    "bits": "4",
    "experts": "8",
    "topk": "2",
    "iters": "2",
    "steps": "2",
}
SIZE = "64"

_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


@functools.lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case: ``BLOCK_M``, ``xPtr`` and ``stride_xm`` have two each."""
    return tuple(word.lower() for part in name[:200].split("_") for word in _WORD.findall(part))


def first_of(table: dict[str, str], name: str) -> tuple[str, str] | None:
    """Return the last word of a name that a table has, with what it has for it: the last word says what it is."""
    return next(((word, table[word]) for word in reversed(words(name)) if word in table), None)


def has(table: frozenset[str], name: str) -> str:
    """Return a word of the name that is in the table, else nothing."""
    return next((word for word in reversed(words(name)) if word in table), "")
