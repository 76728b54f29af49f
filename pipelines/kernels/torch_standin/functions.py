"""``torch.autograd.Function``: forward runs at once, backward when a gradient is asked for, each with its launches."""

from __future__ import annotations

from typing import Any

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor, view, wants_gradient


class Context:
    """``ctx``: what forward keeps for backward; it takes any attribute."""

    def __init__(self) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize = True
        self.without_gradient: tuple[int, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``saved_tensors``."""
        self.saved_tensors = tensors

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of ``saved_tensors``."""
        return self.saved_tensors

    def mark_dirty(self, *_: Any) -> None:
        """In-place results need no note here."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self.without_gradient = tuple(map(id, tensors))

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether a missing gradient is zeros or None."""
        self.materialize = value


class Function:
    """What a source derives from to give an operation its own backward."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward; keep backward for later where an input wants a gradient."""
        context = Context()
        context.needs_input_grad = tuple(isinstance(item, Tensor) and item.requires_grad for item in args)
        recorded = autograd.is_grad_enabled() and any(wants_gradient(item) for item in args)
        kind: Any = cls
        with autograd.NoGrad():
            if hasattr(kind, "setup_context"):
                result = kind.forward(*args, **kwargs)
                kind.setup_context(context, args, result)
            else:
                result = kind.forward(context, *args, **kwargs)
        return cls._recorded(context, args, result) if recorded else result

    @classmethod
    def _recorded(cls, context: Context, args: tuple[Any, ...], result: Any) -> Any:
        outputs = list(result) if isinstance(result, tuple) else [result]
        kind: Any = cls

        def backward(*gradients: Any) -> tuple[Any, ...]:
            found = kind.backward(context, *gradients)
            return found if isinstance(found, tuple) else (found,)

        node = autograd.Node(args, backward, len(outputs))
        node.name = f"{cls.__name__}Backward"
        for number, item in enumerate(outputs):
            if not isinstance(item, Tensor) or item.dtype.category < 2 or id(item) in context.without_gradient:
                continue
            if any(item is given for given in args):  # what is returned as it came is another tensor to autograd
                item = outputs[number] = view(item, item.shape, item.strides)
            item.requires_grad, item.node, item.output_number = True, node, number
            node.made[number] = item if context.materialize else None
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def once_differentiable(function: Any) -> Any:
    """Return the function: nothing is differentiated twice here."""
    return function


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, **_: Any) -> tuple[Any, ...]:
    """Return the gradients of ``inputs``."""
    roots = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    wanted = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    given = list(grad_outputs) if isinstance(grad_outputs, list | tuple) else [grad_outputs] * len(roots)
    found = autograd.run_backward(roots, given, wanted).arrived
    return tuple(found.get(id(item)) for item in wanted)


def backward(tensors: Any, grad_tensors: Any = None, *_: Any, **__: Any) -> None:
    """Add to the ``grad`` of every leaf."""
    roots = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    given = list(grad_tensors) if isinstance(grad_tensors, list | tuple) else [grad_tensors] * len(roots)
    if not all(root.requires_grad for root in roots):
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    autograd.keep_gradients(roots, given)


FUNCTIONS["_backward"] = backward
