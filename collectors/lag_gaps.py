"""Lags that are unknown although both ends were read: a commit above the high watermark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.groups import Commits, Group
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions


def gaps_of_lags(
    partitions: Partitions, groups: Sequence[Group], commits: Commits, offsets: Offsets
) -> Iterator[Gap]:
    """Yield a gap for each commit above the high watermark, of groups that have members.

    It means that records were lost, or that the offset was set by hand. A group without members is left
    out: its commit may belong to an earlier topic of the same name, and stays there.
    """
    is_older = commits.of_another_topic(offsets)
    for position in commits.beyond_high_watermark(offsets).tolist():
        row, group = int(commits.row[position]), groups[int(commits.group[position])]
        if group.member_count == 0 or is_older[position]:
            continue
        name = partitions.index.topic_partition(row)
        committed = int(commits.committed_offset[position])
        yield Gap(
            what=f"lag of group {group.group_id} on {name}",
            why=f"committed offset {committed} is above the high watermark "
            f"{offsets.high_watermark[row]}: records were lost, or the offset was set by hand",
            cause=GapCause.IMPOSSIBLE_VALUE,
            scope=GapScope.OFFSETS,
            topic=name.topic,
            partition=name.partition,
            group=group.group_id,
        )
