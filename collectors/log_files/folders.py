"""Finds the logs of partitions below paths: a file, the folder of a partition, or a whole log directory.

Everything but the segments is read here: it is small. Nothing is written, locked or followed out of the paths
that were given; a folder that holds nothing of Kafka is a problem and costs nothing of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from collectors.log_files import checkpoints
from collectors.log_files.indexes import read_transaction_index
from collectors.log_files.opening import base_offset_of, not_readable
from collectors.log_files.partition_metadata import NAME as METADATA
from collectors.log_files.partition_metadata import read_partition_metadata
from collectors.log_files.snapshots import read_snapshot
from rules.facts.identity import TopicPartition
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_folders import FolderState, PartitionLog, SegmentFile
from rules.facts.log_states import (
    EpochCheckpoint,
    OffsetCheckpoint,
    PartitionMetadata,
    ProducerSnapshot,
    TransactionIndex,
)

SEGMENT: Final = ".log"
SNAPSHOT: Final = ".snapshot"
TRANSACTION_INDEX: Final = ".txnindex"
OF_SEGMENTS: Final = frozenset({".index", ".timeindex", TRANSACTION_INDEX})
LEFT_BY_COMPACTION: Final = (".cleaned", ".swap")
_FOLDER: Final = re.compile(
    r"(?P<topic>.+?)-(?P<partition>\d{1,10})(?:\.[0-9a-f]{32}-(?P<state>delete|future|stray))?",
    re.ASCII,
)
_STATES: Final = {
    "delete": FolderState.DELETED,
    "future": FolderState.FUTURE,
    "stray": FolderState.STRAY,
}
_Read: TypeAlias = ProducerSnapshot | TransactionIndex | EpochCheckpoint | PartitionMetadata
_CHECKPOINTS: Final = (
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_STARTS,
    checkpoints.RECOVERY_POINTS,
    checkpoints.CLEANED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPaths:
    """What was found below the paths."""

    logs: tuple[PartitionLog, ...]
    checkpoints: tuple[OffsetCheckpoint, ...]  # that were named by themselves
    problems: tuple[FileProblem, ...]  # of no partition


@dataclass(slots=True)
class _Search:
    """The folders and files that were found so far, each once."""

    files: dict[Path, dict[Path, None]] = field(default_factory=dict)  # by folder
    directories: dict[Path, Mapping[str, OffsetCheckpoint]] = field(default_factory=dict)
    checkpoints: list[OffsetCheckpoint] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add a path of the command line."""
        if not path.is_dir():
            self._add_file(path)
            return
        before = len(self.files)
        self._add_folder(path, is_top=True)
        if len(self.files) == before and not self.problems:
            why = "holds no log of Kafka: no segment, and no folder of a partition"
            self.problems.append(_not_kafka(path, why))

    def _add_file(self, path: Path) -> None:
        if path.name in _CHECKPOINTS:
            checkpoint = checkpoints.read_offsets(path)
            self.checkpoints.append(checkpoint)
            self.problems += checkpoint.problems
        elif is_of_log(path) or path.suffix == SEGMENT:
            self.files.setdefault(path.parent, {})[path] = None
        else:
            self.problems.append(_not_kafka(path, "its name is not that of a file of a log"))

    def _add_folder(self, path: Path, *, is_top: bool) -> None:
        try:
            entries = sorted(path.iterdir())
        except OSError as exc:
            self.problems.append(not_readable(path, exc))
            return
        files = [entry for entry in entries if is_of_log(entry)]
        if files:
            self.files.setdefault(path, {}).update(dict.fromkeys(files))
        if not is_top:
            return
        self._read_directory(path)
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                self._add_folder(entry, is_top=False)

    def _read_directory(self, path: Path) -> Mapping[str, OffsetCheckpoint]:
        """Read the checkpoints of a log directory, once."""
        if path not in self.directories:
            names = [name for name in _CHECKPOINTS if (path / name).is_file()]
            read = {name: checkpoints.read_offsets(path / name) for name in names}
            self.directories[path] = read
            self.problems += [problem for each in read.values() for problem in each.problems]
        return self.directories[path]

    def logs(self) -> Iterator[PartitionLog]:
        """Yield the logs, in the order of their folders."""
        for folder in sorted(self.files, key=_order):
            yield _read_log(folder, list(self.files[folder]), self._read_directory(folder.parent))


def find_logs(paths: Iterable[Path]) -> LogPaths:
    """Find the logs below paths, and read all of them but the segments."""
    search = _Search()
    for path in paths:
        search.add(path)
    logs = tuple(search.logs())
    return LogPaths(
        logs=logs, checkpoints=tuple(search.checkpoints), problems=tuple(search.problems)
    )


def is_of_log(path: Path) -> bool:
    """Whether a file belongs to the log of a partition, by its name."""
    if path.name in (checkpoints.EPOCHS, METADATA):
        return True
    return base_offset_of(path) is not None and not path.is_dir()


def _order(folder: Path) -> tuple[str, int, str]:
    match = _FOLDER.fullmatch(folder.name)
    if match is None:
        return folder.name, 0, str(folder)
    return match["topic"], int(match["partition"]), str(folder)


def _read_log(
    folder: Path, files: Sequence[Path], around: Mapping[str, OffsetCheckpoint]
) -> PartitionLog:
    match = _FOLDER.fullmatch(folder.resolve().name)
    name = None if match is None else TopicPartition(match["topic"], int(match["partition"]))
    state = _STATES.get((match and match["state"]) or "", FolderState.LIVE)
    segments = [
        SegmentFile(str(path), base_offset_of(path)) for path in files if path.suffix == SEGMENT
    ]
    snapshots = [read_snapshot(path) for path in files if path.suffix == SNAPSHOT]
    indexes = [read_transaction_index(path) for path in files if path.suffix == TRANSACTION_INDEX]
    epochs = [checkpoints.read_epochs(path) for path in files if path.name == checkpoints.EPOCHS]
    metadata = [read_partition_metadata(path) for path in files if path.name == METADATA]
    read: list[_Read] = [*snapshots, *indexes, *epochs, *metadata]
    problems = [problem for each in read for problem in each.problems]
    return PartitionLog(
        folder=str(folder),
        name=name,
        state=state,
        topic_id=metadata[0].topic_id if metadata else None,
        segments=tuple(sorted(segments, key=lambda each: (each.base_offset or 0, each.path))),
        snapshots=tuple(sorted(snapshots, key=lambda each: each.offset)),
        transaction_indexes=tuple(sorted(indexes, key=lambda each: each.base_offset)),
        epochs=epochs[0] if epochs else None,
        high_watermark=_offset(around, checkpoints.HIGH_WATERMARKS, name, state),
        log_start_offset=_offset(around, checkpoints.LOG_STARTS, name, state),
        recovery_point=_offset(around, checkpoints.RECOVERY_POINTS, name, state),
        is_cleaned=_offset(around, checkpoints.CLEANED, name, state) is not None
        or any(path.suffix in LEFT_BY_COMPACTION for path in files),
        problems=(*problems, *_without_log(files)),
    )


def _offset(
    around: Mapping[str, OffsetCheckpoint],
    file: str,
    name: TopicPartition | None,
    state: FolderState,
) -> int | None:
    """Return what a checkpoint says of a live partition: another folder of the name is another log."""
    checkpoint = around.get(file)
    if checkpoint is None or name is None or state is not FolderState.LIVE:
        return None
    return checkpoint.offsets.get(name)


def _without_log(files: Sequence[Path]) -> Iterator[FileProblem]:
    """Yield the indexes whose segment is not beside them; one that was named alone has none to miss."""
    segments = {path.name for path in files if path.suffix == SEGMENT}
    for path in files:
        base = f"{path.stem}{SEGMENT}"
        if (
            path.suffix in OF_SEGMENTS
            and base not in segments
            and not path.with_name(base).exists()
        ):
            why = f"an index without its segment: {base} is not there"
            yield FileProblem(kind=ProblemKind.NO_LOG, path=str(path), why=why)


def _not_kafka(path: Path, why: str) -> FileProblem:
    return FileProblem(kind=ProblemKind.NOT_KAFKA, path=str(path), why=why)
