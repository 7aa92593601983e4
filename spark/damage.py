"""Tells a damaged file from one that cannot be read now, so that nothing healthy is set aside or written over.

The same exceptions stand for both: pyarrow raises OSError for a checksum that does not fit, and for a store that
asks to slow down. So damage is proven by bytes: each was read twice, as many as the file has, and was
the same both times. Anything else, as a time-out, a missing right or a connection that broke off, is an OSError, and
whoever gets it leaves the file as it is. Nothing waits here: file systems of pyarrow repeat their requests themselves.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyarrow.fs import FileSystem

from spark.places import Place

# What pyarrow, and what is made of its columns, raises for content and for transport alike.
READ_ERRORS: Final = (OSError, pa.ArrowException, ValueError, KeyError)

T = TypeVar("T")


class DamagedError(Exception):
    """A file was read as it is stored, and cannot be used; the text says why."""


def read_proven(files: FileSystem, path: str, read: Callable[[Any], T]) -> T:
    """Return what `read` makes of a file; if that fails, it is called once more with checked bytes.

    `read` takes a file that is open, with random access, and raises one of `READ_ERRORS` for one that it cannot use.

    Raises:
        DamagedError: the file is proven to be damaged.
        OSError: it cannot be read now; FileNotFoundError: it is not there.
    """
    try:
        with files.open_input_file(path) as source:
            return read(source)
    except FileNotFoundError:
        raise
    except READ_ERRORS:
        return _read_checked(files, path, read)


def _read_checked(files: FileSystem, path: str, read: Callable[[Any], T]) -> T:
    try:
        source = files.open_input_file(path)
    except FileNotFoundError:
        raise
    except READ_ERRORS as exc:
        raise OSError(f"{path} cannot be read: {first_line(exc)}") from exc
    with CheckedFile(source) as checked:
        try:
            return read(checked)
        except READ_ERRORS as exc:
            if checked.error is not None:
                raise OSError(f"{path} cannot be read: {checked.error}") from exc
            raise DamagedError(first_line(exc)) from exc


class CheckedFile(io.RawIOBase):
    """A file of which each byte is read twice; `error` says what failed, None if all reads agreed."""

    def __init__(self, source: Any) -> None:
        """`source` is a file of pyarrow that is open; it is closed with this one."""
        super().__init__()
        self.error: str | None = None
        self._source = source
        self._size: int = source.size()
        self._place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set where the next read begins; OSError if that is before the file."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(f"{start + offset} is before the file")
        self._place = start + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, with fewer bytes only at the end of the file.

        Raises:
            OSError: they cannot be read, or not twice the same.
        """
        view = memoryview(buffer).cast("B")
        length = max(min(len(view), self._size - self._place), 0)
        view[:length] = self._read_twice(length)
        self._place += length
        return length

    def close(self) -> None:
        """Close both files."""
        self._source.close()
        super().close()

    def _read_twice(self, length: int) -> bytes:
        try:
            first, second = self._read(length), self._read(length)
        except READ_ERRORS as exc:
            self.error = first_line(exc)
            raise OSError(self.error) from exc
        if first != second:
            self.error = f"{length} bytes from {self._place} on are not the same twice"
            raise OSError(self.error)
        return first

    def _read(self, length: int) -> bytes:
        self._source.seek(self._place)
        content = bytes(self._source.read(length))
        if len(content) != length:
            raise OSError(f"{len(content)} of {length} bytes came from {self._place} on")
        return content


class CheckedPlace(Place):
    """A folder whose files are read as checked ones."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._opened: list[tuple[str, CheckedFile]] = []
        self._errors: list[str] = []

    def open(self, name: str) -> CheckedFile:
        """Open a file, each byte of which is read twice."""
        try:
            opened = CheckedFile(super().open(name))
        except READ_ERRORS as exc:
            self._errors.append(f"{name} cannot be read: {first_line(exc)}")
            raise
        self._opened.append((name, opened))
        return opened

    @contextmanager
    def proving(self) -> Iterator[None]:
        """Let a `DamagedError` of these files pass only if all of their reads succeeded.

        Raises:
            OSError: one did not, so that nothing is proven.
        """
        try:
            yield
        except DamagedError as exc:
            for name, file in self._opened:
                if file.error is not None:
                    self._errors.append(f"{name} cannot be read: {file.error}")
            if self._errors:
                raise OSError(self._errors[0]) from exc
            raise


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, its type if it has none."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
