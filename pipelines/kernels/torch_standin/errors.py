"""How the stand-in refuses: by the name of what it lacks, and what to do instead."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

INSTEAD = 'install the torch extra: pip install "loupe[torch]" (CPU build), or give the arguments'


class MissingError(AttributeError):
    """A name that the stand-in does not have; ``hasattr`` is False for it, as with a torch that lacks it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not in Loupe's stand-in for torch; {INSTEAD}")


class MissingModuleError(ModuleNotFoundError):
    """A module of torch's that the stand-in does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not in Loupe's stand-in for torch; {INSTEAD}", name=name)


class UnknownValueError(RuntimeError):
    """Launch code reads a tensor's values where only its shape and type are known."""


class UnsupportedError(NotImplementedError):
    """A use of something that the stand-in has only in part."""


def unknown(what: str) -> NoReturn:
    """Refuse to make up a value."""
    raise UnknownValueError(
        f"{what} needs a tensor's values, and Loupe's stand-in for torch only knows those of small tensors made from "
        f"known ones, nothing that a kernel or a large operation writes; {INSTEAD}"
    )


def unsupported(what: str) -> NoReturn:
    """Refuse a use that the stand-in does not cover."""
    raise UnsupportedError(f"{what} is not in Loupe's stand-in for torch; {INSTEAD}")


class StandinModule(ModuleType):
    """A module of the stand-in: it has what it was given, and refuses the rest by name."""

    def __init__(self, name: str, contents: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(contents)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> NoReturn:
        raise MissingError(f"{self.__name__}.{name}")
