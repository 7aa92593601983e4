"""Positions up to which log files were read, stored with a round as text.

A file is recognized by device, inode and its first bytes, since an inode is used again. Of each log the
files that were read lately are kept, so that none is read twice after a rename; older ones are
recognized by their modification time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from collectors.broker_log.files import FileId, FileStat

FORMAT: Final = 1
HEAD: Final = 1024  # bytes at most by which a file is known: some lines with their times
FILES_KEPT: Final = 32  # of each log: more than a day of hourly rotations


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMark:
    """A file, and up to where it was read."""

    id: FileId
    offset: int = 0  # the next byte to read; it begins a line
    head: str = ""  # digest of its first `head_length` bytes, `HEAD` at most
    head_length: int = 0  # 0: not a whole line, so that it cannot be distinguished from others
    size: int = 0  # when it was last checked
    modified_ns: int = 0  # likewise
    is_skipping: bool = False  # `offset` is within a line that is too long
    is_packed: bool = False  # it was reported, and is not read
    is_nameless: bool = False  # it was read to its end when its name was gone already

    @property
    def is_read(self) -> bool:
        """Whether nothing of it waited when it was last checked, but for a begun line."""
        return self.offset >= self.size or self.is_packed

    def seen_as(self, file: FileStat) -> FileMark:
        """Return it with the file's present id, size and modification time."""
        return replace(self, id=file.id, size=file.size, modified_ns=file.modified_ns)

    def known_by(self, head: bytes) -> FileMark:
        """Return it with a file's first bytes, if they are more than it knows.

        Only whole lines count: many logs begin with the same date.
        """
        is_whole = len(head) >= HEAD or self.is_packed
        whole = head if is_whole else head[: head.rfind(b"\n") + 1]
        if len(whole) <= self.head_length:
            return self
        return replace(self, head=digest(whole), head_length=len(whole))

    def begins_like(self, head: bytes) -> bool:
        """Whether a file begins with the bytes that are known of this one."""
        beginning = head[: self.head_length]
        return len(beginning) == self.head_length and (
            not beginning or digest(beginning) == self.head
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMark:
    """A log: the file under its name, and those that were rotated away."""

    files: tuple[FileMark, ...] = ()  # oldest first
    old_before_ns: int = 0  # a rotated file that is not listed and older than this is not read
    parser: str | None = None  # what its parser remembers between two lines; None: nothing
    path: str = ""  # where it lay at the last pass, without symbolic links
    begins_at_end: bool = False  # nothing of it could be read yet, and what is there is not news
    is_absent: bool = False  # there was none of its files at the last pass; they may come back
    has_grown: bool = False  # under its own name, so that it is no rotated file of another log

    def bounded(self, most: int = FILES_KEPT) -> LogMark:
        """Return it without the oldest files that were read, if there are too many."""
        dropped = self.files[: max(len(self.files) - most, 0)]
        files = tuple(file for file in dropped if not file.is_read) + self.files[len(dropped) :]
        newest = max((file.modified_ns for file in dropped if file.is_read), default=-1)
        return replace(self, files=files, old_before_ns=max(self.old_before_ns, newest + 1))

    def grown_to(self, live: FileStat) -> LogMark:
        """Return it with `has_grown` if the file under its own name is longer than before."""
        is_longer = self.is_in(live) and live.size > self.files[-1].size
        return replace(self, has_grown=True) if is_longer else self

    def is_in(self, live: FileStat) -> bool:
        """Whether it still goes on in the file that has its name."""
        return bool(self.files) and self.files[-1].id == live.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMark:
    """All logs that one pattern matched."""

    logs: Mapping[str, LogMark] = field(default_factory=dict)  # by path
    old_before_ns: int = 0  # a log that is not listed and older than this is not read

    @property
    def newest_ns(self) -> int:
        """When the newest file of it was last modified, as of the last pass."""
        times = (file.modified_ns for log in self.logs.values() for file in log.files)
        return max(times, default=-1)


Position = Mapping[str, SourceMark]  # by the source's name


def digest(head: bytes) -> str:
    """Return a digest of a file's first bytes."""
    return blake2b(head, digest_size=8).hexdigest()


def encode(position: Position) -> str:
    """Return a position as text of format `FORMAT`."""
    sources = {
        name: [
            source.old_before_ns,
            {path: _log_text(log) for path, log in source.logs.items()},
        ]
        for name, source in position.items()
    }
    return json.dumps({"format": FORMAT, "sources": sources}, separators=(",", ":"))


def decode(text: str) -> Position:
    """Return what `encode` was given.

    Raises:
        ValueError: it is of another format, or damaged.
    """
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']} is not known here")
        return {str(name): _source(source) for name, source in document["sources"].items()}
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as exc:
        raise ValueError("it is damaged") from exc


def _log_text(log: LogMark) -> list[Any]:
    flags = int(log.begins_at_end) + 2 * int(log.is_absent) + 4 * int(log.has_grown)
    files = [_file_text(file) for file in log.files]
    return [log.path, log.old_before_ns, log.parser, flags, files]


def _file_text(file: FileMark) -> list[Any]:
    flags = int(file.is_skipping) + 2 * int(file.is_packed) + 4 * int(file.is_nameless)
    place = [*file.id, file.offset, file.head, file.head_length]
    return [*place, file.size, file.modified_ns, flags]


def _source(values: list[Any]) -> SourceMark:
    old_before_ns, logs = values
    return SourceMark(
        logs={str(path): _log(log) for path, log in logs.items()},
        old_before_ns=int(old_before_ns),
    )


def _log(values: list[Any]) -> LogMark:
    path, old_before_ns, parser, flags, files = values
    return LogMark(
        files=tuple(map(_file, files)),
        old_before_ns=int(old_before_ns),
        parser=None if parser is None else str(parser),
        path=str(path),
        begins_at_end=bool(int(flags) & 1),
        is_absent=bool(int(flags) & 2),
        has_grown=bool(int(flags) & 4),
    )


def _file(values: list[Any]) -> FileMark:
    device, inode, offset, head, head_length, size, modified_ns, flags = values
    return FileMark(
        id=FileId(int(device), int(inode)),
        offset=int(offset),
        head=str(head),
        head_length=int(head_length),
        size=int(size),
        modified_ns=int(modified_ns),
        is_skipping=bool(int(flags) & 1),
        is_packed=bool(int(flags) & 2),
        is_nameless=bool(int(flags) & 4),
    )
