"""The folder of history: on a local disk, or in an object store that pyarrow knows by its address.

All paths are names below the folder, as `rules.baseline.layout` gives them. A file is written under
another name, flushed to the disk where that is a local one, and renamed: a reader finds it whole or
not at all. What cannot be read is set aside under `aside/`, where nobody reads it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs as pa_fs

from rules.baseline.layout import HISTORY_FILE
from rules.baseline.packed import FORMAT
from rules.errors import StoreError

ASIDE: Final = "aside"
TEMPORARY: Final = ".part-"  # begins the name of a file that is being written
BUCKETS: Final = 32  # of a new folder
NOT_WHOLE: Final = (
    "is not whole: `tidemark sandbox history` is still writing it, or was broken off; wait for its "
    "end, run it again, or remove the folder"
)

# What pyarrow raises: for files OSError, for what is in them ArrowException, which is a ValueError
# or an OSError or its own.
READ_ERRORS: Final = (OSError, pa.ArrowException, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a folder says of itself; it never changes, but for being made whole once."""

    cluster: str  # the configured name; a folder holds one cluster
    time_zone: str = "UTC"  # IANA: in which its days are cut
    buckets: int = BUCKETS
    format: int = FORMAT
    is_whole: bool = True  # False while weeks are simulated: there are days that lack files


class Folder:
    """A folder of history that exists and is understood."""

    def __init__(self, url: str, files: Any, described: Described, local: Path | None) -> None:
        """`files` is a file system of pyarrow whose root is the folder; `local`: where that is."""
        self.url = url
        self.files = files
        self.described = described
        self.local = local

    @property
    def buckets(self) -> int:
        """Return into how many files a day is divided."""
        return self.described.buckets

    # -------------------------------------------------------------- looking
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder in their order, without files that are being written.

        Raises:
            StoreError: the folder cannot be listed; one that does not exist is empty.
        """
        with store_errors(self.url):
            found = self.files.get_file_info(
                pa_fs.FileSelector(folder, recursive=False, allow_not_found=True)
            )
        names = (str(one.base_name) for one in found)
        return sorted(name for name in names if not name.startswith(TEMPORARY))

    def size(self, path: str) -> int | None:
        """Return how long a file is, None if there is none.

        Raises:
            StoreError: the folder cannot be asked.
        """
        with store_errors(self.url):
            found = self.files.get_file_info(path)
        return int(found.size) if found.type == pa_fs.FileType.File else None

    def read(self, path: str) -> bytes:
        """Return what a file holds.

        Raises:
            StoreError: it cannot be read.
        """
        with store_errors(self.url), self.files.open_input_stream(path) as stream:
            return bytes(stream.read())

    # -------------------------------------------------------------- changing
    def describe(self, described: Described) -> Folder:
        """Let the folder, which is made if need be, say this of itself; return it so.

        Raises:
            StoreError: it cannot be written.
        """
        text = json.dumps(asdict(described), indent=1).encode() + b"\n"
        if self.local is not None:
            with store_errors(self.url):
                self.local.mkdir(parents=True, exist_ok=True)
        self.write(HISTORY_FILE, lambda stream: stream.write(text))
        return Folder(self.url, self.files, described, self.local)

    def write(self, path: str, fill: Callable[[Any], None]) -> None:
        """Write a file whole: `fill` is given the stream. What stood there before is replaced.

        Raises:
            StoreError: it cannot be written; what stood there still does.
        """
        folder, slash, name = path.rpartition("/")
        part = f"{folder}{slash}{TEMPORARY}{name}-{uuid4().hex[:8]}"
        with store_errors(self.url):
            if folder:
                self.files.create_dir(folder, recursive=True)
            try:
                with self.files.open_output_stream(part) as stream:
                    fill(stream)
                self._flush(part)
                self.files.move(part, path)
            except BaseException:
                with suppress(*READ_ERRORS):
                    self.files.delete_file(part)
                raise
            self._flush(folder)

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is removed already.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url), suppress(FileNotFoundError):
            self.files.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; one that is not there is removed already.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url), suppress(FileNotFoundError):
            self.files.delete_dir(path)

    def clear_parts(self, folder: str) -> None:
        """Remove what earlier processes left half written in a folder that only one writes to.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url):
            selector = pa_fs.FileSelector(folder, recursive=False, allow_not_found=True)
            for one in self.files.get_file_info(selector):
                if one.base_name.startswith(TEMPORARY):
                    self.files.delete_file(one.path)

    def set_aside(self, path: str) -> str:
        """Move a damaged file to where nobody reads it; return its new name.

        Raises:
            StoreError: it cannot be moved.
        """
        aside = f"{ASIDE}/{path}"
        with store_errors(self.url):
            self.files.create_dir(aside.rpartition("/")[0], recursive=True)
            self.files.move(path, aside)
        return aside

    def _flush(self, path: str) -> None:
        """Have a local disk keep a file, or the names in a folder, through a loss of power."""
        if self.local is None:
            return
        descriptor = os.open(self.local / path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_folder(url: str, new: Described | None = None) -> Folder:
    """Open a folder of history: a local path, or an address such as s3://bucket/folder.

    With `new` the folder is made if there is none, and has to be of that cluster and time zone; its
    number of buckets stays what it is.

    Raises:
        StoreError: there is no such folder, it is away, it is another one's, or it is not whole.
    """
    found = find_folder(url)
    if found is None:
        return _wanted(url, new)
    if new is not None:
        _check(found.url, found.described, new)
    if not found.described.is_whole:
        raise StoreError(f"history at {found.url} {NOT_WHOLE}", retryable=False)
    return found


def find_folder(url: str) -> Folder | None:
    """Return a folder of history, whole or not; None if there is none.

    Raises:
        StoreError: it is away, or cannot be read.
    """
    bare = bare_folder(url, Described(cluster=""))
    if bare.size(HISTORY_FILE) is None:
        return None
    described = _described(bare.url, bare.read(HISTORY_FILE))
    return Folder(bare.url, bare.files, described, bare.local)


def bare_folder(url: str, described: Described) -> Folder:
    """Return what may become a folder of history: nothing is asked of it, and nothing written.

    Raises:
        StoreError: the address names no file system that is known here.
    """
    with store_errors(shown_url(url)):
        files, local = _file_system(url)
    return Folder(shown_url(url), files, described, local)


def shown_url(url: str) -> str:
    """Return an address without what may be a secret in it."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn what pyarrow and the system raise into an error of ours.

    Raises:
        StoreError: with the folder's address.
    """
    try:
        yield
    except READ_ERRORS as exc:
        why = next(iter(str(exc).splitlines()), "") or type(exc).__name__
        raise StoreError(f"history at {url}: {why}", retryable=True) from exc


def _file_system(url: str) -> tuple[Any, Path | None]:
    if "://" in url:
        base, path = pa_fs.FileSystem.from_uri(url)
    else:
        base, path = pa_fs.LocalFileSystem(), str(Path(url).expanduser().absolute())
    local = Path(path) if isinstance(base, pa_fs.LocalFileSystem) else None
    return pa_fs.SubTreeFileSystem(path, base), local


def _wanted(url: str, new: Described | None) -> Folder:
    if new is None:
        raise StoreError(
            f"history at {shown_url(url)}: there is none: its {HISTORY_FILE} is missing",
            retryable=False,
        )
    return bare_folder(url, new).describe(new)


def _described(url: str, text: bytes) -> Described:
    try:
        told = json.loads(text)
        described = Described(
            cluster=str(told["cluster"]),
            time_zone=str(told.get("time_zone", "UTC")),
            buckets=int(told["buckets"]),
            format=int(told["format"]),
            is_whole=bool(told.get("is_whole", True)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise StoreError(f"history at {url}: {HISTORY_FILE} is damaged", retryable=False) from exc
    if described.format != FORMAT:
        raise StoreError(
            f"history at {url} has format {described.format}, and this version reads {FORMAT}",
            retryable=False,
        )
    return described


def _check(url: str, found: Described, wanted: Described) -> None:
    for what, setting, theirs, ours in (
        ("is of the cluster", "kafka.name", found.cluster, wanted.cluster),
        ("has days of the time zone", "history.time_zone", found.time_zone, wanted.time_zone),
    ):
        if theirs != ours:
            raise StoreError(
                f"history at {url} {what} {theirs}, not {ours}: "
                f"set {setting} back, or give another history.url",
                retryable=False,
            )
