"""Kernels in the styles of public libraries: all launches found, as Triton's own JIT makes them, and compiled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pipelines.trace import Argument, Manifest
from pipelines.triton_path.spec import Compiled
from tests.corpus.expected import LAUNCHES, REFUSED
from tests.corpus.library import Independent, Quick, Source, compile_all, sources

SOURCES = sources()
EVERY = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
FURTHER = ("sm_80", "sm_100", "gfx942")


@pytest.fixture(scope="module")
def compiled(compiler: Quick) -> Callable[[Source], list[Compiled]]:
    """Compiles every launch of a source for sm_90, once for all tests that ask."""
    made: dict[str, list[Compiled]] = {}

    def compiled(source: Source) -> list[Compiled]:
        if source.name not in made:
            (first,) = compile_all(compiler, [source.spec("sm_90")])
            rest = [source.spec("sm_90", launch) for launch in range(1, len(first.launches))]
            made[source.name] = [first, *compile_all(compiler, rest)]
        return made[source.name]

    return compiled


def test_the_table_names_every_source_and_enough_kernels() -> None:
    assert [source.name for source in SOURCES] == list(LAUNCHES)
    assert sum(len(kernels) for kernels in LAUNCHES.values()) >= 120
    assert set(REFUSED) <= {(name, kernel) for name, kernels in LAUNCHES.items() for kernel in kernels}


@EVERY
def test_all_launches_are_captured_and_compile_for_sm_90(
    compiled: Callable[[Source], list[Compiled]], source: Source
) -> None:
    made = compiled(source)
    assert Counter(launch.kernel for launch in made[0].launches) == LAUNCHES[source.name]
    for each in made:
        assert each.manifest.status == "ok", (each.manifest.kernel.name, each.manifest.failure)
        assert [d.message for d in each.manifest.diagnostics if "launch" in d.message] == []


@EVERY
def test_launches_are_what_tritons_own_jit_makes(
    compiled: Callable[[Source], list[Compiled]], independent: Independent, source: Source
) -> None:
    ours = [told(each.manifest) for each in compiled(source)]
    assert ours == independent.launches(source, "sm_90")


def told(manifest: Manifest) -> dict[str, Any]:
    """Write what the trace says of its launch as the independent process does."""
    return {
        "kernel": manifest.kernel.name,
        "arguments": [argument(each) for each in manifest.kernel.arguments],
        "options": json.loads(json.dumps(manifest.options)),
    }


def argument(found: Argument) -> Any:
    if found.members:
        return [argument(member) for member in found.members]
    if found.type == "constexpr":
        return {"value": found.value}
    return {"type": found.type, "divisibility": found.divisibility}


@pytest.mark.parametrize("target", FURTHER)
@EVERY
def test_kernels_compile_for_further_targets_as_far_as_triton_itself(
    compiler: Quick, independent: Independent, source: Source, target: str
) -> None:
    """Each kernel's first launch; a refusal is in the table, and Triton alone gives the same."""
    (first,) = compile_all(compiler, [source.spec(target)])
    kernels = [launch.kernel for launch in first.launches]
    assert Counter(kernels) == LAUNCHES[source.name]
    indices = [i for i, kernel in enumerate(kernels) if kernel not in kernels[:i]]
    made = [first, *compile_all(compiler, [source.spec(target, i) for i in indices[1:]])]
    failures = {i: each.manifest.failure for i, each in zip(indices, made, strict=True) if each.manifest.failure}
    expected = {i for i in indices if target in REFUSED.get((source.name, kernels[i]), {})}
    assert failures.keys() == expected, failures
    errors = independent.errors(source, target, list(failures)) if failures else []
    for index, error in zip(failures, errors, strict=True):
        reason = REFUSED[source.name, kernels[index]][target]
        assert reason in failures[index].message
        assert error is not None
        assert reason in error
