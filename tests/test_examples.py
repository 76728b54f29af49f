"""The gallery's files keep the form that the home page and the capture rely on."""

import ast
from pathlib import Path

import pytest

from app.examples import GROUPS, gallery
from pipelines.kernels.discover import discover

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
# How many kernels a file launches, where it is not one.
LAUNCHED = {"attention_backward": 3, "layer_norm_backward": 2, "transpose": 2}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), path.name)


def imported(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_every_file_is_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == [path.stem for path in EXAMPLES]
    assert [example.name for example in gallery()] == listed


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
def test_launches_kernels_that_are_found(path: Path) -> None:
    found = discover(path.read_text())
    assert found.error is None
    assert found.launches
    kernels = [kernel for kernel in found.kernels if kernel.launched]
    assert len(kernels) == LAUNCHED.get(path.stem, 1)
    for kernel in kernels:
        assert not kernel.helper
        assert kernel.autotuned == (path.stem == "matmul_autotuned")
        assert kernel.gluon == path.stem.startswith("gluon_")
        assert any(argument.constexpr for argument in kernel.arguments)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_launches_only_as_a_script(path: Path) -> None:
    *definitions, last = parse(path).body
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    assert all(isinstance(node, allowed) for node in definitions)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_readme_lists_it_in_its_own_words(path: Path) -> None:
    title, teaches = (ast.get_docstring(parse(path)) or "").split("\n\n")
    readme = (path.parent.parent / "README.md").read_text()
    assert f"| [{title}](examples/{path.name}) | {teaches} |" in readme
