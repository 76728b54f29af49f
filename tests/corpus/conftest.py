"""The corpus's compiler, which leaves SASS out, and the process that it is held against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.corpus.library import Independent, Quick


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quick]:
    compiler = Quick(tmp_path_factory.mktemp("slots"))
    compiler.start()
    yield compiler
    compiler.close()


@pytest.fixture(scope="session")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Independent]:
    process = Independent(tmp_path_factory.mktemp("independent"))
    yield process
    process.close()
