"""Gluon: one group of warps loads what another stores, with a barrier between."""

import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@gluon.jit
def produce(x_ptr, shared, ready, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    shared.store(gl.load(x_ptr + gl.arange(0, BLOCK, layout=layout)))
    mbarrier.arrive(ready, count=1)


@gluon.jit
def consume(out_ptr, shared, ready, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    mbarrier.wait(ready, 0)
    gl.store(out_ptr + gl.arange(0, BLOCK, layout=layout), shared.load(layout) * 2)


@gluon.jit
def kernel(x_ptr, out_ptr, BLOCK: gl.constexpr):
    shared_layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    shared = gl.allocate_shared_memory(gl.float32, [BLOCK], shared_layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    gl.warp_specialize(
        [(consume, (out_ptr, shared, ready, BLOCK)), (produce, (x_ptr, shared, ready, BLOCK))], [4], [24]
    )
    mbarrier.invalidate(ready)


class Buffer:
    dtype = tl.float32

    def data_ptr(self):
        return 0


if __name__ == "__main__":
    kernel[(1,)](Buffer(), Buffer(), BLOCK=128, num_warps=4)
