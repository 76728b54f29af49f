"""Gluon: a tile comes and goes by tensor descriptors."""

import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def kernel(x_desc, out_desc):
    tile = gl.allocate_shared_memory(x_desc.dtype, x_desc.block_type.shape, x_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.expect(ready, x_desc.block_type.nbytes)
    tma.async_load(x_desc, [0, 0], ready, tile)
    mbarrier.wait(ready, 0)
    mbarrier.invalidate(ready)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    value = tile.load(layout)
    tile.store(value + value)
    fence_async_shared()
    tma.async_store(out_desc, [0, 0], tile)
    tma.store_wait(0)


class Buffer:
    dtype = tl.float16
    shape = (1024, 1024)

    def data_ptr(self):
        return 0

    def stride(self):
        return (1024, 1)


if __name__ == "__main__":
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    x, out = (TensorDescriptor(Buffer(), [1024, 1024], [1024, 1], [64, 64], layout) for _ in range(2))
    kernel[(1,)](x, out, num_warps=4)
