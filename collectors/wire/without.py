"""Imports a library as if another one, which it would make use of, were not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(name: str) -> Iterator[None]:
    """Hide the package `name` from imports inside the block, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # how Python itself marks an absent module
    try:
        yield
    finally:
        del sys.modules[name]
