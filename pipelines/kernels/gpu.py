"""The GPU that launch code believes to run on, as ``torch.cuda`` tells of it: the target, idle, never used.

The stand-in for torch and the real one, which is told that it has CUDA, answer with the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from pipelines.kernels.standins import Event, capability

_MEMORY = 80 << 30
_THREADS = 2048
_CACHE = 50 << 20


class Gpu:
    """One device with the target's properties.

    Args:
        arch: the target as Triton names it: 90, or ``gfx942``.
        properties: what Triton's driver reports of it.
        name: the chip's name.
    """

    def __init__(self, arch: Any, properties: dict[str, Any], name: str) -> None:
        self.is_amd = not isinstance(arch, int)
        self.arch = str(arch)
        self.capability = capability(arch)
        self._properties = properties
        self.name = f"{'AMD' if self.is_amd else 'NVIDIA'} {name.split(',')[0]}"

    @property
    def architecture(self) -> str:
        """The target's name in ``torch.cuda.get_arch_list``."""
        return self.arch if self.is_amd else f"sm_{self.arch}"

    def properties(self, *_: Any) -> SimpleNamespace:
        """Return what ``torch.cuda.get_device_properties`` does."""
        major, minor = self.capability
        shared = self._properties.get("max_shared_mem", 0)
        return SimpleNamespace(
            name=self.name,
            major=major,
            minor=minor,
            total_memory=_MEMORY,
            multi_processor_count=self._properties.get("multiprocessor_count", 1),
            warp_size=self._properties.get("warpSize", 32),
            regs_per_multiprocessor=self._properties.get("max_num_regs", 65536),
            max_threads_per_multi_processor=_THREADS,
            max_threads_per_block=1024,
            shared_memory_per_block=min(shared, 49_152),
            shared_memory_per_block_optin=shared,
            shared_memory_per_multiprocessor=shared,
            L2_cache_size=_CACHE,
            gcnArchName=self.arch if self.is_amd else "",
            is_integrated=False,
            is_multi_gpu_board=False,
        )

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions and classes of ``torch.cuda``, by name."""
        return {
            **dict.fromkeys(_SILENT, _nothing),
            **{name: _returning(value) for name, value in _CONSTANT.items()},
            "get_device_properties": self.properties,
            "get_device_name": _returning(self.name),
            "get_device_capability": _returning(self.capability),
            "get_arch_list": lambda: [self.architecture],
            "is_bf16_supported": lambda *_, **__: self.is_amd or self.capability >= (8, 0),
            "mem_get_info": lambda *_: (_MEMORY, _MEMORY),
            "memory_stats": lambda *_: {},
            "device": DeviceContext,
            "device_of": DeviceContext,
            "Stream": Stream,
            "ExternalStream": Stream,
            "Event": TimingEvent,
            "current_stream": lambda *_: _DEFAULT_STREAM,
            "default_stream": lambda *_: _DEFAULT_STREAM,
            "set_stream": _nothing,
            "stream": StreamContext,
        }


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing runs that could be waited for, set or counted."""


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


_SILENT = (
    "synchronize", "empty_cache", "set_device", "init", "manual_seed", "manual_seed_all", "seed_all", "ipc_collect",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats", "_lazy_init",
    "_sleep",
)  # fmt: skip
_CONSTANT = {
    "is_available": True,
    "is_initialized": True,
    "device_count": 1,
    "current_device": 0,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "is_current_stream_capturing": False,
    "utilization": 0,
}


class DeviceContext:
    """``with torch.cuda.device(...)``: there is one device."""

    def __init__(self, device: Any = None) -> None:
        self.idx = device if isinstance(device, int) else 0

    def __enter__(self) -> DeviceContext:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Stream:
    """A queue of work that is always empty."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing runs."""

    def wait_stream(self, _: Any) -> None:
        """Nothing runs."""

    def wait_event(self, _: Any) -> None:
        """Nothing runs."""

    def query(self) -> bool:
        """Say that all is done."""
        return True

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has happened."""
        return event or TimingEvent()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return


class TimingEvent(Event):
    """``torch.cuda.Event``: it has always happened."""

    def wait(self, *_: Any) -> None:
        """Nothing runs."""

    def query(self) -> bool:
        """Say that it has happened."""
        return True


class StreamContext(Stream):
    """``with torch.cuda.stream(...)``."""


_DEFAULT_STREAM = Stream()


@contextlib.contextmanager
def range_marker(*_: Any, **__: Any) -> Iterator[None]:
    """``torch.cuda.nvtx.range`` and profiler's marks: nobody looks."""
    yield


def agree(*values: Any, **_: Any) -> None:
    """Stand for ``torch.testing.assert_close``: kernels do not run, so there are no values to compare."""
    if len(values) < 2:
        raise TypeError("assert_close() needs two values")


def agreeing(*values: Any, **_: Any) -> bool:
    """Stand for ``torch.allclose``, as ``agree``."""
    agree(*values)
    return True
