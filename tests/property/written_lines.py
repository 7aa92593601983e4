"""What the lines of all forms have: a time, a broker, a partition; and the lines of one record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from rules.facts.broker_log import LogEvent
from rules.facts.identity import BrokerId, TopicId
from tests.log_lines import append_failed, stamped, thrown

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
INT64 = st.integers(0, 2**63 - 1)
INT32 = st.integers(0, 2**31 - 1)
INT16 = st.integers(0, 2**15 - 1)
BROKERS = INT32.map(BrokerId)
ISRS = st.lists(BROKERS, min_size=1, max_size=5).map(tuple)
TOPICS = st.text(LETTERS + ".", min_size=1, max_size=249)
TOPIC_IDS = st.text(LETTERS, min_size=22, max_size=22).map(TopicId)
TIMES = st.integers(0, 7_258_118_400_000).map(  # milliseconds, to the year 2200
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)


@dataclass(frozen=True, slots=True)
class Written:
    """The lines of one record, and what they tell."""

    lines: tuple[str, ...]
    event: LogEvent | None  # None: nothing


@dataclass(frozen=True, slots=True)
class Around:
    """What the lines of all forms have."""

    at: datetime
    broker_id: BrokerId
    topic: str
    partition: int
    topic_id: TopicId

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def time(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S},{self.at.microsecond // 1000:03}"

    def one(self, message: str, event: LogEvent) -> Written:
        return Written((stamped(message, time=self.time),), event)

    def two(self, message: str, event: LogEvent, exception: str, target: str) -> Written:
        first = append_failed(target, self.broker_id, self.time)
        return Written((first, thrown(message, exception)), event)


AROUND = st.builds(Around, TIMES, BROKERS, TOPICS, INT32, TOPIC_IDS)
Draw = st.DrawFn
