"""Lines of broker 1, which led `orders-0` in epoch 5, and of a leader change that may have lost records.

Broker 2 leads in epoch 6, and says that epoch 5 ended at offset 73. Broker 1 comes back with a log
that had reached 100.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from rules.facts.broker_log import (
    BrokerLog,
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogSource,
    LogTruncated,
    Origin,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.loss_memory import ReplicaEvent
from tests.factories import at, epoch_ends, offsets, partitions

EX_LEADER: Final = BrokerId(1)
BACK_AT: Final = 40.0  # seconds
END: Final = 73


CONTROLLER: Final = LogSource(name="controller", controllers=((BrokerId(100), at(0)),))


def origin(
    second: float | None = BACK_AT, *, broker: int | None = 1, source: str = "server"
) -> Origin:
    """Return where a line was read; without a second it tells no time."""
    told: datetime | None = None if second is None else at(0) + timedelta(seconds=second)
    return Origin(source=source, broker_id=None if broker is None else BrokerId(broker), at=told)


def started(end: int = 100, *, epoch: int = 6, **more: Any) -> FollowerStarted:
    return FollowerStarted(
        origin=origin(**{"source": "state-change", **more}),
        topic="orders",
        partition=0,
        leader_epoch=epoch,
        log_end_offset=end,
        high_watermark=None,
        leader=BrokerId(2),
    )


def loaded(end: int = 100, **more: Any) -> LogLoaded:
    return LogLoaded(
        origin=origin(**{"second": BACK_AT - 1, **more}),
        topic="orders",
        partition=0,
        topic_id=None,
        high_watermark=0,
        log_end_offset=end,
    )


def cut(
    offset: int = END, *, epoch: int | None = 5, epoch_end: int | None = END, **more: Any
) -> LogTruncated:
    return LogTruncated(
        origin=origin(**{"second": BACK_AT + 1, **more}),
        topic="orders",
        partition=0,
        offset=offset,
        epoch=epoch,
        epoch_end=epoch_end,
    )


def went_back(before: int = 95, offset: int = END, **more: Any) -> WatermarkWentBack:
    return WatermarkWentBack(
        origin=origin(**{"second": BACK_AT + 1, "broker": None, **more}),
        topic="orders",
        partition=0,
        offset_before=before,
        offset=offset,
    )


def updated(*isr: int, second: float = 5.0, broker: int = 1) -> IsrUpdated:
    """Return what a leader heard of the controller."""
    return IsrUpdated(
        origin=origin(second, broker=broker),
        topic="orders",
        partition=0,
        isr=tuple(BrokerId(one) for one in isr),
        leader_epoch=None,
    )


def alone(second: float = 5.0) -> IsrUpdated:
    return updated(1, second=second)


def asked(second: float = 5.0) -> IsrShrunk:
    """Return a request for an ISR of broker 1 alone, as one makes that was frozen."""
    return IsrShrunk(
        origin=origin(second),
        topic="orders",
        partition=0,
        isr_before=(BrokerId(1), BrokerId(2)),
        isr=(BrokerId(1),),
        high_watermark=80,
        log_end_offset=81,
    )


def elected(**more: Any) -> UncleanChange:
    """Return the controller's line: broker 2 was elected in epoch 6."""
    given: dict[str, Any] = {
        "origin": replace(started().origin, source="controller", broker_id=None),
        "topic": "orders",
        "partition": 0,
        "topic_id": None,
        "leader": BrokerId(2),
        "leader_before": BrokerId(1),
        "leader_epoch": 6,
    }
    return UncleanChange(**given | more)


def written(*events: LogEvent) -> dict[str, Any]:
    """Return what was read of logs in one round."""
    return {"broker_log": BrokerLog(is_read=True, events=events, sources=(CONTROLLER,))}


ALLOWED: Final = {"unclean_election_enabled": Column.of([1])}


def led_by_1(*, watermark: int = 100, isr: tuple[int, ...] = (1,)) -> dict[str, Any]:
    """Return an observation in epoch 5, at a leader that is alone unless told otherwise."""
    return {
        "partitions": partitions({"orders": 1}, isr=Ragged.of([isr]), **ALLOWED),
        "offsets": offsets(
            1,
            last_stable_offset=[watermark],
            high_watermark=[watermark],
            log_end_offset=[watermark],
        ),
    }


def led_by_2(*, end: int | None = END, isr: tuple[int, ...] = (2,), **more: Any) -> dict[str, Any]:
    """Return an observation in epoch 6; `end` is where epoch 5 ended, None: it is not told in this round."""
    told = () if end is None else ((0, 5, end),)
    return {
        "partitions": partitions(
            {"orders": 1}, leader=Column.of([2]), isr=Ragged.of([isr]), **ALLOWED
        ),
        "offsets": offsets(1, leader_epoch=[6]),
        "epoch_ends": epoch_ends(*told),
        **more,
    }


LATER: Final = led_by_2(end=None)
CLEAN: Final = (led_by_1(watermark=END, isr=(1, 2)), led_by_2(isr=(2, 1)))


def forbidden(observation: dict[str, Any]) -> dict[str, Any]:
    """Return the observation of a topic that allows no unclean election."""
    never = replace(observation["partitions"], unclean_election_enabled=Column.of([0]))
    return observation | {"partitions": never}


PROVEN: Final = (led_by_1(), led_by_2())  # 27 offsets are gone for certain
LINES: Final[tuple[ReplicaEvent, ...]] = (alone(), loaded(), started(), cut(), went_back())
