"""Whether the kernel's clock is synchronised by NTP or PTP. Source: adjtimex(2)."""

from __future__ import annotations

import ctypes
from typing import Final

_SIZE: Final = 512  # bytes; struct timex has 208
_TIME_ERROR: Final = 5  # the clock is not synchronised to a reliable server


def is_synchronised() -> bool | None:
    """Return whether the kernel says so; None: it does not say, as on other systems than Linux."""
    buffer = ctypes.create_string_buffer(_SIZE)  # modes = 0: nothing is changed
    try:
        state = int(ctypes.CDLL(None).adjtimex(buffer))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
