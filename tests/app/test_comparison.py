from typing import Any

import pytest

from app.comparison import Row, byte_words, compare, time_words
from app.replies import TraceReply
from pipelines.analysis.summary import Row as SummaryRow
from pipelines.analysis.summary import Summary
from pipelines.trace import Argument, Kernel, Manifest, Pass, Resources, Stage, StageTime, Target, Toolchain, digest

TEXT = digest(b"module {}\n")


def manifest(*, registers: int = 86, warps: int = 4, block: int = 64, passes: int = 2) -> Manifest:
    return Manifest(
        pipeline="triton",
        status="ok",
        kernel=Kernel(
            name="matmul_kernel",
            file="kernel.py",
            source=TEXT,
            arguments=(
                Argument(name="a_ptr", type="*fp16", divisibility=16),
                Argument(name="BLOCK", type="constexpr", value=block),
            ),
            origin="given",
        ),
        launch=None,
        target=Target(arch="sm_90", backend="cuda", warp_size=32),
        options={"num_warps": warps, "enable_fp_fusion": True, "ptx_options": ""},
        toolchain=Toolchain(name="triton 3.9.0", tools=()),
        stages=(Stage(name="ttir", input=TEXT, passes=tuple(_pass(n + 1) for n in range(passes))),),
        artifacts=(),
        launch_metadata={},
        resources=Resources(registers=registers, shared=49_152),
        diagnostics=(),
        failure=None,
    )


def _pass(ordinal: int) -> Pass:
    return Pass(ordinal=ordinal, name="CSE", argument="cse", anchor="builtin.module", text=TEXT)


def reply(found: Manifest | None, **fields: Any) -> TraceReply:
    return TraceReply(
        **{
            "id": "a" * 22,
            "url": "/t/" + "a" * 22,
            "group": None,
            "status": "ok" if found else "queued",
            "created": "2026-12-01T00:00:00.000Z",
            "kernel": "matmul_kernel",
            "target": "sm_90",
            "config": None,
            "content": None,
            "cached": False,
            "pending": (),
            "failure": None,
            "resources": found.resources if found else None,
            "manifest": found,
            "summary": None,
            "times": None,
        }
        | fields
    )


def rows(traces: list[TraceReply]) -> dict[str, Row]:
    return {f"{section.title}/{row.label}": row for section in compare(traces) for row in section.rows}


def test_rows_tell_what_differs() -> None:
    found = rows([reply(manifest()), reply(manifest(registers=128, warps=8, block=128))])
    assert [label for label, row in found.items() if row.differs] == [
        "Resources/registers",
        "Constexprs/BLOCK",
        "Options/num_warps",
    ]
    assert found["Resources/registers"].numbers == (86, 128)
    assert found["Resources/shared memory"].values == ("48.0 KB", "48.0 KB")
    assert found["Arguments/a_ptr"].values == ("*fp16 ÷16", "*fp16 ÷16")
    assert found["Options/enable_fp_fusion"].values == ("true", "true")
    assert found["Options/ptx_options"].values == ('""', '""')


def test_a_fact_that_no_trace_has_is_no_row() -> None:
    assert "Resources/instructions" not in rows([reply(manifest())])


def test_what_is_not_known_yet_is_no_difference() -> None:
    found = rows([reply(manifest()), reply(None)])
    assert found["Resources/registers"].values == ("86", None)
    assert not any(row.differs for row in found.values())


def test_nothing_is_compared_before_the_first_result() -> None:
    assert compare([reply(None), reply(None)]) == ()


def test_passes_count_those_that_changed_the_ir() -> None:
    summary = Summary(
        rows={"ttir:1": SummaryRow(lines=1, bytes=10, changed=True), "ttir:2": SummaryRow(lines=1, bytes=10)}
    )
    found = rows([reply(manifest(), summary=summary), reply(manifest(passes=3))])
    assert found["Passes/ttir"].values == ("2, 1 changed", "3")
    assert found["Passes/ttir"].differs


def test_times_differ_only_when_one_can_see_it() -> None:
    def timed(seconds: float) -> TraceReply:
        return reply(manifest(), times=(StageTime(stage="ttir", seconds=seconds),))

    assert not rows([timed(0.100), timed(0.120)])["Stage times/ttir"].differs
    assert rows([timed(0.100), timed(0.250)])["Stage times/ttir"].differs


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0 B"), (1023, "1,023 B"), (49_152, "48.0 KB"), (2_000_000, "1,953.1 KB")]
)
def test_bytes_in_words(value: int, words: str) -> None:
    assert byte_words(value) == words


@pytest.mark.parametrize(("value", "words"), [(0.0032, "3.2 ms"), (0.12, "120 ms"), (1.839, "1.84 s")])
def test_seconds_in_words(value: float, words: str) -> None:
    assert time_words(value) == words
