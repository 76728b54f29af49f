"""Gluon for AMD's CDNA: buffer loads and stores."""

import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3


@gluon.jit
def kernel(x_ptr, out_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    at = gl.arange(0, BLOCK, layout=layout)
    value = cdna3.buffer_load(x_ptr, at)
    cdna3.buffer_store(value * 2, out_ptr, at)


class Buffer:
    dtype = tl.float32

    def data_ptr(self):
        return 0


if __name__ == "__main__":
    kernel[(1,)](Buffer(), Buffer(), BLOCK=1024, num_warps=4)
