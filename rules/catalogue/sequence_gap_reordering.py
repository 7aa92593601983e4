"""Nothing acknowledged is missing behind a gap in a producer's sequence: proven.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where it is proven that no
    acknowledged record is: they arrived in another order, or their producer gave them up and told
    its application.

Why it matters:
    The line in the broker's log is an ERROR, and resembles the one of a true loss. This says that
    no acknowledged record is gone, and whether the rejected batch itself came after all.

Inputs:
    As sequence_gap_loss.

Thresholds:
    It is proven by continuity: the last accepted batch was appended in the leader epoch that is still
    current, and while an epoch lasts its leader loses nothing that it appended; or by what was
    missing, which came. `arrival` says what became of the rejected batch: `arrived` is a later entry
    of its producer epoch that holds it; `newer_epoch`, that this epoch is over without it;
    `not_arrived`, that nothing came within 120 seconds, for which clients try again by default;
    `awaited`, that its client may still send it. It is told again when that has changed.

False positives:
    None are known. Epochs of producers are no proof of anything: librdkafka raises its own after a
    healed reordering, Java after a true loss.

Runbook:
    `arrival` is `arrived`: nothing has to be done. Many of them tell of a network that breaks
    connections, or of brokers that answer slowly; at the start of transactions v2 they are usual.
    Reason `not_arrived`: no acknowledged record is missing, and at least `unwritten_records` of this
    producer were not written; its client gave them up, and its application must have got an error.
    `newer_epoch`: they are there only if the client sent them once more, as librdkafka does. Observe
    the errors of the application. Reason `client_failure`: exactly one producer of the topic had
    records fail at that time: observe its application.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import Reasons, judge_episodes
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="sequence_gap_reordering",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    for_=timedelta(0),
    summary="Nothing acknowledged is missing behind a gap in a producer's sequence.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    REORDERED = "reordered"
    CLIENT_FAILURE = "client_failure"
    NOT_ARRIVED = "not_arrived"  # and the rejected batch did not come
    NO_SOURCE = "no_source"  # nobody gives us the brokers' log lines
    LOG_NOT_READ = "log_not_read"  # a source is set up, and could not be read
    TOO_MANY = "too_many"  # more producers were rejected in the last day than are remembered
    PARTITION_NOT_REPORTED = (
        "partition_not_reported"  # lines of the last day tell none (before Kafka 2.2)
    )
    INVESTIGATING = "investigating"  # a producer is rejected, and nothing is proven of it yet


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, RULE, REASONS)


def _why(episode: Episode) -> Why | None:
    if not episode.verdict.is_confirmed:
        return None
    if episode.verdict.class_ is SequenceClass.REORDERING:
        return Why.REORDERED
    if episode.verdict.reason is SequenceReason.NOT_ARRIVED:
        return Why.NOT_ARRIVED
    return Why.CLIENT_FAILURE if episode.verdict.class_ is SequenceClass.CLIENT_FAILURE else None


REASONS: Final = Reasons(
    of=_why,
    nothing_new=Why.NOTHING_NEW,
    no_source=Why.NO_SOURCE,
    log_not_read=Why.LOG_NOT_READ,
    too_many=Why.TOO_MANY,
    partition_not_reported=Why.PARTITION_NOT_REPORTED,
    investigating=Why.INVESTIGATING,
)
