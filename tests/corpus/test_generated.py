"""Random kernels compile, or end in the error that Triton itself gives; never in one of the server's own."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.corpus.generator import kernels
from tests.corpus.library import DIED, Independent, Quick, Source


@pytest.mark.timeout(600)
@given(text=kernels())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_random_kernel_ends_as_with_triton_alone(compiler: Quick, independent: Independent, text: str) -> None:
    source = Source("generated", "kernel.py", {"kernel.py": text})
    made = compiler.compile(source.spec("sm_80"), lambda _: None)
    (error,) = independent.errors(source, "sm_80", [0])
    failure = made.manifest.failure
    assert (failure is None) == (error is None), (failure, error)
    if failure is not None and error is not None:
        assert failure.kind == ("abort" if error is DIED else "error")
        if error is not DIED:
            said = error.splitlines()[-1]
            # Triton says only that a pass failed; what the pass said of it is in the trace.
            assert said in failure.message or ("PassManager::run failed" in said and failure.address)
            assert any(each.severity == "error" for each in made.manifest.diagnostics)
