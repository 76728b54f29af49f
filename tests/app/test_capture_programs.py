"""Programs of all kinds under ``loupe capture``: they end as they would alone, and what they compiled is kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.app.capturing import COMPILE_ADD, ROOT, SECRET, capture


def test_exit_code_and_streams_are_the_programs_own(tmp_path: Path) -> None:
    code = "import sys\nprint(sys.stdin.read())\nprint('no', file=sys.stderr)\nsys.exit(3)\n"
    ended = capture(tmp_path, code)
    assert ended.code == 3
    assert ended.out.splitlines()[:-1] == [""]
    assert ended.err.startswith("no\n")
    assert "no kernel was recorded" in ended.err
    assert ended.told == {"traces": [], "refused": []}


def test_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    ended = capture(tmp_path, "", program=("no-such-program",))
    assert ended.code == 1
    assert "there is no program no-such-program" in ended.err


@pytest.mark.parametrize(
    ("end", "code"), [("raise SystemError('midway')", 1), ("os.kill(os.getpid(), 9)", 137), ("os._exit(5)", 5)]
)
def test_crash_keeps_what_was_compiled(tmp_path: Path, end: str, code: int) -> None:
    ended = capture(tmp_path, f"{COMPILE_ADD}\nadd()\n{end}\n")
    assert ended.code == code
    assert ended.kernels() == ["add"]
    assert ended.manifest("add").status == "ok"


DIES_COMPILING = f"""{COMPILE_ADD}
def die(*arguments):
    if not arguments:
        return "", ""
    arguments[1]["ptx"] = lambda *_: os._exit(7)

triton.knobs.runtime.add_stages_inspection_hook = die
add()
"""


def test_death_inside_a_compilation_is_told_with_what_is_known(tmp_path: Path) -> None:
    ended = capture(tmp_path, DIES_COMPILING)
    assert ended.code == 7
    manifest = ended.manifest("add")
    assert manifest.failure is not None
    assert manifest.failure.kind == "abort"
    assert "the program ended while it compiled this kernel" in manifest.failure.message
    assert [stage.name for stage in manifest.stages][:2] == ["ttir", "ttgir"]


FORKS = f"""{COMPILE_ADD}
import multiprocessing

def work(number):
    types = {{"x_ptr": "*fp32", "out_ptr": "*fp32", "BLOCK": "constexpr"}}
    triton.compile(ASTSource(kernels.total, types, {{(2,): 64 << number}}), target=standin.TARGET)

if __name__ == "__main__":
    if START == "fork":
        add()
    workers = [multiprocessing.get_context(START).Process(target=work, args=(n,)) for n in range(2)]
    [worker.start() for worker in workers]
    add()
    [worker.join() for worker in workers]
    assert [worker.exitcode for worker in workers] == [0, 0]
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_record_their_own(tmp_path: Path, start: str) -> None:
    ended = capture(tmp_path, f"START = {start!r}\n{FORKS}")
    assert ended.code == 0, ended.err
    assert sorted(ended.kernels()) == ["add", "total", "total"]
    assert {file.manifest.status for file in ended.files()} == {"ok"}
    blocks = [f.manifest.kernel.arguments[-1].value for f in ended.files() if f.manifest.kernel.name == "total"]
    assert sorted(map(int, blocks)) == [64, 128]  # type: ignore[arg-type]


THREADS = f"""{COMPILE_ADD}
import threading

def work(number):
    types = {{"x_ptr": "*fp32", "out_ptr": "*fp32", "BLOCK": "constexpr"}}
    triton.compile(ASTSource(kernels.total, types, {{(2,): 64 << number}}), target=standin.TARGET)

threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_do_not_mix(tmp_path: Path) -> None:
    ended = capture(tmp_path, THREADS)
    assert ended.code == 0, ended.err
    assert [file.manifest.status for file in ended.files()] == ["ok"] * 4
    for file in ended.files():
        block = file.manifest.kernel.arguments[-1].value
        texts = [file.text(stage.input) for stage in file.manifest.stages if stage.input]
        assert all(f"{block}x" in text for text in texts[:2])


AMD = f"""{COMPILE_ADD}
from triton.backends.compiler import GPUTarget
standin.TARGET = GPUTarget("hip", "gfx942", 64)
add()
"""


def test_amd_target_is_recorded(tmp_path: Path) -> None:
    ended = capture(tmp_path, AMD)
    manifest = ended.manifest("add")
    assert manifest.status == "ok", (manifest.failure, ended.err)
    assert (manifest.target.arch, manifest.target.backend, manifest.target.warp_size) == ("gfx942", "hip", 64)
    assert {a.name for a in manifest.artifacts} == {"llvm-ir", "amdgcn", "hsaco"}
    (file,) = ended.files()
    assert [name for name in manifest.digests() if SECRET.encode() in file.blob(name)] == []


FAILS = """
import triton, standin, triton.language as tl
from triton.compiler import ASTSource

@triton.jit
def wrong(x_ptr, n):
    value = tl.load(x_ptr)
    tl.store(x_ptr, value + undefined)

@triton.jit
def good(x_ptr, n):
    tl.store(x_ptr, n)

for kernel in (wrong, good):
    try:
        triton.compile(ASTSource(kernel, {"x_ptr": "*i32", "n": "i32"}, {}), target=standin.TARGET)
    except Exception as error:
        print(type(error).__name__)
"""


def test_error_of_a_kernel_is_the_programs_and_the_traces(tmp_path: Path) -> None:
    ended = capture(tmp_path, FAILS)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("CompilationError\n")
    assert ended.kernels() == ["wrong", "good"]
    manifest = ended.manifest("wrong")
    assert manifest.failure is not None
    assert "undefined is not defined" in manifest.failure.message
    places = [(d.file, d.line) for d in manifest.diagnostics if d.severity == "error"]
    assert places == [("program.py", 8)]
    assert ended.manifest("good").status == "ok"


def test_kept_cache_is_used(tmp_path: Path) -> None:
    code = f"{COMPILE_ADD}\nadd()\n"
    first = capture(tmp_path, code, "--keep-cache")
    again = capture(tmp_path, code, "--keep-cache")
    fresh = capture(tmp_path, code)
    assert [each.kernels() for each in (first, again, fresh)] == [["add"], [], ["add"]]
    assert "--keep-cache" in again.err
    assert len(list((tmp_path / "cache").glob("*/add.json"))) == 1, "recording is no part of Triton's cache key"


def test_programs_own_startup_and_dump_are_respected(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins\nbuiltins.own_startup = True\n")
    code = (
        f"{COMPILE_ADD}\nprint(own_startup, os.environ['MLIR_DUMP_PATH'], os.environ.get('MLIR_ENABLE_DUMP'))\nadd()\n"
    )
    code += "print(os.environ['MLIR_DUMP_PATH'], os.environ.get('MLIR_ENABLE_DUMP'))\n"
    dump = str(tmp_path / "own.mlir")
    ended = capture(tmp_path, code, PYTHONPATH=os.pathsep.join([str(own), str(ROOT)]), MLIR_DUMP_PATH=dump)
    assert ended.out.splitlines()[:2] == [f"True {dump} None", f"{dump} None"]
    assert f"MLIR_DUMP_PATH={dump} is not written" in ended.err
    assert ended.kernels() == ["add"]


def test_interrupt_reaches_the_program_and_what_it_did_is_kept(tmp_path: Path) -> None:
    code = f"{COMPILE_ADD}\nadd()\nimport signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
    code += "os.kill(os.getppid(), signal.SIGTERM)\nsignal.pause()\n"
    ended = capture(tmp_path, code)
    assert ended.code == 9, ended.err
    assert ended.kernels() == ["add"]


def test_signal_that_ends_the_program_is_its_exit_code(tmp_path: Path) -> None:
    ended = capture(tmp_path, "import os\nos.kill(os.getpid(), 15)\n")
    assert ended.code == 128 + signal.SIGTERM
