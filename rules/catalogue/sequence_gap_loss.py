"""Records that a producer had written are lost: its sequence has a gap.

Detects:
    Batches that a broker rejected because earlier sequences of their producer are missing, where
    the leader changed in between and lost acknowledged records.

Why it matters:
    A producer cannot distinguish a healed reordering from a real loss: the error and the new epoch
    are the same. A Java producer without transactions continues after a loss, and its error
    metrics stay at 0.

Inputs:
    The brokers' log lines for OUT_OF_ORDER_SEQUENCE_NUMBER, from files or over HTTP; batch headers
    around the rejected batch and the leader's state of the producer (READ on the topic), which are
    requested only then; and what leader changes left, as committed_records_lost determines it.

    Without any source of broker logs there is nothing to judge, and that is not reported as missing
    data: committed_records_lost detects losses in any case. All partitions are UNKNOWN while the
    logs cannot be read, for a day after a line that does not contain its partition (before Kafka
    2.2), and for a day after more producers were rejected at once than Tidemark keeps (2,000).

Thresholds:
    Confirmed (`lost`): the new leader is proven to lack committed records, or the leader changed
    uncleanly and the missing batches did not arrive within 120 seconds, for which clients retry by
    default.

    Suspected (`possibly_lost`): the leader changed in between, uncleanly or in a way that was not
    completely observed, and a proof is missing. It is reported when a client would have given up;
    until then, and while the partition was not observed, it is UNKNOWN (`investigating`). However
    large a gap is, it is no loss without a leader change. A suspicion does not replace a loss that
    was confirmed in the last day: the finding stays `lost`, and `episodes` has both.

False positives:
    Confirmed: a client that drops its own batches during an unclean election; the gap is then an
    upper bound, and the loss may be smaller. Suspected: a leader change that seems unclean, and a
    client that gave up its own batches during it; `needed_evidence` says what would decide.

Runbook:
    Of this producer, at most `at_most_records` records are lost, from `lost_from` to `lost_to`.
    Keep the former leader down: its disk may hold the only copy. See the finding
    committed_records_lost of this partition. Have the producer write those records again only when
    its `delivery.timeout.ms` (120 seconds by default) has passed since the last rejection: until
    then it may still send them itself.

    A transactional producer cannot commit the transaction that met the loss; `check` says what
    each client needs, and `transaction` what became of it.

    - `possibly_lost` (warning): `needed_evidence` says what would decide and `check` what to do;
      `evidence_for` and `evidence_against` list what is known. `tidemark sequence show` prints the
      whole episode.
    - `refuted` (info): the producer did send the records, and nothing of it was lost; the finding
      sequence_gap_reordering says why. Losses of other producers on the partition stay in the
      finding committed_records_lost.
"""

from __future__ import annotations

from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import EpisodeRule, judge_episodes, sequence_rule
from rules.sequence.requests import questions_of
from rules.suspicion.requests import suspicion_questions
from rules.verdict import Severity
from rules.view import View

RULE: Final = sequence_rule(
    "sequence_gap_loss",
    Severity.CRITICAL,
    "A gap in a producer's sequence: records that it had written are lost, or may be.",
    milder=(("possibly_lost", Severity.WARNING), ("refuted", Severity.INFO)),
    lowering=("possibly_lost", "refuted"),
)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    LOST = "lost"
    POSSIBLY_LOST = "possibly_lost"
    REFUTED = "refuted"  # reported as a loss before, and proven to be none


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences, and request the missing evidence."""
    return judge_episodes(view, EPISODES, (*questions_of(view), *suspicion_questions(view)))


def _why(episode: Episode) -> Why | None:
    if episode.verdict.class_ is not SequenceClass.LOSS:
        return None
    return Why.LOST if episode.verdict.is_confirmed else Why.POSSIBLY_LOST


EPISODES: Final = EpisodeRule(
    rule=RULE,
    why=Why,
    of=_why,
    lasting=Why.LOST,
    refuted=(SequenceClass.LOSS, Why.REFUTED),
)
