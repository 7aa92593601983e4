"""Records of a producer may be in a partition twice.

Detects:
    Batches that a producer sent again although they are in the log already, and that the broker no
    longer recognised as duplicates; and producers whose whole state the leader has lost.

Why it matters:
    A broker recognises the last five batches of a producer. It rejects an older one that is sent
    again, and a client that then sends it under a new producer epoch writes it twice, without an
    error.

Inputs:
    As for sequence_gap_loss: the brokers' logs, batch headers, and the leader's state of the
    producer.

Thresholds:
    A rejected batch that is not above the last sequence is such a retry; `resent` says that the
    producer has written under a newer epoch since. What is not proven is reported when a client
    would have given up (after 120 seconds). `state_lost` requires a producer that wrote to the
    partition before: a leader has no state of a producer at its first transaction.

False positives:
    `stale_retry` and `state_lost`: nothing is duplicated if the client gives up the batch.
    `resent`: the records of the newer epoch may be other records.

Runbook:
    Search for the producer's records from `next_offset` on, and find out whether consumers can
    handle one of them twice. Stale retries are caused by requests that took very long: check
    `request.timeout.ms`, the network, and whether a leader change made the broker lose its state of
    the older batches.

    - `state_lost`: restart the producer. `producer.id.expiration.ms` is for how long brokers keep
      the state of a producer.
"""

from __future__ import annotations

from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import EpisodeRule, judge_episodes, sequence_rule
from rules.verdict import Severity
from rules.view import View

RULE: Final = sequence_rule(
    "duplicates_possible",
    Severity.INFO,
    "Records of a producer may be in a partition twice.",
)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    RESENT = "resent"
    STALE_RETRY = "stale_retry"
    STATE_LOST = "state_lost"


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, EPISODES)


def _why(episode: Episode) -> Why | None:
    if episode.verdict.class_ is SequenceClass.STALE_RETRY:
        return Why.RESENT if episode.is_resent else Why.STALE_RETRY
    is_lost = episode.verdict.class_ is SequenceClass.PRODUCER_STATE_LOST
    return Why.STATE_LOST if is_lost and episode.verdict.is_confirmed else None


EPISODES: Final = EpisodeRule(rule=RULE, why=Why, of=_why)
