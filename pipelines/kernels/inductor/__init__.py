"""TorchInductor's output code: its decorators carry the signatures, so it is compiled as pasted, without torch."""
