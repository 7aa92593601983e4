"""Lines about producer 7 on orders-0, with overrides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rules.facts.broker_log import Origin, SequenceForm, SequenceRejected
from rules.facts.identity import BrokerId
from rules.facts.rejections import distinct, rejection_of
from rules.sequence.numbers import Suspicion, suspicion_of
from tests.factories import at

BIGGEST = 2**31 - 1


def rejected(
    incoming: int, current: int | None, *, second: float = 10.0, broker: int = 1, **overrides: Any
) -> SequenceRejected:
    """Return the line of broker 1, 10 s after noon, about a batch that would have got offset 100."""
    base = SequenceRejected(
        origin=Origin(source="broker-1", broker_id=BrokerId(broker), at=at(second)),
        form=SequenceForm.OUT_OF_ORDER,
        producer_id=7,
        topic="orders",
        partition=0,
        offset=100,
        incoming_sequence=incoming,
        current_sequence=current,
    )
    return replace(base, **overrides)


def new_epoch(incoming: int, epoch: int, **overrides: Any) -> SequenceRejected:
    """Return the line of a new producer epoch that begins with another sequence than 0."""
    epochs: dict[str, Any] = {"producer_epoch": epoch, "current_epoch": epoch - 1}
    return rejected(incoming, None, form=SequenceForm.NEW_EPOCH, **epochs | overrides)


def expected_zero(incoming: int, **overrides: Any) -> SequenceRejected:
    """Return the line of a transaction whose first batch did not come first."""
    return rejected(incoming, None, form=SequenceForm.EXPECTED_ZERO, **overrides)


def earliest_seen(incoming: int, earliest: int, **overrides: Any) -> SequenceRejected:
    """Return the line of a batch that waited for its verification behind an earlier one."""
    return rejected(incoming, earliest, form=SequenceForm.EARLIEST_SEEN, **overrides)


def by_numbers(
    rejections: Iterable[SequenceRejected], largest_batch: int | None = None
) -> Suspicion:
    """Return the suspicion for one producer's rejections on one partition."""
    return suspicion_of(distinct(rejection_of(event) for event in rejections), largest_batch)
