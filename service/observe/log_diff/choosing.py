"""Which logs a path of `log diff` names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from collectors.log_files.folders import find_logs
from rules.facts.identity import TopicPartition
from rules.facts.log_folders import FolderState, PartitionLog

Copies = dict[TopicPartition, PartitionLog]
SHOWN: Final = 3  # problems of a folder without a log


def find_copies(path: Path, name: TopicPartition | None, *, is_renamed: bool = False) -> Copies:
    """Return the logs below a path, by partition; `name` alone is wanted, where it is known.

    With `is_renamed` the folder that was named is of that partition, whatever it is called; it is not called
    after another partition of the topic.

    Raises:
        ValueError: there are none, or one whose partition is not known.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    paths = find_logs([path])
    logs = [log for log in paths.logs if log.segments and log.state is FolderState.LIVE]
    if not logs:
        problems = (*paths.problems, *(each for log in paths.logs for each in log.problems))
        why = "; ".join(map(str, problems[:SHOWN])) or f"{path} holds no segment of a log"
        raise ValueError(why)
    if name is not None and len(logs) == 1:
        own = logs[0].name
        if is_renamed and Path(logs[0].folder) == path and not _is_sibling(own, name):
            own = None
        if own in (None, name):
            return {name: logs[0]}
    unnamed = [log.folder for log in logs if log.name is None]
    if unnamed:
        raise ValueError(
            f"{unnamed[0]} is not named after a partition, such as orders-3: name it with --partition"
        )
    by_name = {log.name: log for log in logs if log.name is not None}
    if name is None:
        return by_name
    if name not in by_name:
        raise ValueError(f"{path} has no partition {name}")
    return {name: by_name[name]}


def _is_sibling(own: TopicPartition | None, name: TopicPartition) -> bool:
    """Whether a folder is of another partition of the same topic: the topic id does not tell them apart."""
    return own is not None and own.topic == name.topic and own != name
