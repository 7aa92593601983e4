"""Names of things in a cluster, as Kafka gives them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NewType

BrokerId = NewType("BrokerId", int)
TopicId = NewType("TopicId", str)  # Kafka's text form: URL-safe base64 without padding, 22 letters

ID_BYTES: Final = 6
# The logs of the group coordinators and of the transaction coordinators.
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


def short_id(*parts: object) -> str:
    """Return a lasting id of 12 hexadecimal digits: the same parts have the same one."""
    return blake2b("|".join(map(str, parts)).encode(), digest_size=ID_BYTES).hexdigest()


def are_different(topic_id: TopicId | str | None, other: TopicId | str | None) -> bool:
    """Whether two topic ids are known and differ: a topic was deleted and created again."""
    return None not in (topic_id, other) and topic_id != other


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A registered broker and the address it advertises on the listener we came by."""

    broker_id: BrokerId
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"broker {self.broker_id} ({self.host}:{self.port})"
