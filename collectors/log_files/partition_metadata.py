"""Reads `partition.metadata`: the id of the topic to which a folder belongs.

Source: PartitionMetadataFile of the broker (KIP-516, version 0).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from collectors.log_files.opening import read_bytes
from rules.facts.identity import TopicId
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_states import PartitionMetadata

NAME: Final = "partition.metadata"
_CONTENT: Final = re.compile(rb"version: 0\s+topic_id: ([A-Za-z0-9_-]{22})\s*", re.ASCII)


def read_partition_metadata(path: Path) -> PartitionMetadata:
    """Read the file."""
    data = read_bytes(path)
    if isinstance(data, FileProblem):
        return PartitionMetadata(path=str(path), problems=(data,))
    match = _CONTENT.fullmatch(data)
    if match is not None:
        return PartitionMetadata(path=str(path), topic_id=TopicId(match[1].decode()))
    text = data[:60].decode(errors="backslashreplace")
    problem = FileProblem(
        kind=ProblemKind.BAD_RECORD, path=str(path), position=0, why=f"has no topic id: {text!r}"
    )
    return PartitionMetadata(path=str(path), problems=(problem,))
