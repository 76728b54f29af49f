"""The real compiler in the sandbox: it needs its own binaries, its cache and its dumps, and gets no more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton import knobs

from pipelines.sandbox import Limits, Sandbox, ZygoteSpec, landlock
from tests.pipelines.sandbox.conftest import INSIDE


def toolchain() -> ZygoteSpec:
    binaries = (knobs.nvidia.ptxas, knobs.nvidia.ptxas_blackwell, knobs.nvidia.nvdisasm)
    executables = tuple(Path(binary.path) for binary in binaries)
    return ZygoteSpec("triton", Path(sys.executable), "preload_triton", path=(INSIDE,), executables=executables)


@pytest.fixture(scope="module", params=sorted({2, landlock.abi()}))
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landlock, "abi", lambda: request.param)
        sandbox = Sandbox(toolchain(), tmp_path_factory.mktemp("triton"))
        sandbox.start()
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize("arch", [80, 100])
def test_compiles_with_dumps(sandbox: Sandbox, arch: int) -> None:
    with sandbox.run("preload_triton:compile", {"arch": arch}) as finished:
        slot = finished.slot
        assert finished.outcome.ok, (slot.read("stderr", 1 << 16, cut=True) or b"").decode()
        assert (slot.read("out.cubin", 1 << 20) or b"").startswith(b"\x7fELF")
        assert f".target sm_{arch}".encode() in (slot.read("out.ptx", 1 << 20) or b"")
        dump = slot.read("dump.mlir", 1 << 24) or b""
        assert dump.count(b"IR Dump Before") > 40
        assert b"ConvertTritonGPUToLLVM" in dump
        assert (slot.path / "cache").is_dir()


def test_nothing_of_a_compile_stays(sandbox: Sandbox) -> None:
    home = sandbox.home
    before = sorted(path.name for path in home.iterdir())
    with sandbox.run("preload_triton:compile", {"arch": 90}, limits=Limits(wall_s=0.1)) as finished:
        assert finished.outcome.kind == "timeout"
    assert sorted(path.name for path in home.iterdir()) == before
    with sandbox.run("preload_triton:compile", {"arch": 90}) as finished:
        assert finished.outcome.ok
    zygote = sandbox.zygote_pid
    assert [task.name for task in Path(f"/proc/{zygote}/task").iterdir()] == [str(zygote)]
