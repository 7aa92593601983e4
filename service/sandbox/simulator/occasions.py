"""What happens to a pipeline beside its traffic, each with the exact time: this is the truth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rules.baseline.series import Metric


class Kind(StrEnum):
    """What happens."""

    # Incidents: to be alerted on.
    SLOW_CONSUMER = "slow_consumer"  # a record takes 5 % longer every minute
    DEAD_PARTITION = "dead_partition"  # takes no records: its producers give them up
    POISON_PILL = "poison_pill"  # the group stops before one record of one partition
    PRODUCER_DROP = "producer_drop"  # nothing is written any more
    SURGE = "surge"  # three times as much is written
    ERROR_STEP = "error_step"  # producers give up a share of their records
    STUCK_TRANSACTION = "stuck_transaction"  # holds back the last stable offset
    SLOW_DEGRADATION = "slow_degradation"  # the group falls behind over many hours; a hard case
    # Nothing of the cluster's: what is not seen must not look like an error.
    COLLECTOR_OUTAGE = "collector_outage"
    # Ordinary: not to be alerted on.
    DEPLOY = "deploy"  # the group's members start anew: lag for one to three minutes
    REBALANCE = "rebalance"  # a pause of the whole group
    LEVEL_SHIFT = "level_shift"  # from now on more, or less, is written
    # The same; only with hard cases.
    BURST = "burst"  # some minutes of much more
    RETRY_BLIP = "retry_blip"  # producers give up records for a minute or two
    HOLIDAY = "holiday"  # a working day on which people write less


OFTEN: Final = (  # incidents of which a pipeline has one about every other week
    Kind.SLOW_CONSUMER,
    Kind.DEAD_PARTITION,
    Kind.POISON_PILL,
    Kind.PRODUCER_DROP,
    Kind.SURGE,
    Kind.ERROR_STEP,
    Kind.STUCK_TRANSACTION,
)
INCIDENTS: Final = (*OFTEN, Kind.SLOW_DEGRADATION)
_LAG: Final = (
    Metric.READ_COMMITTED_LAG,
    Metric.READ_UNCOMMITTED_LAG,
    Metric.READ_COMMITTED_LAG_SECONDS,
    Metric.READ_UNCOMMITTED_LAG_SECONDS,
)
_RATES: Final = (Metric.PRODUCE_RATE, Metric.CONSUME_RATE)
SHOWS_IN: Final = {
    Kind.SLOW_CONSUMER: (*_LAG, Metric.CONSUME_RATE),
    Kind.DEAD_PARTITION: (*_RATES, Metric.RECORD_ERROR_RATE),
    Kind.POISON_PILL: (*_LAG, Metric.CONSUME_RATE),
    Kind.PRODUCER_DROP: _RATES,
    Kind.SURGE: (*_RATES, *_LAG),
    Kind.ERROR_STEP: (Metric.RECORD_ERROR_RATE,),
    Kind.STUCK_TRANSACTION: (
        Metric.OPEN_SPAN,
        Metric.READ_UNCOMMITTED_LAG,
        Metric.READ_UNCOMMITTED_LAG_SECONDS,
        Metric.CONSUME_RATE,
    ),
    Kind.COLLECTOR_OUTAGE: (),
    Kind.DEPLOY: (*_LAG, Metric.CONSUME_RATE),
    Kind.REBALANCE: (*_LAG, Metric.CONSUME_RATE),
    Kind.LEVEL_SHIFT: _RATES,
    Kind.SLOW_DEGRADATION: _LAG,
    Kind.BURST: (*_RATES, *_LAG),
    Kind.RETRY_BLIP: (Metric.RECORD_ERROR_RATE,),
    Kind.HOLIDAY: _RATES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Something that happens in [start_ms, end_ms); a level shift lasts from its start on."""

    kind: Kind
    start_ms: int
    end_ms: int
    pipeline: int | None = None  # None: the whole cluster
    partition: int | None = None  # None: all of the pipeline's topic
    # Of a surge, a burst, a holiday and a level shift: how many times as much is written; of an error
    # step and a retry blip: the share of records that is given up; of a slow degradation: how many
    # seconds behind the group is at its end.
    strength: float = 1.0
    pauses: tuple[tuple[int, int], ...] = ()  # of a deploy and a rebalance: nothing is read

    @property
    def is_incident(self) -> bool:
        """Whether it is to be alerted on."""
        return self.kind in INCIDENTS
