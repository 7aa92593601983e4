"""Log lines as a client submits them, not parsed yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum

from rules.facts.identity import BrokerId


@dataclass(frozen=True, slots=True)
class Stream:
    """A part of a source that is read as one log: its lines belong together, in the order they arrive."""

    source: str
    broker_id: BrokerId | None = None
    file: str | None = None  # a source may be several files

    @property
    def name(self) -> str:
        """Return its key in the database."""
        broker = "" if self.broker_id is None else str(self.broker_id)
        return "\n".join((self.source, broker, self.file or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The log lines of one request."""

    lines: Mapping[Stream, Sequence[bytes]]  # without their ends
    zone: tzinfo  # of times that name none
    digest: str  # of all that was sent
    key: str | None = None  # under which the sender repeats it, if it does


class Rejection(StrEnum):
    """Why a delivery was not stored."""

    FULL = "full"  # too much waits for a round
    KEY_REUSED = "key_reused"  # another delivery had the same key
    TOO_MANY_STREAMS = "too_many_streams"
