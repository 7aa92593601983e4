"""Splits a round that is too large for one transaction into pieces, each of which is stored as a round.

Findings come first, then alerts that go on, then groups with what was notified, then alerts that are over,
and the checkpoint is last, with the change events that it contains. If the process is killed between two pieces, its successor judges anew from the
checkpoint before: findings and alerts that are stored go on, the others begin, and an alert that was still
stored as firing ends once more in its group, which sends no end twice.

What became known of an event is different: a successor that reads it learns nothing more, and would notify
nobody. So its alert, which says how often there was something to notify, is stored with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rules.open_findings import Identity, Step
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.delta import AlertDelta
from service.storage.findings.findings import storable
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.rounds import Round


def split(round_: Round, most: int) -> tuple[Round, tuple[Round, ...]]:
    """Return the first piece of a round, of about `most` rows, and what is left of it.

    The piece has the number of the round less the rows that are left, so that storing it again, or other
    pieces of the same rows, is recognised.
    """
    if len(round_.changes) > most or (round_.changes and _rows(round_.alerts) > most):
        changes = round_.changes[:most]
        if any(change.step is Step.AGAIN for change in changes):
            changes = changes[: max(most // 2, 1)]  # their alerts are stored with them
        piece = replace(round_, changes=changes, checkpoint=None, alerts=None, change_events=())
        return _numbered(piece, replace(round_, changes=round_.changes[len(changes) :]))
    first, others = _split_alerts(round_.alerts, most)
    if others is None:
        return round_, ()
    piece = replace(round_, checkpoint=None, alerts=first, change_events=())
    return _numbered(piece, replace(round_, changes=(), alerts=others))


def _numbered(piece: Round, rest: Round) -> tuple[Round, tuple[Round, ...]]:
    writer, number = rest.round_id.writer, rest.round_id.number
    round_id = RoundId(writer, number - rest.size)
    return replace(piece, round_id=round_id, is_piece=True), (rest,)


def with_alerts_of_events(
    part: Sequence[Round], rest: Sequence[Round]
) -> tuple[tuple[Round, ...], tuple[Round, ...]]:
    """Move the alerts of events that happened again into the part that stores these; return part and rest.

    A delta that is whole keeps them too: it says which alerts there are.
    """
    again: dict[ClusterKey, set[Identity]] = {}
    for round_ in part:
        names = (change.identity for change in round_.changes if change.step is Step.AGAIN)
        again.setdefault(round_.cluster, set()).update(map(_stored_identity, names))
    taken, left = list(part), list(rest)
    for key, events in again.items():
        last = max(place for place, round_ in enumerate(part) if round_.cluster == key)
        if not events or taken[last].alerts is not None:
            continue
        mine = ((place, round_) for place, round_ in enumerate(left) if round_.cluster == key)
        for place, round_ in mine:
            first, others = _take_events(round_.alerts, events)
            if first is not None:
                left[place] = replace(round_, alerts=others)
                taken[last] = replace(taken[last], alerts=first, is_piece=True)
                break
    return tuple(taken), tuple(left)


def _take_events(
    delta: AlertDelta | None, events: AbstractSet[Identity]
) -> tuple[AlertDelta | None, AlertDelta | None]:
    """Return the alerts of events that go on, None if there are none, and the delta without them."""
    if delta is None:
        return None, None
    mine = [
        alert
        for alert in delta.alerts.values()
        if alert.finding in events and alert.state is not AlertState.RESOLVED
    ]
    if not mine:
        return None, delta
    first, others = _take(delta, mine)
    return first, replace(others, alerts=delta.alerts) if delta.is_whole else others


def _stored_identity(identity: Identity) -> Identity:
    """Return a finding's identity as alerts have it."""
    rule_id, labels = identity
    return rule_id, tuple(sorted(storable(dict(labels)).items()))


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
