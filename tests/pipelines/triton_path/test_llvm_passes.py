"""LLVM's own passes, by a second compilation whose result must be the trace's."""

from __future__ import annotations

import pytest

from pipelines import tracefile
from pipelines.addedfile import AddedFile, ExtendedTrace
from pipelines.trace import TraceError, predecessors
from pipelines.tracefile import TraceFile
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.llvm_passes import NotAttachedError, print_passes
from pipelines.triton_path.spec import CompileSpec, Event
from tests.conftest import EXAMPLES
from tests.pipelines.triton_path.sources import ARGUMENTS, CONSTEXPRS, IMPORTS, KERNEL


def example(name: str, target: str) -> CompileSpec:
    return CompileSpec(source=(EXAMPLES / f"{name}.py").read_text(), target=target)


def given(source: str = IMPORTS + KERNEL, target: str = "sm_80") -> CompileSpec:
    return CompileSpec(source=source, arguments=ARGUMENTS, constexprs=CONSTEXPRS, target=target)


def compiled(compiler: Compiler, spec: CompileSpec) -> TraceFile:
    made = compiler.compile(spec, lambda _: None)
    return TraceFile(tracefile.write(made.manifest, made.blobs))


@pytest.mark.parametrize(
    ("name", "target"), [("softmax", "sm_90"), ("matmul", "sm_80"), ("softmax", "gfx942")], ids=lambda value: str(value)
)
def test_passes_lead_from_the_dialect_to_the_traces_llvm_ir_and_to_machine_code(
    compiler: Compiler, name: str, target: str
) -> None:
    spec = example(name, target)
    trace = compiled(compiler, spec)
    events: list[Event] = []
    printed = print_passes(compiler, spec, trace, events.append)
    file = AddedFile(printed.file)
    file.verify()
    assert (file.added, printed.added.content, printed.added.note) == (printed.added, trace.content, None)
    optimizer, codegen = printed.added.stages
    assert (optimizer.name, codegen.name) == ("llvm-ir", "llvm-codegen")
    assert [f"{e.data['stage']}:{e.data['ordinal']}" for e in events] == [
        f"{stage.name}:{item.ordinal}" for stage in printed.added.stages for item in stage.passes
    ]
    final = trace.manifest.artifact("llvm-ir")
    assert final is not None
    assert codegen.input == final.digest
    assert len(optimizer.passes) > 100
    names = [item.name for item in optimizer.passes]
    assert names.count("InstCombinePass") > 5
    whole = ExtendedTrace(trace, file)
    whole.manifest.check()
    texts = {item.text: whole.blob(item.text or "") for stage in printed.added.stages for item in stage.passes}
    assert all(texts[item.text].startswith(b"; ModuleID") for item in optimizer.passes)
    machine = [item for item in codegen.passes if item.syntax == "text"]
    assert machine
    assert all(texts[item.text].startswith(b"# Machine code for function") for item in machine)
    # A text that is only a part of a module is told as such, and nothing is compared with it.
    parts = {f"llvm-codegen:{item.ordinal}" for item in codegen.passes if item.fragment}
    assert bool(parts) == (target == "gfx942")
    received = predecessors(whole.manifest)
    assert all(received[address] is None for address in parts)
    assert parts.isdisjoint(set(received.values()))


def test_first_pass_of_the_optimizer_received_what_the_dialect_became(compiler: Compiler) -> None:
    spec = given()
    trace = compiled(compiler, spec)
    whole = ExtendedTrace(trace, AddedFile(print_passes(compiler, spec, trace, lambda _: None).file))
    text = whole.blob(whole.manifest.resolve("llvm-ir:0").text)
    assert b"define" in text
    assert text != whole.blob(whole.manifest.resolve("llvm-ir").text)
    assert whole.manifest.resolve("llvm-ir:7").syntax == "llvm"
    with pytest.raises(TraceError, match="there is no llvm-ir:999"):
        whole.manifest.resolve("llvm-ir:999")


def test_other_llvm_ir_than_the_traces_is_refused(compiler: Compiler) -> None:
    trace = compiled(compiler, given())
    other = given(IMPORTS + KERNEL.replace("x * 2", "x * 3"))
    with pytest.raises(NotAttachedError, match="another llvm-ir than the trace has"):
        print_passes(compiler, other, trace, lambda _: None)


def test_compilation_that_fails_the_second_time_is_refused_with_its_words(compiler: Compiler) -> None:
    trace = compiled(compiler, given())
    other = given(IMPORTS + KERNEL.replace("x * 2", "undefined"))
    with pytest.raises(NotAttachedError, match=r"did not come to llvm-ir.*undefined"):
        print_passes(compiler, other, trace, lambda _: None)


def test_trace_without_llvm_ir_has_no_passes_of_llvm(compiler: Compiler) -> None:
    spec = given(IMPORTS + KERNEL.replace("x * 2", "undefined"))
    with pytest.raises(NotAttachedError, match="has no LLVM IR"):
        print_passes(compiler, spec, compiled(compiler, spec), lambda _: None)


def test_more_than_is_kept_is_refused_before_the_llvm_ir_is_known(compiler: Compiler) -> None:
    spec = example("matmul", "sm_80")
    with pytest.raises(NotAttachedError, match=r"did not come to llvm-ir.*LLVM printed more than 2 MB"):
        print_passes(compiler, spec, compiled(compiler, spec), lambda _: None, max_raw=2 << 20)


def test_more_than_is_kept_is_cut_after_the_llvm_ir_and_told(compiler: Compiler) -> None:
    spec = given()
    trace = compiled(compiler, spec)
    whole = print_passes(compiler, spec, trace, lambda _: None)
    file = AddedFile(whole.file)
    sizes = [sum(len(file.blob(item.text or "")) for item in stage.passes) for stage in whole.added.stages]
    cut = print_passes(compiler, spec, trace, lambda _: None, max_raw=sizes[0] + sizes[1] // 2)
    kept = [stage.passes for stage in cut.added.stages]
    assert 0 < sum(map(len, kept)) < whole.added.passes()
    for passes, all_of_them in zip(kept, (stage.passes for stage in whole.added.stages), strict=False):
        assert passes == all_of_them[: len(passes)]
    last = cut.added.stages[-1]
    assert cut.added.note == f"LLVM printed more than {(sizes[0] + sizes[1] // 2) >> 20} MB: what came after " + (
        f"{last.name}:{len(last.passes)} is not kept."
    )
    AddedFile(cut.file).verify()


def test_what_the_source_prints_is_not_in_the_passes(compiler: Compiler) -> None:
    shout = "import sys\nprint('; *** IR Dump After ForgedPass on f ***', file=sys.stderr, flush=True)\n"
    spec = given(shout + IMPORTS + KERNEL)
    printed = print_passes(compiler, spec, compiled(compiler, spec), lambda _: None)
    assert "ForgedPass" not in {item.name for stage in printed.added.stages for item in stage.passes}
