"""The options of the backend's own class: which a person may set, and whether a value is of the right kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from pipelines.trace import Model, Name

# Decided by the target, or naming files of the server.
FIXED = frozenset({"arch", "backend_name", "warp_size", "extern_libs", "ir_override"})

_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "str": (str,),
    "list": (list, tuple),
}


class OptionField(Model):
    """A field of the backend's options class, with the value that the backend gives it by itself."""

    name: Name
    type: Name
    default: JsonValue


class OptionError(ValueError):
    """An option that the backend does not have, that the target decides, or a value of the wrong kind."""


def kind_of(field: OptionField) -> str | None:
    """Return ``int``, ``bool``, ``float``, ``str`` or ``list``; None where the class does not tell.

    The backend declares some numbers as bool, so a default's own kind counts before the declared one.
    """
    if field.default is not None:
        return next((name for name, kinds in _KINDS.items() if type(field.default) in kinds), None)
    if re.search(r"\b(?:[Tt]uple|list|dict)\b", field.type):
        return "list" if "uple" in field.type else None
    declared = re.search(r"\b(int|bool|float|str)\b", field.type)
    return declared[1] if declared else None


def check_options(fields: Sequence[OptionField], given: Mapping[str, JsonValue]) -> None:
    """Raise OptionError for the first option that cannot be set so; None leaves an option as the backend has it."""
    known = {field.name: field for field in fields}
    for name, value in given.items():
        if name not in known:
            settable = ", ".join(sorted(set(known) - FIXED))
            raise OptionError(f"there is no option {name}; the backend has {settable}")
        if name in FIXED:
            raise OptionError(f"option {name} is decided by the target or by the toolchain")
        kind = kind_of(known[name])
        if value is not None and kind and type(value) not in _KINDS[kind]:
            raise OptionError(f"option {name} takes {_words(kind)}, not {value!r}")


def _words(kind: str) -> str:
    return {"int": "a whole number", "bool": "true or false", "float": "a number", "str": "a text"}.get(kind, "a list")
