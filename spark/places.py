"""The folder of history, on a disk or in an object store: the few things that are done to its files.

All of it goes through `pyarrow.fs`, in the driver as in every task, so that the night needs no Hadoop
and no connector to reach a store. What is written appears whole or not at all: under another name
first, flushed to the disk where that is a local one, then renamed. So whatever `run.json` names is
there, also after a loss of power.
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
class Found:
    """One file or folder."""

    name: str
    is_folder: bool
    size: int  # bytes; 0 for a folder
    changed: datetime  # aware, UTC


class Place:
    """A folder in some file system; every path below is relative to it."""

    def __init__(self, url: str) -> None:
        """Open it; nothing is asked yet.

        Args:
            url: a local path, or a URI as `pyarrow.fs.FileSystem.from_uri` takes it.

        Raises:
            OSError: the URI names no file system that is known here.
        """
        self.url = url
        try:
            if "://" in url:
                self.files, root = fs.FileSystem.from_uri(url)
            else:
                self.files, root = fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(url))  # noqa: PTH100, PTH111 - as text
        except (ValueError, pa.ArrowException) as exc:
            raise OSError(f"{url} names no place for history: {exc}") from exc
        self.root = root.rstrip("/")
        self._is_local = isinstance(self.files, fs.LocalFileSystem)

    def path(self, name: str) -> str:
        """Return a path as the file system takes it."""
        return f"{self.root}/{name}"

    def listed(self, folder: str) -> list[Found]:
        """Return what is in a folder, by name; nothing if it is not there."""
        chosen = fs.FileSelector(self.path(folder), allow_not_found=True)
        found = [_found(one) for one in self.files.get_file_info(chosen)]
        return sorted(found, key=lambda one: one.name)

    def find(self, name: str) -> Found | None:
        """Return what has a name; None if nothing has."""
        info = self.files.get_file_info(self.path(name))
        return None if info.type == fs.FileType.NotFound else _found(info)

    def read(self, name: str) -> bytes:
        """Return a whole file.

        Raises:
            OSError: it is not there, or cannot be read.
        """
        with self.files.open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, in place of another one."""
        with self.writing(name) as stream:
            stream.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Give a stream whose content gets the name only when all of it is written."""
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
        """Have a local disk keep a file, or the names in a folder, through a loss of power."""
        if not self._is_local:
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if it is gone."""
        info = self.files.get_file_info(self.path(name))
        if info.type == fs.FileType.Directory:
            self.files.delete_dir(self.path(name))
        elif info.type != fs.FileType.NotFound:
            self.files.delete_file(self.path(name))


def _found(info: fs.FileInfo) -> Found:
    changed = info.mtime or datetime.fromtimestamp(0, UTC)
    return Found(
        name=info.base_name,
        is_folder=info.type == fs.FileType.Directory,
        size=info.size or 0,
        changed=changed if changed.tzinfo else changed.replace(tzinfo=UTC),
    )
