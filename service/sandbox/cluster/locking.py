"""One command at a time per folder: an advisory lock on the folder itself, so no lock file."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from rules.errors import SandboxError
from service.runtime.clock import wait_until

PATIENCE_SECONDS = 180.0  # longer than a cold `up`, so that two of them queue


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; wait while another command holds it.

    The holder may remove the folder meanwhile (`down`): a lock on a removed folder is void, so
    FileNotFoundError is raised then.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not wait_until(lambda: _try(descriptor), timeout_seconds=PATIENCE_SECONDS):
            raise SandboxError(f"another command has been working on {folder} for minutes")
        if not _is_same(descriptor, folder):
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False
