"""A first tutorial: a wrapper, a comparison with torch, a benchmark over many sizes."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    assert x.device == DEVICE
    assert out.is_cuda
    assert out.is_contiguous()
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out


torch.manual_seed(0)
x, y = torch.rand(98432, device=DEVICE), torch.rand(98432, device=DEVICE)
made, expected = add(x, y), x + y
print(f"the largest difference is {torch.max(torch.abs(made - expected))}")
assert torch.allclose(made, expected)
torch.testing.assert_close(add(x[1:], y[1:]), expected[1:])


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[2**i for i in range(12, 28)],
        line_arg="provider",
        line_vals=["triton", "torch"],
        line_names=["Triton", "Torch"],
        plot_name="add",
        args={},
    )
)
def benchmark(size, provider):
    x, y = torch.rand(size, device=DEVICE), torch.rand(size, device=DEVICE)
    run = {"torch": lambda: x + y, "triton": lambda: add(x, y)}[provider]
    ms, low, high = triton.testing.do_bench(run, quantiles=[0.5, 0.2, 0.8])
    return tuple(3 * x.numel() * x.element_size() * 1e-9 / (time * 1e-3) for time in (ms, high, low))


benchmark.run(print_data=True, show_plots=True)
