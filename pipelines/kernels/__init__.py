"""Find kernels in a source file, their arguments, and how they are launched."""
