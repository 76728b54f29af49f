"""Three kernels: one twice, one through a launch, one autotuned."""

import os
import sys

import kernels
import standin
import triton
from triton.compiler import ASTSource

TYPES = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ALIGNED = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}


def add():
    return triton.compile(ASTSource(kernels.add, TYPES, {(3,): 128}, ALIGNED), target=standin.TARGET)


add()
add()
standin.install()
x = standin.Tensor("fp32", (1000,))
for _ in range(3):
    kernels.total[(1, 2)](x, x, BLOCK=1024)
kernels.tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, 1000)
print("trained with", sys.argv[1:], "on", len(standin.launches), "launches", os.environ.get("MLIR_ENABLE_DUMP"))
