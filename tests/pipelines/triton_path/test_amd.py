"""AMD's chips: what each gives, what their launch code meets, and how what they cannot do is told."""

from __future__ import annotations

import re

import pytest

from pipelines.dumps import amdgcn
from pipelines.dumps.place import in_file
from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.options import OptionError
from pipelines.triton_path.spec import Compiled, CompileSpec, Event
from pipelines.triton_path.targets import CHIPS
from tests.conftest import EXAMPLES
from tests.pipelines.triton_path.sources import (
    BUFFER,
    CAPTURED,
    IMPORTS,
    KERNEL,
    compiled,
    fails,
    line_of,
    manifest,
    succeeds,
)

AMD = [chip.arch for chip in CHIPS.values() if chip.backend.name == "hip"]
ELF = b"\x7fELF"


def text_of(made: Compiled, artifact: str) -> str:
    found = made.manifest.artifact(artifact)
    assert found is not None
    return made.blobs[found.digest].decode()


def lines_named(made: Compiled) -> set[int]:
    """The kernel's lines that some instruction comes from."""
    places = (in_file(item.stack, "kernel.py") for item in amdgcn.parse(text_of(made, "amdgcn")))
    return {place.line for place in places if place and place.line}


@pytest.mark.parametrize("example", ["vector_add", "softmax"])
@pytest.mark.parametrize("target", AMD)
def test_every_target_reaches_machine_code(compiler: Compiler, example: str, target: str):
    source = (EXAMPLES / f"{example}.py").read_text()
    made = compiled(compiler, source, target=target)
    found = made.manifest
    assert found.status == "ok", found.failure
    assert [stage.name for stage in found.stages] == ["ttir", "ttgir", "llvm-dialect"]
    assert [(item.name, item.binary) for item in found.artifacts] == [
        ("llvm-ir", False),
        ("amdgcn", False),
        ("hsaco", True),
    ]
    assert made.blobs[found.artifact("hsaco").digest].startswith(ELF)
    assert f"-{target}" in text_of(made, "amdgcn").split("\n")[0]
    assert (found.target.backend, found.target.warp_size) == ("hip", 64 if target.startswith("gfx9") else 32)
    assert found.launch_metadata["shared"] == found.resources.shared
    stored = line_of(source, "tl.store(")
    assert stored in lines_named(made)


def test_resources_have_the_words_of_amd(compiler: Compiler):
    found = succeeds(compiler, CAPTURED, target="gfx942").resources
    assert found.registers > 0
    assert found.sgprs > 0
    assert found.occupancy > 0
    assert found.instructions > 10
    assert (found.agprs, found.vgpr_spills, found.sgpr_spills, found.stack, found.shared) == (0, 0, 0, 0, 0)
    assert found.spill_stores is None
    assert found.barriers is None


def test_a_kernel_that_spills_says_so(compiler: Compiler):
    source = (
        f"{IMPORTS}@triton.jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at)\n    y = tl.load(x_ptr + at + BLOCK)\n    for i in range(n):\n"
        "        x, y = x + y, y * x\n    tl.store(x_ptr + at, x + y)\n"
    )
    given = {"arguments": {"x_ptr": "*fp32:16", "n": "i32"}, "constexprs": {"BLOCK": 8192}}
    found = succeeds(compiler, source, target="gfx1100", options={"num_warps": 1}, **given).resources
    assert found.vgpr_spills > 0
    assert found.stack > 0


def test_the_same_input_gives_the_same_content(compiler: Compiler):
    first, second = (compiled(compiler, CAPTURED, target="gfx942") for _ in range(2))
    assert first.manifest.content == second.manifest.content


def test_what_makes_machine_code_is_named(compiler: Compiler):
    toolchain = succeeds(compiler, CAPTURED, target="gfx942").toolchain
    assert toolchain.commands == (
        "libtriton_amd_codegen.so, in process: triton_amdgpu_assemble kernel.amdgcn kernel.o",
        "libtriton.so, in process: ld.lld -shared kernel.o -o kernel.hsaco",
    )
    assert any(tool.name == "libtriton_amd_codegen.so" and "LLVM" in tool.version for tool in toolchain.tools)


def test_progress_names_the_artifacts(compiler: Compiler):
    events: list[Event] = []
    compiler.compile(CompileSpec(source=CAPTURED, target="gfx942"), events.append)
    assert [event.data["name"] for event in events if event.kind == "artifact"] == ["llvm-ir", "amdgcn", "hsaco"]
    assert [event.data["stage"] for event in events if event.kind == "stage"] == [
        "ttir", "ttgir", "llvm-dialect", "llvm-ir", "amdgcn", "hsaco",
    ]  # fmt: skip


def test_launch_code_meets_a_hip_device(compiler: Compiler):
    source = (
        f"{IMPORTS}{KERNEL}{BUFFER}driver = triton.runtime.driver.active\n"
        "properties = driver.utils.get_device_properties(driver.get_current_device())\n"
        "target = driver.get_current_target()\n"
        "assert (target.backend, target.arch, target.warp_size) == ('hip', 'gfx950', 64)\n"
        "assert driver.get_device_capability() == (9, 5)\n"
        "assert properties['arch'] == 'gfx950' and properties['max_shared_mem'] == 160 * 1024\n"
        "kernel[(properties['multiprocessor_count'],)](Buffer(), 1000, BLOCK=properties['warpSize'], waves_per_eu=2)\n"
    )
    made = succeeds(compiler, source, target="gfx950")
    assert made.launch.grid == (256, 1, 1)
    assert made.options["waves_per_eu"] == 2
    assert {item.name: item.value for item in made.kernel.arguments}["BLOCK"] == 64


SMALL = "    def ptr_range(self): return 2**31 - 1\n"


@pytest.mark.parametrize(
    ("more", "target", "promised"), [(SMALL, "gfx942", 32), ("", "gfx942", None), (SMALL, "sm_80", None)]
)
def test_the_range_of_a_small_tensors_offsets_is_told(compiler: Compiler, more: str, target: str, promised: int | None):
    source = CAPTURED.replace("    def data_ptr(self)", f"{more}    def data_ptr(self)")
    made = compiled(compiler, source, target=target)
    assert made.manifest.kernel.arguments[0].pointer_range == promised
    first = made.blobs[made.manifest.stage("ttir").input]
    assert (b"tt.pointer_range = 32 : i32" in first) == (promised == 32)


def test_the_range_can_be_given_and_is_amds_alone(compiler: Compiler):
    given = {"arguments": {"x_ptr": "*fp32:16:32", "n": "i32"}, "constexprs": {"BLOCK": 128}}
    made = succeeds(compiler, IMPORTS + KERNEL, target="gfx942", **given)
    assert (made.kernel.arguments[0].divisibility, made.kernel.arguments[0].pointer_range) == (16, 32)
    made = succeeds(compiler, IMPORTS + KERNEL, target="sm_80", **given)
    assert (made.kernel.arguments[0].divisibility, made.kernel.arguments[0].pointer_range) == (16, None)


def test_options_are_those_of_the_back_end(compiler: Compiler):
    told = {name: {option.name for option in options} for name, options in compiler.options.items()}
    assert {"num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim"} <= told["hip"]
    assert "maxnreg" not in told["hip"]
    assert "waves_per_eu" not in told["cuda"]
    with pytest.raises(OptionError, match="there is no option maxnreg"):
        compiler.check(CompileSpec(source=CAPTURED, target="gfx942", options={"maxnreg": 64}))
    made = compiled(compiler, CAPTURED, target="gfx942", options={"waves_per_eu": 2, "num_warps": 8})
    assert '"amdgpu-waves-per-eu"="2,2"' in text_of(made, "llvm-ir")
    assert made.manifest.options["num_warps"] == 8


def warnings_of(made: Manifest) -> list[tuple[str, int | None]]:
    return [(item.message, item.line) for item in made.diagnostics if item.severity == "warning"]


LARGE = (
    f"{IMPORTS}@triton.jit\ndef kernel(a_ptr, c_ptr, SIZE: tl.constexpr):\n    at = tl.arange(0, SIZE)\n"
    "    tile = at[:, None] * SIZE + at[None, :]\n    a = tl.load(a_ptr + tile)\n"
    "    tl.store(c_ptr + tile, tl.dot(a, tl.trans(a)))\n"
)


@pytest.mark.parametrize(
    ("target", "size", "memory"), [("gfx942", 256, "LDS"), ("sm_89", 256, "shared memory"), ("gfx942", 64, None)]
)
def test_more_memory_than_a_block_can_have_is_told_at_the_kernel(
    compiler: Compiler, target: str, size: int, memory: str | None
):
    given = {"arguments": {"a_ptr": "*fp16:16", "c_ptr": "*fp32:16"}, "constexprs": {"SIZE": size}}
    made = succeeds(compiler, LARGE, target=target, options={"num_warps": 8}, **given)
    told = [(text, line) for text, line in warnings_of(made) if "OutOfResources" in text]
    if memory is None:
        assert told == []
        return
    ((text, line),) = told
    assert line == line_of(LARGE, "def kernel(")
    assert f"{made.launch_metadata['shared']:,} bytes of {memory}, and {target} has {CHIPS[target].shared:,}" in text


def test_what_a_chip_cannot_do_is_told_at_its_line(compiler: Compiler):
    source = CAPTURED.replace("BLOCK=128)", "BLOCK=128, num_ctas=2)")
    told = dict(warnings_of(manifest(compiler, source, target="gfx942")))
    (text,) = [text for text in told if "num_ctas > 1 not supported on gfx942" in text]
    assert told[text] == line_of(source, "kernel[(4,)]")
    message, _ = fails(compiler, CAPTURED, target="gfx942", options={"num_ctas": 2})
    assert message == "option num_ctas cannot be 2: num_ctas > 1 not supported on gfx942"
    broken = CAPTURED.replace(
        "x * 2", 'tl.inline_asm_elementwise("v_nonsense $0, $1", "=v,v", [x], tl.float32, True, 1)'
    )
    message, places = fails(compiler, broken, target="gfx942")
    assert re.fullmatch(r"AMD's assembler rejects the AMDGCN at line \d+: invalid instruction: v_nonsense .*", message)
    assert places[0].line == line_of(broken, "v_nonsense")
    assert (places[0].file, places[-1].file, places[-1].address) == ("kernel.py", "kernel.amdgcn", "amdgcn")


def test_what_llvm_says_and_goes_on_is_told(compiler: Compiler):
    source = (EXAMPLES / "fails_in_ptxas.py").read_text()
    said = [item for item in succeeds(compiler, source, target="gfx942").diagnostics if item.severity == "error"]
    assert [item.address for item in said] == ["amdgcn"]
    assert "could not allocate output register for constraint 'h'" in said[0].message


def test_a_layout_for_warps_of_32_is_refused_where_a_wave_has_64(compiler: Compiler):
    source = (EXAMPLES / "gluon_transpose.py").read_text()
    message, places = fails(compiler, source, target="gfx942")
    assert "invalid layout" in message
    assert line_of(
        source, "rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, load_layout))"
    ) in {item.line for item in places}
    assert succeeds(compiler, source, target="gfx1100").stages[0].name == "ttgir"
