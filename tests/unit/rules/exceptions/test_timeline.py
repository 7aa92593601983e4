"""States of a transactional id: what the last one means, and what the steps show."""

from datetime import UTC, datetime, timedelta

import pytest

from collectors.application_log.transaction_lines import STATES
from rules.exceptions.meaning import Next
from rules.exceptions.next_commands import FORMS, LISTS, command_of
from rules.exceptions.timeline import LAST, MOST_STATES, timelines
from rules.facts.application_log import Names, TransactionLogged

BEGIN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def logged(state: str | None, *, seconds: int = 1, producer_id: int = 9) -> TransactionLogged:
    return TransactionLogged(
        source="a", line=1, transactional_id="pay-1", state=state, producer_id=producer_id, producer_epoch=0,
        timeout_ms=60_000, started_at=BEGIN, updated_at=BEGIN + timedelta(seconds=seconds),
    )  # fmt: skip


def test_every_state_of_kafka_has_a_conclusion() -> None:
    assert set(LAST) == set(STATES)


@pytest.mark.parametrize(
    ("state", "records"),
    [
        ("Ongoing", "unknown"),
        ("PrepareCommit", "neither"),
        ("CompleteAbort", "neither"),
        (None, "neither"),
    ],
)
def test_the_last_state_decides(state: str | None, records: str) -> None:
    (timeline,) = timelines([logged("Ongoing"), logged(state)])
    assert timeline.conclusion.records == records


def test_an_abort_after_the_timeout_is_named() -> None:
    (timely,) = timelines([logged("Ongoing"), logged("PrepareAbort", seconds=59)])
    (late,) = timelines([logged("Ongoing"), logged("PrepareAbort", seconds=60)])
    assert (timely.remarks, len(late.remarks)) == ((), 1)


def test_another_producer_id_is_named() -> None:
    (timeline,) = timelines([logged("Ongoing"), logged("Empty", producer_id=10)])
    assert timeline.remarks == ("the producer id changed from 9 to 10",)


def test_of_many_states_the_last_are_kept() -> None:
    (timeline,) = timelines([logged("Ongoing")] * (MOST_STATES + 3))
    assert (len(timeline.states), timeline.not_kept) == (MOST_STATES, 3)


@pytest.mark.parametrize("kind", list(Next))
def test_every_kind_has_a_command_with_and_without_names(kind: Next) -> None:
    names = Names(topic="or ders", partition=3, group="g'1", transactional_id="$x")
    command = command_of(kind, names)
    assert "{" not in command
    assert command_of(kind, Names()) == LISTS.get(kind, command_of(kind, Names()))
    if "{" in FORMS[kind].replace("{{", ""):
        assert any(quoted in command for quoted in ("'or ders", "'g'", "'$x'")), command
