"""The allocator takes our settings where it is glibc's, and other systems go on without."""

from __future__ import annotations

import platform

from service.allocator import keep_memory_small


def test_glibc_takes_the_settings_and_others_are_left_alone() -> None:
    assert keep_memory_small() is (platform.libc_ver()[0] == "glibc")
