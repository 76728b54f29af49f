"""What several rooms' tests share: the golden folder and one warm compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pipelines.triton_path.compile import Compiler

# A loaded machine is no failure: pytest-timeout bounds a test, nothing bounds one example.
settings.register_profile("loupe", deadline=None)
settings.load_profile("loupe")

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).resolve().parent / "golden"
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of kept dumps."""
    return GOLDEN


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiler]:
    """The default toolchain, warm, for the whole session."""
    from pipelines.triton_path.compile import Compiler  # parsers' tests need no compiler

    compiler = Compiler(tmp_path_factory.mktemp("slots"))
    compiler.start()
    yield compiler
    compiler.close()
