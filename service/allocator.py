"""Keeps the C allocator from holding on to memory that rounds have given back.

A round makes tens of megabytes of arrays and text in threads of its own. glibc keeps an arena for every
few threads and raises the size from which it returns memory at once, so that the process grows by what
each arena once needed. Measured with 10,000 partitions x 1,001 groups: 290 MiB without, 171 MiB with.
Source: mallopt(3), M_ARENA_MAX and M_MMAP_THRESHOLD.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Final

ARENA_MAX: Final = -8
MMAP_THRESHOLD: Final = -3
THRESHOLD_BYTES: Final = 1 << 20


def keep_memory_small() -> bool:
    """Set one arena and a fixed threshold; False where the allocator is not glibc's."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    wanted = ((ARENA_MAX, 1), (MMAP_THRESHOLD, THRESHOLD_BYTES))
    return all(libc.mallopt(parameter, value) == 1 for parameter, value in wanted)
