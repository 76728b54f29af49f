"""The gallery: the files of ``examples/`` in groups, each told by its own docstring."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from flask import Blueprint
from pydantic import RootModel

from app.api import Endpoint, Output, endpoint

blueprint = Blueprint("examples", __name__)

ROOT = Path(__file__).resolve().parent.parent / "examples"

# In the order in which the page shows them: from what is read first to what builds on it.
GROUPS = {
    "Elementwise, reductions, scans": ("vector_add", "softmax", "cumsum", "histogram", "libdevice"),
    "Norms, losses, embeddings": ("layer_norm", "layer_norm_backward", "rms_norm", "cross_entropy", "rotary"),
    "Matmul": (
        "matmul",
        "matmul_autotuned",
        "matmul_descriptors",
        "matmul_grouped",
        "matmul_int8",
        "matmul_fp8",
    ),
    "Attention": ("attention", "attention_backward", "attention_paged"),
    "Memory and layouts": ("transpose", "gluon_transpose", "misaligned", "spilling"),
    "Failures": ("fails_in_pass", "fails_in_ptxas"),
}


class Example(Output):
    """A kernel of the gallery; the docstring's first line is its title, what follows says what it teaches."""

    name: str
    group: str
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
def gallery() -> tuple[Example, ...]:
    """Read the gallery in the order of its groups."""
    return tuple(_read(name, group) for group, names in GROUPS.items() for name in names)


def _read(name: str, group: str) -> Example:
    source = (ROOT / f"{name}.py").read_text(encoding="utf-8")
    title, _, teaches = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return Example(name=name, group=group, title=title.strip(), teaches=" ".join(teaches.split()), source=source)
