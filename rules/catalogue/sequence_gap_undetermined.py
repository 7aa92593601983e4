"""Why a producer's sequence has a gap could not be found out.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where nothing proves that no
    acknowledged record is, and no change of leader is known that could have lost one.

Why it matters:
    It is most likely harmless, and it is not known. Tidemark says so instead of guessing.

Inputs:
    As sequence_gap_loss. What is missing is the finding's `why`.

Thresholds:
    It is told when a client would have given up (120 seconds after the line), and the partition had
    been observed six times or cannot be observed; five minutes after the line at the latest. A
    round in which a partition is not seen, or its leader does not answer, counts for nothing.

False positives:
    Not applicable: it says what is not known.

Runbook:
    `settles` says what would decide. The usual causes: READ on the topic is missing for Tidemark;
    the last accepted batch was deleted or compacted; Tidemark does not see the partition at all.
    Reason `client_failure`: the leader changed cleanly, so that nothing acknowledged is missing, and
    most likely the client gave up batches that ran into their delivery timeout: observe the errors of
    the producing application.
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
    summary="Why a producer's sequence has a gap could not be found out.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    UNDETERMINED = "undetermined"
    CLIENT_FAILURE = "client_failure"  # most likely
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
