from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pipelines.analysis import summary as summary_module
from pipelines.analysis.mask import line_keys
from pipelines.analysis.operations import MAX_DIALECTS, count_dialects
from pipelines.analysis.spans import Keys
from pipelines.analysis.summary import Row, Summary, summarize
from pipelines.trace import Artifact, Kernel, Manifest, Pass, Stage, Syntax, Target, Toolchain, digest

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"


class Trace:
    """A manifest over real texts, and a count of how often each was asked for."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.keyed: Counter[str] = Counter()

    def put(self, text: bytes) -> str:
        self.blobs[digest(text)] = text
        return digest(text)

    def keys(self, name: str, text: bytes, syntax: Syntax) -> Keys:
        assert self.blobs[name] == text
        self.keyed[name] += 1
        return line_keys(text, syntax)

    def manifest(self, stages: tuple[Stage, ...], artifacts: tuple[Artifact, ...] = ()) -> Manifest:
        source = self.put(b"def k(): pass")
        return Manifest(
            pipeline="triton",
            status="ok",
            kernel=Kernel(name="k", file="kernel.py", source=source, arguments=(), origin="none"),
            launch=None,
            target=Target(arch="sm_90", backend="cuda", warp_size=32),
            options={},
            toolchain=Toolchain(name="t", tools=()),
            stages=stages,
            artifacts=artifacts,
            launch_metadata={},
            resources=None,
            diagnostics=(),
            failure=None,
        )

    def summarize(self, manifest: Manifest) -> Summary:
        return summarize(manifest, self.blobs.__getitem__, self.keys)


def step(ordinal: int, text: str | None, parent: int | None = None) -> Pass:
    return Pass(ordinal=ordinal, parent=parent, name="p", argument="", anchor="builtin.module", text=text)


@pytest.fixture
def trace() -> Trace:
    return Trace()


def golden(trace: Trace, name: str) -> str:
    return trace.put((GOLDEN / name).read_bytes().rstrip(b"\n"))


def test_rows_say_what_each_pass_did_to_real_texts(trace: Trace) -> None:
    first, cse = golden(trace, "softmax-sccp.mlir"), golden(trace, "softmax-cse.mlir")
    wide, narrow = golden(trace, "softmax-llvm.mlir"), golden(trace, "softmax-llvm-cse.mlir")
    ptx = golden(trace, "softmax.ptx")
    manifest = trace.manifest(
        (
            Stage(name="ttgir", input=first, passes=(step(1, first), step(2, cse))),
            Stage(name="llvm-dialect", input=cse, passes=(step(1, wide), step(2, narrow), step(3, narrow))),
        ),
        (Artifact(name="ptx", digest=ptx), Artifact(name="cubin", digest=trace.put(b"\x7fELF"), binary=True)),
    )
    rows = trace.summarize(manifest).rows
    assert list(rows) == [
        "ttgir:0", "ttgir:1", "ttgir:2", "llvm-dialect:0", "llvm-dialect:1", "llvm-dialect:2", "llvm-dialect:3", "ptx",
    ]  # fmt: skip
    assert rows["ttgir:0"] == Row(lines=76, bytes=4036, dialects={"tt": 19, "arith": 8, "math": 1})
    assert rows["ttgir:1"] == Row(lines=76, bytes=4036, against="ttgir:0", dialects=rows["ttgir:0"].dialects)
    assert not rows["ttgir:2"].changed
    assert rows["ttgir:2"].renamed > 10
    assert rows["llvm-dialect:0"].against is None
    assert rows["llvm-dialect:1"].changed
    assert rows["llvm-dialect:1"].plus > 200
    assert (rows["llvm-dialect:2"].plus, rows["llvm-dialect:2"].minus) == (0, 57)
    assert not rows["llvm-dialect:3"].changed
    assert rows["ptx"] == Row(lines=514, bytes=len(trace.blobs[ptx]))
    assert set(trace.keyed.values()) == {1}


def test_children_are_compared_with_siblings_and_the_next_pass_with_the_parent(trace: Trace) -> None:
    texts = [trace.put(b"module {\n" + b"  tt.op\n" * n + b"}") for n in range(5)]
    passes = (
        step(1, texts[4]),
        step(2, texts[1], parent=1),
        step(3, texts[3], parent=1),
        step(4, texts[4]),
        step(5, None),
    )
    rows = trace.summarize(trace.manifest((Stage(name="ttir", input=texts[0], passes=passes),))).rows
    against = {address: (row.against, row.plus, row.minus) for address, row in rows.items()}
    assert against == {
        "ttir:0": (None, 0, 0),
        "ttir:1": ("ttir:0", 4, 0),
        "ttir:2": ("ttir:0", 1, 0),
        "ttir:3": ("ttir:2", 2, 0),
        "ttir:4": ("ttir:1", 0, 0),
    }
    assert not rows["ttir:4"].changed


def test_a_pass_that_only_moves_locations_changed_nothing(trace: Trace) -> None:
    a, b = trace.put(b"#loc = loc(1)\nx loc(#loc)"), trace.put(b"#loc = loc(2)\n#loc1 = loc(3)\nx loc(#loc1)")
    rows = trace.summarize(trace.manifest((Stage(name="ttir", input=a, passes=(step(1, b),)),))).rows
    assert rows["ttir:1"] == Row(lines=3, bytes=len(trace.blobs[b]), against="ttir:0")


def test_sass_is_measured_as_it_is_shown(trace: Trace) -> None:
    artifacts = (Artifact(name="sass", digest=golden(trace, "scale-sm75.hex.sass")),)
    plain = (GOLDEN / "scale-sm75.sass").read_bytes().rstrip(b"\n")
    rows = trace.summarize(trace.manifest((), artifacts)).rows
    assert rows == {"sass": Row(lines=plain.count(b"\n") + 1, bytes=len(plain))}


def test_a_trace_without_texts_has_no_rows(trace: Trace) -> None:
    assert trace.summarize(trace.manifest((Stage(name="ttir", input=None, passes=(step(1, None),)),))).rows == {}


def test_many_passes_over_few_texts_align_each_pair_once(trace: Trace) -> None:
    a, b = golden(trace, "matmul-scf.mlir"), golden(trace, "matmul-cf.mlir")
    passes = tuple(step(n, b if n % 2 else a) for n in range(1, 301))
    rows = trace.summarize(trace.manifest((Stage(name="ttgir", input=a, passes=passes),))).rows
    assert {(row.plus, row.minus) for row in list(rows.values())[1:]} == {(9, 4), (4, 9)}
    assert set(trace.keyed.values()) == {1}


def test_past_the_bound_texts_count_as_changed_without_being_aligned(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_module, "MAX_ALIGNED", 10)
    a, b, c = trace.put(b"a\nb"), trace.put(b"a\nc"), trace.put(b"d\nc")
    rows = trace.summarize(trace.manifest((Stage(name="ttir", input=a, passes=(step(1, b), step(2, c))),))).rows
    assert (rows["ttir:1"].plus, rows["ttir:1"].fallback) == (1, False)
    assert (rows["ttir:2"].plus, rows["ttir:2"].changed, rows["ttir:2"].fallback) == (0, True, True)


def test_a_summary_survives_json(trace: Trace) -> None:
    a = golden(trace, "softmax-cse.mlir")
    summary = trace.summarize(trace.manifest((Stage(name="ttgir", input=a, passes=(step(1, a),)),)))
    assert Summary.model_validate_json(summary.model_dump_json()) == summary


def test_operations_are_counted_where_they_stand() -> None:
    text = b"""module attributes {ttg.target = "cuda:80"} {
  tt.func public @f(%arg0: i32) attributes {noinline = false} {
    %0 = arith.addi %arg0, %arg0 : i32
    %1:2 = scf.for %i = %0 to %0 step %0 iter_args(%a = %0) -> (i32) {
      %2 = "tt.reduce"(%1#0) <{axis = 0 : i32}> ({
      ^bb0(%3: f32):
        tt.reduce.return %3 : f32
      }) : (f32) -> f32
      "tt.some"() : () -> ()
    } {tt.num_stages = 3 : i32}
    %4 = llvm.mlir.constant(0 : i32) : i32
    cf.br ^bb1
    // tt.comment
    %broken
  }
}"""
    assert count_dialects(text) == {"tt": 4, "arith": 1, "cf": 1, "llvm": 1, "scf": 1}


def test_the_counts_of_a_real_text_are_those_of_a_slow_reading() -> None:
    text = (GOLDEN / "softmax-llvm.mlir").read_text()
    slow = Counter(re.findall(r'^ *(?:%[^=\n]* = )?"?([a-z_]+)\.', text, re.MULTILINE))
    assert count_dialects(text.encode()) == dict(slow.most_common())


@pytest.mark.parametrize("text", [b"", b"%", b"= ", b"%a = ", b"\xff.\xff", b'"', b"a." * 100_000, b"a.b\n" * 1000])
def test_hostile_texts_are_counted_without_harm(text: bytes) -> None:
    assert sum(count_dialects(text).values()) in (0, 1, 1000)


def test_the_number_of_dialects_listed_is_bounded() -> None:
    text = b"\n".join(b"d%s.op" % str(n).encode() for n in range(1000)) + b"\nd7.op\n" + b"x" * 40 + b".op\n" * 2
    counts = count_dialects(text)
    assert len(counts) == MAX_DIALECTS
    assert counts["d7"] == 2
