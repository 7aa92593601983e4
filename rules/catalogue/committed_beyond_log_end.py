"""A group has committed an offset beyond the end of the partition.

Detects:
    Committed offsets above the high watermark of the same topic.

Why it matters:
    The group has read records that no longer exist: a trace of lost records. Its consumer goes back
    to where the logs diverge if it notices, and else starts elsewhere (`auto.offset.reset`). Once the
    log has grown past its offset it continues there, and skips what lies below.

Inputs:
    Committed offsets with their leader epochs; the high watermark, which is read after them; the
    topic ids of this round and of the previous one.

Thresholds:
    None: one offset is enough.

False positives:
    An offset that was set by hand is recognised by its missing leader epoch: tools do not commit
    one. Some old clients do not commit one either, so that their commits are not reported. A topic
    that was deleted and created again is recognised by its topic id, or by a committed leader epoch
    that is still current: nothing is lost within an epoch that has not ended.

Runbook:
    Search for findings of committed_records_lost and records_possibly_lost on this partition: they
    say which records are missing. Then reset the group to the offset at which the loss began
    (`epoch_end`, or what `tidemark loss check` names) with `kafka-consumer-groups.sh
    --reset-offsets`. At the log end it would skip what was written since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column
from rules.facts.commit_memory import matching_commits
from rules.facts.loss_memory import is_new
from rules.judgement import Case, CommitSubjects, Event, Judgement, Reason, decide
from rules.loss.events import event_name, labels_of
from rules.loss.incidents import IncidentIndex
from rules.owners import owners_evidence
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="committed_beyond_log_end",
    subject=SubjectKind.COMMIT,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    summary="A group has committed an offset beyond the end of the partition.",
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    WITHIN_THE_LOG = "within_the_log"
    BEYOND = "beyond"
    REPORTED_BEFORE = "reported_before"  # the same commit was a finding before
    NO_LEADER_EPOCH = "no_leader_epoch"  # probably set by hand: no consumer read up to it
    ANOTHER_TOPIC = "another_topic"  # committed on an earlier topic of the same name
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
            Case(_is_reported_before(view, is_beyond), Verdict.OK, Why.REPORTED_BEFORE),
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
    """Yield the commits beyond the end, each with the leader epoch in which it was first observed."""
    snapshot = view.snapshot
    places = np.flatnonzero(judgement.verdicts == Verdict.BREACH)
    incidents = IncidentIndex.of(view.memory.losses) if len(places) else None
    group, rows = snapshot.commits.group[places], snapshot.commits.row[places]
    owners = owners_evidence(snapshot, group, rows)
    for position, row, owner in zip(places.tolist(), rows.tolist(), owners, strict=True):
        finding = judgement.finding(position)
        labels, epoch = dict(finding.labels), snapshot.offsets.leader_epoch[row]
        evidence = {**finding.evidence, **owner}
        if epoch is not None and incidents is not None:
            name = event_name(snapshot.partitions, row, epoch)
            labels |= labels_of(snapshot.cluster, name)
            evidence["incident"] = incidents.incident(name)
        yield Event(position=position, labels=labels, reason=Why.BEYOND, evidence=evidence)


def _is_reported_before(view: View, is_beyond: Bools) -> Bools:
    places = np.flatnonzero(is_beyond).astype(np.int64)
    mask = np.zeros(len(is_beyond), np.bool_)
    mask[places] = [
        not new for new in is_new(view.snapshot, places, view.losses_before.beyond_log_end)
    ]
    return mask


def _on_another_topic(view: View) -> Bools:
    """Mark the commits that a group had made on an earlier topic of the same name."""
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
