"""One `tidemark nightly run` at a time on a history: two at once would remove each other's files.

`tidemark sandbox history` and `tidemark history import` write whole days, so they take the lock too.

The lock ends with the process, however that ends. A history in an object store has none: nothing keeps
two machines from working on it at once.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rules.errors import ConflictError, StoreError

LOCK: Final = "nightly.lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock.

    Raises:
        ConflictError: another run holds it.
        StoreError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a", encoding="ascii")
    except OSError as exc:
        message = f"{folder} cannot be written: {(exc.strerror or str(exc)).lower()}"
        raise StoreError(message, retryable=False) from exc
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            message = (
                f"another `tidemark nightly run`, `history import` or `sandbox history` works in {folder}: "
                "wait for its end"
            )
            raise ConflictError(message) from exc
        yield
