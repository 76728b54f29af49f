"""What ``loupe compile --llvm-passes --pass-times`` prints of what it added to its traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.added import LlvmPassesReply, PassTimesReply

    Told = Sequence[tuple[str, LlvmPassesReply | PassTimesReply]]

SLOWEST = 10


def lines(told: Told) -> Iterator[str]:
    """Yield what was added to each trace, by its id; what could not be is left to ``failures``."""
    from app.added import PassTimesReply

    for trace, reply in told:
        if reply.status == "done":
            yield from _pass_times(trace, reply) if isinstance(reply, PassTimesReply) else _llvm_passes(trace, reply)


def failures(told: Told) -> Iterator[str]:
    """Yield why something was not added."""
    for trace, reply in told:
        if reply.status != "done":
            yield f"/t/{trace}: {reply.kind}: {reply.message}"


def _llvm_passes(trace: str, reply: LlvmPassesReply) -> Iterator[str]:
    for stage in reply.stages:
        yield f"{stage.name}: {len(stage.passes)} passes; loupe show {trace} --pass {stage.name}:1"
    if reply.note:
        yield reply.note


def _pass_times(trace: str, reply: PassTimesReply) -> Iterator[str]:
    if reply.times is None:
        return
    yield f"/t/{trace}: the slowest passes, medians of {reply.times.runs} compilations without dumps"
    for item in sorted(reply.times.passes, key=lambda each: -each.median)[:SLOWEST]:
        spread = f"{1000 * item.least:.1f} to {1000 * item.most:.1f}"
        yield f"  {item.address:<18}  {1000 * item.median:>8.1f} ms  ({spread})"
