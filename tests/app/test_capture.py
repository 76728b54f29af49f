"""``loupe capture`` with real programs, which compile with the real Triton and launch through a stand-in driver."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import main
from pipelines.trace import Manifest
from pipelines.tracefile import TraceFile
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import CompileSpec
from tests.app.helpers import PATIENCE
from tests.app.test_serve import serve

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "pipelines" / "hook" / "programs"
SECRET = "alice"


@dataclass
class Captured:
    """A finished ``loupe capture``: how it ended, what it printed, what it stored where."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found

    def kernels(self) -> list[str]:
        return [trace["kernel"] for trace in self.told["traces"]]

    def files(self) -> list[TraceFile]:
        return [TraceFile.open(Path(trace["kept_at"])) for trace in self.told["traces"]]

    def manifest(self, kernel: str) -> Manifest:
        return next(file.manifest for file in self.files() if file.manifest.kernel.name == kernel)


def capture(
    folder: Path, code: str | None = None, *flags: str, program: tuple[str, ...] | None = None, **environment: str
) -> Captured:
    """Capture a program that lies in somebody's home, into files."""
    project = folder / "home" / SECRET / "project"
    if not project.exists():
        shutil.copytree(PROGRAMS, project)
    if code is not None:
        (project / "program.py").write_text(code)
    command = [sys.executable, "-m", "app.cli", "capture", "--json", "-o", str(folder / "out"), *flags]
    command += ["--home", str(folder / "loupe"), "--", *(program or (sys.executable, "program.py"))]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "MLIR_"))}
    clean |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    ended = subprocess.run(
        command, cwd=project, env={**clean, **environment}, capture_output=True, text=True, timeout=110, check=False
    )
    return Captured(ended.returncode, ended.stdout, ended.stderr, folder)


COMPILE_ADD = (PROGRAMS / "train.py").read_text().partition("add()\nadd()")[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("trained")
    return capture(folder, program=(sys.executable, "train.py", "a", "--json"))


def test_every_kernel_becomes_a_trace(trained: Captured) -> None:
    assert trained.code == 0, trained.err
    assert trained.out.startswith("trained with ['a', '--json'] on 6 launches None\n")
    told = [(t["kernel"], t["status"], t["compiled"]) for t in trained.told["traces"]]
    assert told == [("add", "ok", 2), ("total", "ok", 1), ("tuned", "ok", 1), ("tuned", "ok", 1)]
    assert trained.told["refused"] == []
    for file in trained.files():
        file.verify()
        assert [stage.name for stage in file.manifest.stages] == ["ttir", "ttgir", "llvm-dialect"]
        assert {a.name for a in file.manifest.artifacts} == {"llvm-ir", "ptx", "cubin", "ptxas-log", "sass"}
        assert file.manifest.kernel.origin == "captured"
        assert file.manifest.kernel.file == "kernels.py"


def test_launches_are_those_that_the_program_made(trained: Captured) -> None:
    assert trained.manifest("add").launch is None
    launch = trained.manifest("total").launch
    assert launch is not None
    assert launch.grid == (1, 2, 1)
    assert [(a.name, a.dtype, a.shape, a.strides, a.value) for a in launch.arguments] == [
        ("x_ptr", "fp32", (1000,), (1,), None),
        ("out_ptr", "fp32", (1000,), (1,), None),
        ("BLOCK", "int", None, None, 1024),
    ]
    configs = [f.manifest.launch for f in trained.files() if f.manifest.kernel.name == "tuned"]
    assert [(c.grid, (c.config or "").split(",")[0]) for c in configs if c] == [
        ((8, 1, 1), "BLOCK: 128"),
        ((4, 1, 1), "BLOCK: 256"),
    ]


def test_no_path_of_the_machine_is_in_a_trace(trained: Captured) -> None:
    forms = [text.encode() for text in (SECRET, str(ROOT), str(trained.folder), sys.prefix)]
    spelled = "\n".join(f".b8 {byte}" for byte in SECRET.encode()).encode()
    for file in trained.files():
        manifest = file.manifest.model_dump_json().encode()
        texts = {name: file.blob(name) for name in file.manifest.digests()}
        assert [(form, name) for form in forms for name, text in texts.items() if form in text] == []
        assert [form for form in forms if form in manifest] == []
        assert [name for name, text in texts.items() if spelled in text] == []


def test_trace_equals_what_loupe_compiles(trained: Captured, tmp_path: Path) -> None:
    """Every text is the same but the PTX's debug section, whose folder has another length, and what is made of it."""
    spec = CompileSpec(
        source=(PROGRAMS / "kernels.py").read_text(),
        file="kernels.py",
        kernel="add",
        arguments={"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "n": "i32"},
        constexprs={"BLOCK": 128},
        target="sm_90",
    )
    compiler = Compiler(tmp_path / "sandbox")
    try:
        compiler.start()
        made = compiler.compile(spec, lambda _: None)
    finally:
        compiler.close()
    (file,) = (f for f in trained.files() if f.manifest.kernel.name == "add")
    ours, theirs = made.manifest, file.manifest
    assert theirs.stages == ours.stages
    assert theirs.options == ours.options
    assert theirs.kernel.arguments == ours.kernel.arguments
    assert theirs.kernel.source == ours.kernel.source
    assert theirs.launch_metadata == ours.launch_metadata
    assert theirs.resources == ours.resources
    assert theirs.toolchain.commands == ours.toolchain.commands
    assert set(theirs.toolchain.tools) <= set(ours.toolchain.tools)
    digests = {a.name: a.digest for a in ours.artifacts}
    same = [a.name for a in theirs.artifacts if a.digest == digests[a.name]]
    assert {"llvm-ir"} <= set(same)

    def code(text: bytes) -> bytes:
        return text.partition(b".debug_abbrev")[0]

    ptx = theirs.artifact("ptx")
    assert ptx is not None
    assert code(file.blob(ptx.digest)) == code(made.blobs[digests["ptx"]])
    sass = theirs.artifact("sass")
    assert sass is not None
    assert file.blob(sass.digest).splitlines()[10:] == made.blobs[digests["sass"]].splitlines()[10:]


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


TWO_LINES = """
import os, sys
import triton, kernels, standin
standin.install()
x = standin.Tensor("fp32", (1000,))
kernels.total[(1,)](x, x, BLOCK=64)
sys.path.append({path!r})
import loupe_hook; loupe_hook.start({folder!r})
kernels.total[(1,)](x, x, BLOCK=64)
kernels.total[(1,)](x, x, BLOCK=128)
print(sorted(name for name in sys.modules if name.startswith(("pydantic", "pipelines", "app", "click"))))
"""


def two_lines(folder: Path, recorded: str, path: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(TWO_LINES.format(path=path, folder=recorded))
    environment = {**os.environ, "PYTHONPATH": str(PROGRAMS), "TRITON_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def hook_path() -> str:
    """The folder that the command names, and which ``loupe_hook`` is in."""
    done = CliRunner().invoke(main, ["capture", "--hook-path"])
    return done.stdout.strip()


def copied_hook(folder: Path) -> str:
    """A folder with a copy of the hook, as on a machine without Loupe."""
    shutil.copytree(ROOT / "pipelines" / "hook", folder / "copied" / "loupe_hook")
    return str(folder / "copied")


@pytest.mark.parametrize("copied", [False, True])
def test_two_lines_record_what_comes_after_them(tmp_path: Path, copied: bool) -> None:
    ended = two_lines(tmp_path, "recorded", copied_hook(tmp_path) if copied else hook_path())
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")
    done = CliRunner().invoke(main, ["import", str(tmp_path / "recorded"), "--home", str(tmp_path / "home"), "--json"])
    assert done.exit_code == 0, done.output
    (trace,) = json.loads(done.stdout)["traces"]
    assert (trace["kernel"], trace["status"]) == ("total", "ok")
    assert trace["kept_at"].startswith("/t/")
    shown = CliRunner().invoke(main, ["show", trace["kept_at"], "--home", str(tmp_path / "home"), "--json"])
    assert json.loads(shown.stdout)["kernel"]["arguments"][-1]["value"] == 128


def test_hook_that_cannot_write_leaves_the_program_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = two_lines(tmp_path, str(tmp_path / "file" / "recorded"), hook_path())
    assert (ended.returncode, ended.stdout) == (0, "[]\n")
    assert ended.stderr.count("loupe: ") == 1
    assert "the program goes on" in ended.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("server") / "home") as served:
        yield f"http://127.0.0.1:{served.port}"


def test_push_gives_permalinks_and_groups_there(trained: Captured, server: str, tmp_path: Path) -> None:
    folder = trained.folder / "out"
    done = CliRunner().invoke(main, ["push", str(folder), "--server", server, "--home", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["traces"]
    assert sorted(t["content"] for t in told) == sorted(t["content"] for t in trained.told["traces"])
    again = CliRunner().invoke(main, ["show", told[0]["kept_at"], "--json", "--home", str(tmp_path)])
    assert json.loads(again.stdout)["kernel"]["origin"] == "captured"


def test_captured_configs_are_a_group_on_the_server(server: str, tmp_path: Path) -> None:
    code = (PROGRAMS / "train.py").read_text().replace("add()\nadd()\n", "")
    project = tmp_path / "home" / SECRET / "project"
    shutil.copytree(PROGRAMS, project)
    (project / "program.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "app.cli",
        "capture",
        "--json",
        "--push",
        server,
        "--",
        sys.executable,
        "program.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LOUPE_HOME": str(tmp_path / "loupe")}
    ended = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])["traces"]
    groups = {trace["group"] for trace in told if trace["kernel"] == "tuned"}
    assert len(groups) == 1
    (group,) = groups
    assert group.startswith(f"{server}/g/")
    with urllib.request.urlopen(f"{group}.json") as answer:
        members = json.loads(answer.read())["traces"]
    assert [member["config"].split(",")[0] for member in members] == ["BLOCK: 128", "BLOCK: 256"]


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://127.0.0.1:9", "cannot be reached"), ("ftp://here", "is no server"), ("nowhere", "is no server")],
)
def test_push_to_no_server_says_so(trained: Captured, tmp_path: Path, address: str, words: str) -> None:
    done = CliRunner().invoke(main, ["push", str(trained.folder / "out"), "--server", address, "--home", str(tmp_path)])
    assert done.exit_code != 0
    assert words in done.output


def test_signal_that_ends_the_program_is_its_exit_code(tmp_path: Path) -> None:
    ended = capture(tmp_path, "import os\nos.kill(os.getpid(), 15)\n")
    assert ended.code == 128 + signal.SIGTERM
