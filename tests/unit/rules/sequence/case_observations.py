"""What rounds see of the textbook loss and of its return, and the form of a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.facts.broker_log import (
    FollowerStarted,
    LogTruncated,
    Origin,
    WatermarkWentBack,
)
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import BrokerId
from tests.factories import at, gap
from tests.unit.rules.sequence.lines import (
    rejected,
)
from tests.unit.rules.sequence.stage import (
    Observation,
    batch,
    found,
)

CONFIRMED, SUSPECTED = "confirmed", "suspected"
NOT_READABLE: Final = gap(scope=GapScope.BATCHES, cause=GapCause.NOT_AUTHORIZED)
SILENT: Final = gap(scope=GapScope.BATCHES, cause=GapCause.TIMEOUT)
ALONE: Final = Observation(second=0, isr=(1,), end=124)  # broker 1 alone has what it acknowledged
LOST: Final = ((0, 5, 100),)  # broker 2 says that epoch 5 ended at 100: 24 offsets are gone


def line_of_2(incoming: int = 27, current: int = 2, *, second: float = 10.0) -> Observation:
    """Return the round in which broker 2 leads and rejects the next batch; 24 offsets are lost."""
    rejection = rejected(incoming, current, broker=2, second=second)
    return Observation(
        second=second + 1, leader=2, epoch=6, isr=(2,), ends=LOST, lines=(rejection,)
    )


def of_2(second: float, **more: object) -> Observation:
    """Return a later round in which broker 2 leads."""
    return Observation(second=second, leader=2, epoch=6, isr=(2,), **more)  # type: ignore[arg-type]


OLD_BATCH: Final = batch(97, 0, 3)  # sequences 0 to 2, of leader epoch 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rounds saw, and what is said after the last one."""

    because: str
    observations: tuple[Observation, ...]
    says: tuple[str, str, str]  # class, phase, reason


RETURNED: Final = (
    FollowerStarted(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50)),
        topic="orders",
        partition=0,
        leader_epoch=6,
        log_end_offset=124,
        high_watermark=124,
        leader=BrokerId(2),
    ),
    LogTruncated(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50.1)),
        topic="orders",
        partition=0,
        offset=100,
        epoch=5,
        epoch_end=100,
    ),
    WatermarkWentBack(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50.1)),
        topic="orders",
        partition=0,
        offset_before=124,
        offset=100,
    ),
)
SEEMINGLY_CLEAN: Final = (
    Observation(second=0),
    Observation(second=11, leader=2, epoch=6, ends=LOST, lines=(rejected(27, 2, broker=2),)),
    Observation(second=12, leader=2, epoch=6, found=[found(OLD_BATCH)]),
)
REORDERED: Final = Observation(second=11, lines=(rejected(6, 2),))
