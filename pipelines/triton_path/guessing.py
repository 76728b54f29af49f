"""Guesses in the confined child: which arguments nobody gave, what they are taken for, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from pipelines.kernels.discover import Discovery, FoundKernel, Reading, discover
from pipelines.kernels.found import Guess
from pipelines.kernels.guess import read_literal
from pipelines.kernels.signature import ArgumentType, SignatureError, parse_argument
from pipelines.triton_path.values import FUNCTION, parse_constant

MAX_FILE = 2 << 20
_LENGTH = 64  # what a whole number is taken for where a heuristic asks: a multiple of every usual block's half


class Guesses:
    """The guesses for the kernels of the source's files; each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, Discovery] = {}
        self._reading = Reading(_read)

    def found(self, function: Any) -> FoundKernel | None:
        """Return what the source says of a kernel, None for one that is not written in a file."""
        line = function.def_file_line_number
        return next((kernel for kernel in self.file(function.file_name).kernels if kernel.line == line), None)

    def file(self, name: str) -> Discovery:
        """Return the kernels of a file, none where it cannot be read."""
        if name not in self._files:
            self._files[name] = discover(_read(name) or "", name, self._reading)
        return self._files[name]

    def of(self, function: Any) -> dict[str, Guess]:
        """Return the guesses for a kernel's arguments, by name."""
        found = self.found(function)
        return {argument.name: argument.guess for argument in found.arguments if argument.guess} if found else {}


def _read(path: str) -> str | None:
    try:
        file = Path(path)
        return file.read_text(encoding="utf-8") if file.stat().st_size <= MAX_FILE else None
    except (OSError, ValueError):
        return None


def guessed_constant(name: str, guess: Guess, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a guessed constexpr.

    Raises:
        UserError: a function that the source does not have.
        ValueError: it is only known when the source is run.
    """
    if guess.kind == "function" and guess.value != "None":
        return parse_constant(name, {FUNCTION: guess.value}, namespace)
    if guess.value.startswith("tl."):
        return parse_constant(name, guess.value, namespace)
    return read_literal(guess.value)


@dataclass(frozen=True)
class GuessedTensor:
    """What a heuristic gets for a tensor, whose values and sizes are not known."""

    dtype: str
    shape: tuple[int, ...] = (_LENGTH, _LENGTH)
    ndim: int = 2

    def stride(self, dimension: int | None = None) -> Any:
        """Return the strides of a matrix that is stored by rows."""
        strides = (_LENGTH, 1)
        return strides if dimension is None else strides[dimension]

    def numel(self) -> int:
        """Return the number of elements."""
        return _LENGTH * _LENGTH

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return max(1, int("".join(c for c in self.dtype.partition("e")[0] if c.isdigit()) or 16) // 8)

    def data_ptr(self) -> int:
        """Return an address that is divisible as those of tensors are."""
        return 256


def plausible(text: str) -> Any:
    """Return a value of a type, for a heuristic that reads an argument of which only the type is known."""
    try:
        return _plausible(parse_argument("", text))
    except SignatureError:
        return None


def _plausible(argument: ArgumentType) -> Any:
    kind = argument.type
    if argument.members:
        return tuple(_plausible(item) for item in argument.members)
    if kind is None or kind == "constexpr":
        return argument.value
    if kind.startswith(("*", "tensordesc")):
        return GuessedTensor(kind.lstrip("*k").partition("[")[0].removeprefix("tensordesc<"))
    if kind in ("i1", "u1"):
        return True
    return 1.0 if kind.startswith(("fp", "bf")) else _LENGTH


class Watched(dict[str, Any]):
    """The values that a heuristic reads; ``read`` remembers which of the uncertain ones it has read."""

    def __init__(self, certain: Mapping[str, Any], uncertain: Mapping[str, Any]) -> None:
        super().__init__({**uncertain, **certain})
        self._uncertain = set(uncertain) - set(certain)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        """Return a value."""
        if name in self._uncertain:
            self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - the replacement would call this again


def guess_note(function: Any, guessed: Mapping[str, str], why: str, file: str) -> dict[str, JsonValue]:
    """Return what is said of a guessed signature, at the kernel's own line; ``guessed`` says what and why by name."""
    listed = "; ".join(f"{name}={text}" for name, text in guessed.items())
    message = f"{why} Guessed from how the kernel uses its arguments: {listed or 'nothing, it has no open argument'}."
    return {
        "severity": "note",
        "message": f"{message} Give those that are different.",
        "file": file,
        "line": function.def_file_line_number,
        "column": None,
    }
