"""Where operations are entered: in torch's namespace, among a tensor's methods, or in both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


def operation(*names: str, method: bool = True, function: bool = True) -> Callable[[_Function], _Function]:
    """Enter an operation under its name and others; as a function it takes ``out`` and ``input`` too."""

    def enter(implementation: _Function) -> _Function:
        for name in names or (implementation.__name__,):
            if method:
                setattr(Tensor, name, implementation)
            if function:
                FUNCTIONS[name] = _as_function(implementation)
        return implementation

    return enter


def _as_function(implementation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(implementation)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if "input" in kwargs:
            args = (kwargs.pop("input"), *args)
        made = implementation(*args, **kwargs)
        if out is None:
            return made
        for target, item in zip(*((x if isinstance(x, tuple) else (x,)) for x in (out, made)), strict=True):
            target.write(item.known())
        return out

    return call


def add_method(name: str, implementation: Any) -> None:
    """Put something on the class of tensors."""
    setattr(Tensor, name, implementation)


def sizes(values: tuple[Any, ...]) -> list[int]:
    """Return a shape that is given as one sequence or as several numbers."""
    given = values[0] if len(values) == 1 and isinstance(values[0], tuple | list) else values
    return [int(value) for value in given]
