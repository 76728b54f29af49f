"""The NVIDIA and AMD chips that Triton's path compiles for.

NVIDIA's shared memory a block and multiprocessors are from its CUDA C programming guide, table of technical
specifications by compute capability, and the chips' data sheets. AMD's LDS and compute units are from ROCm's table of
hardware specifications (https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html); on RDNA, HIP counts work
group processors, which are two compute units each, and gives a work group half of their LDS. Launch code reads these
to choose grids and tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipelines.trace import Target


@dataclass(frozen=True)
class Backend:
    """A back end of Triton: what its assembly and its machine code are called, as artifacts and as stages.

    ``late`` are the texts that are made after the assembly, while the page shows all that came before.
    """

    name: Literal["cuda", "hip"]
    vendor: str
    assembly: str
    binary: str
    late: tuple[str, ...] = ()


BACKENDS = {
    "cuda": Backend("cuda", "NVIDIA", "ptx", "cubin", ("ptxas-log", "sass")),
    "hip": Backend("hip", "AMD", "amdgcn", "hsaco"),
}
ASSEMBLIES = frozenset(backend.assembly for backend in BACKENDS.values())
BINARIES = frozenset(backend.binary for backend in BACKENDS.values())


@dataclass(frozen=True)
class Chip:
    """A target with the properties that launch code asks for; ``shared`` is the largest block's bytes."""

    arch: str
    name: str
    shared: int
    multiprocessors: int
    backend: Backend = BACKENDS["cuda"]
    warp_size: int = 32

    @property
    def triton_arch(self) -> int | str:
        """The chip as Triton's ``GPUTarget`` names it: 90, ``gfx942``."""
        return int(self.arch.removeprefix("sm_")) if self.backend.name == "cuda" else self.arch

    @property
    def target(self) -> Target:
        """The target as a manifest names it."""
        return Target(arch=self.arch, backend=self.backend.name, warp_size=self.warp_size)

    def properties(self) -> dict[str, int | str]:
        """Return what Triton's driver reports of a device; clocks are in kHz, the bus in bits."""
        known: dict[str, int | str] = {
            "max_shared_mem": self.shared,
            "max_num_regs": 65536,
            "multiprocessor_count": self.multiprocessors,
            "warpSize": self.warp_size,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 5120,
        }
        if self.backend.name == "hip":
            known |= {"arch": self.arch, "max_threads_per_sm": 2048, "cooperativeLaunch": 1}
        return known


_HIP = BACKENDS["hip"]
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
        Chip("gfx90a", "MI210, MI250", 65_536, 104, _HIP, 64),
        Chip("gfx942", "MI300X, MI325X", 65_536, 304, _HIP, 64),
        Chip("gfx950", "MI350X, MI355X", 163_840, 256, _HIP, 64),
        Chip("gfx1100", "RX 7900", 65_536, 48, _HIP),
        Chip("gfx1201", "RX 9070", 65_536, 32, _HIP),
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
