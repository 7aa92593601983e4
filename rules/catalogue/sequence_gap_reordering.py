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

from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import EpisodeRule, judge_episodes, sequence_rule
from rules.verdict import Severity
from rules.view import View

RULE: Final = sequence_rule(
    "sequence_gap_reordering",
    Severity.INFO,
    "A gap in a producer's sequence without loss: no acknowledged record is missing.",
)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    REORDERED = "reordered"
    CLIENT_FAILURE = "client_failure"
    NOT_ARRIVED = "not_arrived"  # nothing is lost, but the rejected batch was never written


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, EPISODES)


def _why(episode: Episode) -> Why | None:
    if not episode.verdict.is_confirmed:
        return None
    if episode.verdict.class_ is SequenceClass.REORDERING:
        return Why.REORDERED
    if episode.verdict.reason is SequenceReason.NOT_ARRIVED:
        return Why.NOT_ARRIVED
    return Why.CLIENT_FAILURE if episode.verdict.class_ is SequenceClass.CLIENT_FAILURE else None


EPISODES: Final = EpisodeRule(rule=RULE, why=Why, of=_why)
