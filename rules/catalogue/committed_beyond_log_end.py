"""A group has committed an offset that the partition does not have.

Detects:
    Commits above the high watermark of the same topic.

Why it matters:
    The group has read records that are not there any more, which is a trace of lost records; or its
    offset was set by hand. Until the log has grown past it the consumer gets nothing or starts
    somewhere else (`auto.offset.reset`); afterwards it skips what is there now.

Inputs:
    Committed offsets and their leader epochs, high watermark (which is read after them), topic ids
    of this round and the one before.

Thresholds:
    None: one offset is enough.

False positives:
    An offset set by hand is told apart by its missing leader epoch, which tools do not commit and
    some old clients do not either. A topic that was created again is told apart by its id, or because
    the leader epoch that was committed is not over, in which nothing is lost.

Runbook:
    Search for findings of committed_records_lost and records_possibly_lost on this partition: they say
    what is missing. Then reset the group, to the end or to where the loss began:
    `kafka-consumer-groups.sh --reset-offsets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column
from rules.facts.commit_memory import matching_commits
from rules.facts.loss_memory import is_new
from rules.judgement import Case, CommitSubjects, Event, Judgement, Reason, decide
from rules.loss.events import event_name, labels_of
from rules.loss.incidents import IncidentIndex
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="committed_beyond_log_end",
    subject=SubjectKind.COMMIT,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="A group has committed an offset that the partition does not have.",
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    WITHIN_THE_LOG = "within_the_log"
    BEYOND = "beyond"
    REPORTED_BEFORE = "reported_before"  # it still lies there
    NO_LEADER_EPOCH = "no_leader_epoch"  # set by hand, as it seems: no consumer read up to it
    ANOTHER_TOPIC = "another_topic"  # it was committed on a topic of this name that is gone
    END_NOT_SEEN = "end_not_seen"


def judge(view: View) -> Judgement:
    """Judge every commit."""
    commits, offsets = view.snapshot.commits, view.snapshot.offsets
    end = offsets.high_watermark.take(commits.row)
    committed = Column.known(commits.committed_offset)
    beyond = committed - end
    is_beyond: Bools = beyond.valid & (beyond.values > 0)
    judgement = decide(
        RULE,
        CommitSubjects.all_of(view.snapshot),
        [
            Case(~end.valid, Verdict.UNKNOWN, Why.END_NOT_SEEN),
            Case(~is_beyond, Verdict.OK, Why.WITHIN_THE_LOG),
            Case(commits.of_another_topic(offsets), Verdict.OK, Why.ANOTHER_TOPIC),
            Case(_on_another_topic(view), Verdict.OK, Why.ANOTHER_TOPIC),
            Case(_told_before(view, is_beyond), Verdict.OK, Why.REPORTED_BEFORE),
            Case(~commits.committed_leader_epoch.valid, Verdict.OK, Why.NO_LEADER_EPOCH),
        ],
        (Verdict.BREACH, Why.BEYOND),
        {
            "committed_offset": committed,
            "committed_leader_epoch": commits.committed_leader_epoch,
            "high_watermark": end,
            "leader_epoch": offsets.leader_epoch.take(commits.row),
            "beyond_by": beyond,
        },
    )
    return replace(judgement, events=tuple(_events(view, judgement)))


def _events(view: View, judgement: Judgement) -> Iterator[Event]:
    """Give the commits that are beyond, each named by the leader epoch in which it was found so."""
    snapshot = view.snapshot
    positions = np.flatnonzero(judgement.verdicts == Verdict.BREACH).tolist()
    incidents = IncidentIndex.of(view.memory.losses) if positions else None
    for position in positions:
        finding, row = judgement.finding(position), int(snapshot.commits.row[position])
        labels, epoch = dict(finding.labels), snapshot.offsets.leader_epoch[row]
        evidence = dict(finding.evidence)
        if epoch is not None and incidents is not None:
            name = event_name(snapshot.partitions, row, epoch)
            labels |= labels_of(snapshot.cluster, name)
            evidence["incident"] = incidents.incident(name)
        yield Event(position=position, labels=labels, reason=Why.BEYOND, evidence=evidence)


def _told_before(view: View, is_beyond: Bools) -> Bools:
    known = view.before.losses.beyond_log_end if view.before is not None else frozenset()
    places = np.flatnonzero(is_beyond).astype(np.int64)
    told = np.zeros(len(is_beyond), np.bool_)
    told[places] = [not new for new in is_new(view.snapshot, places, known)]
    return told


def _on_another_topic(view: View) -> Bools:
    """Mark the commits that stood so on an earlier topic of this name: they came over with it."""
    commits = view.snapshot.commits
    if view.before is None:
        return np.zeros(len(commits), np.bool_)
    ids = dict(
        zip(view.before.partitions.index.topics, view.before.partitions.topic_ids, strict=True)
    )
    partitions = view.snapshot.partitions
    is_other = np.array(
        [
            ids.get(topic) is not None and ids[topic] != topic_id
            for topic, topic_id in zip(partitions.index.topics, partitions.topic_ids, strict=True)
        ],
        np.bool_,
    )
    on_other: Bools = is_other[partitions.index.topic_of_row[commits.row]]
    return on_other & (matching_commits(view.snapshot, view.before.commits, needs_id=True) < 0)
