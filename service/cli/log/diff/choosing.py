"""Which logs are compared: those of a folder with those of another one, or with their leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from collectors.leader_log import open_leader_log
from collectors.log_files.copies import LogCopy
from collectors.log_files.folders import find_logs
from collectors.session import Session
from rules.errors import NotThereError, UnreachableError
from rules.facts.identity import TopicPartition
from rules.facts.log_folders import FolderState, PartitionLog
from rules.log_files.histories import DiffReason, NewLog, Parting
from service.cli.log.diff.comparing import Comparison, compare
from service.cli.log.diff.sources import FolderSource, LeaderSource, NewSource

Find = Callable[[TopicPartition], NewSource]
SHOWN: Final = 3  # problems of a folder without a log
_NO_LOG: Final = NewLog(topic_id=None, latest_epoch=None, log_start=0, log_end=0)


def find_copies(path: Path, name: TopicPartition | None) -> dict[TopicPartition, PartitionLog]:
    """Return the logs below a path, by partition; `name` is that of a folder with another name.

    Raises:
        BadParameter: there are none, or one whose partition is not known.
    """
    if not path.exists():
        raise click.BadParameter(f"{path} does not exist")
    paths = find_logs([path])
    logs = [log for log in paths.logs if log.segments and log.state is FolderState.LIVE]
    if not logs:
        problems = (*paths.problems, *(each for log in paths.logs for each in log.problems))
        why = "; ".join(map(str, problems[:SHOWN])) or f"{path} holds no segment of a log"
        raise click.BadParameter(why)
    if name is not None and len(logs) == 1:
        return {name: logs[0]}
    unnamed = [log.folder for log in logs if log.name is None]
    if unnamed:
        raise click.BadParameter(
            f"{unnamed[0]} is not named after a partition, such as orders-3: name it with --partition"
        )
    by_name = {log.name: log for log in logs if log.name is not None}
    if name is None:
        return by_name
    if name not in by_name:
        raise click.BadParameter(f"{path} has no partition {name}")
    return {name: by_name[name]}


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


def compare_all(
    copies: Mapping[TopicPartition, PartitionLog], find: Find, **options: Any
) -> Iterator[Comparison]:
    """Yield a comparison for each partition; one that cannot be read costs nothing of the others."""
    for name, log in copies.items():
        copy = LogCopy.of(log)
        try:
            yield compare(name, copy, find(name), **options)
        except NotThereError as exc:
            yield _without_new(name, copy, DiffReason.NOT_IN_NEW, str(exc))
        except UnreachableError as exc:
            yield _without_new(name, copy, DiffReason.NOT_READ, str(exc))


def _without_new(name: TopicPartition, copy: LogCopy, reason: DiffReason, error: str) -> Comparison:
    return Comparison(
        name=name,
        copy=copy,
        where_new="",
        new=_NO_LOG,
        parting=Parting(None, reason),
        high_watermark=copy.log.high_watermark,
        error=error,
    )
