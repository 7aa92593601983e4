"""Collects where every partition lives: topic ids, leaders, epochs, replicas, ISR, ELR.

Source: DescribeTopicPartitions (KIP-966, Kafka 3.8), which alone shows the eligible leader
replicas; older brokers get Metadata. The ELR is then absent without a gap, because such brokers have
none. As long as the answers do not change, byte for byte, the same `Partitions` object is returned, so
that requests built from it can be reused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.naming import listed
from collectors.session import Build, Request, Session, body_of
from collectors.state_topic import THROTTLE_BYTES, metadata_body
from collectors.translate import failure_of, in_order, present, topic_id_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_TOPIC_PARTITIONS, METADATA, Api
from collectors.wire.failure import Failure
from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import CONSUMER_OFFSETS
from rules.facts.partitions import PartitionIndex, Partitions

PAGE_PARTITIONS: Final = 2000  # the brokers' default `max.request.partition.size.limit`
LITERAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")

Pattern = re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Page:
    body: bytes
    answer: Any


@dataclass(frozen=True, slots=True)
class Placement:
    """Where partitions live, and what this round could read of it."""

    partitions: Partitions
    is_complete: bool  # whether all topics are in it
    is_read: bool  # False: it is as an earlier round read it


@dataclass(slots=True)
class PlacementReader:
    """Reads placement once per round and remembers the pages that did not change."""

    _pages: list[_Page] = field(default_factory=list)
    _name_pattern: Pattern | None = None
    _partitions: Partitions | None = None

    def collect(self, session: Session, name_pattern: Pattern | None) -> Placement:
        """Return the placement of topics whose whole name matches `name_pattern` (None: all topics).

        If the list of topics cannot be read to its end, the remembered placement is returned with a
        gap: with half a list, topics would seem deleted.
        """
        pages = self._read_pages(session)
        partitions = None if pages is None else self._placed(session, pages, name_pattern)
        if pages is None or partitions is None:
            remembered = self._partitions
            return Placement(
                remembered if remembered is not None else Partitions.none(),
                is_complete=False,
                is_read=False,
            )
        if not len(partitions) and name_pattern is not None:
            _explain_absence(session, name_pattern)
        unreadable = _report_unreadable(session, pages)
        _report_lost_coordinators(session, pages)
        return Placement(partitions, is_complete=not unreadable, is_read=True)

    def _placed(
        self, session: Session, pages: list[_Page], name_pattern: Pattern | None
    ) -> Partitions | None:
        """Return the partitions on these pages, and remember them; None: they make no sense."""
        is_same = pages == self._pages and name_pattern == self._name_pattern
        if self._partitions is None or not is_same:
            try:
                self._partitions = _build(_select(pages, name_pattern))
            except codec.UnreadableError as exc:
                failure = Failure(GapCause.UNREADABLE, str(exc))
                session.add_gap(GapScope.PLACEMENT, "the list of topics", failure)
                return None
        self._pages, self._name_pattern = pages, name_pattern
        return self._partitions

    def _read_pages(self, session: Session) -> list[_Page] | None:
        api = _placement_api(session)
        pages: list[_Page] = []
        cursor: Any = None
        while not pages or cursor is not None:
            page = self._read_page(session, api, cursor, len(pages))
            if isinstance(page, Failure):
                session.add_gap(GapScope.PLACEMENT, "the list of topics", page)
                return None
            pages.append(page)
            cursor = getattr(page.answer, "next_cursor", None)
        return pages

    def _read_page(self, session: Session, api: Api, cursor: Any, number: int) -> _Page | Failure:
        response = session.exchange_any(api, _request(api, cursor))
        if isinstance(response, Failure):
            return response
        body = bytes(memoryview(response.body)[THROTTLE_BYTES:])
        if number < len(self._pages) and self._pages[number].body == body:
            return self._pages[number]
        answer = response.read()
        return answer if isinstance(answer, Failure) else _Page(body, answer)


def _placement_api(session: Session) -> Api:
    outcomes = [session.version(b, DESCRIBE_TOPIC_PARTITIONS) for b in session.ready_brokers()]
    missing = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if len(missing) < len(outcomes) or not missing:
        return DESCRIBE_TOPIC_PARTITIONS
    unreadable = [failure for failure in missing if failure.cause is not GapCause.UNSUPPORTED]
    if unreadable:
        session.add_gap(GapScope.REPLICAS, "eligible leader replicas (ELR)", unreadable[0])
    return METADATA


def _request(api: Api, cursor: Any) -> Build:
    if api is METADATA:
        return metadata_body(None)
    start = cursor and {
        "topic_name": cursor.topic_name,
        "partition_index": cursor.partition_index,
    }
    return body_of(api, topics=(), response_partition_limit=PAGE_PARTITIONS, cursor=start)


@dataclass(slots=True)
class _Topic:
    topic_id: Any
    is_internal: bool
    partitions: list[Any]  # the codec's entities; a topic may stretch over two pages


def _select(pages: Iterable[_Page], name_pattern: Pattern | None) -> dict[str, _Topic]:
    topics: dict[str, _Topic] = {}
    for entry in (topic for page in pages for topic in page.answer.topics):
        if entry.name is None or int(entry.error_code) != codec.NO_ERROR:
            continue
        if name_pattern is not None and not name_pattern.fullmatch(entry.name):
            continue
        topic = topics.setdefault(entry.name, _Topic(entry.topic_id, entry.is_internal, []))
        topic.partitions.extend(entry.partitions)
    return dict(sorted(topics.items()))


def _build(topics: dict[str, _Topic]) -> Partitions:
    rows_of = {name: in_order(name, topic.partitions) for name, topic in topics.items()}
    rows = [row for topic in rows_of.values() for row in topic]
    return Partitions(
        index=PartitionIndex.of({name: len(topic) for name, topic in rows_of.items()}),
        topic_ids=tuple(topic_id_of(topic.topic_id) for topic in topics.values()),
        internal=tuple(topic.is_internal for topic in topics.values()),
        leader=Column.of(row and present(int(row.leader_id)) for row in rows),
        leader_epoch=Column.of(row and present(int(row.leader_epoch)) for row in rows),
        replicas=_lists(rows, "replica_nodes"),
        isr=_lists(rows, "isr_nodes"),
        elr=_lists(rows, "eligible_leader_replicas", null_is_empty=True),
        last_known_elr=_lists(rows, "last_known_elr", null_is_empty=True),
        min_insync_replicas=Column.absent(len(rows)),
        unclean_election_enabled=Column.absent(len(rows)),
    )


def _lists(rows: Sequence[Any], name: str, *, null_is_empty: bool = False) -> Ragged:
    """Collect one list per row; brokers write an empty ELR as null or as an empty list."""

    def of(row: Any) -> Sequence[int] | None:
        if row is None or not hasattr(row, name):
            return None
        value: Sequence[int] | None = getattr(row, name)
        return () if value is None and null_is_empty else value

    return Ragged.of([of(row) for row in rows])


def _report_unreadable(session: Session, pages: Iterable[_Page]) -> bool:
    """Add a gap for each topic that the broker could not describe; return whether there is one."""
    has_unreadable = False
    for entry in (topic for page in pages for topic in page.answer.topics):
        if int(entry.error_code) != codec.NO_ERROR:
            has_unreadable = True
            failure = failure_of(int(entry.error_code), "the list of topics")
            session.add_gap(GapScope.PLACEMENT, f"topic {entry.name}", failure, topic=entry.name)
    return has_unreadable


def _report_lost_coordinators(session: Session, pages: Iterable[_Page]) -> None:
    """Add a gap for groups that no broker lists: their partition of the offsets topic has no leader."""
    lost = sorted(
        int(partition.partition_index)
        for page in pages
        for topic in page.answer.topics
        if topic.name == CONSUMER_OFFSETS
        for partition in topic.partitions
        if present(int(partition.leader_id)) is None
    )
    if lost:
        names = listed([f"{CONSUMER_OFFSETS}-{number}" for number in lost])
        why = "these partitions have no leader, so that no broker lists their groups"
        failure = Failure(GapCause.NO_LEADER, why)
        what = f"groups coordinated by {names}"
        session.add_gap(GapScope.GROUPS, what, failure, topic=CONSUMER_OFFSETS)


def _explain_absence(session: Session, name_pattern: Pattern) -> None:
    """Query a topic by its name, because only then a broker answers that it is not authorized."""
    name = name_pattern.pattern.replace("\\", "")
    is_name = LITERAL_NAME.fullmatch(name) and name_pattern.fullmatch(name)
    brokers = session.ready_brokers()
    if not brokers or not is_name:
        return
    answer = session.exchange([Request(brokers[0], METADATA, metadata_body(name))])[0].read()
    if isinstance(answer, Failure):
        return
    for topic in answer.topics:
        failure = failure_of(int(topic.error_code), brokers[0], needs=f"DESCRIBE on Topic {name}")
        if failure.cause is GapCause.NOT_AUTHORIZED:
            session.add_gap(GapScope.PLACEMENT, f"topic {name}", failure, topic=name)
