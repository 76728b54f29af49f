"""A backend's own options class: its fields for the form, and a compilation's options from it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from pipelines.json_values import json_safe
from pipelines.triton_path.errors import UserError, words
from pipelines.triton_path.virtual import virtual


def plain(options: Any) -> dict[str, Any]:
    """Return options as a dictionary."""
    return dict(options if isinstance(options, dict) else options.__dict__)


def shown(options: Any) -> dict[str, JsonValue]:
    """Return options as JSON without a path of this machine."""
    return {name: json_safe(virtual(value)) for name, value in plain(options).items()}


def describe_fields(backend: Any) -> list[dict[str, JsonValue]]:
    """Return each field's name, type and the value that the backend gives it by itself."""
    options = backend.parse_options({})
    kind = type(options)
    hints = typing.get_type_hints(kind)
    return [
        {
            "name": field.name,
            "type": _type_name(hints[field.name], field.default, getattr(options, field.name)),
            "default": shown(options)[field.name],
        }
        for field in dataclasses.fields(kind)
    ]


def _type_name(hint: Any, default: Any, value: Any) -> str:
    """Return ``int``, ``bool | None``, ``tuple[str, ...]``: the class writes some as they are not."""
    kinds = [kind for kind in (typing.get_args(hint) if _is_union(hint) else (hint,)) if kind is not types.NoneType]
    if kinds == [bool] and type(value) is int:
        kinds = [int]
    names = [_plain_name(kind) for kind in kinds]
    return " | ".join([*names, "None"] if default is None else names)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _plain_name(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"tuple[{_plain_name(typing.get_args(kind)[0])}, ...]"
    return str(getattr(kind, "__name__", kind))


def read_options(backend: Any, given: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return the options of a request as the backend takes them.

    Raises:
        UserError: an option that the backend refuses.
    """
    read = {name: _tuples(value) for name, value in given.items()}
    for name, value in read.items():
        try:
            backend.parse_options({name: value})
        except Exception as error:  # the class checks its values by using them
            raise UserError(f"option {name} cannot be {value!r}: {words(error)}") from error
    return read


def parse_options(backend: Any, options: Mapping[str, Any], whose: str) -> Any:
    """Return the backend's own options object.

    Raises:
        UserError: the backend refuses them; ``whose`` says where they are from.
    """
    try:
        return backend.parse_options(dict(options))
    except Exception as error:  # as above
        raise UserError(f"the options of {whose} cannot be: {words(error)}") from error


def _tuples(value: JsonValue) -> Any:
    """Read JSON's lists as the tuples that the class holds: it is hashed."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
