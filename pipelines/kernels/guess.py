"""Guess a kernel's signature: what the source says first, then how arguments are used, then what they are named.

A guess is never certain: each says why, and what else the argument may be. Measured on public libraries, the kind of
an argument comes out right nearly always, the exact type and a constexpr's value about every second time.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.kernels import names
from pipelines.kernels.calls import TYPES
from pipelines.kernels.flow import Facts, Usage, bits
from pipelines.kernels.found import FoundArgument, FoundTuning, Guess

MAX_ALTERNATIVES = 32
ALIGNED = ":16"  # what the addresses of tensors are divisible by, and the strides of rows

FLOATS = ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")
INTEGERS = ("i32", "i64", "i8", "i1")
SCALARS = ("i32", "i32:16", "i64", "fp32", "i1")
DTYPES = ("tl.float16", "tl.bfloat16", "tl.float32", "tl.float8e4nv", "tl.int32", "tl.int8")
BLOCKS = ("16", "32", "64", "128", "256", "1024")


@dataclass(frozen=True)
class Context:
    """What a guess needs beside the argument: the kernel's use of all arguments, and what its decorators say.

    ``helpers`` are the numbers of arguments of the functions that a kernel may be passed, by name; ``annotations``
    are those of the arguments as full names.
    """

    usage: Usage
    tuning: FoundTuning | None = None
    heuristics: tuple[str, ...] = ()
    helpers: Mapping[str, int] = field(default_factory=dict)

    @property
    def tuned(self) -> dict[str, str]:
        """The values of the first autotune config."""
        return dict(self.tuning.configs[0].values) if self.tuning and self.tuning.configs else {}


def guess_arguments(arguments: tuple[FoundArgument, ...], context: Context) -> tuple[FoundArgument, ...]:
    """Return the arguments with their guesses."""
    elements = _elements(context.usage)
    return tuple(
        argument.model_copy(update={"guess": _guess(argument, context, elements)})
        if argument.name in context.usage.facts
        else argument
        for argument in arguments
    )


def _guess(argument: FoundArgument, context: Context, elements: dict[str, tuple[str, str]]) -> Guess:
    name, facts = argument.name, context.usage.facts[argument.name]
    constant = argument.constexpr or name in context.tuned
    probable = _constant(name, facts, context) if constant else _runtime(argument, facts, context, elements)
    if name in context.tuned:
        other = _others(context.tuned[name], (*_tuned_values(name, context.tuning), *probable.alternatives))
        return Guess(
            value=context.tuned[name], kind="value", origin="config", why="first autotune config", alternatives=other
        )
    if name in context.heuristics:
        return probable.model_copy(update={"origin": "heuristic", "why": "its heuristic computes it"})
    if argument.default is not None:
        other = _others(argument.default, (probable.value, *probable.alternatives))
        return Guess(value=argument.default, kind="value", origin="default", why="its default", alternatives=other)
    return probable


def _tuned_values(name: str, tuning: FoundTuning | None) -> tuple[str, ...]:
    configs = tuning.configs if tuning else ()
    return tuple(dict.fromkeys(config.values[name] for config in configs if name in config.values))[:16]


def _others(value: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in dict.fromkeys(values) if item != value)[:MAX_ALTERNATIVES]


def _made(value: str, why: str, kind: str, *alternatives: str) -> Guess:
    other = _others(value, alternatives)
    return Guess.model_validate(
        {"value": value, "kind": kind, "origin": "guessed", "why": why[:200], "alternatives": other}
    )


# Arguments that are passed when the kernel runs.


def _runtime(argument: FoundArgument, facts: Facts, context: Context, elements: dict[str, tuple[str, str]]) -> Guess:
    name = argument.name
    written = _annotated(argument.annotation)
    if facts.descriptor is not None and not facts.pointer:
        return _descriptor(facts, context)
    if facts.items is not None:
        return _tuple(facts)
    if name in elements:
        return _pointer(facts, elements[name], written, optional=_optional(facts, context))
    if written:
        return _made(written, "as it is annotated", "type", *SCALARS)
    return _scalar(name, facts)


def _annotated(annotation: str) -> str:
    """Return the type that an annotation names: ``tl.int64``, ``"i64"``, ``float``."""
    text = annotation.strip("\"'")
    return TYPES.get(text.rpartition(".")[2], text if text in TYPES.values() else "")


def _optional(facts: Facts, context: Context) -> bool:
    return bool(facts.optional) or any(other.flag for other in context.usage.facts.values())


def _pointer(facts: Facts, element: tuple[str, str], written: str, *, optional: bool) -> Guess:
    kind, reason = element
    if written and "*" not in written:
        kind, reason = written, "annotated"
    first = f"*{kind}{ALIGNED}"
    whole = kind.startswith(("i", "u"))
    others = [f"*{other}{ALIGNED}" for other in ((*INTEGERS, *FLOATS) if whole else (*FLOATS, *INTEGERS))]
    why = facts.pointer or "named as a pointer"
    return _made(first, f"{why}; {reason}" if reason else why, "type", f"*{kind}", *others, *(["None"] * optional))


def _scalar(name: str, facts: Facts) -> Guess:
    if facts.integer:
        return _count(name, facts.integer)
    number = names.first_of(names.NUMBERS, name)
    if facts.number:
        return _made("fp32", facts.number, "type", *SCALARS)
    if number and not names.has(names.COUNTS, name):
        return _made("fp32", f"named {number[0]}", "type", *SCALARS)
    if facts.optional:
        return _made("None", facts.optional, "type", *(f"*{kind}{ALIGNED}" for kind in FLOATS), *SCALARS)
    if facts.flag and names.has(names.FLAGS, name):
        return _made("i1", "tested by itself", "type", *SCALARS)
    return _count(name, "nothing says more" if not names.has(names.COUNTS, name) else "named as a count")


def _count(name: str, why: str) -> Guess:
    stride = names.has(frozenset(("stride", "strides")), name)
    return _made(f"i32{ALIGNED}" if stride else "i32", f"{why}, a stride" if stride else why, "type", *SCALARS, "1")


def _descriptor(facts: Facts, context: Context) -> Guess:
    """Guess a host descriptor: its block's sides are the constexprs that its offsets are multiples of."""
    sides = [_side(mask, context) for mask in facts.descriptor or (0,)]
    shape = ", ".join(sides)
    kinds = [f"tensordesc<{kind}[{shape}]>" for kind in ("fp16", "bf16", "fp32", "fp8e4nv")]
    return _made(kinds[0], "loaded from by offsets", "type", *kinds)


def _side(mask: int, context: Context) -> str:
    for index in bits(mask):
        name = context.usage.names[index]
        facts = context.usage.facts[name]
        if name in context.tuned:
            return context.tuned[name] if context.tuned[name].isdigit() else "64"
        if facts.block or "block" in names.words(name):
            return _constant(name, facts, context).value
    return "64"


def _tuple(facts: Facts) -> Guess:
    kind = f"*fp16{ALIGNED}" if facts.pointer else "i32"
    items = ", ".join([kind] * max(facts.items or 1, 1))
    why = "its items are addresses" if facts.pointer else "its items are used"
    return _made(f"({items},)" if (facts.items or 1) < 2 else f"({items})", why, "type", "None")


def _elements(usage: Usage) -> dict[str, tuple[str, str]]:
    """Return the element type of each pointer, with the reason where there is one."""
    found = {name: _element(name, facts) for name, facts in usage.facts.items() if _is_pointer(name, facts)}
    for left, right in usage.pairs:  # both sides of a dot have one type
        both = [usage.names[i] for i in bits(left | right) if usage.names[i] in found]
        single = any(found[name][0] == "fp32" for name in both)
        for name in both if single else ():
            if found[name][0] == "fp16":
                found[name] = ("fp32", "multiplied with fp32")
    return found


def _is_pointer(name: str, facts: Facts) -> bool:
    named = not names.POINTER.isdisjoint(names.words(name)) and name.lower() != "p"
    return bool(facts.pointer) or (named and not facts.integer and not facts.number and facts.descriptor is None)


def _element(name: str, facts: Facts) -> tuple[str, str]:
    if facts.addresses:
        return "i64", "its elements are addresses"
    if facts.words:
        return "i32", "a lock or flag"
    if facts.single:
        return "fp32", facts.single
    if facts.integers:
        return ("i64" if names.has(names.WIDE_INDICES, name) else "i32"), facts.integers
    for table, kind in (
        (names.SINGLE_ELEMENTS, "fp32"),
        (names.MASK_ELEMENTS, "i1"),
        (names.WIDE_INDICES, "i64"),
        (names.INDEX_ELEMENTS, "i32"),
        (names.BYTES, "i8"),
    ):
        word = names.has(table, name)
        if word:
            return kind, f"named {word}"
    return "fp16", ""


# Constexprs.


def _constant(name: str, facts: Facts, context: Context) -> Guess:
    if facts.called is not None:
        return _function(facts.called, context)
    if facts.dtype or names.has(names.DTYPES, name):
        accumulates = facts.accumulates or names.has(frozenset(("acc", "accumulator", "compute")), name)
        value = "tl.float32" if accumulates else "tl.float16"
        return _made(value, facts.dtype or "named as a type", "value", *DTYPES)
    if facts.strings:
        literals = [repr(text) for text in facts.strings]
        return _made(literals[0], "compared with a string", "value", *literals, '""', "None")
    flag = names.has(names.FLAGS, name)
    if not facts.block and ((facts.flag and not facts.numbers) or (flag and not facts.integer and not facts.number)):
        return _made("False", "tested by itself" if facts.flag else f"named {flag}", "value", "True")
    if facts.numbers and not facts.block:
        literals = [str(number) for number in facts.numbers]
        return _made(literals[0], "compared with a number", "value", *literals)
    if facts.optional:
        return _made("None", facts.optional, "value", "True", "False", names.SIZE)
    return _size(name, facts, context)


def _function(arity: int, context: Context) -> Guess:
    fitting = [name for name, count in context.helpers.items() if count == arity]
    return _made(fitting[0] if fitting else "None", "it is called", "function", *fitting, "None")


def _size(name: str, facts: Facts, context: Context) -> Guess:
    number = names.first_of(names.NUMBERS, name)
    if number and not facts.integer and not names.has(names.COUNTS, name):
        return _made(number[1], f"named {number[0]}", "value", "0.0", "1.0")
    if facts.number and not facts.integer:
        return _made("1.0", facts.number, "value", "0.0")
    if facts.block and not names.has(frozenset(("heads", "ndim", "group", "groups")), name):
        return _made(_block(name, facts, context), "the size of a block", "value", *BLOCKS)
    known = names.first_of(names.SIZES, name)
    if known:
        return _made(known[1], f"named {known[0]}", "value", "1", *BLOCKS)
    if facts.unrolls:
        return _made("4", "bounds an unrolled loop", "value", "1", "2", "8", "16")
    return _made(names.SIZE, facts.integer or "nothing says more", "value", "1", *BLOCKS)


def _block(name: str, facts: Facts, context: Context) -> str:
    """Return a block's side: long in one dimension, shorter in more, short along k."""
    dimensions = max(facts.block, context.usage.dimensions)
    if facts.product or dimensions > 2:
        return "16"
    if context.usage.pairs:
        return "32" if names.words(name)[-1:] == ("k",) else "64"
    return "1024" if dimensions < 2 else "64"


def read_literal(text: str) -> object:
    """Return the value that a guess's text writes.

    Raises:
        ValueError: it is no literal.
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{text[:80]!r} is no literal") from None
