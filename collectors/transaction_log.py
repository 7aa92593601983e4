"""Reads the decisions of the transaction coordinators since the last round, from their own log.

Every partition of `__transaction_state` is followed from its end on, round after round, wherever
its leader is; the offset is remembered here, and no group commits anything. If a leader does not
answer, its partitions are not read in this round, and reading resumes there when it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from collectors.naming import grouped, summarize
from collectors.session import Session
from collectors.state_topic import SeenTopic, StateTopic, StateTopicAnswer
from collectors.transaction_record import (
    RecordUnreadableError,
    TransactionRecord,
    decode,
    decode_name,
    is_prepare_commit,
)
from collectors.transaction_tail import CUT_SHORT, Tail, fetch, find_ends
from collectors.wire.failure import Failure
from collectors.wire.records import Record, RecordSet
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TRANSACTION_STATE, BrokerId, TopicId
from rules.facts.transaction_log import EndedTransaction, TransactionLog

# Answers of 2 MiB per leader and round. A cluster that ends 1,000 transactions a second writes some
# 12 MiB in a round of 15 s: three brokers can be read twice as fast as that.
MAX_SCANS: Final = 4
MAX_ROUNDS_BEHIND: Final = 4
_ENDED: Final = "how transactions ended"


_UNFINISHED: Final = Failure(
    GapCause.LIMIT, f"more than {MAX_SCANS} answers hold: the next round goes on from there"
)
_LEFT_OUT: Final = Failure(
    GapCause.LIMIT,
    f"more was left than {MAX_ROUNDS_BEHIND} rounds can read: it was left out",
)


@dataclass(slots=True)
class TransactionLogReader:
    """Follows the log of one cluster; made anew for another one."""

    _tails: dict[int, Tail] = field(default_factory=dict)
    _topic_id: TopicId | None = None
    _seen: SeenTopic = field(default_factory=SeenTopic)
    _was_absent: bool = False  # there was no topic yet in an earlier round

    def collect(self, session: Session, state_topic: StateTopicAnswer) -> TransactionLog:
        """Return what ended since the last round; the first one only finds where to begin."""
        state_topic = self._seen.judge(state_topic)
        if state_topic is None:
            self._was_absent = True
            return TransactionLog(is_read=True)
        if isinstance(state_topic, Failure):
            session.add_gap(GapScope.TRANSACTION_LOG, _ENDED, state_topic, topic=TRANSACTION_STATE)
            return self._report_unread(state_topic)
        tails = self._follow(session, state_topic)
        find_ends(session, [tail for tail in tails if tail.position is None and not tail.failure])
        ended = self._read(session, tails)
        find_ends(session, [tail for tail in tails if tail.failure == CUT_SHORT])
        return self._conclude(session, tails, ended)

    def _report_unread(self, failure: Failure) -> TransactionLog:
        """Return a log that was not read; without authorization, reading restarts at the end later."""
        if failure.cause is not GapCause.NOT_AUTHORIZED:
            return TransactionLog(is_read=True, is_whole=False)
        self._tails.clear()
        return TransactionLog.unread()

    def _follow(self, session: Session, topic: StateTopic) -> list[Tail]:
        """Make the tails fit the topic; a topic that was absent in an earlier round is read from offset 0."""
        is_remade = self._is_remade(topic)
        begin = 0 if self._was_absent else None
        self._topic_id, self._was_absent = topic.topic_id or self._topic_id, False
        if is_remade:
            self._drop_tails(beyond=len(topic.leaders))
        for number, leader, epoch in self._list_partitions(topic):
            tail = self._tails.setdefault(number, Tail(number=number, position=begin))
            broker = session.broker(leader)
            tail.begin_round(broker, epoch)
            if is_remade:
                tail.start_at(None)
                tail.failure = CUT_SHORT
            if broker is None:
                tail.failure = _failure_without_leader(leader)
        return list(self._tails.values())

    def _is_remade(self, topic: StateTopic) -> bool:
        """Whether the topic was recreated: it has another id, or fewer partitions than before."""
        if self._topic_id is None or topic.topic_id is None:
            return len(self._tails) > len(topic.leaders)
        return self._topic_id != topic.topic_id

    def _drop_tails(self, *, beyond: int) -> None:
        self._tails = {number: tail for number, tail in self._tails.items() if number < beyond}

    def _list_partitions(
        self, topic: StateTopic
    ) -> Iterator[tuple[int, BrokerId | None, int | None]]:
        """Yield number, leader and leader epoch of every partition.

        A broker with old metadata leaves out the last partitions of the same topic: their leader is
        then briefly unknown.
        """
        left_out = (None,) * (len(self._tails) - len(topic.leaders))
        leaders, epochs = (*topic.leaders, *left_out), (*topic.leader_epochs, *left_out)
        yield from zip(range(len(leaders)), leaders, epochs, strict=True)

    def _read(self, session: Session, tails: Sequence[Tail]) -> list[EndedTransaction]:
        ended: list[EndedTransaction] = []
        for _ in range(MAX_SCANS):
            due = [tail for tail in tails if tail.is_due]
            if not due:
                break
            for tail, record_set in fetch(session, due):
                ended += read_endings(tail, record_set)
        _catch_up(tails)
        return ended

    def _conclude(
        self, session: Session, tails: Sequence[Tail], ended: Sequence[EndedTransaction]
    ) -> TransactionLog:
        failures = grouped((why, str(tail)) for tail in tails for why in tail.failures)
        rejected = [f for f in failures if f.cause is GapCause.NOT_AUTHORIZED]
        has_read = any(tail.high_watermark is not None for tail in tails)
        for failure in rejected if rejected and not has_read else failures:
            what = f"{_ENDED} on {summarize(failures[failure], 'partition')}"
            session.add_gap(GapScope.TRANSACTION_LOG, what, failure, topic=TRANSACTION_STATE)
        if rejected and not has_read:
            return self._report_unread(rejected[0])
        return TransactionLog(
            is_read=True,
            ended=tuple(ended),
            initialised=tuple(each for tail in tails for each in tail.endings.take_initialised()),
            is_whole=not failures,
        )


def _failure_without_leader(leader: BrokerId | None) -> Failure:
    if leader is None:
        return Failure(GapCause.NO_LEADER, "no broker leads it")
    return Failure(GapCause.UNREACHABLE, f"its leader, broker {leader}, is not registered")


def read_endings(tail: Tail, record_set: RecordSet) -> Iterator[EndedTransaction]:
    """Yield the transactions that these records end; note an unreadable record at its partition."""
    for record in record_set.records:
        try:
            decoded = _decode_unless_commit(tail, record)
        except RecordUnreadableError as exc:
            tail.lost = Failure(GapCause.UNREADABLE, str(exc))
            continue
        ended = None if decoded is None else tail.endings.take(decoded)
        if ended is not None:
            yield ended


def _decode_unless_commit(tail: Tail, record: Record) -> TransactionRecord | None:
    """Return a record; of a decision to commit only note when it was written, and return None."""
    if not is_prepare_commit(record.value):
        return decode(record.key, record.value, record.timestamp_ms)
    name = decode_name(record.key)
    if name is not None:
        tail.endings.note_decision(name, record.timestamp_ms)
    return None


def _catch_up(tails: Sequence[Tail]) -> None:
    """Note the partitions that were not read to their end; skip a backlog that is too large to read."""
    for leader in {tail.leader for tail in tails}:
        led = [tail for tail in tails if tail.leader == leader]
        late = [tail for tail in led if tail.is_due]
        advanced = sum(tail.advanced for tail in led)
        is_hopeless = sum(tail.behind for tail in late) > MAX_ROUNDS_BEHIND * advanced
        for tail in late:
            tail.lost = _LEFT_OUT if is_hopeless else _UNFINISHED
            if is_hopeless:
                tail.start_at(tail.high_watermark)
