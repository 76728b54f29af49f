from .mlp import feed_forward
from .norm import normalize

__all__ = ["feed_forward", "normalize"]
