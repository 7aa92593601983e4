"""The new log, in a folder or at its leader, behind one port."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from collectors.leader_log import LeaderLog, open_leader_log
from collectors.log_files.copies import LogCopy
from collectors.session import Session
from rules.errors import NotThereError
from rules.facts.identity import TopicPartition
from rules.facts.log_files import LogBatch
from rules.facts.log_folders import PartitionLog
from rules.log_files.epochs import end_of_epoch
from rules.log_files.histories import NewLog


class Batch(Protocol):
    """A batch, whose bytes are read only where they are needed."""

    @property
    def header(self) -> LogBatch:
        """Its header, and its control record if it is a control batch."""

    def read(self) -> bytes | None:
        """Return its bytes; None if they cannot be read."""


class NewSource(Protocol):
    """Where the new log is read."""

    @property
    def where(self) -> str:
        """The folder, or the leader."""

    def describe(self, epochs: Sequence[int]) -> NewLog:
        """Return its bounds, and where these leader epochs end in it."""

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the batches from the one with offset `start` on."""

    def error(self) -> str | None:
        """Return why the batches ended early, or what of them could not be read."""


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder of the new leader, or of a replica that follows it."""

    copy: LogCopy

    @property
    def where(self) -> str:
        """The folder."""
        return self.copy.log.folder

    def describe(self, epochs: Sequence[int]) -> NewLog:
        """Return its bounds, and where these leader epochs end in it."""
        own, end = self.copy.epochs, self.copy.log_end
        answers = {epoch: end_of_epoch(own, end, epoch) for epoch in epochs}
        return NewLog(
            topic_id=self.copy.log.topic_id,
            latest_epoch=own[-1].leader_epoch if own else None,
            log_start=self.copy.log_start,
            log_end=end,
            ends={epoch: answer for epoch, answer in answers.items() if answer is not None},
        )

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the batches from the one with offset `start` on."""
        return self.copy.batches(start)

    def error(self) -> str | None:
        """Return what of them could not be read; a log that is being written may end in zeros."""
        if self.copy.is_damaged:
            return str(self.copy.problems[0])
        high_watermark = self.copy.log.high_watermark or 0
        if high_watermark > self.copy.log_end:
            return f"{self.where} ends at offset {self.copy.log_end}, before its high watermark {high_watermark}"
        return None


@dataclass(frozen=True, slots=True)
class LeaderSource:
    """The present leader."""

    log: LeaderLog

    @property
    def where(self) -> str:
        """The leader."""
        return str(self.log.leader)

    def describe(self, epochs: Sequence[int]) -> NewLog:
        """Return its bounds, and where these leader epochs end in it."""
        return NewLog(
            topic_id=self.log.topic_id,
            latest_epoch=self.log.leader_epoch,
            log_start=self.log.log_start,
            log_end=self.log.high_watermark,
            ends=self.log.ends(epochs),
        )

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the batches from the one with offset `start` on."""
        return self.log.batches(start)

    def error(self) -> str | None:
        """Return why the leader's answers ended early."""
        return None if self.log.failure is None else self.log.failure.why


Find = Callable[[TopicPartition], NewSource]


def in_folder(logs: Mapping[TopicPartition, PartitionLog]) -> Find:
    """Return what finds the new log of a partition among folders."""

    def find(name: TopicPartition) -> NewSource:
        log = logs.get(name)
        if log is None:
            raise NotThereError(f"the new folder has no partition {name}")
        return FolderSource(LogCopy.of(log))

    return find


def at_leaders(session: Session) -> Find:
    """Return what finds the leader of a partition."""

    def find(name: TopicPartition) -> NewSource:
        return LeaderSource(open_leader_log(session, name))

    return find
