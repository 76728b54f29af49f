"""Kernels in the styles of public libraries: all launches found, as Triton's JIT makes them, all compiled that can be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
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
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quick]:
    compiler = Quick(tmp_path_factory.mktemp("slots"))
    compiler.start()
    yield compiler
    compiler.close()


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Independent]:
    process = Independent(tmp_path_factory.mktemp("independent"))
    yield process
    process.close()


@pytest.fixture(scope="module")
def compiled(compiler: Quick) -> dict[str, list[Compiled]]:
    """Every launch of a source for sm_90, by the source's name, filled by the first test that asks."""
    return {}


def for_sm_90(compiler: Quick, compiled: dict[str, list[Compiled]], source: Source) -> list[Compiled]:
    if source.name not in compiled:
        (first,) = compile_all(compiler, [source.spec("sm_90")])
        rest = [source.spec("sm_90", launch) for launch in range(1, len(first.launches))]
        compiled[source.name] = [first, *compile_all(compiler, rest)]
    return compiled[source.name]


def test_the_table_names_every_source_and_enough_kernels() -> None:
    assert [source.name for source in SOURCES] == list(LAUNCHES)
    assert sum(len(kernels) for kernels in LAUNCHES.values()) >= 120
    assert set(REFUSED) <= {(name, kernel) for name, kernels in LAUNCHES.items() for kernel in kernels}


@EVERY
def test_all_launches_are_captured_and_compile_for_sm_90(
    compiler: Quick, compiled: dict[str, list[Compiled]], source: Source
) -> None:
    made = for_sm_90(compiler, compiled, source)
    assert Counter(launch.kernel for launch in made[0].launches) == LAUNCHES[source.name]
    for each in made:
        assert each.manifest.status == "ok", (each.manifest.kernel.name, each.manifest.failure)
        assert [d.message for d in each.manifest.diagnostics if "launch" in d.message] == []


@EVERY
def test_launches_are_what_tritons_own_jit_makes(
    compiler: Quick, compiled: dict[str, list[Compiled]], independent: Independent, source: Source
) -> None:
    ours = [told(each.manifest) for each in for_sm_90(compiler, compiled, source)]
    theirs = independent.launches(source, "sm_90")
    keys = [each.pop("key") for each in theirs]
    assert ours == theirs
    # Where two keys are alike, it is two functions of one name, or options that come to the same.
    assert len(set(keys)) > len(LAUNCHES[source.name]) // 2


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
    for index, error in zip(
        failures, independent.errors(source, target, list(failures)) if failures else [], strict=True
    ):
        reason = REFUSED[source.name, kernels[index]][target]
        assert reason in failures[index].message
        assert error is not None
        assert reason in error
