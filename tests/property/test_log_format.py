"""Events of brokers' logs are stored and read again without a difference."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.errors import StoreError
from rules.facts.broker_log import (
    BrokerStarted,
    ClientInstance,
    EpochRejected,
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogSource,
    LogTruncated,
    Origin,
    ProducerInitialised,
    ProducerRequest,
    SequenceForm,
    SequenceRejected,
    TransactionTimedOut,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.identity import BrokerId, TopicId
from service.storage.formats.log import FORMAT, KINDS, ParsedLines, decode, encode

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(), max_size=20)  # NUL, lone surrogates and all
brokers = st.integers(0, 2**31 - 1).map(BrokerId)
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds have none
origins = st.builds(Origin, source=texts, broker_id=st.none() | brokers, at=st.none() | times)
broker_lists = st.lists(brokers, max_size=4).map(tuple)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "origin": origins,
    "form": st.sampled_from(SequenceForm),
    "broker_id": brokers,
    "topic": texts,
    "topic_id": texts.map(TopicId),
    "partition": int32s,
    "isr_before": broker_lists,
    "isr": broker_lists,
    "elr_before": broker_lists,
    "last_known_elr_before": broker_lists,
    "transactional_id": texts,
    "request": texts,
    "error": texts,
    "is_commit": st.booleans(),
    "is_own_epoch": st.booleans(),
    "instance": st.builds(
        ClientInstance,
        client_id=texts,
        host=texts,
        port=int32s,
        listener=st.none() | texts,
        software=st.none() | texts,
    ),
}
MAY_LACK = {
    SequenceRejected: (
        "producer_id",
        "topic",
        "partition",
        "topic_id",
        "offset",
        "current_sequence",
    ),
    EpochRejected: ("producer_id", "topic", "partition", "offset"),
    IsrShrunk: ("high_watermark", "log_end_offset"),
    IsrUpdated: ("leader_epoch",),
    UncleanChange: ("topic", "topic_id", "leader", "leader_before", "leader_epoch"),
    LogLoaded: ("topic_id", "high_watermark"),
    FollowerStarted: ("high_watermark", "leader"),
    LogTruncated: ("epoch", "epoch_end"),
    WatermarkWentBack: (),
    ProducerInitialised: (),
    TransactionTimedOut: (),
    BrokerStarted: (),
    ProducerRequest: (
        "error",
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "is_commit",
        "instance",
    ),
}


def events_of(kind: type[LogEvent]) -> st.SearchStrategy[LogEvent]:
    """Build events of a kind, each with or without what such a line may lack."""
    parts = {name: PARTS.get(name, int64s) for name in kind.__dataclass_fields__}
    lacking = {name: st.none() | parts[name] for name in MAY_LACK[kind]}
    return st.builds(kind, **{**parts, **lacking})


events = st.one_of([events_of(kind) for kind in KINDS.values()])
counts = st.integers(0, 2**31 - 1)
sources = st.builds(
    LogSource,
    name=texts,
    lines=counts,
    unparsed=counts,
    last_line_at=st.none() | times,
    unreadable=st.lists(texts, max_size=5).map(tuple),
    controllers=st.lists(st.tuples(brokers, times), max_size=2).map(tuple),
)


@given(st.lists(events, max_size=5), st.lists(sources, max_size=3))
def test_what_is_decoded_is_what_was_encoded(
    found: list[LogEvent], counted: list[LogSource]
) -> None:
    parsed = ParsedLines(events=tuple(found), sources=tuple(counted))
    content = encode(parsed)
    assert decode(content, FORMAT) == parsed
    assert content.isascii()
    assert "\0" not in content


def test_every_kind_of_event_can_be_stored() -> None:
    assert set(KINDS.values()) == set(LogEvent.__args__)


@given(st.text() | st.sampled_from(["{}", "[]", '{"sources":[],"events":[{}]}', "null", "1"]))
def test_any_other_text_is_an_error_of_the_store(content: str) -> None:
    with pytest.raises(StoreError, match="stored log lines cannot be read"):
        decode(content, FORMAT)


def test_another_format_is_an_error_of_the_store() -> None:
    with pytest.raises(StoreError, match="the unknown format 2"):
        decode(encode(ParsedLines(events=(), sources=())), FORMAT + 1)


def test_what_an_older_release_stored_of_a_source_is_read() -> None:
    content = '{"sources":[["broker-1",3,1,null,["x"]]],"events":[]}'
    source = LogSource(name="broker-1", lines=3, unparsed=1, unreadable=("x",))
    assert decode(content, FORMAT) == ParsedLines(events=(), sources=(source,))
