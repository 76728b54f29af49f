"""How the cost of a call grows with its input: hostile inputs must not cost more than their length."""

from __future__ import annotations

import time
from collections.abc import Callable

LINEAR = 3.5  # doubling a linear call's input costs 2, a quadratic one's 4


def growth(call: Callable[[str], object], text: Callable[[int], str], size: int) -> float:
    """Return how many times longer the call takes on ``text(2 * size)`` than on ``text(size)``.

    CPU time of this thread, the least of several runs taken in turns, so that other work on the machine does not count.
    """
    arguments = (text(size), text(2 * size))
    least = [float("inf"), float("inf")]
    spent, runs = 0.0, 0
    while runs < 5 or (spent < 0.05 and runs < 200):
        for index, argument in enumerate(arguments):
            start = time.thread_time()
            call(argument)
            took = time.thread_time() - start
            least[index] = min(least[index], took)
            spent += took
        runs += 1
    return least[1] / least[0]
