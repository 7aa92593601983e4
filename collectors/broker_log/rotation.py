"""Plans what to read of a log, in order, whatever happened to its files since the last pass.

A log goes on in the file that had its name, wherever that is now; then come files that were never
seen under that name, because several rotations happened between two passes; then the file that has
the name now. A file that was copied and cut short (logrotate's `copytruncate`) goes on in its copy,
known by its first bytes. Nothing is read twice: every file that was read lately is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from collectors.broker_log.files import FileId, FileStat, ReadFailure, packing_of
from collectors.broker_log.positions import FILES_KEPT, FileMark, LogMark
from collectors.broker_log.rotated_names import is_rotated, natural, plain_name
from rules.facts.gap import GapCause

HeadOf = Callable[[FileStat], bytes | None]  # its first bytes, `HEAD` at most; None: unreadable
Held = Callable[[FileId], FileStat | None]  # a file that is held open, though its name is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFolder:
    """A log's files as they are now."""

    path: str  # the log's own, without symbolic links
    live: FileStat | None  # the file that has this path
    folder: Sequence[FileStat]  # all files beside it, and itself
    others: Sequence[str]  # logs of their own, though their names could be of rotated files of it
    head_of: HeadOf
    held: Held

    def has_rotated(self, path: str) -> bool:
        """Whether a path is that of a rotated file of this log."""
        if not is_rotated(path, self.path):
            return False
        return not any(path == other or is_rotated(path, other) for other in self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A file, and up to where it was read."""

    file: FileStat
    mark: FileMark
    is_held: bool = False  # its name is gone: there is no other way to it

    @property
    def mark_now(self) -> FileMark:
        """The mark with the file's id and size of now."""
        return self.mark.seen_as(self.file)

    @property
    def waiting(self) -> int:
        """How many bytes are to be read."""
        return 0 if self.mark.is_packed else max(self.file.size - self.mark.offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What has to be read of one log."""

    steps: tuple[Step, ...]  # oldest first; also files that were read to their end
    errors: tuple[ReadFailure, ...] = ()
    lost_bytes: int = 0  # that had been seen, and are gone unread


def plan(log: LogMark, log_folder: LogFolder) -> Plan:
    """Find every file of a log again, and those that came meanwhile."""
    matches = _find_files(log.files, log_folder)
    steps = [step for step in matches if step is not None]
    gone = [mark for mark, step in zip(log.files, matches, strict=True) if step is None]
    new = [] if _is_live_last(steps, log_folder) else _never_seen(log, log_folder, steps)
    lost = [mark for mark in gone if not mark.is_read or _was_growing(mark, log)]
    unread = [mark for mark in lost if mark.head_length or not _may_be_among(new, mark)]
    packed = [file for file in new if packing_of(log_folder.head_of(file) or b"")]
    explained = sum(step.is_held for step in steps) + sum(
        mark not in lost and not (mark.is_packed or mark.is_nameless) for mark in gone
    )
    shorter = [step for step in steps if step.file.size < step.mark.size]
    errors = [_loss_of(mark, log_folder) for mark in [*unread, *(step.mark for step in shorter)]]
    errors += _packed_unread(packed, explained, log_folder)
    unbegun = [step for step in steps if not step.mark.head_length]
    unbegun += [_begin(file) for file in new if file not in packed]
    ordered = [
        *(_as_read(file, log_folder) for file in packed),
        *(step for step in steps if step.mark.head_length),
        *sorted(unbegun, key=lambda step: _age(step.file)),
    ]
    return Plan(
        steps=tuple(_with_live_last(ordered, log_folder.live)),
        errors=tuple(errors),
        lost_bytes=sum(max(mark.size - mark.offset, 0) for mark in unread)
        + sum(step.mark.size - step.file.size for step in shorter),
    )


def _was_growing(mark: FileMark, log: LogMark) -> bool:
    """Whether a file may have grown since the last pass: it was the last one, and had a name."""
    return mark is log.files[-1] and not mark.is_nameless


def rotated_before(log_folder: LogFolder) -> LogMark:
    """Return the mark of a log whose rotated files all count as read."""
    rotated = [file for file in log_folder.folder if log_folder.has_rotated(file.path)]
    rotated.sort(key=_age)
    older = rotated[:-FILES_KEPT]
    return LogMark(
        files=tuple(_as_read(file, log_folder).mark for file in rotated[-FILES_KEPT:]),
        old_before_ns=max((file.modified_ns for file in older), default=-1) + 1,
    )


def is_same(file: FileStat, mark: FileMark, head: bytes | None) -> bool:
    """Whether a file that has a mark's id still holds what was read of it.

    One that cannot be inspected is not taken for another: reading it will report why.
    """
    if head is None:
        return True
    is_long = file.size >= mark.offset if mark.head_length else _may_hold(file, mark)
    return is_long and mark.begins_like(head)


def begins_like_any(head: bytes | None, marks: Iterable[FileMark]) -> bool:
    """Whether first bytes are those of a file that was read, so that it is a copy of that one."""
    return any(mark.head_length and mark.begins_like(head or b"") for mark in marks)


def _find_files(marks: Sequence[FileMark], log_folder: LogFolder) -> list[Step | None]:
    """Find the files of marks: by id, then those that are only held open, then copies.

    Ids are used again, so that those whose first bytes are known come first.
    """
    by_id = {file.id: file for file in log_folder.folder}
    steps: dict[int, Step] = {}
    taken: set[FileId] = set()

    def take(place: int, step: Step | None) -> None:
        if step is not None and place not in steps and step.file.id not in taken:
            taken.add(step.file.id)
            steps[place] = step

    with_head = [(place, mark) for place, mark in enumerate(marks) if mark.head_length]
    for place, mark in with_head:
        take(place, _same(by_id.get(mark.id), mark, log_folder))
    for place, mark in with_head:
        take(place, _held(mark, log_folder))
        if place not in steps:
            take(place, _copy_of(mark, log_folder, taken))
    for place, mark in enumerate(marks):
        take(place, _same(by_id.get(mark.id), mark, log_folder))
    return [steps.get(place) for place in range(len(marks))]


def _same(file: FileStat | None, mark: FileMark, log_folder: LogFolder) -> Step | None:
    """Return the file with a mark's id if it is that of the mark.

    What was empty is only known by being where a file of the log would be, and by being none else.
    """
    head = None if file is None else log_folder.head_of(file)
    if file is None or not is_same(file, mark, head):
        return None
    is_own = file.path == log_folder.path or log_folder.has_rotated(file.path)
    is_it = mark.head_length or (is_own and not packing_of(head or b""))
    return Step(file=file, mark=mark) if is_it else None


def _copy_of(mark: FileMark, log_folder: LogFolder, taken: Collection[FileId]) -> Step | None:
    if mark.is_packed:
        return None
    beside = (file for file in log_folder.folder if file.id not in taken)
    copies = [file for file in beside if _may_hold(file, mark)]
    copies = [file for file in copies if mark.begins_like(log_folder.head_of(file) or b"")]
    if not copies:
        return None
    best = max(copies, key=lambda file: (log_folder.has_rotated(file.path), file.size))
    return Step(file=best, mark=mark)


def _held(mark: FileMark, log_folder: LogFolder) -> Step | None:
    file = log_folder.held(mark.id)
    if file is None or mark.is_nameless or any(other.id == file.id for other in log_folder.folder):
        return None
    if not is_same(file, mark, log_folder.head_of(file)):
        return None
    return Step(file=file, mark=mark, is_held=True)


def _may_hold(file: FileStat, mark: FileMark) -> bool:
    """Whether another file is as long as that of the mark was; a log only grows."""
    return file.size >= max(mark.offset, mark.size)


def _loss_of(mark: FileMark, log_folder: LogFolder) -> ReadFailure:
    is_cut = log_folder.live is not None and log_folder.live.id == mark.id
    what = "was cut short" if is_cut else "was removed"
    return ReadFailure(
        why=f"a file of {log_folder.path} {what} after byte {mark.offset} of it was read: "
        "what was written there since is not known",
        cause=GapCause.GONE,
    )


def _is_live_last(steps: Sequence[Step], log_folder: LogFolder) -> bool:
    """Whether the log was not rotated; files beside it are then not its own.

    A file that was empty may have been written, copied and cut short since.
    """
    if log_folder.live is None or not steps or steps[-1].file.id != log_folder.live.id:
        return False
    return steps[-1].mark.head_length > 0


def _never_seen(log: LogMark, log_folder: LogFolder, steps: Sequence[Step]) -> list[FileStat]:
    """Return files that were rotated away before they were seen."""
    taken = {step.file.id for step in steps}
    if log_folder.live is not None:
        taken.add(log_folder.live.id)
    new = [
        file
        for file in log_folder.folder
        if file.id not in taken
        and file.size
        and file.modified_ns >= log.old_before_ns
        and log_folder.has_rotated(file.path)
    ]
    own = [file for file in new if not begins_like_any(log_folder.head_of(file), log.files)]
    return [file for file in own if not _is_copy_of_live(file, log_folder)]


def _is_copy_of_live(file: FileStat, log_folder: LogFolder) -> bool:
    live = b"" if log_folder.live is None else log_folder.head_of(log_folder.live) or b""
    return live.startswith(log_folder.head_of(file) or b"\0")


def _may_be_among(files: Sequence[FileStat], mark: FileMark) -> bool:
    """Whether a file of which nothing was read may be one that is read from its beginning now."""
    return any(_may_hold(file, mark) for file in files)


def _age(file: FileStat) -> tuple[int, tuple[tuple[int, ...], str]]:
    return file.modified_ns, natural(file.path)


def _begin(file: FileStat) -> Step:
    return Step(file=file, mark=FileMark(id=file.id))


def _as_read(file: FileStat, log_folder: LogFolder) -> Step:
    head = log_folder.head_of(file) or b""
    is_packed = packing_of(head) is not None
    mark = FileMark(id=file.id, offset=file.size, is_packed=is_packed)
    return Step(file=file, mark=mark.seen_as(file).known_by(head))


def _with_live_last(steps: Sequence[Step], live: FileStat | None) -> list[Step]:
    if live is None:
        return list(steps)
    own = [step for step in steps if step.file.id == live.id] or [_begin(live)]
    return [step for step in steps if step.file.id != live.id] + own


def _packed_unread(
    packed: Sequence[FileStat], explained: int, log_folder: LogFolder
) -> list[ReadFailure]:
    """Return the failure for files that were compressed before they were read.

    As many of them as read files are gone may be those, compressed; so may one beside its original.
    """
    names = {file.path for file in log_folder.folder}
    unread = [file for file in packed if plain_name(file.path) not in names]
    if len(unread) <= explained:
        return []
    listing = ", ".join(file.path for file in unread[:3])
    kind = packing_of(log_folder.head_of(unread[0]) or b"")
    why = f"{listing}: {kind} before it was read, and only plain lines are read"
    return [ReadFailure(why=why, cause=GapCause.UNREADABLE)]
