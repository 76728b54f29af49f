"""How long MLIR's passes take: a trace's input is compiled again a few times, without dumps, with MLIR's timing on.

A report lists pass managers' passes in order and by class; their pipeline strings list the same passes in the same
order by name, as the trace does.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Callable, Sequence

from pipelines.addenda import PassTime, PassTimes, StageTime
from pipelines.dumps.nesting import parse_names
from pipelines.dumps.timing import Timed, parse_reports
from pipelines.trace import Manifest, Stage
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.llvm_passes import NotAttachedError
from pipelines.triton_path.output import MAX_STDERR, ForgedOutputError, Output, read_output
from pipelines.triton_path.spec import CompileSpec, Event
from pipelines.triton_path.stages import stage_of_run

RUNS = 3


def time_passes(
    compiler: Compiler, spec: CompileSpec, manifest: Manifest, on_event: Callable[[Event], None]
) -> PassTimes:
    """Time a trace's passes over ``RUNS`` compilations.

    Raises:
        NotAttachedError: a compilation printed no times, or ran other passes than the trace has.
    """
    runs: list[tuple[dict[str, float], list[str]]] = []
    stages: list[dict[str, float]] = []
    for number in range(1, RUNS + 1):
        output = _compile(compiler, spec)
        runs.append(match(manifest, output.runs, parse_reports(output.stderr)))
        stages.append({item.stage: item.seconds for item in output.times})
        on_event(Event("run", {"number": number, "of": RUNS}))
    if any(set(found) != set(runs[0][0]) for found, _ in runs):
        raise NotAttachedError("The compilations ran different passes, so their times cannot be told together.")
    passes = tuple(_spread(address, [found[address] for found, _ in runs]) for address in runs[0][0])
    if not passes:
        raise NotAttachedError("The compiler printed times for no pass of this trace.")
    common = [name for name in stages[0] if all(name in each for each in stages)]
    return PassTimes(
        revision=1,
        runs=RUNS,
        passes=passes,
        stages=tuple(
            StageTime(stage=name, seconds=round(statistics.median(each[name] for each in stages), 6)) for name in common
        ),
        unmapped=tuple(dict.fromkeys(name for _, names in runs for name in names)),
    )


def _compile(compiler: Compiler, spec: CompileSpec) -> Output:
    with compiler.compile_again(spec, {"time_passes": True}, compiler.limits, None) as finished:
        try:
            output = read_output(finished.slot)
        except ForgedOutputError as error:
            raise NotAttachedError(f"A compilation's files cannot be read: {error}.") from None
        printed = finished.slot.read("timing.out", MAX_STDERR) or b""
    output.stderr = printed.decode("utf-8", errors="replace")
    return output


def match(
    manifest: Manifest, runs: Sequence[tuple[str, str]], reports: Sequence[Sequence[Timed]]
) -> tuple[dict[str, float], list[str]]:
    """Give each timed pass to a pass of the trace: seconds by address, and the names of what has no place there.

    ``runs`` are the pass managers' names and pipeline strings, which ``reports`` follow one by one. A report whose
    passes are not those of its pipeline is left out whole, since its order says nothing.
    """
    found: dict[str, float] = {}
    unmapped: list[str] = []
    last: dict[str, int] = {}
    places = {stage.name: _places(stage) for stage in manifest.stages}
    for (run, pipeline), report in zip(runs, reports, strict=False):
        stage = stage_of_run(run)
        for name, item in _named(report, parse_names(pipeline)):
            ordinals = places.get(stage, {}).get(name, [])
            index = bisect_right(ordinals, last.get(stage, 0))
            if index == len(ordinals):
                unmapped.append(item.name)
                continue
            last[stage] = ordinals[index]
            found[f"{stage}:{ordinals[index]}"] = item.seconds
    return found, unmapped


def _named(report: Sequence[Timed], planned: Sequence[tuple[str, str]]) -> list[tuple[str, Timed]]:
    """Name a report's passes as their pipeline does; a name that fits no pass of a trace where the two disagree."""
    named: list[tuple[str, Timed]] = []
    fits = True
    for item in report:
        ahead = planned[len(named) : len(named) + max(1, len(item.passes))]
        if not item.anchor:
            fits = fits and [anchor for _, anchor in ahead] == [""]
            named += [(name, item) for name, _ in ahead]
        elif [anchor for _, anchor in ahead] == [item.anchor] * len(item.passes):
            named += zip((name for name, _ in ahead), item.passes, strict=True)
        # Any other pipeline was run by the pass before it, whose time includes it.
    if fits and len(named) == len(planned):
        return named
    return [("", each) for item in report for each in (item.passes or [item])]


def _places(stage: Stage) -> dict[str, list[int]]:
    """Return the ordinals of the passes that ran inside no other, by name."""
    found: dict[str, list[int]] = {}
    for item in stage.passes:
        if item.parent is None:
            found.setdefault(item.name, []).append(item.ordinal)
    return found


def _spread(address: str, seconds: Sequence[float]) -> PassTime:
    return PassTime(address=address, median=statistics.median(seconds), least=min(seconds), most=max(seconds))
