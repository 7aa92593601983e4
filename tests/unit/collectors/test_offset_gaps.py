"""What a round could not see, told once and with its cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collectors.offset_answers import AnsweredRows
from collectors.offset_gaps import ONE_BY_ONE, Ends, OffsetGaps, trusted_rows
from collectors.session import Session
from collectors.wire.failure import Failure
from rules.facts.column import Column
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.partitions import Partitions
from tests.factories import broker, ints, partitions
from tests.unit.collectors.fake_pool import session_of

LATE = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
NOT_LEADER, GONE = 6, 3


@pytest.fixture
def session() -> Session:
    return session_of(broker(1), broker(2))


def errors(*entries: tuple[int, int]) -> AnsweredRows:
    """Return answered rows from (row, error)."""
    rows, codes = zip(*entries, strict=True)
    nothing = ints(*[-1] * len(entries))
    return AnsweredRows(ints(*rows), ints(*codes), nothing, nothing)


def told(gaps: list[Gap]) -> list[tuple[str, GapCause]]:
    return [(gap.what, gap.cause) for gap in gaps]


def test_a_silent_broker_is_one_gap_that_names_what_it_leads(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_silent(broker(1), ints(0, 1, 2), LATE)
    gaps.note_silent(broker(1), ints(0, 1, 2), Failure(GapCause.UNREACHABLE, "closed"))
    gaps.write(session)
    assert told(session.gaps) == [
        ("offsets of 3 partitions (orders-0, orders-1, orders-2)", GapCause.TIMEOUT)
    ]
    assert session.gaps[0].broker_id == 1


def test_a_silent_broker_that_leads_nothing_is_no_gap_of_offsets(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_silent(broker(1), ints(), LATE)
    gaps.write(session)
    assert session.gaps == []


def test_a_rejected_partition_is_a_gap_with_broker_and_error(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_rejected(broker(2), errors((0, 0), (1, NOT_LEADER)), ints(0, 1))
    gaps.write(session)
    (gap,) = session.gaps
    assert (gap.what, gap.topic, gap.partition) == ("offsets of orders-1", "orders", 1)
    assert gap.why.startswith("NOT_LEADER_OR_FOLLOWER from broker 2 (127.0.0.1:9092)")
    assert gap.cause is GapCause.LEADER_CHANGING


def test_a_partition_rejected_three_times_is_told_once(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    for _ in range(3):
        gaps.note_rejected(broker(1), errors((2, NOT_LEADER)), ints(0, 1, 2))
    gaps.write(session)
    assert told(session.gaps) == [("offsets of orders-2", GapCause.LEADER_CHANGING)]


def test_different_errors_are_told_apart(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_rejected(broker(1), errors((0, NOT_LEADER), (1, GONE)), ints(0, 1, 2))
    gaps.write(session)
    assert set(told(session.gaps)) == {
        ("offsets of orders-0", GapCause.LEADER_CHANGING),
        ("offsets of orders-1", GapCause.GONE),
    }


def test_a_follower_that_refuses_loses_only_its_own_log_end(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_rejected(broker(2), errors((0, NOT_LEADER), (1, NOT_LEADER)), ints(0))
    gaps.write(session)
    assert [gap.what for gap in session.gaps] == ["offsets of orders-0"]
    gaps.report_copies(
        session, np.array([False, True, False]), Column.of([1] * 4 + [None] + [1] * 4)
    )
    assert [(gap.what, gap.broker_id) for gap in session.gaps[1:]] == [
        ("log end offsets of 1 replica on broker 2 (orders-1)", 2),
    ]
    assert "NOT_LEADER_OR_FOLLOWER" in session.gaps[1].why
    assert [gap.scope for gap in session.gaps] == [GapScope.OFFSETS, GapScope.REPLICAS]


def test_copies_on_a_broker_that_is_gone_are_a_gap_and_not_just_absent(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    third_of_each = Column.of([1, 1, None] * 3)
    gaps.report_copies(session, np.ones(3, np.bool_), third_of_each)
    [gap] = session.gaps
    assert gap.what == "log end offsets of 3 replicas on broker 3 (orders-0, orders-1, orders-2)"
    assert gap.why == "broker 3 is not registered with the cluster"


def test_a_rejected_copy_does_not_hide_what_the_leader_left_out(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_rejected(broker(2), errors((0, NOT_LEADER)), ints())
    gaps.write(session)
    gaps.report_left_out(session, ints(0))
    assert [gap.what for gap in session.gaps] == ["offsets of orders-0"]


def test_an_answer_without_errors_is_no_gap(session: Session) -> None:
    gaps = OffsetGaps(partitions())
    gaps.note_rejected(broker(1), errors((0, 0), (1, 0)), ints(0, 1))
    gaps.write(session)
    assert session.gaps == []


@pytest.mark.parametrize("count", [1, ONE_BY_ONE])
def test_a_few_partitions_get_a_gap_each(count: int, session: Session) -> None:
    gaps = OffsetGaps(partitions({"orders": 50}))
    gaps.add_rows(session, ints(*range(count)), LATE)
    assert [gap.partition for gap in session.gaps] == list(range(count))


def test_many_partitions_are_folded_into_one_gap(session: Session) -> None:
    gaps = OffsetGaps(partitions({"orders": 50}))
    gaps.add_rows(session, ints(*range(ONE_BY_ONE + 1)), LATE)
    (gap,) = session.gaps
    assert gap.what == "offsets of 21 partitions (orders-0, orders-1, orders-2 and 18 more)"
    assert (gap.topic, gap.partition) == (None, None)


def test_a_partition_without_a_leader_and_one_led_by_a_stranger_differ(session: Session) -> None:
    placed = partitions(leader=Column.of([None, 7, 1]))
    OffsetGaps(placed).report_without_leader(session)
    assert told(session.gaps) == [
        ("offsets of orders-0", GapCause.NO_LEADER),
        ("offsets of orders-1", GapCause.LEADER_CHANGING),
    ]
    assert "leader 7 is not among" in session.gaps[1].why


def test_leaders_in_place_are_no_gap(session: Session) -> None:
    OffsetGaps(partitions()).report_without_leader(session)
    OffsetGaps(Partitions.none()).report_without_leader(session)
    assert session.gaps == []


def ends(**overrides: list[int | None]) -> Ends:
    base: dict[str, list[int | None]] = {
        "last_stable_offset": [90],
        "high_watermark": [95],
        "log_end_offset": [99],
        "epoch_of_stable": [5],
        "epoch_of_watermark": [5],
    }
    return Ends(**{name: Column.of(values) for name, values in (base | overrides).items()})


@pytest.mark.parametrize(
    ("overrides", "cause"),
    [
        pytest.param({}, None, id="in-order"),
        pytest.param({"last_stable_offset": [95], "log_end_offset": [95]}, None, id="all-equal"),
        pytest.param({"epoch_of_watermark": [6]}, GapCause.LEADER_CHANGING, id="epoch-moved"),
        pytest.param({"last_stable_offset": [96]}, GapCause.IMPOSSIBLE_VALUE, id="lso-above-hwm"),
        pytest.param({"log_end_offset": [94]}, GapCause.IMPOSSIBLE_VALUE, id="leo-below-hwm"),
        pytest.param(
            {"last_stable_offset": [96], "epoch_of_watermark": [6]},
            GapCause.LEADER_CHANGING,
            id="crossed-because-the-epoch-moved",
        ),
        pytest.param({"epoch_of_stable": [None]}, None, id="an-epoch-unknown"),
        pytest.param({"high_watermark": [None]}, None, id="an-end-unseen"),
        pytest.param({"log_end_offset": [None]}, None, id="leo-unseen"),
    ],
)
def test_ends_are_trusted_only_when_they_fit_each_other(
    overrides: dict[str, Any], cause: GapCause | None, session: Session
) -> None:
    gaps = OffsetGaps(partitions({"orders": 1}))
    trusted = trusted_rows(session, gaps, ends(**overrides))
    assert trusted.tolist() == [cause is None]
    assert [gap.cause for gap in session.gaps] == ([] if cause is None else [cause])


def test_one_crossed_partition_costs_only_itself(session: Session) -> None:
    found = ends(
        last_stable_offset=[90, 99, 90],
        high_watermark=[95, 95, 95],
        log_end_offset=[95, 99, 95],
        epoch_of_stable=[5, 5, 4],
        epoch_of_watermark=[5, 5, 5],
    )
    trusted = trusted_rows(session, OffsetGaps(partitions()), found)
    assert trusted.tolist() == [True, False, False]
    assert [gap.partition for gap in session.gaps] == [2, 1]
