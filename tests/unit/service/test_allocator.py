"""The allocator takes our settings where it is glibc's, and other systems go on without."""

from __future__ import annotations

import platform

import pyarrow as pa

from service.allocator import keep_memory_small


def test_glibc_takes_the_settings_and_others_are_left_alone() -> None:
    is_glibc = platform.libc_ver()[0] == "glibc"
    before = pa.default_memory_pool().backend_name
    assert keep_memory_small() is is_glibc
    assert pa.default_memory_pool().backend_name == ("system" if is_glibc else before)
