"""Judges `kafka-topics --describe`: leaders, replicas in sync, and what one more failure would do.

`min.insync.replicas` is known where the topic's own line shows it; it does not where the broker's default of 1 holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rules.facts.application_log import Names
from rules.facts.config_keys import MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION
from rules.facts.tool_output import CommandLine, PartitionRow, Tool, TopicRow
from rules.tool_output.findings import Findings, ToolFinding, listed
from rules.tool_output.reasons import Reason

UNDER_MIN: Final = "--under-min-isr-partitions"


def judge_topics(
    topics: Sequence[TopicRow], partitions: Sequence[PartitionRow], command: CommandLine | None
) -> list[ToolFinding]:
    """Return what one output means."""
    findings = Findings(Tool.TOPICS)
    by_name = {row.topic: row for row in topics}
    is_under_min = command is not None and UNDER_MIN in command.words
    for row in partitions:
        _judge_partition(row, by_name.get(row.topic), findings, is_under_min=is_under_min)
    shown: dict[str, set[int]] = {}
    for row in partitions:
        shown.setdefault(row.topic, set()).add(row.partition)
    for topic in by_name.values():
        _judge_topic(topic, len(shown.get(topic.topic, ())), findings)
    return findings.all()


def _judge_partition(
    row: PartitionRow, topic: TopicRow | None, findings: Findings, *, is_under_min: bool
) -> None:
    names = Names(topic=row.topic, partition=row.partition)
    min_isr = _min_isr(topic)
    reason = _reason(row, min_isr, is_under_min=is_under_min)
    findings.add(reason, row.line, _words(row, min_isr), names)
    if len(row.replicas) == 1 and reason is not Reason.REPLICATION_FACTOR_ONE:
        findings.add(Reason.REPLICATION_FACTOR_ONE, row.line, _words(row, min_isr), names)


def _reason(row: PartitionRow, min_isr: int | None, *, is_under_min: bool) -> Reason:
    if row.leader is None:
        return Reason.PARTITION_OFFLINE
    if min_isr is not None and len(row.isr) == len(row.replicas) < min_isr:
        return Reason.MIN_ISR_ABOVE_REPLICAS
    if is_under_min or (min_isr is not None and len(row.isr) < min_isr):
        return Reason.UNDER_MIN_ISR
    if len(row.replicas) == 1:
        return Reason.REPLICATION_FACTOR_ONE
    if len(row.isr) == 1:
        return Reason.SOLE_IN_SYNC
    return Reason.UNDER_REPLICATED if set(row.replicas) - set(row.isr) else Reason.FULLY_REPLICATED


def _words(row: PartitionRow, min_isr: int | None) -> str:
    missing = [broker for broker in row.replicas if broker not in row.isr]
    out_of_sync = f", not in sync: {listed(missing)}" if missing else ""
    eligible = f", Elr {listed(row.elr)}" if row.elr else ""
    last_known = f", LastKnownElr {listed(row.last_known_elr)}" if row.last_known_elr else ""
    least = f", min.insync.replicas {min_isr}" if min_isr is not None else ""
    leader = "no leader" if row.leader is None else f"leader {row.leader}"
    return f"{row.topic}-{row.partition}: {leader}, Isr {listed(row.isr)} of {listed(row.replicas)}{out_of_sync}{eligible}{last_known}{least}"


def _min_isr(topic: TopicRow | None) -> int | None:
    value = None if topic is None else dict(topic.configs).get(MIN_INSYNC_REPLICAS, "")
    return int(value) if value and value.isdecimal() else None


def _judge_topic(topic: TopicRow, shown: int, findings: Findings) -> None:
    names = Names(topic=topic.topic)
    if dict(topic.configs).get(UNCLEAN_ELECTION) == "true":
        findings.add(Reason.UNCLEAN_ELECTION_ENABLED, topic.line, topic.topic, names)
    if shown < topic.partitions:
        words = f"{topic.topic}: {shown} of {topic.partitions} partitions"
        findings.add(Reason.PARTITIONS_NOT_SHOWN, topic.line, words, names)
