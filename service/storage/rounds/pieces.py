"""Splits a round that is too large for one transaction into pieces, each of which is stored as a round.

Findings come first, then alerts that go on, then groups with what was notified, then alerts that are over,
and the checkpoint is last. If the process is killed between two pieces, its successor judges anew from the
checkpoint before: findings and alerts that are stored go on, the others begin, and an alert that was still
stored as firing ends once more in its group, which sends no end twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.delta import AlertDelta
from service.storage.rounds.clusters import RoundId
from service.storage.rounds.rounds import Round


def split(round_: Round, most: int) -> tuple[Round, tuple[Round, ...]]:
    """Return the first piece of a round, of about `most` rows, and what is left of it.

    The piece has the number of the round less the rows that are left, so that storing it again, or other
    pieces of the same rows, is recognised.
    """
    if len(round_.changes) > most or (round_.changes and _rows(round_.alerts) > most):
        piece = replace(round_, changes=round_.changes[:most], checkpoint=None, alerts=None)
        return _numbered(piece, replace(round_, changes=round_.changes[most:]))
    first, others = _split_alerts(round_.alerts, most)
    if others is None:
        return round_, ()
    piece = replace(round_, checkpoint=None, alerts=first)
    return _numbered(piece, replace(round_, changes=(), alerts=others))


def _numbered(piece: Round, rest: Round) -> tuple[Round, tuple[Round, ...]]:
    writer, number = rest.round_id.writer, rest.round_id.number
    return replace(piece, round_id=RoundId(writer, number - rest.size)), (rest,)


def _rows(delta: AlertDelta | None) -> int:
    return 0 if delta is None else delta.size


def _split_alerts(
    delta: AlertDelta | None, most: int
) -> tuple[AlertDelta | None, AlertDelta | None]:
    """Return the first part of a delta, and what is left of it; None: nothing."""
    if delta is None or delta.size <= most or delta.is_whole or delta.clock_step:
        return delta, None
    going_on = [one for one in delta.alerts.values() if one.state is not AlertState.RESOLVED]
    if going_on:
        return _take(delta, going_on[:most])
    if not delta.alerts:
        return delta, None
    if delta.groups or delta.outgoing or delta.closed:
        first = replace(delta, observed_at=None, alerts={}, steps=(), lost_steps=0)
        return first, replace(delta, groups={}, outgoing=(), closed=())
    if len(delta.alerts) <= most:
        return delta, None
    return _take(delta, list(delta.alerts.values())[:most])


def _take(delta: AlertDelta, alerts: Iterable[Alert]) -> tuple[AlertDelta, AlertDelta]:
    """Return these alerts with their steps, and the delta without them."""
    mine = {alert.fingerprint: alert for alert in alerts}
    own = tuple(step for step in delta.steps if step.fingerprint in mine)
    others = tuple(step for step in delta.steps if step.fingerprint not in mine)
    left = {name: alert for name, alert in delta.alerts.items() if name not in mine}
    first = AlertDelta(at=delta.at, alerts=mine, steps=own)
    return first, replace(delta, alerts=left, steps=others)
