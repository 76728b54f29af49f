"""What launch code meets in place of a GPU: stand-ins that answer what they are made for and refuse the rest."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget

# A captured kernel is not compiled, so its resources are not known. Launch code divides by them to size its grid:
# these are the values of a small kernel, never 0.
REGISTERS = 32
SHARED_BYTES = 1024
MAX_THREADS = 1024
_MILLISECONDS = 1.0


class CapturedKernel:
    """What a launch gets in place of a compiled kernel: runs nothing, answers what launch code asks of one."""

    n_regs = REGISTERS
    n_spills = 0
    n_max_threads = MAX_THREADS
    function = 0
    packed_metadata = ()
    asm: dict[str, str] = {}  # noqa: RUF012 - mirrors CompiledKernel's attribute

    def __init__(self, launch: Any) -> None:
        self._launch = launch
        self.name = launch.function.__name__
        self.metadata = SimpleNamespace(**launch.options.__dict__, name=self.name, shared=SHARED_BYTES)

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


def capability(arch: int | str) -> tuple[int, int]:
    """Return the major and minor version that CUDA tells of 90, and HIP of ``gfx942``: 9 and 4."""
    if isinstance(arch, int):
        return divmod(arch, 10)
    number = arch.removeprefix("gfx")
    return int(number[:-2]), int(number[-2], 16)


class CaptureDriver:
    """Stands for Triton's driver: names the target, has one device, and benches by calling once."""

    def __init__(self, target: GPUTarget, properties: dict[str, int | str]) -> None:
        self._target = target
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

    def get_device_capability(self, _: int = 0) -> tuple[int, int]:
        """Return the target's compute capability."""
        return capability(self._target.arch)

    def get_device_interface(self) -> Any:
        """Return a device that is never busy and whose clock stands still: torch's, where the source uses torch."""
        return sys.modules.get("torch.cuda", DeviceInterface)

    def get_benchmarker(self) -> Any:
        """Return a bench that calls once, so that every autotune config is launched."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache to flush."""

    def clear_cache(self, _: Any) -> None:
        """There is no cache to flush."""

    def get_active_torch_device(self) -> Any:
        """Return the only device, as torch's."""
        return importlib.import_module("torch").device("cuda", 0)


class Event:
    """A point on the device's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        """Nothing runs."""

    def synchronize(self) -> None:
        """Nothing runs."""

    def elapsed_time(self, _: Any) -> float:
        """Return the same for any two points, in milliseconds."""
        return _MILLISECONDS


class DeviceInterface:
    """What benchmarks ask of a device: to wait for it and to time it."""

    Event = Event

    @staticmethod
    def synchronize(*_: Any) -> None:
        """Nothing runs."""

    @staticmethod
    def current_device() -> int:
        """Return the only device."""
        return 0


def do_bench(
    fn: Any,
    warmup: Any = 25,
    rep: Any = 100,
    grad_to_none: Any = None,
    quantiles: Any = None,
    return_mode: str = "mean",
) -> Any:
    """Call once; the time, in milliseconds, is in the form in which Triton's own bench gives it."""
    del warmup, rep, grad_to_none
    fn()
    if quantiles is not None:
        return [_MILLISECONDS] * len(quantiles) if len(quantiles) != 1 else _MILLISECONDS
    return [_MILLISECONDS] if return_mode == "all" else _MILLISECONDS


def do_bench_cudagraph(
    fn: Any, rep: Any = 20, grad_to_none: Any = None, quantiles: Any = None, return_mode: str = "mean"
) -> Any:
    """Call once, as ``do_bench``."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


def run_benchmark(
    mark: Any, show_plots: bool = False, print_data: bool = False, save_path: str = "", **kwargs: Any
) -> None:
    """Stand for ``Mark.run``: call the benchmark with every combination, and draw, print and save nothing."""
    del show_plots, print_data, save_path
    kwargs.pop("return_df", None)
    benchmarks = mark.benchmarks if isinstance(mark.benchmarks, list | tuple) else [mark.benchmarks]
    for bench in benchmarks:
        names = list(bench.x_names)
        for value in bench.x_vals:
            values = value if isinstance(value, list | tuple) else [value] * len(names)
            for line in bench.line_vals:
                mark.fn(**dict(zip(names, values, strict=True)), **{bench.line_arg: line}, **bench.args, **kwargs)
