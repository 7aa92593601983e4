"""Lines of `kafka-topics --describe`: a topic, and its partitions.

A line is given without white space, see `pasting.py`. `Elr` and `LastKnownElr` come from Kafka 3.7 on;
`N/A` is of a broker that does not know them. Before 3.x a partition without a leader had the number -1.
"""

from __future__ import annotations

import re
from typing import Final

from rules.facts.tool_output import PartitionRow, TopicRow

NO_LEADER: Final = ("none", "-1")
_IDS: Final = r"[\d,]{0,2000}"
LINE: Final = re.compile(
    rf"Topic:(?P<topic>[\w.-]{{1,249}}?)(?:"
    rf"Partition:(?P<partition>\d{{1,9}})Leader:(?P<leader>none|-?\d{{1,9}})Replicas:(?P<replicas>{_IDS})Isr:(?P<isr>{_IDS})"
    rf"(?:AddingReplicas:{_IDS})?(?:RemovingReplicas:{_IDS})?"
    rf"(?:Elr:(?P<elr>{_IDS}|N/A))?(?:LastKnownElr:(?P<known>{_IDS}|N/A))?"
    rf"(?:AddingReplicas:{_IDS})?(?:RemovingReplicas:{_IDS})?(?:MarkedForDeletion:true)?"
    rf"|(?:TopicId:[\w-]{{1,30}})?PartitionCount:(?P<count>\d{{1,9}})ReplicationFactor:(?P<factor>\d{{1,9}})"
    rf"(?:Configs:(?P<configs>.{{0,8000}}))?(?:MarkedForDeletion:true)?)"
)


def row_of(match: re.Match[str], line: int) -> TopicRow | PartitionRow:
    """Return what a line says."""
    return topic_of(match, line) if match["partition"] is None else partition_of(match, line)


def is_cut(match: re.Match[str], *, has_elr: bool) -> bool:
    """Whether the end of a partition's line is missing: a shorter Isr would be taken for one that shrank.

    `has_elr`: other lines of the text have Elr, as all of them have then.
    """
    if match["partition"] is None:
        return False
    last = match["known"] or match["elr"] or match["isr"]
    has_no_isr = not match["isr"] and match["leader"] not in NO_LEADER
    return has_no_isr or last.endswith(",") or (has_elr and match["elr"] is None)


def topic_of(match: re.Match[str], line: int) -> TopicRow:
    """Return the first line of a topic."""
    settings = (
        part.partition("=") for part in re.split(r",(?=[a-z.]{3,80}=)", match["configs"] or "")
    )
    return TopicRow(
        line=line,
        topic=match["topic"],
        partitions=int(match["count"]),
        replication_factor=int(match["factor"]),
        configs=tuple((name.strip(), value.strip()) for name, equals, value in settings if equals),
    )


def partition_of(match: re.Match[str], line: int) -> PartitionRow:
    """Return a partition."""
    leader = match["leader"]
    return PartitionRow(
        line=line,
        topic=match["topic"],
        partition=int(match["partition"]),
        leader=None if leader in NO_LEADER else int(leader),
        replicas=_ids(match["replicas"]) or (),
        isr=_ids(match["isr"]) or (),
        elr=_ids(match["elr"]),
        last_known_elr=_ids(match["known"]),
    )


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "N/A":
        return None
    return tuple(int(part) for part in text.split(",") if part)
