"""What is found in a source without running it: kernels, their arguments, decorators, and guessed values."""

from __future__ import annotations

from typing import Literal

from pipelines.trace import Model


class Guess(Model):
    """What an argument probably is, and what else it may be.

    ``value`` is written as the command line takes it: a type (``*fp16:16``, ``None``), a constexpr's value (``64``,
    ``True``, ``"relu"``, ``tl.float16``), or the name of a function. ``origin`` is "guessed" where nothing but the
    argument's use and name speaks for it; the source itself says the rest: its default, the first autotune config,
    or a heuristic, which is only known when it is run. ``why`` says so in a few words.
    """

    value: str
    kind: Literal["type", "value", "function"]
    origin: Literal["guessed", "default", "config", "heuristic"]
    why: str
    alternatives: tuple[str, ...] = ()


class FoundArgument(Model):
    """A parameter as written; ``default`` is its source text. ``guess`` is None for ``*rest``, of any number."""

    name: str
    annotation: str
    constexpr: bool
    default: str | None
    guess: Guess | None = None


class FoundConfig(Model):
    """A literal ``triton.Config``: its values and its options, as source text."""

    values: dict[str, str]
    options: dict[str, str]


class FoundTuning(Model):
    """What ``triton.autotune`` says; ``computed`` where some configs are only known when the source is run."""

    configs: tuple[FoundConfig, ...]
    computed: bool
    key: tuple[str, ...]


class FoundKernel(Model):
    """A function with Triton's decorator, or Gluon's; a ``helper`` is called by another kernel and never launched.

    One that is ``declared`` has its signature in its decorator, TorchInductor's, and needs no launch: it counts as
    launched. ``within`` names the functions and classes around it, ``held`` the variables that hold it under another
    name, ``heuristics`` the values that ``triton.heuristics`` fills.
    """

    name: str
    line: int
    arguments: tuple[FoundArgument, ...]
    autotuned: bool
    helper: bool
    launched: bool
    gluon: bool
    declared: bool = False
    within: str | None = None
    nested: bool = False
    held: tuple[str, ...] = ()
    tuning: FoundTuning | None = None
    heuristics: tuple[str, ...] = ()


class ImportedKernel(Model):
    """What a source launches and another file defines."""

    name: str
    module: str


class SourceFault(Model):
    """Why a source cannot be read; line and column count from 1."""

    message: str
    line: int | None
    column: int | None


class Discovery(Model):
    """The kernels of a source.

    ``launches`` where its own code launches one or declares its signature, ``imported`` those of other files.
    """

    kernels: tuple[FoundKernel, ...]
    launches: bool
    error: SourceFault | None
    imported: tuple[ImportedKernel, ...] = ()
