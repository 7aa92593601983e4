"""Events as brokers of every version write them: each form with the event that it tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.property.replica_forms import (
    elections,
    followers,
    isrs,
    loads,
    truncations,
    updates,
    watermarks,
)
from tests.property.sequence_forms import epochs, expected_zeros, new_epochs, sequences
from tests.property.written_lines import Written

FORMS: Sequence[Callable[[], st.SearchStrategy[Written]]] = (
    sequences,
    new_epochs,
    expected_zeros,
    epochs,
    isrs,
    updates,
    loads,
    followers,
    truncations,
    watermarks,
    elections,
)
ANY_FORM = st.one_of([form() for form in FORMS])
