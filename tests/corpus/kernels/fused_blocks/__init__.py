from .ops import feed_forward, normalize

__all__ = ["feed_forward", "normalize"]
