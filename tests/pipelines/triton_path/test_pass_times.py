"""Times of passes: what MLIR reports, given to the passes of a trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.timing import Timed
from pipelines.trace import Kernel, Manifest, Pass, Stage, Target, Toolchain
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.llvm_passes import NotAttachedError
from pipelines.triton_path.pass_times import RUNS, match, time_passes
from pipelines.triton_path.spec import CompileSpec, Event
from tests.conftest import EXAMPLES

DIGEST = "0" * 64


def trace(*names: str, inside: dict[int, int] | None = None) -> Manifest:
    """Make a trace of one stage; ``inside`` maps the ordinals of inner passes to their parents."""
    passes = tuple(
        Pass(ordinal=n, parent=(inside or {}).get(n), name=name, argument=name, anchor="", text=DIGEST)
        for n, name in enumerate(names, 1)
    )
    return Manifest(
        pipeline="triton",
        status="ok",
        kernel=Kernel(name="k", file="kernel.py", source=DIGEST, arguments=(), origin="given"),
        launch=None,
        target=Target(arch="sm_80", backend="cuda", warp_size=32),
        options={},
        toolchain=Toolchain(name="triton", tools=()),
        stages=(Stage(name="ttir", input=DIGEST, passes=passes),),
        artifacts=(),
        launch_metadata={},
        resources=None,
        diagnostics=(),
        failure=None,
    )


def test_inner_pipelines_belong_to_the_pass_before_and_nested_ones_to_the_plan():
    manifest = trace("inline", "canonicalize", "cse", "tidy", "tidy", "cse", inside={2: 1})
    report = [
        Timed("InlinerPass", 0.5),
        Timed("'tt.func' Pipeline", 0.2, "tt.func", [Timed("CanonicalizerPass", 0.2)]),
        Timed("CSEPass", 0.1),
        Timed("'llvm.func' Pipeline", 0.3, "llvm.func", [Timed("Tidy", 0.3)]),
        Timed("CSEPass", 0.4),
    ]
    found, unmapped = match(manifest, [("make_ttir", "any(inline,cse,llvm.func(tidy),cse)")], [report])
    assert found == {"ttir:1": 0.5, "ttir:3": 0.1, "ttir:4": 0.3, "ttir:6": 0.4}
    assert unmapped == []


def test_report_of_other_passes_than_its_pipeline_has_is_left_out():
    manifest = trace("inline", "cse")
    for report in ([Timed("A", 1.0)], [Timed("A", 1.0), Timed("B", 1.0), Timed("C", 1.0)]):
        found, unmapped = match(manifest, [("make_ttir", "any(inline,cse)")], [report])
        assert found == {}
        assert unmapped == [item.name for item in report]


def test_pass_that_the_trace_lacks_is_named():
    found, unmapped = match(
        trace("cse"), [("make_ttir", "any(inline,cse)")], [[Timed("InlinerPass", 1.0), Timed("CSEPass", 2.0)]]
    )
    assert (found, unmapped) == ({"ttir:1": 2.0}, ["InlinerPass"])


@given(st.lists(st.sampled_from(["inline", "cse", "canonicalize"]), min_size=1, max_size=30), st.data())
def test_each_pass_gets_its_own_time(names: list[str], data: st.DataObject):
    times = data.draw(st.lists(st.integers(0, 1000), min_size=len(names), max_size=len(names)))
    report = [Timed(name.title(), float(time)) for name, time in zip(names, times, strict=True)]
    found, unmapped = match(trace(*names), [("make_ttir", f"any({','.join(names)})")], [report])
    assert list(found.items()) == [(f"ttir:{n}", float(time)) for n, time in enumerate(times, 1)]
    assert unmapped == []


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_every_pass_of_a_real_compilation_is_timed(compiler: Compiler, target: str) -> None:
    spec = CompileSpec(source=(EXAMPLES / "softmax.py").read_text(), target=target)
    manifest = compiler.compile(spec, lambda _: None).manifest
    events: list[Event] = []
    times = time_passes(compiler, spec, manifest, events.append)
    assert [event.data["number"] for event in events] == list(range(1, RUNS + 1))
    timed = {item.address for item in times.passes}
    top = [f"{stage.name}:{item.ordinal}" for stage in manifest.stages for item in stage.passes if item.parent is None]
    assert timed == set(top)
    assert times.unmapped == ()
    assert {"ttir", "ttgir", "llvm-dialect", "llvm-ir"} <= {item.stage for item in times.stages}
    assert all(item.least <= item.median <= item.most for item in times.passes)


def test_compilation_that_fails_gives_no_times(compiler: Compiler) -> None:
    spec = CompileSpec(source=(EXAMPLES / "softmax.py").read_text(), target="sm_80")
    manifest = compiler.compile(spec, lambda _: None).manifest
    broken = spec.model_copy(update={"source": spec.source.replace("tl.exp(", "tl.nothing(")})
    with pytest.raises(NotAttachedError):
        time_passes(compiler, broken, manifest, lambda _: None)
