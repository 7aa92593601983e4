"""Records that a producer had written are gone: a gap in its sequence shows it.

Detects:
    Batches that a broker rejected because earlier sequences of their producer are missing, where the
    leader changed in between and lost what had been acknowledged.

Why it matters:
    A healed reordering and a true loss are alike to the producer: the same error, the same raised
    epoch. A Java producer that meets a loss goes on, and its error metrics stay at 0.

Inputs:
    The brokers' log lines for OUT_OF_ORDER_SEQUENCE_NUMBER, from files or by HTTP. Without any such
    source there is nothing to judge, which is no blindness: losses are found by
    committed_records_lost all the same. It is UNKNOWN for all partitions while the log cannot be
    read, for a day after a line that does not tell its partition (before Kafka 2.2), and for a day
    after more producers were rejected at once than are remembered (2,000). Batch headers around the rejected batch and the leader's
    memory of the producer (READ on the topic), which are asked for only then; what leader changes
    left, as committed_records_lost knows it.

Thresholds:
    Confirmed (`lost`): the new leader is proven to lack committed records, or the leader changed
    uncleanly and what is missing did not come within 120 seconds, for which clients try again by
    default. Suspected (`possibly_lost`): the leader changed in between, uncleanly or in a way that was
    not seen whole, and a proof is missing. It is told when a client would have given up: until then,
    and while nothing was seen of the partition, it is UNKNOWN (`investigating`). However large a gap
    is, without a change of leader it is no loss. A suspicion beside a loss that was confirmed in the last day does not replace
    it: the finding stays `lost`, and `episodes` has both.

False positives:
    Confirmed: a client that drops its own batches while an unclean election happens; its gap then
    bounds a loss that may be smaller. Suspected: a leader change that seems unclean, and a client
    that gave up its own batches during it; `settles` says what would decide.

Runbook:
    `lost_from` to `lost_to` is gone from the partition, of this producer at most `at_most_records`.
    Keep the broker that led before down: its disk may hold the only copy. See the finding
    committed_records_lost of this partition. Have the producer write those records again only when
    its `delivery.timeout.ms` (120 seconds by default) has passed since the last rejection: until then
    it may still send them itself. If it does, the reason becomes `refuted` (info): of this producer
    nothing was lost, and sequence_gap_reordering says why. What the partition lost of others stays told
    by committed_records_lost.
    Suspected: `settles` says what would decide, `check` what to do; `evidence_for` and
    `evidence_against` say what is known. `tidemark sequence show` has the whole episode.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import Reasons, judge_episodes
from rules.sequence.requests import questions_of
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="sequence_gap_loss",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="A gap in a producer's sequence: records that it had written are lost, or may be.",
    milder=(("possibly_lost", Severity.WARNING), ("refuted", Severity.INFO)),
    lowering=("possibly_lost", "refuted"),
    forgets=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_NEW = "nothing_new"
    LOST = "lost"
    POSSIBLY_LOST = "possibly_lost"
    REFUTED = "refuted"  # it was told as lost, and is proven not to be
    NO_SOURCE = "no_source"  # nobody gives us the brokers' log lines
    LOG_NOT_READ = "log_not_read"  # a source is set up, and could not be read
    TOO_MANY = "too_many"  # more producers were rejected in the last day than are remembered
    PARTITION_NOT_REPORTED = (
        "partition_not_reported"  # lines of the last day tell none (before Kafka 2.2)
    )
    INVESTIGATING = "investigating"  # a producer is rejected, and nothing is proven of it yet


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences, and ask what is open of them."""
    return judge_episodes(view, RULE, REASONS, questions_of(view))


def _why(episode: Episode) -> Why | None:
    if episode.verdict.class_ is not SequenceClass.LOSS:
        return None
    return Why.LOST if episode.verdict.is_confirmed else Why.POSSIBLY_LOST


REASONS: Final = Reasons(
    of=_why,
    nothing_new=Why.NOTHING_NEW,
    no_source=Why.NO_SOURCE,
    log_not_read=Why.LOG_NOT_READ,
    too_many=Why.TOO_MANY,
    partition_not_reported=Why.PARTITION_NOT_REPORTED,
    investigating=Why.INVESTIGATING,
    lasting=Why.LOST,
    refuted=(SequenceClass.LOSS, Why.REFUTED),
)
