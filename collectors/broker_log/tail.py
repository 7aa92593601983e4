"""Reads what was appended to brokers' log files since a position, whatever rotates them.

One pass is bounded in bytes and seconds, and reads logs with little to read first, so that a backlog
in one of them holds up no other. Only open files are remembered here: the caller stores the position
and passes it in. Whatever cannot be read is a gap of its source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from typing import Final

from collectors.broker_log.files import FileId, Files, FileStat, ReadFailure
from collectors.broker_log.handles import Handles
from collectors.broker_log.log_finding import LogFinder
from collectors.broker_log.log_reading import Budget, LogReading, Parser, PassLimits
from collectors.broker_log.parser import LineParser
from collectors.broker_log.positions import LogMark, Position, SourceMark, decode, encode
from collectors.broker_log.rotated_names import logs_of
from rules.facts.broker_log import LogEvent, LogSource
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import BrokerId

MAX_LOGS: Final = 200  # of one pattern; a broker has six
ABSENT_LOGS: Final = 100  # of one pattern, remembered though they are not there
MAX_ERRORS_LOGGED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSource:
    """A pattern of files, all of one broker and in one zone of time."""

    name: str
    pattern: str  # absolute
    broker_id: BrokerId | None
    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRead:
    """The result of one pass."""

    events: tuple[LogEvent, ...]
    sources: tuple[LogSource, ...]
    position: str
    is_behind: bool
    gaps: tuple[Gap, ...]


def line_parser(source: TailSource, state: str | None) -> Parser:
    """Return the parser of a source's lines, as it was left."""
    if state is None:
        return LineParser(source.name, source.broker_id, source.zone)
    return LineParser.resumed(source.name, source.broker_id, source.zone, state)


ParserOf = Callable[[TailSource, str | None], Parser]


@dataclass(slots=True, kw_only=True)
class _SourcePass:
    """One pass over the logs of a source."""

    source: TailSource
    before: SourceMark | None
    readings: dict[str, LogReading] = field(default_factory=dict)  # by path
    errors: list[ReadFailure] = field(default_factory=list)
    is_listed: bool = False
    old_before_ns: int = 0

    def read_log(self) -> LogSource:
        """Return the state of the source."""
        parsers = [
            reading.parser for reading in self.readings.values() if reading.parser is not None
        ]
        times = [parser.last_line_at for parser in parsers if parser.last_line_at is not None]
        return LogSource(
            name=self.source.name,
            lines=sum(parser.lines for parser in parsers),
            unparsed=sum(parser.unparsed for parser in parsers),
            lost_bytes=sum(reading.lost_bytes for reading in self.readings.values()),
            last_line_at=max(times, default=None),
            error=self.error,
            unreadable=tuple(line for parser in parsers for line in parser.unreadable),
            controllers=tuple(pair for parser in parsers for pair in parser.controllers),
        )

    @property
    def all_errors(self) -> list[ReadFailure]:
        """What is wrong with it and with its logs."""
        return [*self.errors, *(t for reading in self.readings.values() for t in reading.errors)]

    @property
    def error(self) -> str | None:
        """Return the errors as one line, None if there is none; names of files may be any bytes."""
        reasons = [error.why for error in self.all_errors]
        more = len(reasons) - MAX_ERRORS_LOGGED
        end = [f"and {more} more"] if more > 0 else []
        whole = "; ".join([*reasons[:MAX_ERRORS_LOGGED], *end])
        return "".join(sign if sign.isprintable() else "?" for sign in whole) or None

    @property
    def gap(self) -> Gap | None:
        """Return the gap that its errors are, None if there is none."""
        errors = self.all_errors
        if not errors:
            return None
        return Gap(
            what=f"lines of broker log {self.source.name}",
            why=self.error or "",
            cause=errors[0].cause,
            scope=GapScope.BROKER_LOG,
            broker_id=self.source.broker_id,
        )

    @property
    def mark(self) -> SourceMark | None:
        """Return up to where it is read now; None: the next pass is the first one."""
        if not self.is_listed:
            return self.before
        marks = {
            path: reading.mark
            for path, reading in self.readings.items()
            if reading.mark is not None
        }
        absent = [path for path, mark in marks.items() if mark.is_absent]
        for path in absent[: max(len(absent) - ABSENT_LOGS, 0)]:
            del marks[path]
        return SourceMark(logs=marks, old_before_ns=self.old_before_ns)


class LogTail:
    """Reads all sources, pass after pass."""

    def __init__(  # noqa: PLR0913 - what reading needs, each by its name
        self,
        files: Files,
        sources: Sequence[TailSource],
        *,
        monotonic: Callable[[], float],
        read_existing: bool = False,
        limits: PassLimits | None = None,
        parser_of: ParserOf = line_parser,
    ) -> None:
        """`read_existing`: what the first pass finds is read from its beginning, not from its end."""
        self._files = files
        self._sources = sources
        self._monotonic = monotonic
        self._read_existing = read_existing
        self._limits = limits or PassLimits()
        self._parser_of = parser_of
        self._handles = Handles(files)

    def read(self, position: str | None) -> TailRead:
        """Read what was appended since a position, within the limits; None: this is the first pass."""
        before, error = _decode_position(position)
        began = self._monotonic()
        finder = LogFinder(self._files, self._handles, read_existing=self._read_existing)
        claimed: dict[FileId, tuple[str, str]] = {}  # to source and path
        passes = [
            self._find(source, before.get(source.name), finder, claimed) for source in self._sources
        ]
        if error is not None:
            for source_pass in passes:
                source_pass.errors.append(error)
        budget = Budget(self._limits, self._monotonic)
        is_slow = self._monotonic() - began > self._limits.seconds
        readings = [
            (source_pass, reading)
            for source_pass in passes
            for reading in source_pass.readings.values()
        ]
        for source_pass, reading in sorted(readings, key=lambda pair: pair[1].waiting):
            state = None if reading.mark is None else reading.mark.parser
            reading.read(self._handles, partial(self._parser_of, source_pass.source, state), budget)
        self._handles.keep(_to_hold([reading for _, reading in readings]))
        if is_slow:
            _report_slow(passes, self._limits.seconds)
        return _combine(passes)

    def close(self) -> None:
        """Close all files."""
        self._handles.close()

    def _find(
        self,
        source: TailSource,
        before: SourceMark | None,
        finder: LogFinder,
        claimed: dict[FileId, tuple[str, str]],
    ) -> _SourcePass:
        source_pass = _SourcePass(source=source, before=before)
        matching = self._files.matching(source.pattern)
        if isinstance(matching, ReadFailure):
            source_pass.errors.append(matching)
            return source_pass
        source_pass.is_listed = True
        logs = {} if before is None else before.logs
        paths = logs_of([*matching, *logs], lambda path: self._is_own(path, logs))
        for path in self._choose(paths, source_pass):
            if not self._is_claimed(path, source_pass, claimed):
                source_pass.readings[path] = finder.find(path, before, beside=paths)
        if not matching and not any(reading.is_found for reading in source_pass.readings.values()):
            why = f"no file matches {source.pattern}"
            source_pass.errors.append(ReadFailure(why=why, cause=GapCause.GONE))
        return source_pass

    def _is_own(self, path: str, logs: Mapping[str, LogMark]) -> bool:
        """Whether a log stays one although, by its name, it may be a rotated file of another.

        It does as long as it is the same file; after that only if it has grown under its own name.
        """
        log = logs.get(path)
        if log is None or log.has_grown:
            return log is not None
        live = self._files.stat(path)
        return isinstance(live, FileStat) and log.is_in(live)

    def _choose(self, paths: Sequence[str], source_pass: _SourcePass) -> Sequence[str]:
        """Return the newest logs, as many as one pattern may have, and leave the others for good."""
        before = source_pass.before or SourceMark()
        source_pass.old_before_ns = before.old_before_ns
        if len(paths) <= MAX_LOGS and not before.old_before_ns:
            return paths
        times = {path: self._modified_ns(path, before) for path in paths}
        usable = [p for p in paths if p in before.logs or times[p] >= before.old_before_ns]
        usable.sort(key=lambda path: -times[path])
        left = usable[MAX_LOGS:]
        if left:
            source_pass.old_before_ns = max(times[left[0]] + 1, before.old_before_ns)
            why = f"{source_pass.source.pattern} matches {len(usable)} logs: the newest {MAX_LOGS} are read"
            source_pass.errors.append(ReadFailure(why=why, cause=GapCause.LIMIT))
        return sorted(usable[:MAX_LOGS])

    def _modified_ns(self, path: str, before: SourceMark) -> int:
        """Return when a log was written last; one that cannot be checked is shown, so it is new."""
        file = self._files.stat(path)
        if isinstance(file, FileStat):
            return file.modified_ns
        return -1 if path in before.logs else sys.maxsize

    def _is_claimed(
        self, path: str, source_pass: _SourcePass, claimed: dict[FileId, tuple[str, str]]
    ) -> bool:
        """Whether a log is read already, by another name or in another source."""
        file = self._files.stat(path)
        if not isinstance(file, FileStat):
            return False
        own = (source_pass.source.name, path)
        source, _ = owner = claimed.setdefault(file.id, own)
        if source != source_pass.source.name:
            why = f"{path} is read already, as one of source {source}"
            source_pass.errors.append(ReadFailure(why=why, cause=GapCause.LIMIT))
        return owner != own


def _decode_position(position: str | None) -> tuple[Position, ReadFailure | None]:
    """Decode a position; one that cannot be decoded is empty, with a failure."""
    if position is None:
        return {}, None
    try:
        return decode(position), None
    except ValueError as exc:
        why = f"where the last pass ended cannot be read ({exc}): this one begins anew"
        return {}, ReadFailure(why=why, cause=GapCause.UNREADABLE)


def _report_slow(passes: Sequence[_SourcePass], seconds: float) -> None:
    """Add an error to the sources that are behind because finding their files took too long."""
    why = f"finding the files takes more than {seconds:g} s, and not all of them could be read"
    for source_pass in passes:
        if any(reading.is_behind for reading in source_pass.readings.values()):
            source_pass.errors.append(ReadFailure(why=why, cause=GapCause.LIMIT))


def _to_hold(readings: Sequence[LogReading]) -> list[FileId]:
    """Return the files to hold open: the live one of every log before any other."""
    held = [reading.held for reading in readings]
    return [*(ids[0] for ids in held if ids), *(id_ for ids in held for id_ in ids[1:])]


def _combine(passes: Sequence[_SourcePass]) -> TailRead:
    readings = [reading for source_pass in passes for reading in source_pass.readings.values()]
    marks = {source_pass.source.name: source_pass.mark for source_pass in passes}
    gaps = (source_pass.gap for source_pass in passes)
    return TailRead(
        events=tuple(event for reading in readings for event in reading.events),
        sources=tuple(source_pass.read_log() for source_pass in passes),
        position=encode({name: mark for name, mark in marks.items() if mark is not None}),
        is_behind=any(reading.is_behind for reading in readings),
        gaps=tuple(gap for gap in gaps if gap is not None),
    )
