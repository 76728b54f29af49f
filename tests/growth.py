"""How the cost of a call grows with its input: hostile inputs must not cost more than their length."""

from __future__ import annotations

import time
from collections.abc import Callable

LINEAR = 12.0  # four times the input costs a linear call 4 times as much, a quadratic one 16 times


def growth(call: Callable[[str], object], text: Callable[[int], str], size: int) -> float:
    """Return how many times longer the call takes on ``text(2 * size)`` than on ``text(size // 2)``.

    CPU time of this thread, the least of several runs taken in turns, so that other work on the machine hardly counts.
    """
    arguments = (text(size // 2), text(2 * size))
    least = [float("inf"), float("inf")]
    spent, runs = 0.0, 0
    while runs < 5 or (spent < 0.1 and runs < 400):
        for index, argument in enumerate(arguments):
            start = time.thread_time()
            call(argument)
            took = time.thread_time() - start
            least[index] = min(least[index], took)
            spent += took
        runs += 1
    return least[1] / least[0]
