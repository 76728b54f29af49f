"""``torch.library`` for launch code: an operator is its function, so that it launches what it is written to launch.

Real operators would go by the device's dispatch key, and by the shape function where a tensor is fake. The stand-in
for torch and the real one use the same, each with its own ``Function`` and its own ``torch.ops``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_ON_DEVICE = ("", "CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


class Operator:
    """What ``torch.library.custom_op`` makes: the function, with its backward where one is registered."""

    def __init__(self, name: str, function: Callable[..., Any], base: Any) -> None:
        self._function, self._base = function, base
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., None] | None = None
        self.__name__ = name
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        if self._backward is None:
            return self._function(*args, **kwargs)
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        bound.apply_defaults()
        return self._differentiable().apply(*bound.args)

    def _differentiable(self) -> Any:
        function, backward_of, setup = self._function, self._backward, self._setup

        def forward(ctx: Any, *values: Any) -> Any:
            made = function(*values)
            if setup is not None:
                setup(ctx, values, made)
            return made

        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward_of(ctx, *gradients) if backward_of is not None else None

        return type("Operator", (self._base,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def register_fake(self, function: Any = None, /, **_: Any) -> Any:
        """Take a function that is not needed here: for shapes, or for other devices."""
        return function if function is not None else _unchanged

    def register_kernel(self, *_: Any, **__: Any) -> Any:
        """Take a function for other devices."""
        return _unchanged

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None, **_: Any) -> None:
        """Give it a backward."""
        self._backward, self._setup = backward, setup_context


def _unchanged(given: Any) -> Any:
    return given


class Operators:
    """The operators of one source.

    Args:
        base: ``torch.autograd.Function``.
        space: returns ``torch.ops.NAME``, on which operators are set.
    """

    def __init__(self, base: Any, space: Callable[[str], Any]) -> None:
        self._base, self._space = base, space
        self._found: dict[str, Operator] = {}

    def functions(self) -> dict[str, Any]:
        """Return what takes the place of ``torch.library``'s own."""
        return {
            "custom_op": self.custom_op,
            "triton_op": self.custom_op,
            "wrap_triton": _unchanged,
            "register_fake": self._ignore,
            "register_kernel": self._ignore,
            "impl_abstract": self._ignore,
            "register_autograd": self.register_autograd,
            "Library": self.library(),
        }

    def custom_op(self, name: str, fn: Any = None, /, **_: Any) -> Any:
        """Make an operator of a function."""

        def decorate(function: Callable[..., Any]) -> Operator:
            made = self._found[name] = Operator(name, function, self._base)
            self._enter(name, made)
            return made

        return decorate if fn is None else decorate(fn)

    def register_autograd(
        self, op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, **_: Any
    ) -> None:
        """Give an operator a backward."""
        found = op if isinstance(op, Operator) else self._found.get(str(op))
        if found is not None:
            found.register_autograd(backward, setup_context=setup_context)

    def _ignore(self, _: Any, *given: Any, **__: Any) -> Any:
        functions = [item for item in given if callable(item)]
        return functions[0] if functions else _unchanged

    def _enter(self, name: str, made: Any) -> None:
        space, _, own = name.partition("::")
        setattr(self._space(space), own.split(".")[0], made)

    def library(self) -> Any:
        """Return the class in the place of ``torch.library.Library``."""
        operators = self

        class Library:
            """Definitions by schema, and their functions."""

            def __init__(self, ns: str, *_: Any) -> None:
                self._name = ns

            def define(self, schema: str, *_: Any, **__: Any) -> str:
                """Take a schema, which is not needed."""
                return schema.partition("(")[0]

            def impl(self, name: Any, function: Any, dispatch_key: str = "", **_: Any) -> None:
                """Take the function for the GPU."""
                if dispatch_key in _ON_DEVICE:
                    own = str(name).rpartition("::")[2]
                    operators._enter(f"{self._name}::{own}", Operator(own, function, operators._base))

        return Library
