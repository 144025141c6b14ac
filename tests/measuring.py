"""How the processor time of some work grows with its input, on a machine that other tests use too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

MOST = 2.6
"""How many times as long twice as much may take: 2 is linear, 4 is quadratic."""
_WORTH_MEASURING_S = 0.012
_TRIES = 8


def thread_seconds(work: Callable[[], object]) -> float:
    """The processor time, in seconds, that this thread spends in `work`; Python looks for no garbage meanwhile."""
    gc.disable()
    try:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun
    finally:
        gc.enable()


def growth(seconds: Callable[[int], float], smallest: int = 16 << 10, largest: int = 1 << 20) -> float:
    """How many times as long twice as much takes, as the mean of the two doublings from one size to four times as much.

    `seconds` measures the work on an input of so many bytes. The smaller size is the first of `smallest`, twice as much, … up to
    `largest` that takes long enough to be measured. Others make the processor slower now and then, so that a growth above MOST is
    measured again, some times; the least counts.
    """
    size = smallest
    while (once := seconds(size)) < _WORTH_MEASURING_S and size < largest:
        size *= 2
    small, large = [once, seconds(size)], seconds(4 * size)
    while large > MOST**2 * median(small) and len(small) < _TRIES:
        small.append(seconds(size))
        large = min(large, seconds(4 * size))
    return (large / median(small)) ** 0.5
