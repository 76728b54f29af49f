"""Triton's own path: ttir, ttgir, the LLVM dialect, LLVM IR, PTX, SASS."""
