"""A grouped matmul: its operands are tensors of addresses, sizes and leading dimensions."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def num_sms():
    return torch.cuda.get_device_properties("cuda").multi_processor_count


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 128, "BK": 32, "NUM_SM": 84}),
        triton.Config({"BM": 64, "BN": 64, "BK": 32, "NUM_SM": num_sms()}),
    ],
    key=["group_size"],
)
@triton.jit
def grouped_kernel(
    a_ptrs,
    b_ptrs,
    c_ptrs,
    sizes_ptr,
    lds_ptr,
    group_size,
    NUM_SM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    for g in range(group_size):
        m = tl.load(sizes_ptr + g * 3)
        a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
        c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
        at = tl.arange(0, BM)
        tl.store(c_ptr + at, tl.load(a_ptr + at, mask=at < m), mask=at < m)


def grouped(group_a, group_b):
    a_addresses, b_addresses, c_addresses, sizes, lds, group_c = [], [], [], [], [], []
    for a, b in zip(group_a, group_b):
        (M, K), (K, N) = a.shape, b.shape
        c = torch.empty((M, N), device=DEVICE, dtype=a.dtype)
        group_c.append(c)
        a_addresses.append(a.data_ptr())
        b_addresses.append(b.data_ptr())
        c_addresses.append(c.data_ptr())
        sizes += [M, N, K]
        lds += [a.stride(0), b.stride(0), c.stride(0)]
    d_a = torch.tensor(a_addresses, device=DEVICE)
    d_b = torch.tensor(b_addresses, device=DEVICE)
    d_c = torch.tensor(c_addresses, device=DEVICE)
    d_sizes = torch.tensor(sizes, dtype=torch.int32, device=DEVICE)
    d_lds = torch.tensor(lds, dtype=torch.int32, device=DEVICE)
    assert len({*a_addresses, *b_addresses, *c_addresses}) == 3 * len(group_a)
    assert d_sizes.view(-1, 3)[:, 0].max().item() == 1024
    grouped_kernel[lambda meta: (meta["NUM_SM"],)](d_a, d_b, d_c, d_sizes, d_lds, len(group_a))
    return group_c


sizes = [1024, 512, 256, 128]
group_a = [torch.rand((size, size), device=DEVICE, dtype=torch.float16) for size in sizes]
group_b = [torch.rand((size, size), device=DEVICE, dtype=torch.float16) for size in sizes]
for made, a, b in zip(grouped(group_a, group_b), group_a, group_b):
    assert torch.allclose(made, torch.matmul(a, b), atol=1e-2, rtol=1e-2)
