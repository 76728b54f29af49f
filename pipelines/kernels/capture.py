"""Run a source's own launch code without a GPU and keep what it launches. Runs only inside a confined child.

A stand-in takes the place of Triton's driver, and ``JITFunction._do_compile`` records instead of compiling, so
the exact types, divisibility, folded values and options are those that Triton itself derives from the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

MAX_LAUNCHES = 512


@dataclass
class Launch:
    """A distinct launch: everything ``triton.compile`` needs, and what the launch code passed."""

    function: Any
    signature: dict[str, Any]
    constexprs: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], Any]
    options: Any
    config: str | None
    grid: tuple[int, ...] | None = None
    values: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def key(self) -> str:
        """What makes this launch distinct from another."""
        return repr((id(self.function), self.signature, self.constexprs, self.attributes, self.options.hash()))


class TooManyLaunchesError(RuntimeError):
    """The launch code makes more distinct launches than are kept."""


class CapturedKernel:
    """What a launch gets in place of a compiled kernel: runs nothing, answers what launch code asks of one."""

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024
    function = 0
    packed_metadata = ()
    asm: dict[str, str] = {}  # noqa: RUF012 - mirrors CompiledKernel's attribute

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.name = launch.function.__name__
        self.metadata = SimpleNamespace(
            name=self.name, shared=0, num_warps=launch.options.num_warps, num_ctas=launch.options.num_ctas
        )

    def _init_handles(self) -> None:
        """Nothing to load."""

    def launch_metadata(self, *_: Any) -> None:
        """No profiler listens here."""

    def run(self, x: int, y: int, z: int, *rest: Any) -> None:
        """Keep the grid and the values of the first launch; six driver arguments come before the values."""
        if self._launch.grid is None:
            self._launch.grid = (int(x), int(y), int(z))
            self._launch.values = rest[6:]

    def __getitem__(self, grid: Any) -> Any:
        """A kernel got from ``warmup`` can be launched directly."""

        def launch(*args: Any, **_: Any) -> None:
            dims = (*tuple(grid), 1, 1)[:3]
            self.run(*dims, *[None] * 6, *args)

        return launch


class CaptureDriver:
    """Stands for Triton's driver: names the target, has one device, and benches by calling once."""

    def __init__(self, target: GPUTarget, properties: dict[str, int]) -> None:
        self._target = target
        self._properties = properties
        self.utils = SimpleNamespace(get_device_properties=lambda _=0: dict(properties))

    def get_current_target(self) -> GPUTarget:
        """Return the target that was asked for."""
        return self._target

    def get_current_device(self) -> int:
        """Return the only device."""
        return 0

    def set_current_device(self, _: int) -> None:
        """There is only one."""

    def get_current_stream(self, _: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_benchmarker(self) -> Any:
        """Return a bench that calls once, so that every autotune config is launched."""
        return _bench_once

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache to flush."""

    def clear_cache(self, _: Any) -> None:
        """There is no cache to flush."""

    def get_active_torch_device(self) -> Any:
        """Refuse, naming what is missing."""
        raise RuntimeError(
            "the launch code asks for torch's device, and torch is not here; launch with plain objects "
            "that have dtype and data_ptr(), or give the arguments"
        )


def _bench_once(call: Any, *_: Any, **__: Any) -> list[float]:
    call()
    return [1.0, 1.0, 1.0]


class Capture:
    """Installs the stand-ins and collects distinct launches in the order in which they were made."""

    def __init__(self, target: GPUTarget, properties: dict[str, int]) -> None:
        self._driver = CaptureDriver(target, properties)
        self._config: str | None = None
        self._launches: dict[str, Launch] = {}

    @property
    def launches(self) -> list[Launch]:
        """The distinct launches so far."""
        return list(self._launches.values())

    def install(self) -> None:
        """Replace the driver and the steps of Triton that would need one."""
        triton.runtime.driver.set_active(self._driver)
        triton.testing.do_bench = _bench_once
        self._uncompiled, self._unbenched = JITFunction._do_compile, Autotuner._bench
        capture = self

        def record(
            self: Any, _: Any, signature: Any, __: Any, constexprs: Any, options: Any, attrs: Any, ___: Any
        ) -> Any:
            return capture._record(Launch(self, signature, constexprs, attrs, options, capture._config))

        def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
            self._do_bench = _bench_once
            capture._config = str(config)
            try:
                return capture._unbenched(self, *args, config=config, **meta)
            finally:
                capture._config = None

        JITFunction._do_compile = record
        Autotuner._bench = bench

    def remove(self) -> None:
        """Give Triton its own compile step back."""
        JITFunction._do_compile = self._uncompiled
        Autotuner._bench = self._unbenched

    def _record(self, launch: Launch) -> CapturedKernel:
        known = self._launches.setdefault(launch.key, launch)
        if len(self._launches) > MAX_LAUNCHES:
            raise TooManyLaunchesError(f"the launch code makes more than {MAX_LAUNCHES} distinct launches")
        return CapturedKernel(known)
