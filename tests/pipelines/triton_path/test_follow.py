"""What a page is told while a compilation runs; the child can forge every byte of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.dumps.mlir import read_records
from pipelines.dumps.nesting import parse_pipeline, place
from pipelines.sandbox import Slot
from pipelines.trace import MAX_STAGES
from pipelines.triton_path import follow
from pipelines.triton_path.follow import ARTIFACTS, MAX_NAME, MAX_RUNS, Follower, Tail
from pipelines.triton_path.output import read_output
from pipelines.triton_path.spec import Event

TTIR = (
    "any(inline{default-pipeline=canonicalize max-iterations=4 },triton-rewrite-tensor-descriptor-to-pointer,"
    "canonicalize{a=b region-simplify=normal},triton-combine,triton-reorder-broadcast,cse,symbol-dce,"
    "triton-loop-unroll)"
)
TTGIR = "any(convert-triton-to-tritongpu{num-ctas=1},tritongpu-coalesce,tritongpu-F32DotTC{emu-tf32=true})"
HEADER = b"// -----// IR Dump Before CSE (cse) //----- //\n"


def line(event: str, **more: Any) -> bytes:
    return json.dumps({"event": event, "at": 0.0, **more}).encode() + b"\n"


RUNS = line("pipeline", name="make_ttir", passes=TTIR) + line("pipeline", name="make_ttgir", passes=TTGIR)


class Followed:
    """A follower at a slot's directory, and what it told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.slot = Slot(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        self.events: list[Event] = []
        self.follower = Follower(self.events.append)

    def add(self, name: str, data: bytes) -> None:
        with (self.path / name).open("ab") as file:
            file.write(data)
        self.follower.poll(self.slot)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]


@pytest.fixture
def follower(tmp_path: Path) -> Any:
    made = Followed(tmp_path)
    yield made
    os.close(made.slot.descriptor)


def test_a_line_that_is_being_written_is_left_for_later(follower: Followed):
    whole = line("stage-begin", stage="ttir") + line("stage-end", stage="ttir")
    for size in range(len(whole) + 1):
        (follower.path / "events.jsonl").write_bytes(whole[:size])
        output = read_output(follower.slot)
        assert (output.begun is not None) == (size > whole.index(b"\n"))
        assert len(output.times) == (size == len(whole))


def test_an_honest_compilation_is_told_as_it_will_be_placed(follower: Followed, golden: Path):
    dump = (golden / "triton-3.9-scale-sm80.mlir").read_bytes()
    follower.add("events.jsonl", RUNS)
    for start in range(0, len(dump), 1000):
        follower.add("dump.mlir", dump[start : start + 1000])
    headers = [record.header for record in read_records(dump)]
    places = place(headers, [parse_pipeline(TTIR), parse_pipeline(TTGIR)])
    assert [p["name"] for p in follower.of("pass")] == [header.name for header in headers]
    assert [p["stage"] for p in follower.of("pass")] == [("ttir", "ttgir")[at.run] for at in places]
    first_of_run = [next(i for i, at in enumerate(places) if at.run == run) for run in (0, 1)]
    for told, at in zip(follower.of("pass"), places, strict=True):
        assert told["parent"] == (None if at.parent is None else at.parent - first_of_run[at.run] + 1)


def test_stages_and_artifacts_are_told_once_and_lines_may_come_in_pieces(follower: Followed):
    whole = line("stage-begin", stage="ttir") + line("stage-end", stage="ptx") + line("stage-begin", stage="ttgir")
    for n in range(len(whole)):
        follower.add("events.jsonl", whole[n : n + 1])
    follower.add("events.jsonl", whole)
    assert follower.of("stage") == [{"stage": "ttir"}, {"stage": "ttgir"}]
    assert follower.of("artifact") == [{"name": "ptx"}]


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_polling_leaves_no_descriptor_open(tmp_path: Path, follower: Followed):
    (tmp_path / "full").write_bytes(b"x" * 100)
    (tmp_path / "folder").mkdir()
    before = _descriptors()
    for name in ("full", "missing", "folder"):
        tail = Tail(name, 10)
        assert sum(len(tail.read(follower.slot)) for _ in range(50)) == (10 if name == "full" else 0)
    for _ in range(50):
        follower.add("events.jsonl", RUNS)
        follower.add("dump.mlir", HEADER)
    assert _descriptors() == before


FORGERIES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "stages": ("events.jsonl", lambda n: line("stage-begin", stage=f"s{n}")),
    "one stage": ("events.jsonl", lambda _: line("stage-begin", stage="ttir")),
    "artifacts": ("events.jsonl", lambda n: line("stage-end", stage=ARTIFACTS[n % 3])),
    "runs": ("events.jsonl", lambda _: line("pipeline", name="make_ttir", passes="any(cse)")),
    "passes": ("dump.mlir", lambda _: HEADER),
    "steps": ("dump.mlir", lambda _: b"// -----// A internal IR Dump After: b\n"),
    "failures": ("dump.mlir", lambda _: b"// -----// IR Dump After CSE Failed (cse) //----- //\n"),
    "long names": ("dump.mlir", lambda _: HEADER.replace(b"(cse)", b"(" + b"x" * 10_000 + b")")),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("runs", [b"", RUNS])
def test_forged_progress_is_bounded(follower: Followed, monkeypatch: pytest.MonkeyPatch, forgery: str, runs: bytes):
    monkeypatch.setattr(follow, "MAX_PASSES", 50)
    name, make = FORGERIES[forgery]
    follower.add("events.jsonl", runs)
    for start in range(0, 600, 100):
        follower.add(name, b"".join(make(n) for n in range(start, start + 100)))
    made = follower.follower
    assert len(follower.of("pass")) <= 50
    assert len(made._waiting) <= 50
    assert len(made._runs) <= MAX_RUNS
    assert len(follower.of("stage")) + len(follower.of("artifact")) <= MAX_STAGES + len(ARTIFACTS)
    assert all(len(told["name"]) <= MAX_NAME for told in follower.of("pass"))


def test_a_line_that_never_ends_is_dropped(follower: Followed):
    for _ in range(6):
        follower.add("events.jsonl", b"x" * (1 << 19))
        assert len(follower.follower._rest) <= follow._MAX_LINE
    follower.add("events.jsonl", b"\n" + line("stage-begin", stage="ttir"))
    assert follower.of("stage") == [{"stage": "ttir"}]


@pytest.mark.parametrize(
    "data",
    [
        b"[]\n",
        b"7\n",
        b'"event"\n',
        b"null\n",
        b"[" * 50_000 + b"\n",
        b"9" * 5_000 + b"\n",
        b"\xff\n",
        line("pipeline"),
        line("pipeline", name=1, passes="a"),
        line("pipeline", name="make_ttir", passes=["a"]),
        line("stage-begin"),
        line("stage-begin", stage=None),
        line("stage-begin", stage="../x"),
        line("stage-begin", stage="S" * 100),
        line("stage-begin", stage={"a": 1}),
        line("stage-end", stage="sass"),
        b'{"event": [1], "stage": "ttir"}\n',
        b'{"event": {"a": 1}, "stage": "ttir"}\n',
    ],
)
def test_what_is_no_event_says_nothing(follower: Followed, data: bytes):
    follower.add("events.jsonl", data)
    assert follower.events == []
    follower.add("events.jsonl", line("stage-begin", stage="ttir"))
    assert follower.of("stage") == [{"stage": "ttir"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9), st.lists, max_leaves=4
)
LINES = st.binary(max_size=40) | st.builds(
    lambda fields: json.dumps(fields).encode() + b"\n",
    st.dictionaries(
        st.sampled_from(["event", "stage", "name", "passes", "at"]),
        JSON | st.sampled_from(["pipeline", "stage-begin", "stage-end", "ttir", "ptx", "make_ttir", "any(cse)"]),
    ),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["events.jsonl", "dump.mlir", "launches.json"]), LINES | st.just(HEADER))))
def test_any_bytes_give_events_that_are_json(follower: Followed, pieces: list[tuple[str, bytes]]):
    for name, data in pieces:
        follower.add(name, data)
    for event in follower.events:
        json.dumps(event.data, allow_nan=False)
