"""A round's offsets from prepared answers: what is missing from them is told."""

from __future__ import annotations

from collectors.offsets import OffsetReader
from collectors.session import Session
from collectors.wire.api import LIST_OFFSETS
from rules.facts.gap import GapCause
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from tests.factories import broker, offsets, partitions
from tests.unit.collectors.fake_pool import session_of
from tests.unit.collectors.wire.messages import OffsetEntry, list_offsets_answer

ME = broker(1)


def read(session: Session, placed: Partitions) -> Offsets:
    round_ = OffsetReader().begin(session, placed, all_replicas=False)
    round_.read_log_start()
    return round_.read_ends()


def answering(*entries: OffsetEntry) -> Session:
    body = list_offsets_answer({"orders": list(entries)})
    return session_of(ME, answers={(ME, LIST_OFFSETS): body})


def test_a_complete_answer_has_no_gap() -> None:
    session = answering((0, 0, 5, 5), (1, 0, 6, 5), (2, 0, 7, 5))
    found = read(session, partitions())
    assert found.high_watermark.to_list() == [5, 6, 7]
    assert session.gaps == []


def test_a_partition_left_out_or_without_an_offset_is_a_gap_and_no_zero() -> None:
    session = answering((0, 0, 5, 5), (1, 0, -1, -1))
    found = read(session, partitions())
    assert found.high_watermark.to_list() == [5, None, None]
    assert [(gap.topic, gap.partition, gap.cause) for gap in session.gaps] == [
        ("orders", 1, GapCause.UNREADABLE),
        ("orders", 2, GapCause.UNREADABLE),
    ]


def test_a_rejected_partition_is_told_once_and_not_as_left_out() -> None:
    session = answering((0, 0, 5, 5), (1, 6, -1, -1), (2, 0, 7, 5))
    read(session, partitions())
    assert [(gap.partition, gap.cause) for gap in session.gaps] == [(1, GapCause.LEADER_CHANGING)]


def test_requests_are_kept_while_placement_stays_the_same() -> None:
    session = answering((0, 0, 5, 5), (1, 0, 6, 5), (2, 0, 7, 5))
    reader, placed = OffsetReader(), partitions()
    first = reader.begin(session, placed, all_replicas=False)
    assert reader.begin(session, placed, all_replicas=False)._plans is first._plans  # noqa: SLF001
    assert reader.begin(session, partitions(), all_replicas=False)._plans is not first._plans  # noqa: SLF001


def test_a_high_watermark_that_stood_still_puts_its_followers_under_watch() -> None:
    reader, placed = OffsetReader(), partitions()
    held = [(0, 0, 5, 5), (1, 0, 6, 5), (2, 0, 7, 5)]
    session = answering(*held)
    for _ in range(2):
        assert not reader.begin(session, placed, all_replicas=False).followed.any()
        ahead = offsets(high_watermark=[5, 6, 7], log_end_offset=[5, 9, 7])
        reader.note(placed, ahead)
    followed = reader.begin(session, placed, all_replicas=False).followed
    assert followed.tolist() == [False, True, False]
