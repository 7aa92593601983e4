"""Log lines that arrive after a change was reported as not known, and show that it was not clean.

A log may be several rounds behind. Its evidence is reported once, for the same change. A change that is
proven by other means is not reopened. Of the old leader's own lines, only those count that it wrote before
the change was reported: later ones may belong to a later time as leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rules.facts.broker_log import IsrUpdated, UncleanChange
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import Contradiction, ReplicaLine, ReportedLoss
from rules.facts.times import CLOCKS_AGREE_US, iso_time_or_none
from rules.loss.election import Election
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import change_evidence, copy_first
from rules.loss.returned import is_committed, list_losses, row_of
from rules.view import View


def apply_late_lines(
    loss: ReportedLoss, lines: Iterable[ReplicaLine], *, is_behind: bool
) -> ReportedLoss:
    """Return the loss with the evidence of log lines against a clean election.

    While a log is behind, a later line of the same leader may contain another ISR.
    """
    if not _is_open(loss):
        return loss
    known_lines = list(lines)
    levels = [_of_controller(loss, line.event) for line in known_lines]
    levels += [] if is_behind else [_of_isr(loss, known_lines)]
    worst = max((loss.contradicted, *levels))
    return loss if worst == loss.contradicted else replace(loss, contradicted=worst)


def list_newly_contradicted(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the earlier changes against which this round read a line."""

    def is_news(was: ReportedLoss | None, loss: ReportedLoss) -> bool:
        is_same = was is not None and was.leader_epoch == loss.leader_epoch
        return was is not None and is_same and loss.contradicted > was.contradicted

    return list_losses(view, is_news)


def has_tail(loss: ReportedLoss) -> bool:
    """Whether observed records are gone that may have been committed."""
    return (loss.not_known_to or 0) > loss.epoch_end


def late_evidence(view: View, loss: ReportedLoss) -> LossEvidence:
    """Return the present evidence of such a change."""
    row = row_of(view, loss)
    isr = () if row is None else view.snapshot.partitions.isr[row] or ()
    is_unclean = loss.contradicted == Contradiction.BY_CONTROLLER
    old = loss.leader_before
    is_away = is_unclean and old is not None and old != loss.leader and old not in isr
    return {
        **change_evidence(loss, Election.UNCLEAN if is_unclean else Election.NOT_KNOWN),
        "unknown_since": iso_time_or_none(loss.last_observation_us),
        "advice": copy_first([old], loss.name) if is_away and old is not None else None,
    }


def _is_open(loss: ReportedLoss) -> bool:
    """Whether its election is still not known."""
    is_proven = is_committed(loss) or bool(loss.missing) or loss.restored_epoch is not None
    return loss.not_known_to is not None and not is_proven


def _of_controller(loss: ReportedLoss, event: object) -> int:
    """Return the level of contradiction by a controller's line."""
    if not isinstance(event, UncleanChange) or event.leader_epoch is None:
        return 0
    is_topic = event.topic in (None, loss.name.topic) and event.topic_id in (None, loss.topic_id)
    is_named = event.topic is not None or event.topic_id is not None
    is_its = is_topic and is_named and event.partition == loss.name.partition
    is_within = loss.leader_epoch_before < event.leader_epoch <= loss.leader_epoch
    is_after = not event.former_leaders or loss.leader_before in event.former_leaders
    if not (is_its and is_within and is_after) or event.leader in (None, loss.leader_before):
        return 0
    return Contradiction.BY_SIGNS if event.is_of_last_known else Contradiction.BY_CONTROLLER


def _of_isr(loss: ReportedLoss, lines: Iterable[ReplicaLine]) -> int:
    """Return the level of contradiction by the old leader's last line about its ISR.

    A line that it wrote after the change was reported may belong to another time as leader.
    """
    own = [
        (at, line.event.isr)
        for line in lines
        if isinstance(line.event, IsrUpdated) and (at := _written_us(loss, line)) is not None
    ]
    at, isr = max(own, default=(0, ()))
    is_direct = loss.leader_epoch - loss.leader_epoch_before == 1
    is_against = loss.leader_before in isr and loss.leader not in isr and at <= loss.reported_us
    return Contradiction.BY_SIGNS if is_against and (is_direct or len(isr) == 1) else 0


def _written_us(loss: ReportedLoss, line: ReplicaLine) -> int | None:
    """Return when the old leader wrote a line about its ISR since the last observation."""
    event, observed_at = line.event, loss.last_observation_us
    if not isinstance(event, IsrUpdated) or event.origin.at is None or observed_at is None:
        return None
    at = microseconds(event.origin.at)
    is_its = (event.topic, event.partition) == (loss.name.topic, loss.name.partition)
    is_own = event.origin.broker_id == loss.leader_before
    is_epoch = event.leader_epoch in (None, loss.leader_epoch_before)
    is_since = min(line.read_us, at + CLOCKS_AGREE_US) >= observed_at
    return at if is_its and is_own and is_epoch and is_since else None
