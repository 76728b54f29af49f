"""Automatic differentiation, as far as it launches kernels: Functions run forward and backward, the rest is recorded.

Gradients have types, shapes and strides, no values. Those of sums and of views are laid out as torch's are, since a
backward kernel takes their strides as arguments.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.kernels.torch_standin.core import Tensor

Backward = Callable[..., Sequence[Any]]

_enabled = [True]


class Node:
    """An operation that made tensors: what it came from, and what gives the gradients of that."""

    def __init__(self, inputs: Sequence[Any], backward: Backward, outputs: int = 1) -> None:
        self.inputs = tuple(inputs)
        self.backward = backward
        self.made: list[Any] = [None] * outputs
        self.name = "Function"

    def before(self) -> Iterator[Node]:
        """Yield the nodes that the inputs came from."""
        for item in self.inputs:
            if hasattr(item, "storage") and item.node is not None:
                yield item.node


def is_grad_enabled() -> bool:
    """Say whether operations are recorded now."""
    return _enabled[-1]


class GradMode(contextlib.ContextDecorator):
    """Turns recording on or off: a context, a decorator, and for ``set_grad_enabled`` a call."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        _enabled.append(self._enabled)

    def __exit__(self, *_: object) -> None:
        _enabled.pop()


class NoGrad(GradMode):
    """``torch.no_grad`` and ``torch.inference_mode``; also a decorator without parentheses."""

    def __new__(cls, function: Any = None) -> Any:
        """Return the context, or the decorated function."""
        made = super().__new__(cls)
        if not callable(function):
            return made
        GradMode.__init__(made, False)
        return made(function)

    def __init__(self, _: Any = None) -> None:
        super().__init__(False)


class EnableGrad(GradMode):
    """``torch.enable_grad``."""

    def __init__(self) -> None:
        super().__init__(True)


class SetGradEnabled(GradMode):
    """``torch.set_grad_enabled``: it takes effect at once, and a context undoes it."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before = _enabled[-1]
        _enabled[-1] = mode

    def __enter__(self) -> None:
        """It is in force already."""

    def __exit__(self, *_: object) -> None:
        _enabled[-1] = self._before


def record(made: Tensor, inputs: Sequence[Any], backward: Backward | None = None) -> Tensor:
    """Note what a tensor came from; without ``backward`` the gradients are new tensors laid out as the inputs."""
    from pipelines.kernels.torch_standin.core import wants_gradient

    if _enabled[-1] and made.dtype.category >= 2 and any(wants_gradient(item) for item in inputs):
        made.requires_grad = True
        made.node = Node(inputs, backward or functools.partial(_like, inputs))
        made.node.made[0] = made
    return made


def _like(inputs: Sequence[Any], _: Tensor) -> list[Any]:
    from pipelines.kernels.torch_standin.core import empty_like, wants_gradient

    with NoGrad():
        return [empty_like(item) if wants_gradient(item) else None for item in inputs]


class _Pass:
    """One run backwards: the gradients that wait at nodes, and those that have arrived at tensors."""

    def __init__(self, wanted: set[int]) -> None:
        self._wanted = wanted
        self._waiting: dict[int, list[Any]] = {}
        self.leaves: dict[int, tuple[Tensor, Any]] = {}
        self.arrived: dict[int, Any] = {}

    def give(self, tensor: Any, gradient: Any) -> None:
        """Add a gradient of a tensor."""
        if gradient is None or not hasattr(tensor, "storage") or not tensor.requires_grad:
            return
        if id(tensor) in self._wanted:
            self.arrived[id(tensor)] = _sum(self.arrived.get(id(tensor)), gradient)
        if tensor.node is None:
            _, before = self.leaves.get(id(tensor), (tensor, None))
            self.leaves[id(tensor)] = tensor, _sum(before, gradient)
            return
        slots = self._waiting.setdefault(id(tensor.node), [None] * len(tensor.node.made))
        slots[tensor.output_number] = _sum(slots[tensor.output_number], gradient)
        if tensor.retains_grad:
            tensor.grad = slots[tensor.output_number]

    def run(self, node: Node) -> None:
        """Run one node backwards, where a gradient has come to it."""
        from pipelines.kernels.torch_standin.core import FUNCTIONS

        slots = self._waiting.pop(id(node), None)
        if slots is None:
            return
        filled = [
            FUNCTIONS["zeros_like"](made) if slot is None and made is not None else slot
            for slot, made in zip(slots, node.made, strict=True)
        ]
        for item, gradient in zip(node.inputs, node.backward(*filled), strict=False):
            self.give(item, gradient)


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one + other


def run_backward(outputs: Sequence[Tensor], gradients: Sequence[Any], wanted: Sequence[Tensor] = ()) -> _Pass:
    """Run backwards from the outputs, with ones where no gradient is given."""
    from pipelines.kernels.torch_standin.core import FUNCTIONS

    running = _Pass({id(item) for item in wanted})
    with NoGrad():
        for output, gradient in zip(outputs, gradients, strict=True):
            running.give(output, FUNCTIONS["ones_like"](output) if gradient is None else gradient)
        for node in _ordered(outputs):
            running.run(node)
    return running


def keep_gradients(outputs: Sequence[Tensor], gradients: Sequence[Any]) -> None:
    """Run backwards and add what comes to each leaf's ``grad``."""
    for leaf, gradient in run_backward(outputs, gradients).leaves.values():
        with NoGrad():
            leaf.grad = _sum(leaf.grad, gradient)


def _ordered(outputs: Sequence[Tensor]) -> list[Node]:
    """Return all nodes, each before those that it came from."""
    done: set[int] = set()
    order: list[Node] = []
    for output in outputs:
        stack: list[tuple[Node, Iterator[Node]]] = []
        if output.node is not None and id(output.node) not in done:
            done.add(id(output.node))
            stack.append((output.node, output.node.before()))
        while stack:
            node, rest = stack[-1]
            following = next((item for item in rest if id(item) not in done), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                done.add(id(following))
                stack.append((following, following.before()))
    return order[::-1]
