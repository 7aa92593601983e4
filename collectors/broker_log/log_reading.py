"""Reads one log from where it was left: all that its files hold by now, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from collectors.broker_log.files import FileId, FileStat, OpenFile, ReadFailure
from collectors.broker_log.handles import Handles
from collectors.broker_log.positions import HEAD, FileMark, LogMark
from collectors.broker_log.rotation import Plan, Step
from rules.facts.broker_log import LogEvent
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId

MAX_LINE: Final = 1 << 20  # bytes; Kafka's longest lines, with a stack trace in them, have some kB
NEWLINE: Final = b"\n"
PASS_BYTES: Final = 64 << 20
PASS_SECONDS: Final = 2.0  # beside the limits of a round, which are 10 s, in an interval of 15 s
# Bytes before the end in which the begin of the last line is searched for.
END_PASS: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLimits:
    """What one pass may take; it goes on from there in the next one."""

    bytes: int = PASS_BYTES
    seconds: float = PASS_SECONDS


class Budget:
    """What is left of a pass, from when it begins to read."""

    def __init__(self, limits: PassLimits, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._deadline = monotonic() + limits.seconds
        self._bytes = limits.bytes
        self._is_begun = False

    def spend(self, size: int) -> None:
        """Take so many bytes as read."""
        self._bytes -= size
        self._is_begun = True

    @property
    def is_spent(self) -> bool:
        """Whether the rest has to wait for the next pass; never before anything was read."""
        return self._is_begun and (self._bytes <= 0 or self._monotonic() >= self._deadline)


class Parser(Protocol):
    """Reads events out of lines; see `collectors.broker_log.parser`."""

    @property
    def lines(self) -> int:
        """Return how many lines it was fed."""

    @property
    def unparsed(self) -> int:
        """Return how many of them could not be read."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Return the last of these lines, cut short."""

    @property
    def last_line_at(self) -> datetime | None:
        """Return when the last line with a time was written."""

    @property
    def controllers(self) -> tuple[tuple[BrokerId, datetime], ...]:
        """Return the controllers that wrote some of them, each with a time of one of its last."""

    def feed(self, lines: Iterable[bytes]) -> list[LogEvent]:
        """Return the events of these lines."""

    def state(self) -> str:
        """Return what it remembers between two lines."""


class LogReading:
    """The results of one pass over one log; filled by `read`."""

    def __init__(
        self,
        mark: LogMark | None,
        plan: Plan,
        *,
        earlier: Sequence[FileMark] = (),
        is_behind: bool = False,
    ) -> None:
        """`earlier` are files before those of the plan, all read to their end."""
        self.mark = mark  # up to where it is read; None: nothing is to be remembered of it
        self.events: list[LogEvent] = []
        self.errors = list(plan.errors)
        self.lost_bytes = plan.lost_bytes
        self.is_behind = is_behind
        self.parser: Parser | None = None  # none while there was nothing to read
        self._steps = plan.steps
        self._earlier = tuple(earlier)
        self._is_stopped = False
        before = () if mark is None else mark.files
        # Files that the next pass may have to read once more, if this one is never stored.
        self._used = {step.file.id for step in plan.steps if step.is_held}
        self._used |= {file_mark.id for file_mark in before[-1:]}
        self._done = {file_mark.id for file_mark in before if file_mark.is_nameless}
        self._done -= {step.file.id for step in plan.steps}

    @property
    def is_found(self) -> bool:
        """Whether there is any file of it."""
        return bool(self._steps)

    @property
    def waiting(self) -> int:
        """How many bytes are to be read."""
        return sum(step.waiting for step in self._steps)

    @property
    def held(self) -> list[FileId]:
        """The files to hold open for the next pass, the last one first: they may still grow.

        A file whose name is gone takes space on its disk. It is closed by the pass whose stored position
        says that it was read, because the result of an earlier pass may never have been stored.
        """
        marks = () if self.mark is None else self.mark.files
        ids = [mark.id for mark in marks if mark.id not in self._done]
        return [*ids[-1:], *(id_ for id_ in ids[:-1] if id_ in self._used)]

    def read(self, handles: Handles, open_parser: Callable[[], Parser], budget: Budget) -> None:
        """Read file after file, to the last one's end or until the pass may take no more."""
        if self.mark is None or not self._steps:
            return
        marks = [self._after(step, handles, open_parser, budget) for step in self._steps]
        handles.open(self._steps[-1].file)  # to be held, also if nothing was to be read
        self.mark = replace(
            self.mark,
            files=(*self._earlier, *marks),
            parser=self.mark.parser if self.parser is None else self.parser.state(),
        ).bounded()

    def _after(
        self, step: Step, handles: Handles, open_parser: Callable[[], Parser], budget: Budget
    ) -> FileMark:
        """Return up to where a file is read now."""
        mark = step.mark_now
        if step.waiting and not self._is_stopped:
            opened = handles.open(step.file)
            if isinstance(opened, ReadFailure):
                return self._skip(step, opened)
            self._used.add(step.file.id)
            self.parser = self.parser or open_parser()
            mark = self._close_last_line(self._read_lines(mark, opened, budget), step)
        if mark.head_length < HEAD:
            mark = mark.known_by((handles.head_of(step.file) or b"")[: mark.size])
        return replace(mark, is_nameless=step.is_held and mark.is_read)

    def _skip(self, step: Step, error: ReadFailure) -> FileMark:
        """Wait for a file that may yet be read; else go on without it, if it was rotated away."""
        is_renamed = error.is_transient and error.cause is GapCause.GONE
        self.is_behind |= is_renamed
        if not is_renamed:
            self.errors.append(error)
        if error.is_transient or step is self._steps[-1]:
            self._is_stopped = True
            return step.mark_now
        return self._give_up(step.mark_now)

    def _close_last_line(self, mark: FileMark, step: Step) -> FileMark:
        """Give up a line without an end: its file is an older one, and did not grow."""
        is_older = step is not self._steps[-1] and not self._is_stopped
        return self._give_up(mark) if is_older and mark.size == step.mark.size else mark

    def _give_up(self, mark: FileMark) -> FileMark:
        self.lost_bytes += max(mark.size - mark.offset, 0)
        return replace(mark, offset=max(mark.size, mark.offset), is_skipping=False)

    def _read_lines(self, mark: FileMark, opened: OpenFile, budget: Budget) -> FileMark:
        """Read up to the end that the file has now, but for a begun line."""
        now = opened.stat()
        mark = mark if isinstance(now, ReadFailure) else mark.seen_as(now)
        while mark.offset < mark.size:
            if budget.is_spent:
                self.is_behind = self._is_stopped = True
                break
            piece = opened.read(mark.offset, min(MAX_LINE, mark.size - mark.offset))
            if isinstance(piece, ReadFailure):
                self.errors.append(piece)
                self._is_stopped = True
                break
            budget.spend(len(piece))
            next_mark = self._take(mark, piece)
            if next_mark is mark:
                break
            mark = next_mark
        return mark

    def _take(self, mark: FileMark, piece: bytes) -> FileMark:
        """Take the whole lines of a piece; the same mark if there is none."""
        result = cut(piece, is_skipping=mark.is_skipping)
        if not result.consumed:
            return mark
        if self.parser is not None:
            self.events += self.parser.feed(result.lines)
        self.lost_bytes += result.lost
        return replace(mark, offset=mark.offset + result.consumed, is_skipping=result.is_skipping)


def end_of(file: FileStat, handles: Handles) -> FileMark | ReadFailure:
    """Return a file as read to its end, but for the line that is begun there."""
    opened = handles.open(file)
    if isinstance(opened, ReadFailure):
        return opened
    begin = max(file.size - END_PASS, 0)
    end = opened.read(begin, file.size - begin)
    if isinstance(end, ReadFailure):
        return end
    place = end.rfind(NEWLINE)
    is_within = place < 0 and begin > 0
    offset = file.size if is_within else begin + place + 1
    return FileMark(id=file.id, offset=offset, is_skipping=is_within).seen_as(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What came of a piece of a file."""

    lines: list[bytes]  # without their ends
    consumed: int  # bytes of the piece that need not be read again
    lost: int = 0  # of these, bytes of a line beyond its first megabyte
    is_skipping: bool = False  # the next piece goes on with the rest of such a line


def cut(piece: bytes, *, is_skipping: bool) -> Cut:
    """Return the whole lines of a piece of up to `MAX_LINE` bytes; a begun one is left.

    Only a begun line that fills the whole piece is taken as it is, and its rest is skipped.
    """
    begin = lost = 0
    if is_skipping:
        lost = piece.find(NEWLINE)
        if lost < 0:
            return Cut(lines=[], consumed=len(piece), lost=len(piece), is_skipping=True)
        begin = lost + 1
    end = piece.rfind(NEWLINE, begin)
    if end >= 0:
        return Cut(lines=piece[begin:end].split(NEWLINE), consumed=end + 1, lost=lost)
    if len(piece) - begin < MAX_LINE:
        return Cut(lines=[], consumed=begin, lost=lost)
    return Cut(lines=[piece], consumed=len(piece), is_skipping=True)
