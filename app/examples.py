"""The gallery: the files of ``examples/``, each told by its own docstring."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from flask import Blueprint
from pydantic import RootModel

from app.api import Endpoint, Output, endpoint

blueprint = Blueprint("examples", __name__)

ROOT = Path(__file__).resolve().parent.parent / "examples"


class Example(Output):
    """A kernel of the gallery; the docstring's first line is its title, what follows says what it teaches."""

    name: str
    title: str
    teaches: str
    source: str


class ExamplesReply(RootModel[tuple[Example, ...]]):
    """The gallery."""


@endpoint(blueprint, "GET", "/examples", Endpoint("The gallery", ExamplesReply))
def read() -> ExamplesReply:
    """Tell every example with its source."""
    return ExamplesReply(gallery())


@functools.cache
def gallery(root: Path = ROOT) -> tuple[Example, ...]:
    """Read the gallery, short kernels first and those that fail last; a file without a docstring is no example."""
    found = []
    for path in sorted(root.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        title, _, teaches = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
        if title and path.stem != "__init__":
            found.append(Example(name=path.stem, title=title.strip(), teaches=" ".join(teaches.split()), source=source))
    return tuple(sorted(found, key=lambda each: (each.name.startswith("fails_"), len(each.source))))
