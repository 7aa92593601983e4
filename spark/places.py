"""The folder of history, on a disk or in an object store, and the operations on its files.

All of them go through `pyarrow.fs`, in the driver as in every task, so that a baseline run needs neither
Hadoop nor a connector to reach a store. A file appears whole or not at all: it is written under another
name, flushed to disk if that is local, then renamed. So every file that `run.json` names exists, also after
a loss of power.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

UNFINISHED: Final = ".unfinished-"  # names that begin so are being written, or were left behind


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder."""

    name: str
    is_folder: bool
    size: int  # bytes; 0 for a folder
    changed: datetime  # aware, UTC


class Place:
    """A folder in some file system; every path below is relative to it."""

    def __init__(self, url: str) -> None:
        """Open it; nothing is read yet.

        Args:
            url: a local path, or a URI as `pyarrow.fs.FileSystem.from_uri` takes it.

        Raises:
            OSError: the URI names no file system that is known here.
        """
        try:
            if "://" in url:
                self.files, root = fs.FileSystem.from_uri(url)
            else:
                self.files, root = fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(url))  # noqa: PTH100, PTH111 - as text
        except (ValueError, pa.ArrowException) as exc:
            raise OSError(f"{url} names no place for history: {exc}") from exc
        self.root = root.rstrip("/")
        self.url = url if "://" in url else root  # the same for a process in another folder
        self._is_local = isinstance(self.files, fs.LocalFileSystem)

    def path(self, name: str) -> str:
        """Return a path as the file system takes it."""
        return f"{self.root}/{name}"

    def listed(self, folder: str) -> list[Entry]:
        """Return the entries of a folder, by name; none if it does not exist."""
        chosen = fs.FileSelector(self.path(folder), allow_not_found=True)
        files = [_entry_of(info) for info in self.files.get_file_info(chosen)]
        return sorted(files, key=lambda file: file.name)

    def find(self, name: str) -> Entry | None:
        """Return the entry of a name; None if there is none."""
        info = self.files.get_file_info(self.path(name))
        return None if info.type == fs.FileType.NotFound else _entry_of(info)

    def open(self, name: str) -> Any:
        """Open a file with random access.

        Raises:
            OSError: it is not there, or cannot be read now.
        """
        return self.files.open_input_file(self.path(name))

    def write(self, name: str, content: bytes) -> None:
        """Write a file as a whole, in place of an earlier one."""
        with self.writing(name) as stream:
            stream.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Give a stream; its content gets the name only when all of it is written."""
        folder, _, last = self.path(name).rpartition("/")
        self.files.create_dir(folder, recursive=True)
        unfinished = f"{folder}/{UNFINISHED}{uuid.uuid4().hex}-{last}"
        try:
            with self.files.open_output_stream(unfinished) as stream:
                yield stream
            self._flush(unfinished)
            self.files.move(unfinished, self.path(name))
        except BaseException:
            with suppress(OSError):
                self.files.delete_file(unfinished)
            raise
        self._flush(folder)

    def _flush(self, path: str) -> None:
        if self._is_local:
            flush(path)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content; do nothing if it does not exist."""
        info = self.files.get_file_info(self.path(name))
        if info.type == fs.FileType.Directory:
            self.files.delete_dir(self.path(name))
        elif info.type != fs.FileType.NotFound:
            self.files.delete_file(self.path(name))


def flush(path: str | os.PathLike[str]) -> None:
    """Have a local disk keep a file, or the names in a folder, through a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entry_of(info: fs.FileInfo) -> Entry:
    changed = info.mtime or datetime.fromtimestamp(0, UTC)
    return Entry(
        name=info.base_name,
        is_folder=info.type == fs.FileType.Directory,
        size=info.size or 0,
        changed=changed if changed.tzinfo else changed.replace(tzinfo=UTC),
    )
