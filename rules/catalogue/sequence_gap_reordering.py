"""A gap in a producer's sequence without loss: no acknowledged record is missing.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where it is proven that
    no acknowledged record is missing: the batches arrived in another order, or the producer gave
    them up and its application got an error.

Why it matters:
    The line in the broker's log is an ERROR, as after a real loss. This finding says that no
    acknowledged record is lost, and whether the rejected batch arrived after all.

Inputs:
    As for sequence_gap_loss.

Thresholds:
    The proof is one of two. Continuity: the last accepted batch was appended in the leader epoch
    that is still current, and within an epoch a leader loses nothing that it appended. Or the
    missing batches arrived. `arrival` says what became of the rejected batch, and the finding is
    updated when it changes:

    - `arrived`: a later entry of the same producer epoch contains it.
    - `newer_epoch`: the producer epoch ended without it.
    - `not_arrived`: nothing arrived within 120 seconds, for which clients retry by default.
    - `awaited`: the client may still send it.

False positives:
    None known. A new producer epoch proves nothing: librdkafka raises its epoch after a healed
    reordering, Java after a real loss.

Runbook:
    If `arrival` is `arrived`, nothing needs to be done. Many such findings indicate a network that
    drops connections, or brokers that answer slowly; at the start of transactions v2 they are
    normal. If it is `newer_epoch`, the records are in the log only if the client sent them again,
    as librdkafka does: check the errors of the application.

    - `not_arrived`: no acknowledged record is missing, but at least `unwritten_records` records of
      this producer were not written. The client gave them up, and its application must have got an
      error.
    - `client_failure`: exactly one producer of the topic reported failed records at that time:
      check its application.
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
    summary="A gap in a producer's sequence without loss: no acknowledged record is missing.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    REORDERED = "reordered"
    CLIENT_FAILURE = "client_failure"
    NOT_ARRIVED = "not_arrived"  # nothing is lost, but the rejected batch was never written
    NO_SOURCE = "no_source"  # no source of broker logs is configured
    LOG_NOT_READ = "log_not_read"  # a source is configured and could not be read
    TOO_MANY = "too_many"  # more producers were rejected in the last day than Tidemark keeps
    PARTITION_NOT_REPORTED = (
        "partition_not_reported"  # log lines of the last day lack it (before Kafka 2.2)
    )
    INVESTIGATING = "investigating"  # a producer was rejected, and nothing is proven yet


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
