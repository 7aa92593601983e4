"""Declared evidence is JSON, and stored evidence of any version is read in its declared types."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from rules.event_updates import JOINED
from rules.evidence import read_evidence
from rules.loss.evidence_fields import LossEvidence
from rules.sequence.evidence_fields import SequenceEvidence

JSON_TYPES = {bool, int, str, type(None)}


@pytest.mark.parametrize("declared", [LossEvidence, SequenceEvidence])
def test_declared_evidence_is_scalars_and_rows_of_scalars(declared: type) -> None:
    for of in get_type_hints(declared).values():
        types = set(get_args(of) or (of,))
        if not types <= JSON_TYPES:
            [row] = types
            values = (get_args(of) or (of,) for of in get_type_hints(row).values())
            assert all(JSON_TYPES.issuperset(value) for value in values), row


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"leader": 1, "advice": None}, {"leader": 1, "advice": None}),
        ({"leader": True, "leader_epoch": "7", "epoch_end": None, "advice": 7}, {}),
        ({"never_observed": True, "renamed_since": 1}, {"never_observed": True}),
        ({"groups_beyond": None, "open_transactions": "payments-7"}, {}),
        (
            {"groups_beyond": [{"group": "a", "read_beyond": "7", "new": 1}, {"group": 7}, "b"]},
            {"groups_beyond": [{"group": "a"}]},
        ),
    ],
)
def test_only_what_has_a_declared_name_and_type_is_read(
    stored: dict[str, Any], expected: LossEvidence
) -> None:
    assert read_evidence(stored, LossEvidence) == expected


def test_what_is_joined_is_declared() -> None:
    assert get_type_hints(LossEvidence).keys() >= JOINED
