"""Compilation, casting and custom operators: what wraps launch code runs it as it is."""

from __future__ import annotations

import contextlib
from typing import Any

from pipelines.kernels.operators import Operators
from pipelines.kernels.torch_standin.errors import StandinModule
from pipelines.kernels.torch_standin.functions import Function

_spaces: dict[str, StandinModule] = {}


class OperatorSpaces(StandinModule):
    """``torch.ops``: the namespaces that the source has made."""

    def __getattr__(self, name: str) -> Any:
        if name in _spaces:
            return _spaces[name]
        return super().__getattr__(name)


def _space(name: str) -> StandinModule:
    return _spaces.setdefault(name, StandinModule(f"torch.ops.{name}", {}))


operators = Operators(Function, _space)


def passing(function: Any = None, *_: Any, **__: Any) -> Any:
    """Return what is decorated, with or without arguments to the decorator: it runs as it is."""
    return function if callable(function) else (lambda given: given)


class Autocast(contextlib.ContextDecorator):
    """``torch.autocast``: nothing is cast here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Autocast:
        return self

    def __exit__(self, *_: object) -> None:
        return
