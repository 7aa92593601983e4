"""A gap in a producer's sequence without loss: no acknowledged record is missing.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where it is proven that
    no acknowledged record is missing: the batches arrived in another order, or the producer gave
    them up and its application got an error. If the producer is transactional, also what became of
    the transaction in which the batch was rejected.

Why it matters:
    The line in the broker's log is an ERROR, as after a real loss. This finding says that no
    acknowledged record is lost, and whether the rejected batch arrived after all. It also says
    whether the transaction was committed: librdkafka gives up a transaction in which a batch was
    rejected, which Java does not, and what was aborted has to be written again.

Inputs:
    As for sequence_gap_loss. Of the transaction: its marker in the partition's log, the leader's
    and the coordinators' answers, and `__transaction_state` (READ on it shows who aborted it).

Thresholds:
    The proof is one of two. Continuity: the last accepted batch was appended in the leader epoch
    that is still current, and within an epoch a leader loses nothing that it appended. Or the
    missing batches arrived. `arrival` says what became of the rejected batch, and the finding is
    updated when it changes:

    - `arrived`: a later entry of the same producer epoch contains it.
    - `newer_epoch`: the producer epoch ended without it.
    - `not_arrived`: nothing arrived within 120 seconds, for which clients retry by default.
    - `awaited`: the client may still send it.

    `transaction` in the evidence says what became of the transaction: `committed`, `aborted`,
    `fenced` (aborted for another instance with the same transactional id), `timed_out`, `open`,
    `overdue` (open after its timeout) or `unknown`, with `transaction_unknown_reason`. An episode
    has one of the transactions that failed, if there is any. `transaction_failed` is a warning:
    the transaction was aborted, by whomever, or is overdue, and the rejected batch did not arrive
    in it. A transaction that was aborted after the batch had arrived failed for another reason. An
    outcome that is not known changes no severity.

False positives:
    `transaction_failed`: an application that is killed, or aborts for another reason,
    just before the batch arrives. Otherwise none known. A new producer epoch proves nothing: librdkafka raises its epoch after a healed
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
    - `transaction_failed` (warning): `check` says what the application has to do, and
      `tidemark tx show ID` shows the state of its transactional id. The records of an aborted
      transaction have to be written again, in a new one.
"""

from __future__ import annotations

from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import EpisodeRule, judge_episodes, sequence_rule
from rules.sequence.transaction_outcome import costs_transaction
from rules.verdict import Severity
from rules.view import View

RULE: Final = sequence_rule(
    "sequence_gap_reordering",
    Severity.WARNING,
    "A gap in a producer's sequence without loss: no acknowledged record is missing.",
    milder=(
        ("reordered", Severity.INFO),
        ("client_failure", Severity.INFO),
        ("not_arrived", Severity.INFO),
    ),
)
CLASSES: Final = (SequenceClass.REORDERING, SequenceClass.CLIENT_FAILURE)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    REORDERED = "reordered"
    CLIENT_FAILURE = "client_failure"
    NOT_ARRIVED = "not_arrived"  # nothing is lost, but the rejected batch was never written
    # Its transaction was aborted without the rejected batch, or is overdue.
    TRANSACTION_FAILED = "transaction_failed"


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, EPISODES)


def _why(episode: Episode) -> Why | None:
    if not episode.verdict.is_confirmed or episode.verdict.class_ not in CLASSES:
        return None
    if costs_transaction(episode):
        return Why.TRANSACTION_FAILED
    if episode.verdict.class_ is SequenceClass.REORDERING:
        return Why.REORDERED
    if episode.verdict.reason is SequenceReason.NOT_ARRIVED:
        return Why.NOT_ARRIVED
    return Why.CLIENT_FAILURE


EPISODES: Final = EpisodeRule(rule=RULE, why=Why, of=_why, lasting=Why.TRANSACTION_FAILED)
