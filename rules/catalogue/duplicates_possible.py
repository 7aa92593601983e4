"""Records of a producer may be in a partition twice.

Detects:
    Batches that were sent again although they are in the log, and that the broker did not recognise
    any more; and producers of whom the leader has forgotten everything.

Why it matters:
    A broker recognises the last five batches of a producer. An older one that comes again is rejected,
    and a client that then sends it under a new producer epoch writes it twice, unnoticed.

Inputs:
    As sequence_gap_loss: the brokers' log lines, batch headers, the leader's memory of the producer.

Thresholds:
    A rejected batch that is not above the last sequence is such a retry; `resent` says that the
    producer has written under a newer epoch since. What is not proven is told when a client would
    have given up (120 seconds). `state_lost` needs a producer that wrote there before: at its first
    transaction a leader has no state of it.

False positives:
    Reasons `stale_retry` and `state_lost`: nothing is there twice if the client gives the batch up.
    `resent`: what the newer epoch wrote may be other records.

Runbook:
    Search for the producer's records from `next_offset` on, and whether consumers can take one twice.
    Stale retries come of requests that took very long: observe `request.timeout.ms`, at the network,
    and whether a leader change made the broker forget the older batches. Reason `state_lost`: the
    producer has to be restarted; `producer.id.expiration.ms` is for how long brokers remember.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import Reasons, judge_episodes
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="duplicates_possible",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    for_=timedelta(0),
    summary="Records of a producer may be in a partition twice.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    RESENT = "resent"
    STALE_RETRY = "stale_retry"
    STATE_LOST = "state_lost"
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
    if episode.verdict.class_ is SequenceClass.STALE_RETRY:
        return Why.RESENT if episode.is_resent else Why.STALE_RETRY
    is_lost = episode.verdict.class_ is SequenceClass.PRODUCER_STATE_LOST
    return Why.STATE_LOST if is_lost and episode.verdict.is_confirmed else None


REASONS: Final = Reasons(
    of=_why,
    nothing_new=Why.NOTHING_NEW,
    no_source=Why.NO_SOURCE,
    log_not_read=Why.LOG_NOT_READ,
    too_many=Why.TOO_MANY,
    partition_not_reported=Why.PARTITION_NOT_REPORTED,
    investigating=Why.INVESTIGATING,
)
