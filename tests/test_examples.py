"""The gallery's files keep the form that the home page and the capture rely on."""

import ast
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PROMISED = {
    "attention",
    "fails_in_pass",
    "fails_in_ptxas",
    "layer_norm",
    "matmul",
    "matmul_autotuned",
    "matmul_descriptors",
    "rms_norm",
    "softmax",
    "spilling",
    "vector_add",
}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), path.name)


def is_jit(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "triton.jit" for decorator in function.decorator_list)


def imported(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_gallery_is_whole() -> None:
    assert {path.stem for path in EXAMPLES} == PROMISED


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_docstring_is_a_title_and_one_teaching_line(path: Path) -> None:
    docstring = ast.get_docstring(parse(path))
    assert docstring is not None
    paragraphs = docstring.split("\n\n")
    assert len(paragraphs) == 2
    title, teaches = paragraphs
    assert "\n" not in title + teaches
    assert 5 <= len(title) <= 40
    assert not title.endswith(".")
    assert 40 <= len(teaches) <= 110
    assert teaches.endswith(".")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_needs_nothing_but_triton(path: Path) -> None:
    assert imported(parse(path)) == {"dataclasses", "triton"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_has_a_kernel_and_launches_it_only_as_a_script(path: Path) -> None:
    module = parse(path)
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef) and is_jit(node)}
    launched = {
        call.func.value.id
        for call in ast.walk(module)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Subscript)
        and isinstance(call.func.value, ast.Name)
    }
    assert len(launched) == 1
    assert launched <= functions
    *definitions, last = module.body
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    assert all(isinstance(node, allowed) for node in definitions)
