"""Records that a terminal or a mail has wrapped are put together, and nothing else is."""

from __future__ import annotations

import textwrap

import pytest

from service.cli.sequence.wrapped import unwrap
from tests.unit.service.cli.sequence.given import OUT_OF_ORDER, reading, rejected

UNCLEAN = (
    "[2026-11-21 12:00:01,000] INFO [QuorumController id=100] UNCLEAN partition change for orders-0 "
    "with topic ID 10MutW2kQReRXczn4GtumQ: isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: "
    "RECOVERED -> RECOVERING, leaderEpoch: 0 -> 1, partitionEpoch: 2 -> 3 "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)
ORDINARY = "[2026-11-21 12:00:00,000] INFO [GroupCoordinator 1]: Stabilized group a (kafka)"
CUT = f"{OUT_OF_ORDER}: Out of order sequence number for producer 2001 at"


def cut_at(width: int, lines: list[str]) -> list[str]:
    """Return lines as a terminal shows them; a space at the end of one is lost when it is copied."""
    return [
        line[start : start + width].rstrip()
        for line in lines
        for start in range(0, len(line), width)
    ]


def wrapped_at(width: int, lines: list[str]) -> list[str]:
    """Return lines as a mail has them."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    ]


@pytest.mark.parametrize("width", range(60, 200, 7))
@pytest.mark.parametrize("wrap", [cut_at, wrapped_at])
def test_a_wrapped_rejection_is_read_with_its_time_and_broker(wrap: object, width: int) -> None:
    assert callable(wrap)
    found = reading(wrap(width, [ORDINARY, *rejected(27, 2), UNCLEAN]))
    (event,) = found.events
    assert (event.explained.gap, event.pasted.brokers, found.unparsed) == (24, [1], 0)
    assert event.pasted.first_at is not None
    assert [change.leader_epoch for change in event.changes] == [1]
    assert found.wrapped >= 1


def test_what_is_not_wrapped_stays_as_it_is() -> None:
    lines = [line.encode() for line in [ORDINARY, *rejected(27, 2), UNCLEAN, *rejected(28, 2)]]
    assert (unwrap(lines).lines, unwrap(lines).records) == (lines, 0)


def test_a_line_that_was_cut_takes_nothing_from_the_next_one() -> None:
    found = reading([CUT, *rejected(27, 2), CUT, rejected(28, 2)[1]])
    assert [event.explained.rejections for event in found.events] == [2]
    assert (found.unparsed, found.wrapped) == (2, 0)


def test_a_long_text_is_left_as_it_is() -> None:
    lines = [b"x" * 600_000] * 2 + [line.encode() for line in cut_at(60, rejected(27, 2))]
    assert unwrap(lines).records == 0


def test_hostile_text_ends_soon() -> None:
    assert unwrap([b"Truncating"] * 90_000).records == 0
