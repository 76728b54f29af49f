"""Packages of several files and modules of installed libraries: imports, names, places of errors, content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import Compiled, CompileSpec

HELPER = """\
import triton
import triton.language as tl


@triton.jit
def square(x):
    return x * x
"""
KERNEL = """\
import triton
import triton.language as tl

from ..util import square


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, square(x), mask=at < n)
"""
LAUNCH = """\
from .kernels import scale


class Plain:
    dtype = "fp32"

    def data_ptr(self):
        return 256


def run():
    scale[(4,)](Plain(), 512, BLOCK=128)


if __name__ == "__main__":
    run()
"""
PACKAGE = {"pkg/util.py": HELPER, "pkg/ops/kernels.py": KERNEL, "pkg/ops/norm.py": LAUNCH}
GIVEN = {"arguments": {"x_ptr": "*fp32:16", "n": "i32"}, "constexprs": {"BLOCK": 128}, "kernel": "scale"}


def package(files: dict[str, str], entry: str, **more: object) -> CompileSpec:
    others = {path: text for path, text in files.items() if path != entry}
    data = {"source": files[entry], "file": entry, "files": others, "target": "sm_90", **more}
    return CompileSpec.model_validate(data)


def build(compiler: Compiler, files: dict[str, str], entry: str, **more: object) -> Compiled:
    return compiler.compile(package(files, entry, **more), lambda _: None)


def failure(compiled: Compiled) -> str:
    found = compiled.manifest.failure
    return found.message if found else ""


def places(manifest: Manifest) -> list[tuple[str | None, int | None]]:
    return [(item.file, item.line) for item in manifest.diagnostics if item.severity == "error"]


def text_of(compiled: Compiled, address: str) -> str:
    return compiled.blobs[compiled.manifest.resolve(address).text].decode()


@pytest.fixture(scope="module")
def launched(compiler: Compiler) -> Compiled:
    return build(compiler, PACKAGE, "pkg/ops/norm.py")


def test_launch_code_kernel_and_helper_may_be_in_three_files(launched: Compiled):
    manifest = launched.manifest
    assert failure(launched) == ""
    assert (manifest.kernel.name, manifest.kernel.origin, manifest.launch.grid) == ("scale", "captured", (4, 1, 1))
    assert manifest.kernel.file == "pkg/ops/norm.py"
    assert [item.name for item in manifest.kernel.files] == ["pkg/ops/kernels.py", "pkg/util.py"]


def test_locations_are_paths_in_the_package(launched: Compiled):
    ir = text_of(launched, "ttir:0")
    assert '"pkg/ops/kernels.py":8' in ir
    assert '"pkg/util.py":7' in ir
    for digest in launched.manifest.digests():
        assert b"/slots" not in launched.blobs[digest]


def test_functions_are_named_by_the_module_that_their_path_says(launched: Compiled):
    assert "pkg.util.square" in text_of(launched, "ttir:0")


def test_the_same_package_gives_the_same_content_in_any_directory(launched: Compiled, compiler: Compiler):
    assert build(compiler, PACKAGE, "pkg/ops/norm.py").manifest.content == launched.manifest.content
    moved = {path: text + "\n" if path == "pkg/util.py" else text for path, text in PACKAGE.items()}
    assert build(compiler, moved, "pkg/ops/norm.py").manifest.content != launched.manifest.content


@pytest.mark.parametrize("entry", ["pkg/ops/norm.py", "pkg/ops/kernels.py"])
def test_a_kernel_is_given_from_the_file_that_imports_it_or_defines_it(compiler: Compiler, entry: str):
    compiled = build(compiler, PACKAGE, entry, **GIVEN)
    assert failure(compiled) == ""
    assert compiled.manifest.kernel.origin == "given"


def test_a_kernel_is_given_though_the_first_file_imports_only_its_module(compiler: Compiler):
    files = {**PACKAGE, "pkg/ops/norm.py": "from . import kernels\n"}
    assert failure(build(compiler, files, "pkg/ops/norm.py", **GIVEN)) == ""


def test_what_nobody_gave_is_guessed_from_the_file_that_defines_the_kernel(compiler: Compiler):
    compiled = build(compiler, PACKAGE, "pkg/ops/norm.py", kernel="scale", arguments={})
    assert failure(compiled) == ""
    assert compiled.manifest.kernel.origin == "guessed"
    assert [item.name for item in compiled.manifest.kernel.arguments if item.guessed] == ["x_ptr", "n", "BLOCK"]


INIT = {"pkg/__init__.py": "from .ops import norm\n", "pkg/ops/__init__.py": "WIDTH = 4\n"}


@pytest.mark.parametrize("given", [{}, GIVEN])
def test_packages_with_init_files_run_them_once_before_the_first_file(compiler: Compiler, given: dict[str, object]):
    launch = "from . import WIDTH\n" + LAUNCH.replace("(4,)", "(WIDTH,)")
    assert failure(build(compiler, {**PACKAGE, **INIT, "pkg/ops/norm.py": launch}, "pkg/ops/norm.py", **given)) == ""


@pytest.mark.parametrize(
    ("paths", "imports"),
    [
        pytest.param(("util.py", "kernels.py", "norm.py"), ("from .util", "from .kernels"), id="relative at the root"),
        pytest.param(("util.py", "kernels.py", "norm.py"), ("from util", "from kernels"), id="script with neighbours"),
        pytest.param(
            ("a/util.py", "a/kernels.py", "a/norm.py"), ("from util", "from kernels"), id="neighbours in a folder"
        ),
        pytest.param(
            ("a/util.py", "a/kernels.py", "a/norm.py"), ("from a.util", "from a.kernels"), id="absolute in a folder"
        ),
        pytest.param(("lib/util.py", "lib/kernels.py", "norm.py"), ("from .util", "from lib.kernels"), id="script"),
        pytest.param(
            ("src/a/util.py", "src/a/kernels.py", "src/a/norm.py"), ("from a.util", "from .kernels"), id="src layout"
        ),
    ],
)
@pytest.mark.parametrize("given", [{}, GIVEN], ids=["launched", "given"])
def test_every_usual_layout_imports(
    compiler: Compiler, paths: tuple[str, ...], imports: tuple[str, str], given: dict[str, object]
):
    util, kernels, norm = paths
    files = {
        util: HELPER,
        kernels: KERNEL.replace("from ..util", imports[0]),
        norm: LAUNCH.replace("from .kernels", imports[1]),
    }
    if norm.startswith("src/"):
        files["src/a/__init__.py"] = ""
    compiled = build(compiler, files, norm, **given)
    assert failure(compiled) == ""
    assert f'"{kernels}":8' in text_of(compiled, "ttir:0")
    assert f'"{util}":7' in text_of(compiled, "ttir:0")


def test_a_root_with_an_init_file_is_the_package(compiler: Compiler):
    files = {
        "__init__.py": "GRID = (4,)\n",
        "util.py": HELPER,
        "ops/kernels.py": KERNEL,
        "norm.py": "from . import GRID\n"
        + LAUNCH.replace("from .kernels", "from .ops.kernels").replace("(4,)](", "GRID]("),
    }
    assert failure(build(compiler, files, "norm.py")) == ""


def test_a_package_may_have_the_names_of_loupes_own(compiler: Compiler):
    files = {path.replace("pkg", "pipelines"): text for path, text in PACKAGE.items()}
    files["pipelines/ops/norm.py"] = LAUNCH.replace("from .kernels", "from pipelines.ops.kernels")
    assert failure(build(compiler, files, "pipelines/ops/norm.py")) == ""


def test_a_compile_error_in_another_file_is_at_its_line(compiler: Compiler):
    files = {**PACKAGE, "pkg/util.py": HELPER.replace("x * x", "x * y")}
    compiled = build(compiler, files, "pkg/ops/norm.py")
    assert places(compiled.manifest) == [("pkg/ops/kernels.py", 11), ("pkg/util.py", 7)]
    assert "y is not defined" in failure(compiled)


def test_a_python_error_in_another_file_is_at_its_line(compiler: Compiler):
    files = {**PACKAGE, "pkg/util.py": "WIDTH = 1 // 0\n"}
    compiled = build(compiler, files, "pkg/ops/norm.py")
    assert places(compiled.manifest) == [("pkg/ops/norm.py", 1), ("pkg/ops/kernels.py", 4), ("pkg/util.py", 1)]


def test_a_syntax_error_in_another_file_is_at_its_line(compiler: Compiler):
    files = {**PACKAGE, "pkg/util.py": "def square(x):\n    return x x\n"}
    found = places(build(compiler, files, "pkg/ops/norm.py").manifest)
    assert found[-1] == ("pkg/util.py", 2)


def test_an_error_in_an_init_file_is_at_its_line(compiler: Compiler):
    files = {**PACKAGE, "pkg/__init__.py": "\nraise RuntimeError('not here')\n"}
    compiled = build(compiler, files, "pkg/ops/norm.py")
    assert places(compiled.manifest) == [("pkg/__init__.py", 2)]
    assert "not here" in failure(compiled)


def test_a_lone_file_with_relative_imports_is_told_what_is_missing(compiler: Compiler):
    compiled = compiler.compile(CompileSpec(source=LAUNCH, target="sm_90"), lambda _: None)
    assert "add the other files of its package" in failure(compiled)


LIBRARY = {
    "tinylib/__init__.py": "from .ops import norm\n",
    "tinylib/util.py": HELPER,
    "tinylib/ops/__init__.py": "",
    "tinylib/ops/kernels.py": KERNEL,
    "tinylib/ops/norm.py": KERNEL + LAUNCH.replace("from .kernels import scale\n", ""),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with one library."""
    root = tmp_path_factory.mktemp("libraries") / "site-packages"
    for path, text in LIBRARY.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture(scope="module")
def with_library(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiler]:
    compiler = Compiler(tmp_path_factory.mktemp("slots"), libraries=(site,))
    compiler.start()
    yield compiler
    compiler.close()


def library_spec(source: str = LIBRARY["tinylib/ops/norm.py"], **more: object) -> CompileSpec:
    data = {"source": source, "file": "tinylib/ops/norm.py", "module": "tinylib.ops.norm", "target": "sm_90"}
    return CompileSpec.model_validate({**data, **more})


@pytest.mark.parametrize("given", [{}, GIVEN], ids=["launched", "given"])
def test_an_installed_module_is_run_as_that_module(with_library: Compiler, given: dict[str, object]):
    compiled = with_library.compile(library_spec(**given), lambda _: None)
    assert failure(compiled) == ""
    ir = text_of(compiled, "ttir:0")
    assert '"tinylib/ops/norm.py":8' in ir
    assert '"<site>/tinylib/util.py":7' in ir
    assert compiled.manifest.kernel.module == "tinylib.ops.norm"


def test_an_edited_installed_module_is_what_is_compiled(with_library: Compiler):
    edited = LIBRARY["tinylib/ops/norm.py"].replace("square(x)", "square(x) + 3")
    compiled = with_library.compile(library_spec(edited, **GIVEN), lambda _: None)
    assert failure(compiled) == ""
    assert "3.000000e+00" in text_of(compiled, "ttir:0")


def test_a_source_may_launch_a_librarys_kernel(with_library: Compiler):
    source = LAUNCH.replace("from .kernels", "from tinylib.ops.kernels")
    compiled = with_library.compile(CompileSpec(source=source, target="sm_90"), lambda _: None)
    assert failure(compiled) == ""
    assert '"<site>/tinylib/ops/kernels.py":8' in text_of(compiled, "ttir:0")


def test_a_module_of_triton_itself_compiles(compiler: Compiler):
    from pipelines.kernels.library import find_library_file

    found = find_library_file("triton.language.standard")
    spec = CompileSpec(
        source=found.text, file=found.path, module="triton.language.standard", target="sm_90", kernel="cdiv",
        arguments={"x": "i32", "div": "i32"},
    )  # fmt: skip
    compiled = compiler.compile(spec, lambda _: None)
    assert '"triton/language/standard.py":' in text_of(compiled, "ttir:0")


def test_ptx_and_sass_name_the_packages_files(launched: Compiled):
    assert '"pkg/ops/kernels.py"' in text_of(launched, "ptx")
    assert 'pkg/ops/kernels.py", line 8' in text_of(launched, "sass")
