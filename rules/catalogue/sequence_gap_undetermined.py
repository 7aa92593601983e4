"""A gap in a producer's sequence whose cause could not be determined.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where nothing proves that
    no acknowledged record is missing, and no leader change is known that could have lost one.

Why it matters:
    It is most likely harmless, but that is not proven. Tidemark reports this instead of guessing.

Inputs:
    As for sequence_gap_loss. `why` in the evidence says which of them is missing.

Thresholds:
    Reported when a client would have given up (120 seconds after the log line) and the partition
    has been observed six times or cannot be observed; at the latest five minutes after the log
    line. A round in which the partition is not observed, or its leader does not answer, does not
    count.

False positives:
    Not applicable: the finding says what is not known.

Runbook:
    `needed_evidence` says what would decide. The usual causes: Tidemark has no READ on the topic;
    the last accepted batch was deleted or compacted; Tidemark does not see the partition at all.

    - `client_failure`: the leader changed cleanly, so that no acknowledged record is missing. Most
      likely the client gave up batches that reached their delivery timeout: check the errors of the
      producing application.
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
    rule_id="sequence_gap_undetermined",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    for_=timedelta(0),
    summary="A gap in a producer's sequence whose cause could not be determined.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    UNDETERMINED = "undetermined"
    CLIENT_FAILURE = "client_failure"  # most likely
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
    if episode.verdict.class_ is SequenceClass.UNDETERMINED:
        return Why.UNDETERMINED
    is_suspected = not episode.verdict.is_confirmed
    is_client = episode.verdict.class_ is SequenceClass.CLIENT_FAILURE
    return Why.CLIENT_FAILURE if is_suspected and is_client else None


REASONS: Final = Reasons(
    of=_why,
    nothing_new=Why.NOTHING_NEW,
    no_source=Why.NO_SOURCE,
    log_not_read=Why.LOG_NOT_READ,
    too_many=Why.TOO_MANY,
    partition_not_reported=Why.PARTITION_NOT_REPORTED,
    investigating=Why.INVESTIGATING,
)
