"""Finds what there is to read of a log: the first time, as usual, and after a rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from collectors.broker_log.files import FileId, Files, FileStat, ReadFailure, packing_of
from collectors.broker_log.handles import Handles
from collectors.broker_log.log_reading import LogReading, end_of
from collectors.broker_log.positions import FileMark, LogMark, SourceMark
from collectors.broker_log.rotated_names import is_rotated
from collectors.broker_log.rotation import (
    LogFolder,
    Plan,
    Step,
    begins_like_any,
    is_same,
    plan,
    rotated_before,
)
from rules.facts.gap import GapCause

SCANS: Final = 5  # of a folder, until two in a row agree: it is not listed at one time
ABSENT_FILES_KEPT: Final = 2  # of a log that is not there: those by which it is known again


class Scan(NamedTuple):
    """A folder as it was listed once."""

    files: Sequence[FileStat]
    names: frozenset[tuple[str, FileId]]


class LogFinder:
    """Finds logs within one pass; folders are listed once, and only after a rotation."""

    def __init__(self, files: Files, handles: Handles, *, read_existing: bool) -> None:
        self._files = files
        self._handles = handles
        self._read_existing = read_existing
        self._scans: dict[str, list[Scan]] = {}  # by folder

    def find(
        self, path: str, source: SourceMark | None, *, beside: Sequence[str] = ()
    ) -> LogReading:
        """Return what is to be read of the log at a path.

        Args:
            path: its own name, as the pattern gave it or an earlier pass knew it.
            source: the mark of its source; None at the first pass.
            beside: the logs of its source, itself among them.
        """
        stored = None if source is None else source.logs.get(path)
        live = self._files.stat(path)
        is_gone = isinstance(live, ReadFailure) and live.cause is GapCause.GONE
        error = live if isinstance(live, ReadFailure) else self._check_packed(live)
        if error is not None and not is_gone:
            return _report_unread(_mark_to_remember(stored, source), error)
        if stored is not None and isinstance(live, FileStat):
            stored = stored.grown_to(live)
        if stored is not None and isinstance(live, FileStat) and self._is_as_before(stored, live):
            step = Step(file=live, mark=stored.files[-1])
            return LogReading(stored, Plan(steps=(step,)), earlier=stored.files[:-1])
        real = live.path if isinstance(live, FileStat) else (stored and stored.path) or path
        folder = self._folder(real, stored)
        if isinstance(folder, ReadFailure):
            log_plan = Plan(steps=(), errors=(folder,))
            return LogReading(
                _mark_to_remember(stored, source), log_plan, is_behind=folder.is_transient
            )
        others = _others(real, beside, source)
        return self._find_among(self._log_folder(real, folder, others), stored, source)

    def _is_as_before(self, stored: LogMark, live: FileStat) -> bool:
        """Whether no rotation has happened, as far as the file itself shows."""
        if not stored.files or stored.begins_at_end or stored.path != live.path:
            return False
        *earlier, last = stored.files
        is_it = last.id == live.id and last.head_length > 0 and live.size >= last.size
        if not is_it or not is_same(live, last, self._handles.head_of(live)):
            return False
        return all(mark.is_read and not self._has_grown(mark) for mark in earlier)

    def _has_grown(self, mark: FileMark) -> bool:
        held = self._handles.held(mark.id)
        return held is not None and held.size > mark.size

    def _check_packed(self, live: FileStat) -> ReadFailure | None:
        kind = packing_of(self._handles.head_of(live) or b"")
        why = f"{live.path} is {kind}: only plain lines are read"
        return None if kind is None else ReadFailure(why=why, cause=GapCause.UNREADABLE)

    def _folder(self, path: str, stored: LogMark | None) -> Sequence[FileStat] | ReadFailure:
        """Return the files beside a log, once two scans in a row agree on those that may be its own.

        Changes to other files are not waited for, except to ids of files that were read; but for ever
        neither, since an inode is used again.
        """
        ids = {mark.id for mark in stored.files} if stored is not None else set()
        for number in range(2, SCANS + 1):
            scans = self._scan_folder(path, number)
            if isinstance(scans, ReadFailure):
                return scans
            changed = scans[-2].names ^ scans[-1].names
            is_own = any(name == path or is_rotated(name, path) for name, _ in changed)
            is_known = any(id_ in ids for _, id_ in changed)
            if not is_own and (not is_known or len(scans) == SCANS):
                return scans[-1].files
        why = f"{path}: its files were renamed again and again while their folder was listed"
        return ReadFailure(why=why, cause=GapCause.LIMIT, is_transient=True)

    def _scan_folder(self, path: str, number: int) -> Sequence[Scan] | ReadFailure:
        """Return the scans of a path's folder, so many at least."""
        scans = self._scans.setdefault(path.rpartition("/")[0], [])
        while len(scans) < number:
            files = self._files.folder_of(path)
            if isinstance(files, ReadFailure):
                return files
            scans.append(Scan(files, frozenset((file.path, file.id) for file in files)))
        return scans

    def _log_folder(
        self, path: str, folder: Sequence[FileStat], others: Sequence[str]
    ) -> LogFolder:
        return LogFolder(
            path=path,
            live=next((file for file in folder if file.path == path), None),
            folder=folder,
            others=others,
            head_of=self._handles.head_of,
            held=self._handles.held,
        )

    def _find_among(
        self, log_folder: LogFolder, stored: LogMark | None, source: SourceMark | None
    ) -> LogReading:
        if source is None or (stored is not None and stored.begins_at_end):
            return self._begin(log_folder, at_end=not self._read_existing)
        if stored is None:
            return self._begin_new(log_folder, source)
        log_plan = plan(stored, log_folder)
        if log_folder.live is None and not log_plan.steps:
            return _forget_absent(stored, log_folder.path)
        return LogReading(replace(stored, path=log_folder.path, is_absent=False), log_plan)

    def _begin_new(self, log_folder: LogFolder, source: SourceMark) -> LogReading:
        """Begin a log that appeared after the first pass: all of it is new, unless it is a copy."""
        if log_folder.live is None:
            return self._begin(log_folder, at_end=False)
        head = log_folder.head_of(log_folder.live)
        read = [mark for log in source.logs.values() for mark in log.files]
        if begins_like_any(head, read):
            return self._begin(log_folder, at_end=True)
        if source.newest_ns < 0:
            return self._begin(log_folder, at_end=False)
        log = LogMark(path=log_folder.path, old_before_ns=source.newest_ns + 1)
        return LogReading(log, plan(log, log_folder))

    def _begin(self, log_folder: LogFolder, *, at_end: bool) -> LogReading:
        """Begin a log in its present file; what was rotated away before is taken for read."""
        if log_folder.live is None:
            why = f"{log_folder.path} is not there"
            waits = LogMark(begins_at_end=True, path=log_folder.path) if at_end else None
            return _report_unread(waits, ReadFailure(why=why, cause=GapCause.GONE))
        mark = end_of(log_folder.live, self._handles) if at_end else FileMark(id=log_folder.live.id)
        if isinstance(mark, ReadFailure):
            return _report_unread(LogMark(begins_at_end=True, path=log_folder.path), mark)
        log = replace(rotated_before(log_folder), path=log_folder.path)
        step = Step(file=log_folder.live, mark=mark)
        return LogReading(log, Plan(steps=(step,)), earlier=log.files)


def _others(path: str, beside: Sequence[str], source: SourceMark | None) -> list[str]:
    """Return the paths of the logs whose names could be those of rotated files of a log."""
    logs = {} if source is None else source.logs
    real = [logs[other].path or other if other in logs else other for other in beside]
    return [other for other in real if is_rotated(other, path)]


def _mark_to_remember(stored: LogMark | None, source: SourceMark | None) -> LogMark | None:
    """Return the mark to remember for a log that cannot be read now.

    At the first pass it says that the present content is not new; later it is the stored one.
    """
    return LogMark(begins_at_end=True) if source is None else stored


def _report_unread(mark: LogMark | None, error: ReadFailure) -> LogReading:
    return LogReading(mark, Plan(steps=(), errors=(error,)))


def _forget_absent(stored: LogMark, path: str) -> LogReading:
    """Return the reading of a log without any file; its mark is kept, as a disk may be mounted again."""
    mark = replace(stored.bounded(ABSENT_FILES_KEPT), is_absent=True)
    why = f"{path} is not there any more: what was written to it since is not known"
    errors = () if stored.is_absent else (ReadFailure(why=why, cause=GapCause.GONE),)
    return LogReading(mark, Plan(steps=(), errors=errors))
