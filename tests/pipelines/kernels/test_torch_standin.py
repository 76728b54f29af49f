"""The stand-in for torch by itself: shapes, strides, types, values where they are known, and refusals by name."""

from __future__ import annotations

import itertools
import math
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_standin.build import build

PROPERTIES = {"multiprocessor_count": 132, "max_shared_mem": 232448, "max_num_regs": 65536, "warpSize": 32}
MODULES = build(Gpu(90, PROPERTIES, "H100, H200"))
torch: Any = MODULES["torch"]

shapes = st.lists(st.sampled_from([1, 1, 2, 3, 4, 6]), min_size=1, max_size=4)


@st.composite
def steps(draw: st.DrawFn, rank: int, shape: tuple[int, ...]) -> tuple[str, tuple[Any, ...]]:
    """One view of a tensor of that shape, as a method and its arguments."""
    axis = draw(st.integers(0, max(rank - 1, 0)))
    makers: dict[str, Any] = {"unsqueeze": lambda: (draw(st.integers(0, rank)),), "squeeze": lambda: ()}
    if rank:
        start = draw(st.integers(0, shape[axis] - 1))
        makers |= {
            "permute": lambda: (tuple(draw(st.permutations(range(rank)))),),
            "transpose": lambda: (axis, draw(st.integers(0, rank - 1))),
            "narrow": lambda: (axis, start, draw(st.integers(1, shape[axis] - start))),
            "select": lambda: (axis, start),
            "slice": lambda: (axis, start, draw(st.integers(1, 3))),
            "expand": lambda: ((draw(st.integers(1, 3)), *shape),),
            "reshape": lambda: ((-1, shape[-1]),),
        }
    if rank >= 5:
        del makers["unsqueeze"], makers["expand"]
    name = draw(st.sampled_from(sorted(makers)))
    return name, makers[name]()


def applied(tensor: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    if name == "slice":
        axis, start, step = arguments
        return tensor[(slice(None),) * axis + (slice(start, None, step),)]
    return getattr(tensor, name)(*arguments)


def as_numpy(array: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """The same step with NumPy, whose views it must equal value for value."""
    if name in ("permute", "transpose"):
        if name == "permute":
            return np.transpose(array, arguments[0])
        return np.swapaxes(array, *arguments)
    if name == "narrow":
        axis, start, length = arguments
        return array[(slice(None),) * axis + (slice(start, start + length),)]
    if name == "select":
        return array[(slice(None),) * arguments[0] + (arguments[1],)]
    if name == "unsqueeze":
        return np.expand_dims(array, arguments[0])
    if name == "expand":
        return np.broadcast_to(array, arguments[0])
    if name == "slice":
        return applied(array, name, arguments)
    return getattr(array, name)(*arguments)


@given(st.data())
def test_chains_of_views_see_what_numpys_see(data: st.DataObject):
    shape = tuple(data.draw(shapes))
    count = math.prod(shape)
    tensor, array = torch.arange(count).reshape(shape), np.arange(count).reshape(shape)
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(steps(tensor.dim(), tuple(tensor.shape)))
        tensor, array = applied(tensor, *step), as_numpy(array, *step)
        if array.size > 2000:
            break
        assert tuple(tensor.shape) == array.shape
        assert tensor.tolist() == array.tolist()
        assert tensor.data_ptr() % 8 == 0
        moved = {e: s for e, s in zip(array.shape, array.strides, strict=True) if e > 1}
        if step[0] != "reshape":
            assert {e: s * 8 for e, s in zip(tensor.shape, tensor.stride(), strict=True) if e > 1} == moved


@pytest.mark.skipif(find_spec("torch") is None, reason="the torch extra is not installed")
@given(st.data())
def test_chains_of_views_and_results_are_laid_out_as_torchs(data: st.DataObject):
    import torch as real

    shape = tuple(data.draw(shapes))
    pair = [torch.empty(shape), real.empty(shape)]
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(steps(pair[1].dim(), tuple(pair[1].shape)))
        after = data.draw(st.sampled_from(["view", "clone", "double", "empty_like", "row", "sum"]))
        pair = [applied(item, *step) for item in pair]
        if pair[1].numel() > 2000:
            break
        for i, module in enumerate((torch, real)):
            if after == "clone":
                pair[i] = pair[i].clone()
            elif after == "double":
                pair[i] = pair[i] * 2
            elif after == "empty_like":
                pair[i] = module.empty_like(pair[i])
            elif after == "row" and pair[i].dim():
                pair[i] = pair[i] + module.empty(pair[i].shape[-1:])
            elif after == "sum" and pair[i].dim():
                pair[i] = pair[i].sum(-1, keepdim=True)
        ours, theirs = pair
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.stride() == theirs.stride()
        assert ours.storage_offset() == theirs.storage_offset()
        assert ours.is_contiguous() == theirs.is_contiguous()


NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def kinds_of_results(module: Any) -> list[str]:
    found = []
    for a, b in itertools.product(NAMES, NAMES):
        one, other = (module.zeros(2, dtype=getattr(module, name)) for name in (a, b))
        for left, right in ((one, other), (one, other[0]), (one, 2), (one, 2.0), (one[0], 2.0), (one, True)):
            found += [str((left + right).dtype), str((left / right).dtype), str((left < right).dtype)]
        found.append(str(one.sum().dtype))
    return found


@pytest.mark.skipif(find_spec("torch") is None, reason="the torch extra is not installed")
def test_types_are_promoted_as_torchs():
    import torch as real

    assert kinds_of_results(torch) == kinds_of_results(real)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("half + single", "float32"),
        ("half + bfloat", "float32"),
        ("half + single[0]", "float16"),
        ("half * 2.5", "float16"),
        ("whole * 2.5", "float32"),
        ("whole / whole", "float32"),
        ("byte + torch.zeros(2, dtype=torch.int8)", "int16"),
        ("byte > 3", "bool"),
        ("whole.sum()", "int64"),
        ("(half == half).sum()", "int64"),
    ],
)
def test_types_are_promoted(expression: str, kind: str):
    names = {"half": "float16", "single": "float32", "bfloat": "bfloat16", "whole": "int32", "byte": "uint8"}
    held = {name: torch.ones(2, dtype=getattr(torch, dtype)) for name, dtype in names.items()}
    assert str(eval(expression, {"torch": torch, **held}).dtype) == f"torch.{kind}"


def test_storage_lies_apart_and_views_move_the_address():
    tensors = [torch.empty(n, dtype=torch.float16, device="cuda") for n in (1, 100, 1000, 0, 7)]
    addresses = [tensor.data_ptr() for tensor in tensors if tensor.numel()]
    assert all(address % 256 == 0 for address in addresses)
    assert len(set(addresses)) == len(addresses)
    base = tensors[2]
    assert [base[n:].data_ptr() - base.data_ptr() for n in (0, 1, 8)] == [0, 2, 16]
    assert base.view(10, 100).t()[3].data_ptr() == base.data_ptr() + 6
    huge = torch.empty(1 << 20, 1 << 16, device="cuda")
    assert torch.empty(1).data_ptr() >= huge.data_ptr() + (1 << 38)


def test_values_made_from_known_ones_are_there():
    lengths = torch.tensor([3, 5, 2], dtype=torch.int32, device="cuda")
    offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    assert offsets.shape == (4,)
    assert torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0)]).tolist() == [0, 3, 8, 10]
    assert (lengths.max().item(), int(lengths.sum()), lengths.argmax().item()) == (5, 10, 1)
    assert [int(item) for item in lengths] == [3, 5, 2]
    assert torch.repeat_interleave(torch.arange(3), lengths).tolist() == [0] * 3 + [1] * 5 + [2] * 2
    table = torch.full((2, 3), 7)
    table[0, 1:] = torch.tensor([1, 2])
    assert table.tolist() == [[7, 1, 2], [7, 7, 7]]
    assert table[table < 3].tolist() == [1, 2]
    assert bool((table >= 1).all())


@pytest.mark.parametrize(
    "expression",
    [
        "big.sum().item()",
        "bool(big[0] > 0)",
        "big.tolist()",
        "int(big.max())",
        "torch.empty(3).tolist()",
        "torch.unique(torch.empty(3))",
        "small[torch.empty(3, dtype=torch.bool)]",
        "small[:big.argmax()]",
    ],
)
def test_values_that_are_not_known_are_refused(expression: str):
    with pytest.raises(RuntimeError, match="needs a tensor's values"):
        eval(expression, {"torch": torch, "big": torch.randn(1 << 20), "small": torch.arange(3)})


def test_unknown_values_can_be_shown():
    worst = torch.randn(1 << 20).abs().max()
    assert f"{worst:.3f}" == "nan"
    assert "float32" in f"{worst}"


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("torch.fft.rfft(x)", "torch.fft"),
        ("torch.stft(x)", "torch.stft"),
        ("x.svd()", "torch.Tensor.svd"),
        ("torch.nn.Conv2d(1, 1, 3)", "torch.nn.Conv2d"),
        ("torch.nn.functional.conv2d(x, x)", "torch.nn.functional.conv2d"),
        ("torch.cuda.graph_pool_handle()", "torch.cuda.graph_pool_handle"),
        ("torch.ops.vllm.thing(x)", "torch.ops.vllm"),
    ],
)
def test_what_is_not_there_is_named_with_what_to_install(expression: str, name: str):
    with pytest.raises(AttributeError) as caught:
        eval(expression, {"torch": torch, "x": torch.ones(3)})
    assert str(caught.value).startswith(f"{name} is not in Loupe's stand-in for torch; install the torch extra")
    assert 'pip install "loupe[torch]"' in str(caught.value)


def test_branches_on_what_is_there_go_as_with_a_torch_that_lacks_it():
    assert not hasattr(torch, "xpu")
    assert not hasattr(torch.Tensor, "anything")
    assert not hasattr(torch.ones(1), "anything")
    assert getattr(torch.version, "xpu", None) is None
    assert torch.__version__ >= "2.1"
    assert torch.cuda.is_available()
    assert (torch.version.hip, torch.version.cuda is None) == (None, False)


def test_an_amd_target_is_told_as_rocm_tells_it():
    amd: dict[str, ModuleType] = build(Gpu("gfx942", {**PROPERTIES, "warpSize": 64}, "MI300X"))
    told: Any = amd["torch.cuda"]
    assert told.get_device_properties(0).gcnArchName == "gfx942"
    assert told.get_device_capability() == (9, 4)
    assert amd["torch.version"].cuda is None  # type: ignore[attr-defined]
    assert amd["torch.version"].hip is not None  # type: ignore[attr-defined]


def test_gradients_reach_leaves_through_functions_modules_and_plain_operations():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: int) -> Any:
            ctx.save_for_backward(x)
            ctx.factor = factor
            return torch.empty_like(x), x.sum(-1)

        @staticmethod
        def backward(ctx: Any, one: Any, other: Any) -> Any:
            (x,) = ctx.saved_tensors
            seen.append((tuple(one.shape), one.stride(), tuple(other.shape), ctx.needs_input_grad))
            return torch.empty_like(x), None

    seen: list[Any] = []
    layer = torch.nn.Linear(8, 4, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(3, 8, device="cuda", dtype=torch.bfloat16)
    made, _ = Twice.apply(layer(x).view(3, 2, 2).transpose(0, 1), 2)
    made.float().mean().backward()
    assert seen == [((2, 3, 2), (6, 2, 1), (2, 3), (True, False))]
    assert {name: tuple(p.grad.shape) for name, p in layer.named_parameters()} == {"weight": (4, 8), "bias": (4,)}
    assert layer.weight.grad.dtype is torch.bfloat16
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 3
    (gradient,) = torch.autograd.grad(middle.sum(), middle)
    assert gradient.stride() == (0,)
    with torch.no_grad():
        assert not (leaf * 2).requires_grad
    assert leaf.grad is None


def test_the_same_seed_gives_the_same_lengths():
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(torch.randint(1, 100, (8,)).tolist())
    assert found[0] == found[1]
    assert all(1 <= length < 100 for length in found[0])


def test_too_much_memory_is_refused_as_on_a_gpu():
    with pytest.raises(MemoryError):
        torch.empty(1 << 30, 1 << 30)


@pytest.mark.parametrize(
    ("written", "strides"),
    [
        ("torch.empty_like(x, memory_format=torch.contiguous_format)", (4, 1)),
        ("torch.zeros_like(x, memory_format=torch.contiguous_format)", (4, 1)),
        ("torch.empty_like(x, memory_format=torch.preserve_format)", (1, 6)),
        ("x.to(torch.float16, memory_format=torch.contiguous_format)", (4, 1)),
        ("x.to(memory_format=torch.contiguous_format)", (1, 6)),
        ("x.half(memory_format=torch.contiguous_format)", (4, 1)),
        ("x.clone(memory_format=torch.contiguous_format)", (4, 1)),
    ],
)
def test_a_memory_format_is_followed(written: str, strides: tuple[int, ...]):
    torch = MODULES["torch"]
    made = eval(written, {"torch": torch, "x": torch.empty(4, 6).t()})
    assert made.stride() == strides


def test_a_memory_format_that_is_not_there_is_told():
    with pytest.raises(AttributeError, match=r"torch\.channels_last is not in Loupe's stand-in"):
        MODULES["torch"].empty(2, 3, 4, 5).contiguous(memory_format=MODULES["torch"].channels_last)


def test_old_tensor_types_make_tensors_and_tell_them_by_type_and_device() -> None:
    torch = MODULES["torch"]
    made = torch.LongTensor([1, 2, 3])
    assert (made.dtype, made.device.type, made.tolist()) == (torch.int64, "cpu", [1, 2, 3])
    assert isinstance(made, torch.LongTensor)
    assert not isinstance(made, torch.cuda.LongTensor | torch.IntTensor)
    assert torch.cuda.BFloat16Tensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(2, device="cuda", dtype=torch.bool), torch.cuda.BoolTensor)


def test_one_process_is_in_no_group_of_devices() -> None:
    torch = MODULES["torch"]
    assert not torch.distributed.is_available()
    assert not torch.distributed.is_initialized()
    assert not isinstance(torch.ones(1), torch.distributed.tensor.DTensor)
