"""What launch code makes of its kernels: which launches are found, under which names, and what is told of the rest."""

from __future__ import annotations

import pytest

from pipelines.trace import Argument, Diagnostic
from pipelines.triton_path.compile import Compiler
from tests.pipelines.triton_path.sources import (
    ARGUMENTS,
    BOTH,
    BUFFER,
    CAPTURED,
    DESCRIPTOR,
    GIVEN,
    IMPORTS,
    KERNEL,
    LAUNCH,
    TUPLES,
    compiled,
    fails,
    line_of,
    manifest,
    succeeds,
)

HEAD = IMPORTS + KERNEL + BUFFER
SECOND = "@triton.jit\ndef second(x_ptr):\n    tl.store(x_ptr, 1.0)\n"


def tuned(configs: str, more: str = "", launch: str = "kernel[(1,)](Buffer(), 1000)\n") -> str:
    return f"{IMPORTS}{BUFFER}@triton.autotune(configs=[{configs}], key=['n']{more})\n{KERNEL}{launch}"


def warnings(diagnostics: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [item for item in diagnostics if item.severity == "warning"]


def kernels(compiler: Compiler, source: str, **more: object) -> list[str]:
    return [launch.kernel for launch in compiled(compiler, source, **more).launches]


def configs(compiler: Compiler, source: str, **more: object) -> list[str | None]:
    return [launch.config for launch in compiled(compiler, source, **more).launches]


@pytest.mark.parametrize(
    "measured",
    [
        "1 / triton.testing.do_bench(launch)",
        "1 / triton.testing.do_bench(launch, 25, 100, None, [0.5])",
        "sum(triton.testing.do_bench(launch, quantiles=[0.5, 0.2, 0.8]))",
        "sum(triton.testing.do_bench(launch, return_mode='all'))",
        "1 / triton.testing.do_bench_cudagraph(launch)",
        "sum(triton.runtime.driver.active.get_benchmarker()(launch, quantiles=[0.5, 0.2]))",
    ],
)
def test_a_bench_gives_times_as_tritons_own_does(compiler: Compiler, measured: str):
    source = f"{HEAD}{SECOND}launch = lambda: {LAUNCH}assert {measured} > 0\nsecond[(1,)](Buffer())\n"
    assert kernels(compiler, source) == ["kernel", "second"]


def test_launch_code_may_ask_for_resources_and_time_itself(compiler: Compiler):
    source = (
        f"{HEAD}device = triton.runtime.driver.active.get_device_interface()\n"
        "begin, end = device.Event(enable_timing=True), device.Event(enable_timing=True)\nbegin.record()\n"
        "made = kernel.warmup(Buffer(), 1000, BLOCK=128, grid=(1,))\nmade._init_handles()\n"
        "occupancy = min(65536 // (made.n_regs * 32 * made.metadata.num_warps), 166912 // made.metadata.shared)\n"
        "made[(occupancy, 1, 1)](Buffer(), 1000, 128)\nend.record()\ndevice.synchronize()\n"
        "assert 1000 / begin.elapsed_time(end) > 0\n"
    )
    made = succeeds(compiler, source)
    assert warnings(made.diagnostics) == []
    assert made.launch.grid is not None
    assert made.launch.grid[0] > 0


@pytest.mark.parametrize(
    "hooks",
    [
        ", reset_to_zero=['x_ptr']",
        ", restore_value=['x_ptr']",
        ", pre_hook=lambda arguments, reset_only=False: arguments['x_ptr'].zero_()",
        ", post_hook=lambda arguments, exception: arguments['x_ptr'].cpu()",
    ],
)
def test_hooks_on_tensors_fail_no_launch(compiler: Compiler, hooks: str):
    source = tuned("triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})", hooks)
    assert len(configs(compiler, source)) == 2


def test_a_configs_own_hook_prepares_its_launch(compiler: Compiler):
    """As kernels with host descriptors do: the hook sets what the config needs."""
    config = "triton.Config({'BLOCK': 64}, pre_hook=prepare), triton.Config({'BLOCK': 128}, pre_hook=prepare)"
    source = tuned(config).replace(
        "@triton.autotune",
        "def prepare(arguments):\n    arguments['x_ptr'].dtype = Kind('fp%d' % (arguments['BLOCK'] // 4))\n\n"
        "@triton.autotune",
    )
    types = [succeeds(compiler, source, launch=n).kernel.arguments[0].type for n in range(2)]
    assert types == ["*fp16", "*fp32"]


def test_a_config_that_cannot_be_launched_is_told_at_its_launch(compiler: Compiler):
    source = tuned("triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 64}, num_warps=3)")
    made = compiled(compiler, source)
    assert len(made.launches) == 1
    (told,) = warnings(made.manifest.diagnostics)
    assert "num_warps: 3" in told.message
    assert "power of 2" in told.message
    assert told.line == line_of(source, "kernel[(1,)]")


@pytest.mark.parametrize(
    ("configured", "launch"),
    [
        ("triton.Config({'BLOCK': 64}, num_warps=2)", "kernel[(1,)](Buffer(), 1000)\n"),
        ("triton.Config({'BLOCK': 64}, num_warps=2)", "kernel.warmup(Buffer(), 1000, grid=(1,))\n"),
        ("triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 32})", "kernel[(1,)](Buffer(), 1000)\n"),
    ],
    ids=["one", "warmup", "pruned"],
)
def test_every_config_is_named(compiler: Compiler, configured: str, launch: str):
    prune = ", prune_configs_by={'early_config_prune': lambda configs, arguments, **_: configs[:1]}"
    (config,) = configs(compiler, tuned(configured, prune, launch))
    assert config == "BLOCK: 64, num_warps: 2, num_ctas: 1, num_stages: 3"


def test_a_launch_beside_a_tuned_one_has_no_config(compiler: Compiler):
    source = tuned("triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})") + SECOND + "second[(1,)](Buffer())\n"
    found = compiled(compiler, source).launches
    assert [(launch.kernel, launch.config is None) for launch in found] == [
        ("kernel", False),
        ("kernel", False),
        ("second", True),
    ]


def test_an_error_after_a_launch_is_told_and_the_launch_kept(compiler: Compiler):
    source = f"{HEAD}{LAUNCH}raise ValueError('halfway')\n{SECOND}second[(1,)](Buffer())\n"
    made = compiled(compiler, source)
    assert [launch.kernel for launch in made.launches] == ["kernel"]
    (told,) = warnings(made.manifest.diagnostics)
    assert "halfway" in told.message
    assert told.line == line_of(source, "raise ValueError")


def test_an_error_before_the_wanted_launch_is_told_and_the_kernel_guessed(compiler: Compiler):
    source = f"{HEAD}{SECOND}{LAUNCH}raise ValueError('halfway')\nsecond[(1,)](Buffer())\n"
    made = manifest(compiler, source, kernel="second")
    assert made.kernel.origin == "guessed"
    (told,) = warnings(made.diagnostics)
    assert "halfway" in told.message
    assert told.line == line_of(source, "raise ValueError")


def test_an_error_before_the_kernel_is_the_answer(compiler: Compiler):
    source = f"{HEAD}{LAUNCH}raise ValueError('halfway')\n{SECOND}second[(1,)](Buffer())\n"
    message, errors = fails(compiler, source, kernel="second")
    assert "halfway" in message
    assert [error.line for error in errors] == [line_of(source, "raise ValueError")]


def test_more_launches_than_are_kept_are_told(compiler: Compiler):
    source = f"{HEAD}for n in range(600):\n    kernel[(1,)](Buffer(), 3, BLOCK=tl.constexpr(n))\n"
    made = compiled(compiler, source)
    assert len(made.launches) == 512
    assert any("more than 512" in told.message for told in warnings(made.manifest.diagnostics))


@pytest.mark.parametrize("end", ["sys.exit()", "sys.exit(0)", "raise SystemExit"])
def test_a_source_may_end_its_process_after_its_launches(compiler: Compiler, end: str):
    made = succeeds(compiler, f"import sys\n{HEAD}{LAUNCH}{end}\n")
    assert warnings(made.diagnostics) == []


@pytest.mark.parametrize("end", ["sys.exit('no device')", "sys.exit(2)", "raise KeyboardInterrupt"])
def test_an_end_that_says_why_is_told(compiler: Compiler, end: str):
    source = f"import sys\n{HEAD}{LAUNCH}{end}\n"
    (told,) = warnings(succeeds(compiler, source).diagnostics)
    assert told.line == line_of(source, end)


def test_a_source_that_ends_before_any_launch_says_so(compiler: Compiler):
    assert succeeds(compiler, f"import sys\n{HEAD}sys.exit(0)\n{LAUNCH}").kernel.origin == "guessed"
    message, _ = fails(compiler, f"import sys\nsys.exit(0)\n{HEAD}", **GIVEN)
    assert "sys.exit" in message


def test_given_arguments_need_no_guard_around_launches(compiler: Compiler):
    source = f"import sys\n{HEAD}{LAUNCH}kernel.warmup(Buffer(), 1, BLOCK=4, grid=(1,))\nsys.exit(0)\n"
    made = compiled(compiler, source, **GIVEN)
    assert made.manifest.status == "ok", made.manifest.failure
    assert made.manifest.launch is None
    assert [launch.grid for launch in made.launches] == [None]


@BOTH
@pytest.mark.parametrize("name", ["inner", "held"])
def test_a_kernel_is_named_as_its_function_or_its_variable(compiler: Compiler, name: str, given: dict):
    inner = "".join(f"    {line}\n" for line in KERNEL.replace("kernel", "inner").splitlines())
    source = f"{IMPORTS}{BUFFER}{SECOND}def make():\n{inner}    return inner\n\nheld = make()\nsecond[(1,)](Buffer())\n"
    made = succeeds(compiler, source + LAUNCH.replace("kernel", "held"), kernel=name, **given)
    assert made.kernel.name == "inner"


def test_constexprs_override_those_of_the_launch(compiler: Compiler):
    made = succeeds(compiler, CAPTURED, constexprs={"BLOCK": 256})
    assert made.kernel.arguments[2].value == 256
    assert made.stages == succeeds(compiler, CAPTURED.replace("BLOCK=128", "BLOCK=256")).stages
    message, _ = fails(compiler, CAPTURED, constexprs={"BLOK": 256})
    assert "no argument 'BLOK'" in message


@pytest.mark.parametrize("given", [{}, {"arguments": ARGUMENTS}], ids=["captured", "given"])
def test_configs_are_named_by_the_values_in_force(compiler: Compiler, given: dict):
    source = tuned(
        "triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 128}, num_warps=2), "
        "triton.Config({'BLOCK': 64}, num_warps=4)"
    )
    overridden = configs(compiler, source, constexprs={"BLOCK": 256}, **given)
    assert [config.split(", ")[:2] for config in overridden] == [
        ["BLOCK: 256", "num_warps: 2"],
        ["BLOCK: 256", "num_warps: 4"],
    ]
    overridden = configs(compiler, source, options={"num_warps": 8}, **given)
    assert [config.split(", ")[:2] for config in overridden] == [
        ["BLOCK: 64", "num_warps: 8"],
        ["BLOCK: 128", "num_warps: 8"],
    ]


def flat(argument: Argument) -> list[tuple[str, str, int | None, object]]:
    own = (argument.name, argument.type, argument.divisibility, argument.value)
    return [own, *(item for member in argument.members for item in flat(member))]


def test_tuples_keep_what_each_element_was_specialized_to(compiler: Compiler):
    made = succeeds(compiler, TUPLES)
    assert [flat(argument) for argument in made.kernel.arguments] == [
        [
            ("pointers", "(*fp32, *fp16)", None, None),
            ("0", "*fp32", 16, None),
            ("1", "*fp16", None, None),
        ],
        [
            ("pair", "(i32, (i32, constexpr))", None, None),
            ("0", "i32", 16, None),
            ("1", "(i32, constexpr)", None, None),
            ("0", "i32", None, None),
            ("1", "constexpr", None, 7),
        ],
    ]
    passed = made.launch.arguments
    assert passed[0].value[1] == {"dtype": "fp16", "shape": [64, 64], "strides": [64, 1]}
    assert passed[1].value == [16, [3, 7]]
    other = succeeds(compiler, TUPLES.replace("constexpr(7)", "constexpr(8)"))
    assert other.kernel.arguments != made.kernel.arguments


def test_a_descriptor_is_told_by_its_shapes(compiler: Compiler):
    tile = succeeds(compiler, DESCRIPTOR, target="sm_90").launch.arguments[0]
    assert (tile.dtype, tile.shape, tile.strides) == ("fp16", (32, 48), (64, 1))
    assert tile.value == {"block_shape": [16, 16], "base_strides": [64, 1], "padding": "zero"}


def test_a_function_that_was_captured_can_be_given(compiler: Compiler):
    source = (
        f"{IMPORTS}{BUFFER}@triton.jit\ndef twice(a):\n    return a * 2\n\n@triton.jit\n"
        "def kernel(x_ptr, F: tl.constexpr, G: tl.constexpr, D: tl.constexpr):\n"
        "    tl.store(x_ptr, G(F(3), 1).to(D))\n\nkernel[(1,)](Buffer(), twice, tl.maximum, tl.float32)\n"
    )
    captured = succeeds(compiler, source, kernel="kernel")
    values = {argument.name: argument.value for argument in captured.kernel.arguments}
    assert values.pop("x_ptr") is None
    assert values == {"F": {"function": "twice"}, "G": {"function": "triton.language.core.maximum"}, "D": "tl.float32"}
    given = succeeds(compiler, source, kernel="kernel", arguments={"x_ptr": "*fp32:16"}, constexprs=values)
    assert given.stages == captured.stages
    message, _ = fails(
        compiler, source, kernel="kernel", arguments={"x_ptr": "*fp32"}, constexprs={**values, "F": {"function": "no"}}
    )
    assert "F: the source has no function 'no'" in message


@pytest.mark.parametrize(
    "odd",
    [
        "shape = ('a',)",
        "shape = 7",
        "def stride(self, dimension): return 1",
        "def stride(self): raise OSError",
        "shape = tuple(range(1000))",
        "dtype = type('fp32', (), {'__str__': lambda self: 'fp32'})()",
    ],
)
def test_objects_that_are_no_tensors_are_told_as_far_as_they_go(compiler: Compiler, odd: str):
    source = f"{IMPORTS}{KERNEL}class Odd:\n    dtype = 'fp32'\n    def data_ptr(self): return 16\n    {odd}\n"
    made = manifest(compiler, f"{source}kernel[(1,)](Odd(), 3, BLOCK=4)\n")
    assert made.status == "ok", made.failure
    assert made.launch.arguments[0].dtype == "fp32"


@pytest.mark.parametrize("passed", ["{}", "({}, 1)"])
def test_launches_with_helpers_of_one_name_are_distinct_where_the_helpers_are(compiler: Compiler, passed: str):
    factory = (
        "def make(factor):\n    C = tl.constexpr(factor)\n\n    @triton.jit\n    def act(x):\n        return x * C\n\n"
        "    return act\n\n"
    )
    called = "F" if passed == "{}" else "F[0]"
    kernel = f"@triton.jit\ndef kernel(x_ptr, F: tl.constexpr):\n    tl.store(x_ptr, {called}(tl.load(x_ptr)))\n\n"
    launches = [f"act = make({factor})\nkernel[(1,)](Buffer(), {passed.format('act')})\n" for factor in (2, 3, 2)]
    source = IMPORTS + BUFFER + factory + kernel + "".join(launches)
    assert kernels(compiler, source) == ["kernel", "kernel"]
    products = [compiled(compiler, source, launch=index).manifest.stage("ttir").passes[-1].text for index in (0, 1)]
    assert len(set(products)) == 2
