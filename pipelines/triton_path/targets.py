"""The NVIDIA chips that Triton's path compiles for.

Shared memory a block and multiprocessors are from NVIDIA's CUDA C programming guide, table of technical
specifications by compute capability, and the chips' data sheets; launch code reads them to choose grids and tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.trace import Target


@dataclass(frozen=True)
class Chip:
    """A target with the properties that launch code asks for; ``shared`` is the largest block's bytes."""

    arch: str
    name: str
    shared: int
    multiprocessors: int

    @property
    def capability(self) -> int:
        """The number in ``sm_90``."""
        return int(self.arch.removeprefix("sm_"))

    @property
    def target(self) -> Target:
        """The target as a manifest names it."""
        return Target(arch=self.arch, backend="cuda", warp_size=32)

    def properties(self) -> dict[str, int]:
        """Return what Triton's driver reports of a device; clocks are in kHz, the bus in bits."""
        return {
            "max_shared_mem": self.shared,
            "max_num_regs": 65536,
            "multiprocessor_count": self.multiprocessors,
            "warpSize": 32,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 5120,
        }


CHIPS = {
    chip.arch: chip
    for chip in (
        Chip("sm_75", "T4, RTX 20", 65_536, 40),
        Chip("sm_80", "A100", 166_912, 108),
        Chip("sm_86", "A10, RTX 30", 101_376, 84),
        Chip("sm_89", "L4, L40, RTX 40", 101_376, 128),
        Chip("sm_90", "H100, H200", 232_448, 132),
        Chip("sm_100", "B200", 232_448, 148),
        Chip("sm_120", "RTX 50, RTX PRO", 101_376, 170),
    )
}
DEFAULT_TARGET = "sm_90"


class UnknownTargetError(ValueError):
    """A target that is not in the table."""


def chip(arch: str) -> Chip:
    """Return a chip; raise UnknownTargetError naming those there are."""
    if arch not in CHIPS:
        raise UnknownTargetError(f"there is no target {arch}; choose from {', '.join(CHIPS)}")
    return CHIPS[arch]
