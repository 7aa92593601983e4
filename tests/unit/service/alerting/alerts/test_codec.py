"""Alerts and groups as JSON: restored exactly, and rejected where they cannot be read."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from rules.evidence import Scalar
from service.alerting.alerts.grouping import AlertingState
from tests.alerting import BREACH, OK, RULE, Life, Said, Why, config, decode, encode


def lived() -> Life:
    """Return a life with alerts and groups in every state."""
    life = Life(config(keep_firing_for={RULE: timedelta(minutes=1)}))
    rows: list[dict[str, Scalar]] = [{"group": "billing", "lag": 2**60, "is_open": None}]
    first: Said = (BREACH, Why.SAID, {"rows": rows})
    said: dict[str, Said] = {"orders-0": first, "orders-1": BREACH, "zähler-0": BREACH}
    for seconds in (0, 30):
        life.round(seconds, said)
    for seconds in (60, 120):
        life.round(seconds, {**said, "orders-1": OK})
    life.round(150, {**said, "orders-1": OK, "zähler-0": OK})
    return life


def test_what_is_stored_is_restored_exactly() -> None:
    state = lived().state
    assert len({alert.state for alert in state.alerts.values()}) == 2
    (group,) = state.groups.values()
    assert group.ended
    assert group.notified
    assert decode(json.loads(json.dumps(encode(state)))) == state


def test_nothing_is_restored_as_nothing() -> None:
    assert decode(encode(AlertingState())) == AlertingState()


DAMAGES: list[Any] = [None, {}, "x", {"active_at": "yesterday"}]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_rejected_and_not_guessed(damage: Any) -> None:
    plain = encode(lived().state)
    is_partial = isinstance(damage, dict) and damage
    alert = {**plain["alerts"][0], **damage} if is_partial else damage
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode({**plain, "alerts": [alert]})
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode({**plain, "groups": [{"receiver": "pager"}]})


@pytest.mark.parametrize("field", ["state", "severity", "end"])
def test_words_that_are_not_ours_are_rejected(field: str) -> None:
    plain = encode(lived().state)
    plain["alerts"][0][field] = "strange"
    with pytest.raises(ValueError, match="strange"):
        decode(plain)
