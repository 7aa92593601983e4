"""A client does not restart its sequence at 0 after a new producer epoch: a bug of the client.

Detects:
    Producers whose new epochs repeatedly begin above sequence 0 although nothing was lost.

Why it matters:
    The broker rejects every batch of such an epoch: the producer makes no progress, and its
    application gets timeouts at best.

Inputs:
    As for sequence_gap_loss: the brokers' logs, batch headers, leader epochs.

Thresholds:
    Two epochs that began above 0 while the broker had the same older one, or the same batch
    rejected three times without recovery within 120 seconds. Confirmed (`phase`) where the
    producer's earlier batches were appended in the leader epoch that is still current, so that the
    missing records cannot have been lost.

False positives:
    Confirmed: none known. Suspected: two reorderings, each at the start of another epoch.

Runbook:
    Update the client library and restart the producer: Java clients before 2.7.1 and 2.8 have such
    a bug (KAFKA-12152). If it is confirmed, no acknowledged record is missing.
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
    "producer_sequence_bug",
    Severity.INFO,
    "A producer's new epochs do not begin at sequence 0: a bug of its client.",
)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    STARTS_ABOVE_ZERO = "starts_above_zero"


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, EPISODES)


def _why(episode: Episode) -> Why | None:
    is_restart = episode.verdict.class_ is SequenceClass.SEQUENCE_RESTART
    return Why.STARTS_ABOVE_ZERO if is_restart else None


EPISODES: Final = EpisodeRule(rule=RULE, why=Why, of=_why)
