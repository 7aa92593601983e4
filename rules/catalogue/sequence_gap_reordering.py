"""A gap in a producer's sequence is harmless: proven.

Detects:
    Batches that a broker refused because earlier sequences were missing, where it is proven that no
    acknowledged record is: they arrived in another order, or their producer gave them up and told
    its application.

Why it matters:
    The line in the broker's log is an ERROR, and looks like the one of a true loss. This says that
    nobody has to look.

Inputs:
    As sequence_gap_loss.

Thresholds:
    None. It is proven by continuity: the last accepted batch was appended in the leader epoch that
    is still current, and while an epoch lasts its leader loses nothing that it appended; or by what
    was missing, which came.

False positives:
    None are known. Epochs of producers are no proof of anything: librdkafka raises its own after a
    healed reordering, Java after a true loss.

Runbook:
    Nothing has to be done for the records. Many of them tell of a network that breaks connections,
    or of brokers that answer slowly. Reason `client_failure`: exactly one producer of the topic had
    records fail at that time: look at its application.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.telling import Reasons, judge_episodes
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="sequence_gap_reordering",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    for_=timedelta(0),
    summary="A gap in a producer's sequence is harmless: nothing acknowledged is missing.",
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    REORDERED = "reordered"
    CLIENT_FAILURE = "client_failure"
    NO_SOURCE = "no_source"  # nobody gives us the brokers' log lines
    LOG_NOT_READ = "log_not_read"  # a source is set up, and could not be read
    TOO_MANY = "too_many"  # more producers were refused in the last day than are remembered
    PARTITION_NOT_TOLD = "partition_not_told"  # lines of the last day tell none (before Kafka 2.2)


def judge(view: View) -> Judgement:
    """Judge the partitions with refused sequences."""
    return judge_episodes(view, RULE, REASONS)


def _why(episode: Episode) -> Why | None:
    if not episode.verdict.is_confirmed:
        return None
    if episode.verdict.class_ is SequenceClass.REORDERING:
        return Why.REORDERED
    return Why.CLIENT_FAILURE if episode.verdict.class_ is SequenceClass.CLIENT_FAILURE else None


REASONS: Final = Reasons(
    of=_why,
    nothing_new=Why.NOTHING_NEW,
    no_source=Why.NO_SOURCE,
    log_not_read=Why.LOG_NOT_READ,
    too_many=Why.TOO_MANY,
    partition_not_told=Why.PARTITION_NOT_TOLD,
)
