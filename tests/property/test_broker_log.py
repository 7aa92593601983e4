"""Laws of reading brokers' logs: what was rendered is read back, and no bytes do harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.broker_log.parser import KINDS, LineParser
from rules.facts.broker_log import LogEvent
from tests.log_lines import SOURCE, parser, stamped
from tests.property.log_forms import ANY_FORM, FORMS
from tests.property.written_lines import Written

ORDINARY = st.sampled_from(
    [
        stamped("[GroupCoordinator 1]: Preparing to rebalance group g in state Empty"),
        stamped("[Broker id=1] Stopped fetchers as part of become-follower for 3 partitions"),
        stamped("[ReplicaManager broker=1] Error processing fetch with max size 7 from consumer"),
        "java.lang.RuntimeException: no such thing",
        "\tat kafka.server.KafkaApis.handle(KafkaApis.scala:196)",
        "",
    ]
)
WRITTEN = st.lists(st.one_of(ANY_FORM, ORDINARY.map(lambda line: Written((line,), None))))
MARKS = [kind.mark.encode() for kind in KINDS]
# Bytes that come near to what is searched for.
PIECES = st.one_of(
    st.binary(max_size=40), st.sampled_from([*MARKS, b"[", b"\n", b" 1 (", b"\x1b["])
)
HOSTILE = st.lists(PIECES, max_size=30).map(b"".join)


def lines_of(records: Sequence[Written]) -> list[bytes]:
    return [line.encode() for record in records for line in record.lines]


def events_in(records: Sequence[Written]) -> list[LogEvent]:
    return [record.event for record in records if record.event is not None]


def pieces(lines: Sequence[bytes], cuts: Sequence[int]) -> Iterator[Sequence[bytes]]:
    """Give lines in pieces that are cut at some places."""
    places = sorted({0, len(lines), *(cut % (len(lines) + 1) for cut in cuts)})
    return (lines[start:end] for start, end in pairwise(places))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_what_was_rendered_is_read_back(
    form: Callable[[], st.SearchStrategy[Written]], data: st.DataObject
) -> None:
    written = data.draw(form())
    made = parser()
    assert made.feed(lines_of([written])) == [written.event]
    assert made.unparsed == 0


@given(WRITTEN, st.lists(st.integers(0), max_size=5))
def test_calls_may_divide_the_lines_in_any_way(records: list[Written], cuts: list[int]) -> None:
    made, lines = parser(), lines_of(records)
    assert [event for part in pieces(lines, cuts) for event in made.feed(part)] == events_in(
        records
    )
    assert (made.lines, made.unparsed) == (len(lines), 0)


@given(WRITTEN, st.lists(st.integers(0), max_size=5))
def test_a_parser_may_be_resumed_after_any_line(records: list[Written], cuts: list[int]) -> None:
    state, found = parser().state(), list[LogEvent]()
    for part in pieces(lines_of(records), cuts):
        made = LineParser.resumed(SOURCE, None, UTC, state)
        found += made.feed(part)
        state = made.state()
    assert found == events_in(records)


@given(WRITTEN, st.sampled_from([b"\n", b"\r\n"]))
def test_records_may_be_joined(records: list[Written], newline: bytes) -> None:
    assert parser().feed([newline.join(lines_of(records))]) == events_in(records)


@given(st.lists(HOSTILE, max_size=10), st.lists(st.integers(0), max_size=3))
def test_no_bytes_raise_and_their_division_does_not_matter(
    lines: list[bytes], cuts: list[int]
) -> None:
    whole, parted = parser(), parser()
    events = whole.feed(lines)
    assert [event for part in pieces(lines, cuts) for event in parted.feed(part)] == events
    assert (whole.unparsed, whole.unreadable) == (parted.unparsed, parted.unreadable)
    assert (whole.state(), whole.lines) == (parted.state(), len(lines))


@given(ANY_FORM, st.data())
def test_a_damaged_line_never_raises_and_gives_at_most_one_event(
    written: Written, data: st.DataObject
) -> None:
    lines = lines_of([written])
    place = data.draw(st.integers(0, len(lines[-1]) - 1))
    damage = data.draw(st.binary(max_size=4).filter(lambda piece: b"\n" not in piece))
    lines[-1] = lines[-1][:place] + damage + lines[-1][place + 1 :]
    made = parser()
    assert len(made.feed(lines)) + made.unparsed <= 1
