"""The folder that belongs to one service at a time.

The lock ends with the process, however that ends, so that there is nothing to clean up by hand.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from rules.errors import StoreError

LOCK_NAME: Final = "service.lock"  # holds the process id of its owner, for a person


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing; as root, let other users pass through them.

    As root the embedded PostgreSQL runs as another user. Folders that are there keep their rights.

    Raises:
        OSError: it cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        let_pass(folder)


def let_pass(folder: Path) -> None:
    """As root, let other users pass through a folder of ours, without listing it."""
    if os.geteuid() == 0:
        folder.chmod(folder.stat().st_mode | 0o011)


def has_holder(path: Path) -> bool | None:
    """Return whether a process has locked the folder, without locking it; None: this system does not say.

    Source: proc(5), /proc/locks.
    """
    try:
        status = (path.expanduser().absolute() / LOCK_NAME).stat()
    except FileNotFoundError:
        return False
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return any("FLOCK" in words and device in words for words in map(str.split, lines))


class DataDirectory:
    """Locks the folder from `__enter__` to `__exit__`."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        """Make the folder if needed, and take it.

        Raises:
            StoreError: another service has it, or it cannot be written.
        """
        try:
            make_folder(self.path)
            lock = (self.path / LOCK_NAME).open("a+", encoding="ascii", errors="replace")
        except OSError as exc:
            raise self._store_error("", exc) from exc
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            owner = _owner(lock)
            lock.close()
            raise StoreError(
                f"data directory {self.path} is in use by another Tidemark service{owner}: "
                "stop it, or give this one a --data-dir of its own",
                retryable=False,
            ) from exc
        except OSError as exc:  # a file system without locks
            lock.close()
            raise self._store_error("cannot be locked: ", exc) from exc
        self._lock = lock
        self._sign(lock)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()

    def _sign(self, lock: IO[str]) -> None:
        try:
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        except OSError as exc:
            lock.close()
            raise self._store_error("", exc) from exc

    def _store_error(self, doing: str, why: OSError) -> StoreError:
        reason = (why.strerror or str(why)).lower()
        return StoreError(f"data directory {self.path}: {doing}{reason}", retryable=False)


def _owner(lock: IO[str]) -> str:
    lock.seek(0)
    written = lock.read(20).strip()
    return f" (process {written})" if written.isdecimal() else ""
