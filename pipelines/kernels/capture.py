"""Run a source's own launch code without a GPU and keep what it launches. Runs only inside a confined child.

A stand-in takes the place of Triton's driver, and ``JITFunction._do_compile`` records instead of compiling, so
the exact types, divisibility, folded values and options are those that Triton itself derives from the arguments.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import signal
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.testing
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITCallable, JITFunction

from pipelines.kernels.gpu import agree
from pipelines.kernels.standins import CapturedKernel, CaptureDriver, do_bench, do_bench_cudagraph, run_benchmark

MAX_LAUNCHES = 512
MAX_TROUBLES = 64
MAX_SECONDS = 20.0
"""How long launch code may run: benchmarks of whole tutorials take a second or two, since nothing is timed."""


@dataclass
class Launch:
    """A distinct launch: everything ``triton.compile`` needs, and what the launch code passed.

    ``config`` holds the autotune config's own values, where there is one. ``guessed`` says by name which arguments
    nobody gave and no launch code passed: as what they are compiled, and why.
    """

    function: Any
    signature: dict[str, Any]
    constexprs: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], Any]
    options: Any
    config: dict[str, Any] | None
    grid: tuple[int, ...] | None = None
    values: tuple[Any, ...] = field(default=(), repr=False)
    guessed: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What makes this launch distinct from another."""
        options = self.options if isinstance(self.options, dict) else self.options.__dict__
        functions = [_identity(value) for value in self.constexprs.values()]
        constants = (self.constexprs, functions)
        return repr((id(self.function), self.signature, constants, self.attributes, sorted(options.items())))


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong in the launch code without ending it; ``file`` and ``line`` (from 1) say where."""

    what: str
    error: Exception | None
    file: str | None
    line: int | None


class TimeUpError(BaseException):
    """The launch code has run for as long as it may; no ``except Exception`` of the source's holds it up."""


class EnoughError(BaseException):
    """The launch that was asked for has been made, the source need not go on."""


@dataclass
class _Tuning:
    tuner: Any
    config: Any = None


class Capture:
    """Installs the stand-ins and collects distinct launches in the order in which they were made.

    Args:
        target: what the launches are made for.
        properties: the device's properties, as Triton's driver names them.
        files: the names of the source's files, by which troubles find their line.
    """

    def __init__(self, target: GPUTarget, properties: dict[str, int | str], files: Collection[str] = ()) -> None:
        self._driver = CaptureDriver(target, properties)
        self._wanted: tuple[str | None, int] | None = None
        self._files = files
        self._tunings: list[_Tuning] = []
        self._launches: dict[str, Launch] = {}
        self._replaced: list[tuple[Any, str, Any]] = []
        self.troubles: list[Trouble] = []

    @property
    def launches(self) -> list[Launch]:
        """The distinct launches so far."""
        return list(self._launches.values())

    def stop_after(self, kernel: str | None, number: int) -> None:
        """End the source by EnoughError once the ``number``-th distinct launch (from 0) of a kernel is followed."""
        self._wanted = (kernel, number)

    @contextlib.contextmanager
    def bounded(self) -> Iterator[None]:
        """End what runs in the context by TimeUpError after ``MAX_SECONDS``."""

        def end(*_: Any) -> None:
            raise TimeUpError(f"the launch code ran for {MAX_SECONDS:.0f} s and was stopped")

        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def install(self) -> None:
        """Replace the driver and the steps of Triton that would need one."""
        self._replace(triton.runtime.driver, "_default", self._driver)
        self._replace(triton.runtime.driver, "_active", self._driver)
        self._replace(triton.testing, "do_bench", do_bench)
        self._replace(triton.testing, "do_bench_cudagraph", do_bench_cudagraph)
        self._replace(triton.testing, "assert_close", agree)
        self._replace(triton.testing.Mark, "run", run_benchmark)
        self._replace(JITFunction, "_do_compile", self._compiling())
        for name, make in (("__init__", self._tuned), ("run", self._running), ("_bench", self._benching)):
            self._replace(Autotuner, name, make(getattr(Autotuner, name)))
        self._replace(Autotuner, "warmup", self._warming())

    def remove(self) -> None:
        """Give Triton its own steps back."""
        while self._replaced:
            owner, name, original = self._replaced.pop()
            setattr(owner, name, original)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _compiling(self) -> Callable[..., Any]:
        def record(
            function: Any, _: Any, signature: Any, __: Any, constexprs: Any, options: Any, attributes: Any, ___: Any
        ) -> CapturedKernel:
            return self._record(Launch(function, signature, constexprs, attributes, options, self._config(function)))

        return record

    def _record(self, launch: Launch) -> CapturedKernel:
        key = launch.key
        if key not in self._launches:
            if len(self._launches) == MAX_LAUNCHES:
                self._trouble(f"the source makes more than {MAX_LAUNCHES} distinct launches; the rest is left out")
                return CapturedKernel(launch)
            self._launches[key] = launch
            self._check_enough()
        return CapturedKernel(self._launches[key])

    def _check_enough(self) -> None:
        """Stop at the launch after the wanted one, which has been run by then."""
        if self._wanted is None:
            return
        kernel, number = self._wanted
        made = [x for x in self._launches.values() if kernel is None or x.function.__name__ == kernel]
        if len(made) > number + 1:
            raise EnoughError

    def _config(self, function: Any) -> dict[str, Any] | None:
        """Return the values of the autotune config that is being launched."""
        tuning = self._tunings[-1] if self._tunings else None
        if tuning is None or _tuned_function(tuning.tuner) is not function:
            return None
        config = tuning.config or getattr(tuning.tuner, "best_config", None)
        return dict(config.all_kwargs()) if config else None

    @contextlib.contextmanager
    def _tuning(self, tuner: Any, config: Any = None) -> Iterator[None]:
        self._tunings.append(_Tuning(tuner, config))
        try:
            yield
        finally:
            self._tunings.pop()

    def _tuned(self, original: Callable[..., None]) -> Callable[..., None]:
        """Keep hooks from failing a launch: they work on tensors, and plain objects cannot be zeroed or copied."""

        def init(tuner: Any, *args: Any, **kwargs: Any) -> None:
            original(tuner, *args, **kwargs)
            tuner.pre_hook = self._guarded(tuner.pre_hook) if tuner.user_defined_pre_hook else _no_hook
            tuner.post_hook = self._guarded(tuner.post_hook) if tuner.user_defined_post_hook else _no_hook
            tuner.configs = [self._guarded_config(config) for config in tuner.configs]

        return init

    def _guarded_config(self, config: Any) -> Any:
        if config.pre_hook is None:
            return config
        guarded = copy.copy(config)
        guarded.pre_hook = self._guarded(config.pre_hook)
        return guarded

    def _guarded(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(hook)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._told("a hook of the autotuner was left out"):
                return hook(*args, **kwargs)

        return guarded

    def _running(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            with self._tuning(tuner):
                return original(tuner, *args, **kwargs)

        return run

    def _benching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
            tuner.do_bench = do_bench
            with self._tuning(tuner, config), self._told(_refusal(config)):
                return original(tuner, *args, config=config, **meta)
            return [float("inf")] * 3

        return bench

    def _warming(self) -> Callable[..., Any]:
        """Autotuner's own, with each config named while it is launched."""

        def warmup(tuner: Any, *args: Any, **kwargs: Any) -> list[Any]:
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            kernels = []
            for config in tuner.prune_configs(kwargs):
                with self._tuning(tuner, config), self._told(_refusal(config)):
                    kernels.append(tuner.fn.warmup(*args, **kwargs, **config.all_kwargs()))
            tuner.nargs = None
            return kernels

        return warmup

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turn an error into a trouble."""
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:  # the source's own code may raise anything
            self._trouble(what, error)

    def _trouble(self, what: str, error: Exception | None = None) -> None:
        frames = [frame for frame, _ in traceback.walk_stack(None) if frame.f_code.co_filename in self._files]
        at = (frames[0].f_code.co_filename, frames[0].f_lineno) if frames else (None, None)
        found = Trouble(what, error, *at)
        if len(self.troubles) < MAX_TROUBLES and what not in {trouble.what for trouble in self.troubles}:
            self.troubles.append(found)


def _identity(value: Any) -> Any:
    """Tell functions apart that have one name, as Triton does: by what they and their helpers are written as."""
    if isinstance(value, tuple | list):
        return [_identity(item) for item in value]
    if not isinstance(value, JITCallable):
        return None
    try:
        return value.cache_key
    except Exception:  # what refers to something that Triton refuses is told of when it is compiled
        return id(value)


def _no_hook(*_: Any, **__: Any) -> None:
    """What ``reset_to_zero`` and ``restore_value`` come to where nothing runs."""


def _refusal(config: Any) -> str:
    values = ", ".join(f"{name}: {value}" for name, value in config.all_kwargs().items())
    return f"the config {values} cannot be launched"


def _tuned_function(tuner: Any) -> Any:
    while not isinstance(tuner, JITFunction):
        tuner = tuner.fn
    return tuner
