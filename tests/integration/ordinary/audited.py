"""Producers that remember what the brokers promised them: the truth of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from service.runtime.clock import utc_now
from service.sandbox.workloads.producer import IdempotentProducer

# A frozen broker is left after ten seconds, and no record is given up before the run is over.
PATIENT: Final = {
    "socket.timeout.ms": "10000",
    "topic.metadata.refresh.interval.ms": "2000",
    "message.timeout.ms": "600000",
}

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementPause:
    """A time in which nothing was acknowledged to a producer on a partition."""

    place: Place
    begin: datetime
    end: datetime


@dataclass(eq=False, kw_only=True)
class AuditedProducer(IdempotentProducer):
    """Numbered records, each remembered with the place that the brokers gave it."""

    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)  # (partition, offset)
    # Written by an earlier try whose answer was lost: librdkafka knows of no offset then.
    without_offset: list[tuple[int, bytes]] = field(default_factory=list)
    next_offset: dict[int, int] = field(default_factory=dict)
    pauses: list[AcknowledgementPause] = field(default_factory=list)
    pause_seconds: float = 20.0  # shorter ones are not remembered
    _last: dict[int, datetime] = field(default_factory=dict, init=False)

    def ends(self) -> dict[int, int]:
        """Return the offset behind the last acknowledged record of each partition."""
        return dict(self.next_offset)

    def _on_delivery(self, error: Any, message: Any) -> None:
        super()._on_delivery(error, message)
        if error is not None:
            return
        partition, offset, now = message.partition(), message.offset(), utc_now()
        if offset is None or offset < 0:
            self.without_offset.append((partition, message.value()))
        else:
            self.acknowledged[partition, offset] = message.value()
            self.next_offset[partition] = max(self.next_offset.get(partition, 0), offset + 1)
        last = self._last.get(partition, now)
        if (now - last).total_seconds() > self.pause_seconds:
            self.pauses.append(
                AcknowledgementPause(place=(self.topic, partition), begin=last, end=now)
            )
        self._last[partition] = now
