"""A model is made of a value's attributes, and of what the value does not have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from rules.facts.times import EPOCH, MICROSECOND
from service.views.model import Milliseconds, Model, Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    broker_id: int | None
    seen_us: int | None
    timeout: timedelta | None


class BatchView(Model):
    broker: Annotated[int | None, Field(validation_alias="broker_id")]
    seen_at: Annotated[Timestamp | None, Field(validation_alias="seen_us")]
    timeout_ms: Annotated[Milliseconds | None, Field(validation_alias="timeout")]
    class_: Annotated[str, Field(alias="class")]
    started_at: datetime | None


BATCH = Batch(broker_id=2, seen_us=1_500_000, timeout=timedelta(seconds=1, microseconds=999))
NOTHING = Batch(broker_id=None, seen_us=None, timeout=None)


def test_a_row_has_the_names_of_the_model_and_values_of_json() -> None:
    view = BatchView.of(BATCH, class_="open", started_at=EPOCH + 7 * MICROSECOND)
    assert view.to_row() == {
        "broker": 2,
        "seen_at": "1970-01-01T00:00:01.500000Z",
        "timeout_ms": 1000,
        "class": "open",
        "started_at": "1970-01-01T00:00:00.000007Z",
    }


def test_absent_values_are_null() -> None:
    row = BatchView.of(NOTHING, class_="open", started_at=None).to_row()
    assert row == {
        "broker": None,
        "seen_at": None,
        "timeout_ms": None,
        "class": "open",
        "started_at": None,
    }


def test_a_field_that_nothing_has_is_an_error() -> None:
    with pytest.raises(ValidationError, match="started_at"):
        BatchView.of(BATCH, class_="open")
