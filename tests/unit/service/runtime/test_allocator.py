"""The allocator takes our settings where it is glibc's, and other systems go on without."""

from __future__ import annotations

import platform

import pyarrow as pa

from service.runtime.allocator import give_back, keep_memory_small


def test_glibc_takes_the_settings_and_others_are_left_alone() -> None:
    is_glibc = platform.libc_ver()[0] == "glibc"
    before = pa.default_memory_pool().backend_name
    assert keep_memory_small() is is_glibc
    assert pa.default_memory_pool().backend_name == ("system" if is_glibc else before)


def test_what_is_free_goes_back_to_the_system() -> None:
    pieces = [bytes(2_000) for _ in range(20_000)]  # less than is mapped alone: 40 MB of the heap
    kept = pieces[::100]  # the heap cannot shrink by itself, and is mostly holes
    pieces.clear()
    assert give_back() is (platform.libc_ver()[0] == "glibc")
    assert len(kept) == 200
