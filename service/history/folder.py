"""The folder of history: on a local disk, or in an object store that pyarrow knows by its address.

All paths are names below the folder, as `rules.baseline.layout` gives them. A file is written under
another name, flushed to disk if that is local, and renamed: a reader finds it whole or not at all. Files
that are proven to be damaged (`spark.damage`) are set aside under `aside/`, where nothing reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from pyarrow import fs as pa_fs

from rules.baseline.layout import HISTORY_FILE
from rules.baseline.packed import FORMAT
from rules.errors import StoreError
from spark.damage import READ_ERRORS, DamagedError, first_line, read_proven
from spark.places import flush

ASIDE: Final = "aside"
TEMPORARY: Final = ".part-"  # begins the name of a file that is being written
BUCKETS: Final = 32  # of a new folder
NOT_WHOLE: Final = (
    "is not whole: `tidemark sandbox history` is still writing it, or was interrupted; wait for its "
    "end, run it again, or remove the folder"
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The description of a folder; it never changes, except that it becomes whole once."""

    cluster: str  # the configured name; a folder holds one cluster
    time_zone: str = "UTC"  # IANA: in which its days are cut
    buckets: int = BUCKETS
    format: int = FORMAT
    is_whole: bool = True  # False while weeks are simulated: there are days that lack files


class Folder:
    """A folder of history that exists and has a known format."""

    def __init__(self, url: str, files: Any, described: Described, local: Path | None) -> None:
        """`files` is a pyarrow file system with the folder as root; `local`: its path, if on a local disk."""
        self.url = url
        self.files = files
        self.described = described
        self.local = local

    @property
    def buckets(self) -> int:
        """Return into how many files a day is divided."""
        return self.described.buckets

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder in order, without files that are being written.

        Raises:
            StoreError: the folder cannot be listed; one that does not exist is empty.
        """
        with store_errors(self.url):
            infos = self.files.get_file_info(
                pa_fs.FileSelector(folder, recursive=False, allow_not_found=True)
            )
        names = (str(info.base_name) for info in infos)
        return sorted(name for name in names if not name.startswith(TEMPORARY))

    def size(self, path: str) -> int | None:
        """Return the size of a file, None if there is none.

        Raises:
            StoreError: the folder cannot be read.
        """
        with store_errors(self.url):
            info = self.files.get_file_info(path)
        return int(info.size) if info.type == pa_fs.FileType.File else None

    def read(self, path: str, read: Callable[[Any], T]) -> T:
        """Return what `read` makes of a file that is open; see `spark.damage.read_proven`.

        Raises:
            DamagedError: the file is proven to be damaged.
            StoreError: it cannot be read now.
        """
        with store_errors(self.url):
            return read_proven(self.files, path, read)

    def describe(self, described: Described) -> Folder:
        """Write the folder's description, and make the folder if it does not exist; return it with that.

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
        """Write a file as a whole, in place of an earlier one: `fill` is called with the stream.

        Raises:
            StoreError: it cannot be written; the earlier file stays.
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
        """Remove a file; do nothing if there is none.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url), suppress(FileNotFoundError):
            self.files.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with its content; do nothing if there is none.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url), suppress(FileNotFoundError):
            self.files.delete_dir(path)

    def clear_parts(self, folder: str) -> None:
        """Remove unfinished files of earlier processes, in a folder that only one process writes to.

        Raises:
            StoreError: it cannot be removed.
        """
        with store_errors(self.url):
            selector = pa_fs.FileSelector(folder, recursive=False, allow_not_found=True)
            for info in self.files.get_file_info(selector):
                if info.base_name.startswith(TEMPORARY):
                    self.files.delete_file(info.path)

    def set_aside(self, path: str, *, stays: bool = False) -> None:
        """Move a damaged file to `aside/`, or copy it there if it `stays` until it is replaced.

        Raises:
            StoreError: it cannot be moved.
        """
        aside = f"{ASIDE}/{path}"
        with store_errors(self.url):
            self.files.create_dir(aside.rpartition("/")[0], recursive=True)
            (self.files.copy_file if stays else self.files.move)(path, aside)

    def _flush(self, path: str) -> None:
        """Have a local disk keep a file, or the names in a folder, through a loss of power."""
        if self.local is not None:
            flush(self.local / path)


def open_folder(url: str, new: Described | None = None) -> Folder:
    """Open a folder of history: a local path, or an address such as s3://bucket/folder.

    With `new` the folder is made if there is none, and must belong to that cluster and time zone; an
    existing one keeps its number of buckets.

    Raises:
        StoreError: there is no such folder, it is away, it belongs to another cluster, or it is not whole.
    """
    folder = open_if_any(url, new)
    return _create(url, new) if folder is None else folder


def open_if_any(url: str, expected: Described | None) -> Folder | None:
    """Open a folder of history that is there; None if there is none, and nothing is made.

    Raises:
        StoreError: it is away, it belongs to another cluster, or it is not whole.
    """
    folder = find_folder(url)
    if folder is None:
        return None
    if expected is not None:
        _check(folder.url, folder.described, expected)
    if not folder.described.is_whole:
        raise StoreError(f"history at {folder.url} {NOT_WHOLE}", retryable=False)
    return folder


def find_folder(url: str) -> Folder | None:
    """Return a folder of history, whole or not; None if there is none.

    Raises:
        StoreError: it is away, or cannot be read.
    """
    bare = bare_folder(url, Described(cluster=""))
    if bare.size(HISTORY_FILE) is None:
        return None
    try:
        described = bare.read(HISTORY_FILE, _described)
    except DamagedError as exc:
        what = f"history at {bare.url}: {HISTORY_FILE} is damaged"
        raise StoreError(what, retryable=False) from exc
    if described.format != FORMAT:
        raise StoreError(
            f"history at {bare.url} has format {described.format}, and this version reads {FORMAT}",
            retryable=False,
        )
    return Folder(bare.url, bare.files, described, bare.local)


def bare_folder(url: str, described: Described) -> Folder:
    """Return a folder that may become one of history: nothing is read, and nothing written.

    Raises:
        StoreError: the address names no known file system.
    """
    with store_errors(shown_url(url)):
        files, local = _file_system(url)
    return Folder(shown_url(url), files, described, local)


def shown_url(url: str) -> str:
    """Return an address without the parts that may be secret."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Translate errors of pyarrow and the system into ours.

    Raises:
        StoreError: with the folder's address.
    """
    try:
        yield
    except READ_ERRORS as exc:
        raise StoreError(f"history at {url}: {first_line(exc)}", retryable=True) from exc


def _file_system(url: str) -> tuple[Any, Path | None]:
    if "://" in url:
        base, path = pa_fs.FileSystem.from_uri(url)
    else:
        base, path = pa_fs.LocalFileSystem(), str(Path(url).expanduser().absolute())
    local = Path(path) if isinstance(base, pa_fs.LocalFileSystem) else None
    return pa_fs.SubTreeFileSystem(path, base), local


def _create(url: str, new: Described | None) -> Folder:
    if new is None:
        raise StoreError(
            f"history at {shown_url(url)}: there is none: its {HISTORY_FILE} is missing",
            retryable=False,
        )
    return bare_folder(url, new).describe(new)


def _described(source: Any) -> Described:
    """Parse a folder's description; a ValueError or KeyError if it is none."""
    try:
        content = json.loads(source.read())
        return Described(
            cluster=str(content["cluster"]),
            time_zone=str(content.get("time_zone", "UTC")),
            buckets=int(content["buckets"]),
            format=int(content["format"]),
            is_whole=bool(content.get("is_whole", True)),
        )
    except (TypeError, AttributeError) as exc:
        raise ValueError("it describes no folder of history") from exc


def _check(url: str, stored: Described, expected: Described) -> None:
    for what, setting, theirs, ours in (
        ("is of the cluster", "kafka.name", stored.cluster, expected.cluster),
        ("has days of the time zone", "history.time_zone", stored.time_zone, expected.time_zone),
    ):
        if theirs != ours:
            raise StoreError(
                f"history at {url} {what} {theirs}, not {ours}: "
                f"set {setting} back, or give another history.url",
                retryable=False,
            )
