"""The child with the real torch already imported; everything else is ``child``'s."""

from __future__ import annotations

from pathlib import Path

from pipelines.triton_path import child

FUNCTIONS = (f"{child.__name__}:compile_kernel",)


def warm(directory: Path) -> None:
    """Warm Triton, then torch: once torch is there, the first launch would make it believe in a GPU for good."""
    child.warm(directory)
    from pipelines.kernels import real_torch

    real_torch.warm()
