"""One partition's log in files, read from an offset on: headers as a stream, and a batch's bytes when they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import crc32c

from collectors.log_files.checking import CHECKED_FROM
from collectors.log_files.segments import read_segment
from rules.facts.identity import TopicPartition
from rules.facts.log_files import BatchBlock, FileProblem, LogBatch, ProblemKind
from rules.facts.log_folders import PartitionLog, SegmentFile
from rules.facts.log_states import EpochStart

# How a log ends that is being written, or was when its broker died: with `preallocate`, in zeros.
# Half a batch is another thing: what is behind it may not have been copied.
OPEN_ENDS: Final = frozenset({ProblemKind.ZEROS})


@dataclass(frozen=True, slots=True)
class FileBatch:
    """One batch in a file."""

    header: LogBatch

    def read(self) -> bytes | None:
        """Return its bytes; None if they cannot be read, or are not those that were written."""
        try:
            with Path(self.header.path).open("rb", buffering=0) as file:
                content = os.pread(file.fileno(), self.header.size, self.header.position)
        except OSError:
            return None
        is_whole = len(content) == self.header.size
        return content if is_whole and _has_checksum(content, self.header.crc) else None


@dataclass(slots=True)
class LogCopy:
    """The log of one partition in a folder."""

    log: PartitionLog
    problems: list[FileProblem] = field(default_factory=list)  # of the segments that were read
    log_start: int = 0
    log_end: int = 0  # behind the last batch that can be read
    epochs: tuple[EpochStart, ...] = ()

    @classmethod
    def of(cls, log: PartitionLog) -> LogCopy:
        """Return a copy with its bounds: reads the last segment, or all where no epochs are noted."""
        copy = cls(log)
        noted = () if log.epochs is None else log.epochs.epochs
        first = log.segments[0].base_offset if log.segments else None
        copy.log_start = copy.log_end = max(first or 0, log.log_start_offset or 0)
        copy._read_bounds(log.segments if not noted else log.segments[-1:], noted)
        return copy

    @property
    def name(self) -> TopicPartition | None:
        """The partition, by the name of its folder."""
        return self.log.name

    @property
    def is_cut(self) -> bool:
        """Whether something of its segments cannot be read."""
        return bool(self.problems)

    @property
    def is_damaged(self) -> bool:
        """Whether more than the end of the log cannot be read."""
        last = self.log.segments[-1].path if self.log.segments else None
        return any(
            problem.kind not in OPEN_ENDS or problem.path != last for problem in self.problems
        )

    def batches(self, start: int) -> Iterator[FileBatch]:
        """Yield the batches from the one with offset `start` on; what cannot be read is added to `problems`."""
        for segment in self._from(start):
            for block in self._blocks(segment):
                if len(block) and int(block.last_offset[-1]) >= start:
                    rows = (block.row(row) for row in range(len(block)))
                    yield from (FileBatch(row) for row in rows if row.last_offset >= start)

    def _from(self, start: int) -> tuple[SegmentFile, ...]:
        segments = self.log.segments
        first = max(
            (n for n, each in enumerate(segments) if (each.base_offset or 0) <= start), default=0
        )
        return segments[first:]

    def _blocks(self, segment: SegmentFile) -> Iterator[BatchBlock]:
        for part in read_segment(Path(segment.path)):
            if isinstance(part, BatchBlock):
                yield part
            elif part not in self.problems:
                self.problems.append(part)

    def _read_bounds(
        self, segments: tuple[SegmentFile, ...], noted: tuple[EpochStart, ...]
    ) -> None:
        """Find where the log ends, and the leader epochs that the checkpoint does not have yet."""
        epochs = list(noted)
        for segment in segments:
            for block in self._blocks(segment):
                self.log_end = max(self.log_end, int(block.last_offset.max()) + 1)
                _add_epochs(epochs, block)
        self.epochs = tuple(epoch for epoch in epochs if epoch.start_offset <= self.log_end)


def _add_epochs(epochs: list[EpochStart], block: BatchBlock) -> None:
    latest = epochs[-1].leader_epoch if epochs else -1
    for epoch, base in zip(block.leader_epoch.tolist(), block.base_offset.tolist(), strict=True):
        if epoch > latest:
            epochs.append(EpochStart(epoch, base))
            latest = epoch


def _has_checksum(content: bytes, crc: int) -> bool:
    return crc32c.crc32c(content[CHECKED_FROM:]) == crc
