"""How the cost of a call grows with its input: hostile inputs must not cost more than their length."""

from __future__ import annotations

import time
from collections.abc import Callable

LINEAR = 3.5  # doubling a linear call's input costs 2, a quadratic one's 4


def growth(call: Callable[[str], object], text: Callable[[int], str], size: int) -> float:
    """Return how many times longer the call takes on ``text(2 * size)`` than on ``text(size)``.

    CPU time of this thread, the least of several runs, so that other work on the machine does not count.
    """
    return _least(call, text(2 * size)) / _least(call, text(size))


def _least(call: Callable[[str], object], argument: str) -> float:
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < 0.05 and runs < 200):
        start = time.thread_time()
        call(argument)
        took = time.thread_time() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best
