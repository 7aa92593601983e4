"""The port to a file system with brokers' logs, and its values.

A file is identified by device and inode, never by its name alone: a rotation gives a file another name,
and another file its name. What cannot be read is a `ReadFailure`, a value, since one unreadable file
does not affect the others.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from rules.facts.gap import GapCause

COMPRESSED: Final = (
    (b"\x1f\x8b", "compressed with gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"\x1f\x9d", "compressed with compress"),
    (b"PK\x03\x04", "a zip archive"),
)
# What a file begins with whose bytes are no lines.
MAGIC: Final = (
    *COMPRESSED,
    (codecs.BOM_UTF16_LE, "UTF-16 text"),
    (codecs.BOM_UTF16_BE, "UTF-16 text"),
)


class FileId(NamedTuple):
    """Which file it is, whatever it is called; an inode is used again after its file is gone."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """A regular file as it is now."""

    path: str  # absolute, without symbolic links
    id: FileId
    size: int  # bytes
    modified_ns: int  # since 1970, by the clock of the file system


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """Why something could not be read."""

    why: str  # for a person, one line, naming the file
    cause: GapCause
    is_transient: bool = False  # the next pass may well succeed


class OpenFile(Protocol):
    """A file that is held open: it can be read to its end whatever becomes of its name."""

    def stat(self) -> FileStat | ReadFailure:
        """Return its present size, id and modification time."""

    def read(self, offset: int, size: int) -> bytes | ReadFailure:
        """Return up to `size` bytes from an offset; fewer only at the end."""

    def close(self) -> None:
        """Let it go."""


class Files(Protocol):
    """Where log files lie."""

    def matching(self, pattern: str) -> Sequence[str] | ReadFailure:
        """Return the paths that a pattern matches, ordered; none is no error."""

    def stat(self, path: str) -> FileStat | ReadFailure:
        """Return a file as it is, following symbolic links; what is no regular file is an error."""

    def folder_of(self, path: str) -> Sequence[FileStat] | ReadFailure:
        """Return all regular files in the folder of a path that has no symbolic links."""

    def open(self, path: str) -> OpenFile | ReadFailure:
        """Open a regular file to be read; never blocks."""


def packing_of(head: bytes) -> str | None:
    """Return the format of a file by its first bytes, None if it may hold plain lines."""
    return next((name for magic, name in MAGIC if head.startswith(magic)), None)


def compression_of(head: bytes) -> str | None:
    """Return the compression of a file by its first bytes, None if there is none."""
    return next((name for magic, name in COMPRESSED if head.startswith(magic)), None)
