"""Files that are held open from look to look, so that one can be read whose name is gone.

Only a cache: what is lost with it is at most the end of a file that was removed in the meantime.
"""

from __future__ import annotations

from typing import Final

from collectors.broker_log.files import FileId, Files, FileStat, OpenFile, Trouble
from collectors.broker_log.positions import HEAD
from rules.facts.gap import GapCause

HELD: Final = 64  # files at most between two looks; a process may often open no more than 1024


class Handles:
    """Opens files once; `keep` says which of them stay open for the next look."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: dict[FileId, OpenFile] = {}
        self._heads: dict[FileId, bytes | None] = {}  # of this look

    def open(self, file: FileStat) -> OpenFile | Trouble:
        """Return a file to be read; another one that has its path by now is none."""
        held = self._open.get(file.id)
        if held is not None:
            return held
        opened = self._files.open(file.path)
        if isinstance(opened, Trouble):
            return opened
        now = opened.stat()
        if isinstance(now, FileStat) and now.id == file.id:
            self._open[file.id] = opened
            return opened
        opened.close()
        why = f"{file.path} was renamed while it was looked at"
        return now if isinstance(now, Trouble) else _passing(why)

    def held(self, id_: FileId) -> FileStat | None:
        """Return how a file is now that is held open, None if it is not."""
        held = self._open.get(id_)
        now = None if held is None else held.stat()
        return now if isinstance(now, FileStat) else None

    def head_of(self, file: FileStat) -> bytes | None:
        """Return a file's first bytes; None where they cannot be read."""
        if file.id not in self._heads:
            opened = self.open(file)
            head = opened if isinstance(opened, Trouble) else opened.read(0, HEAD)
            self._heads[file.id] = head if isinstance(head, bytes) else None
        return self._heads[file.id]

    def keep(self, wanted: list[FileId]) -> None:
        """Close all files but these, of which the first `HELD` stay."""
        self._heads.clear()
        stay = set(wanted[:HELD])
        for id_ in [one for one in self._open if one not in stay]:
            self._open.pop(id_).close()

    def close(self) -> None:
        """Close all files."""
        self.keep([])


def _passing(why: str) -> Trouble:
    return Trouble(why=why, cause=GapCause.GONE, is_passing=True)
