"""From a dump, pass managers' pipelines and stage outputs to the stages of a trace.

Triton prints the IR before each pass only, so what a pass left is what the next pass outside it received, and what
the last pass of a stage left is the stage's output. What a pass did before it ran another inside itself is kept as a
step of its own, ``before <inner pass>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.dumps.mlir import Header, Record
from pipelines.dumps.nesting import parse_pipeline, place
from pipelines.hook.folder import FLUSH_SYMBOL
from pipelines.trace import MAX_PASSES, Pass, Stage

STAGES = ("ttir", "ttgir", "llvm-dialect")
_RUNS = {
    "make_ttir": "ttir",
    "make_ttgir_early": "ttgir",
    "make_ttgir": "ttgir",
    "gluon_to_ttgir": "ttgir",
    "make_llir": "llvm-dialect",
}

Keep = Callable[[bytes], str]


@dataclass
class _Began:
    """A pass of the dump while its outcome is looked for; ``after`` is the text it left."""

    header: Header
    before: bytes
    stage: str
    run: int
    parent: int | None
    after: bytes | None = None
    failed: bool = False
    ordinal: int = 0


def is_flush(header: Header) -> bool:
    """Say whether what follows was printed by this project, only to push out what came before."""
    return header.function == FLUSH_SYMBOL


def stage_of_run(name: str) -> str:
    """Return the stage that a pass manager's run belongs to, by the name that Triton gives the run."""
    return _RUNS.get(name.partition(".")[0], "llvm-dialect")


def build_stages(
    records: Sequence[Record],
    runs: Sequence[tuple[str, str]],
    ended: int,
    outputs: Mapping[str, bytes],
    keep: Keep,
) -> tuple[Stage, ...]:
    """Return the stages that ran.

    Args:
        records: the dump, in order.
        runs: each pass manager's run name and pipeline string, in order.
        ended: how many of the runs, from the first, came to their end.
        outputs: the stages that were completed, with their last IR.
        keep: stores a text and returns its digest.
    """
    began = _passes([r for r in records if r.header.when == "before"], runs)
    _settle(began, outputs, ended)
    steps = _failures_and_steps(records, began)
    stages = []
    for name in STAGES:
        members = [(i, item) for i, item in enumerate(began) if item.stage == name]
        if members:
            stages.append(_stage(name, members, steps, began, keep))
    return tuple(stages)


def _passes(records: Sequence[Record], runs: Sequence[tuple[str, str]]) -> list[_Began]:
    places = place([r.header for r in records], [parse_pipeline(text) for _, text in runs])
    names = [stage_of_run(name) for name, _ in runs] or ["ttir"]
    return [
        _Began(record.header, record.text, names[min(at.run, len(names) - 1)], at.run, at.parent)
        for record, at in zip(records, places, strict=True)
    ]


def unprinted_stage(records: Sequence[Record], runs: Sequence[tuple[str, str]], ended: int) -> str | None:
    """Return a stage whose run came to its end although the dump lacks one of its passes, or None."""
    began = _passes([r for r in records if r.header.when == "before"], runs)
    for run, (name, pipeline) in enumerate(runs[:ended]):
        nested = {item.anchor for item in parse_pipeline(pipeline)} - {""}
        planned = sum(not item.anchor for item in parse_pipeline(pipeline))
        printed = sum(b.run == run and b.parent is None and b.header.anchor not in nested for b in began)
        if printed < planned:
            return stage_of_run(name)
    return None


def _settle(began: list[_Began], outputs: Mapping[str, bytes], ended: int) -> None:
    """Give every pass the text it left, walking backwards; one without a text failed unless its run went on."""
    after: dict[str, bytes | None] = {name: outputs.get(name) for name in STAGES}
    inner: bytes | None = None
    for index in range(len(began) - 1, -1, -1):
        item = began[index]
        last_inside = index + 1 == len(began) or began[index + 1].parent is None
        outside = after[item.stage]
        if item.parent is None:
            item.after = outside
            after[item.stage] = item.before
        else:
            item.after = outside if last_inside else inner
        inner = item.before
        item.failed = item.after is None and item.run >= ended


def _failures_and_steps(records: Sequence[Record], began: list[_Began]) -> dict[int, list[Record]]:
    """Attach what failing passes left; return the inner steps by the index of the pass that printed them."""
    steps: dict[int, list[Record]] = {}
    latest: dict[str, int] = {}
    current = -1
    for record in records:
        when = record.header.when
        if when == "before":
            current += 1
            latest[record.header.name] = current
        elif current >= 0 and when == "step":
            owner = began[current].parent
            steps.setdefault(current if owner is None else owner, []).append(record)
        elif when == "failed":
            at = latest.pop(record.header.name, None)
            if at is not None:
                _fail(began, at, record.text)
    return steps


def _fail(began: Sequence[_Began], at: int, text: bytes) -> None:
    """Mark the pass that failed; one that ran inside it and finished left what the parent failed with."""
    began[at].after, began[at].failed = text, True
    for item in began[at + 1 :]:
        if item.parent == at and item.after is None:
            item.after, item.failed = text, False


def _stage(
    name: str,
    members: Sequence[tuple[int, _Began]],
    steps: Mapping[int, list[Record]],
    began: Sequence[_Began],
    keep: Keep,
) -> Stage:
    passes: list[Pass] = []
    stored: dict[int, str] = {}

    def digest(text: bytes | None) -> str | None:
        if text is None:
            return None
        key = id(text)
        if key not in stored:
            stored[key] = keep(text)
        return stored[key]

    for index, item in members:
        owner = began[item.parent] if item.parent == index - 1 else None
        if owner and owner.before != item.before:
            passes.append(_step(len(passes) + 1, owner, f"before {item.header.name}", digest(item.before)))
        item.ordinal = len(passes) + 1
        parent = began[item.parent].ordinal if item.parent is not None else None
        header = item.header
        passes.append(
            Pass(
                ordinal=item.ordinal,
                parent=parent,
                name=header.name,
                argument=header.argument,
                anchor=header.anchor,
                function=header.function,
                text=digest(item.after),
                failed=item.failed,
            )
        )
        for record in steps.get(index, []):
            passes.append(_step(len(passes) + 1, item, record.header.name, digest(record.text)))
    return Stage(name=name, input=digest(members[0][1].before), passes=tuple(passes[:MAX_PASSES]))


def _step(ordinal: int, owner: _Began, step: str, text: str | None) -> Pass:
    return Pass(
        ordinal=ordinal,
        parent=owner.ordinal,
        name=owner.header.name,
        argument=owner.header.argument,
        anchor=owner.header.anchor,
        step=step,
        text=text,
    )
