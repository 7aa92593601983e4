"""Files that are held open from pass to pass, so that one can be read whose name is gone.

Only a cache: what is lost with it is at most the end of a file that was removed in the meantime.
Files are read one after the other, so that few are open at a time, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from collectors.broker_log.files import FileId, Files, FileStat, OpenFile, ReadFailure
from collectors.broker_log.positions import HEAD
from rules.facts.gap import GapCause

# Files at most between two passes, and as many more within one; a process may often open 1024.
HELD: Final = 64


class Handles:
    """Opens files once; `keep` says which of them stay open for the next pass."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._held: dict[FileId, OpenFile] = {}  # since an earlier pass
        self._opened: dict[FileId, OpenFile] = {}  # in this pass, oldest first
        self._heads: dict[FileId, bytes | None] = {}  # of this pass

    def open(self, file: FileStat) -> OpenFile | ReadFailure:
        """Return a file to be read at once; a failure if another file has its path by now."""
        already_open = self._find_open(file.id)
        if already_open is not None:
            return already_open
        opened = self._open(file)
        if not isinstance(opened, ReadFailure):
            if len(self._opened) >= HELD:
                self._opened.pop(next(iter(self._opened))).close()
            self._opened[file.id] = opened
        return opened

    def held(self, id_: FileId) -> FileStat | None:
        """Return the present state of a file that is held open, None if it is not."""
        held = self._find_open(id_)
        now = None if held is None else held.stat()
        return now if isinstance(now, FileStat) else None

    def head_of(self, file: FileStat) -> bytes | None:
        """Return a file's first bytes; None where they cannot be read."""
        if file.id not in self._heads:
            self._heads[file.id] = self._head_of(file)
        return self._heads[file.id]

    def keep(self, ids: Sequence[FileId]) -> None:
        """Close all files except these, of which the first `HELD` stay open."""
        self._heads.clear()
        opened = {**self._held, **self._opened}
        present = [id_ for id_ in dict.fromkeys(ids) if id_ in opened]
        self._held = {id_: opened.pop(id_) for id_ in present[:HELD]}
        self._opened = {}
        for file in opened.values():
            file.close()

    def close(self) -> None:
        """Close all files."""
        self.keep([])

    def _find_open(self, id_: FileId) -> OpenFile | None:
        return self._held.get(id_) or self._opened.get(id_)

    def _head_of(self, file: FileStat) -> bytes | None:
        already_open = self._find_open(file.id)
        opened = self._open(file) if already_open is None else already_open
        if isinstance(opened, ReadFailure):
            return None
        head = opened.read(0, HEAD)
        if already_open is None:
            opened.close()
        return None if isinstance(head, ReadFailure) else head

    def _open(self, file: FileStat) -> OpenFile | ReadFailure:
        opened = self._files.open(file.path)
        if isinstance(opened, ReadFailure):
            return opened
        now = opened.stat()
        if isinstance(now, FileStat) and now.id == file.id:
            return opened
        opened.close()
        why = f"{file.path} was renamed while it was checked"
        renamed = ReadFailure(why=why, cause=GapCause.GONE, is_transient=True)
        return now if isinstance(now, ReadFailure) else renamed
