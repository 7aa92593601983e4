"""Observes one partition before and after its leader changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from rules.catalogue import (
    committed_records_lost,
    records_possibly_lost,
    unclean_leader_election,
    unreplicated_records_lost,
)
from rules.facts.broker_log import BrokerLog, LogSource
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Verdict
from tests.factories import (
    at,
    epoch_ends,
    offsets,
    partitions,
    quorum,
    snapshot,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import Judge, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
UNCLEAN_ALLOWED: Final = Column.of([1])
RULES: Final = {
    "committed": committed_records_lost.judge,
    "possibly": records_possibly_lost.judge,
    "unreplicated": unreplicated_records_lost.judge,
    "unclean": unclean_leader_election.judge,
}


def placed(leader: int = 1, *, isr: tuple[int, ...] = (1, 2, 3), **more: Any) -> dict[str, Any]:
    return {
        "partitions": partitions(
            {"orders": 1}, leader=Column.of([leader]), isr=Ragged.of([isr]), **more
        )
    }


def led_by_1(
    *, stable: int = 100, watermark: int = 100, end: int | None = 100, **more: Any
) -> dict[str, Any]:
    """Return an observation in epoch 5."""
    return {
        **placed(1, **more),
        "offsets": offsets(
            1, last_stable_offset=[stable], high_watermark=[watermark], log_end_offset=[end]
        ),
    }


def led_by_2(
    epoch_end: int | None, *, epoch: int = 6, leader: int = 2, now: int = 100, **more: Any
) -> dict[str, Any]:
    """Return an observation after the change; epoch 5 ended at `epoch_end`, None: nobody has told."""
    told = () if epoch_end is None else ((0, 5, epoch_end),)
    isr: tuple[int, ...] = more.pop("isr", (leader, 3))
    return {
        **placed(leader, isr=isr, leader_epoch=Column.of([epoch]), **more),
        "offsets": offsets(
            1,
            leader_epoch=[epoch],
            last_stable_offset=[now],
            high_watermark=[now],
            log_end_offset=[now],
        ),
        "epoch_ends": epoch_ends(*told),
    }


def on(*brokers: int) -> dict[str, Any]:
    """Return where the replicas are."""
    return {"replicas": Ragged.of([brokers])}


def unanswered(leader: int, *, isr: tuple[int, ...]) -> dict[str, Any]:
    """Return an observation of a leader that gave no answer."""
    return {**placed(leader, isr=isr), "offsets": unseen_offsets(1)}


def controlled_by(node: int | None, *, epoch: int = 4) -> dict[str, Any]:
    """Return who is the active controller; None: it could not be queried. Else it is 1 in epoch 4."""
    return {"quorum": quorum(node, leader_epoch=epoch)}


def controller_wrote(second: float, *, node: int = 1, **more: Any) -> dict[str, Any]:
    """Return that a line of a controller was read in a round."""
    wrote = (BrokerId(node), at(0) + timedelta(seconds=second))
    return log_of_controller(controllers=(wrote,), **more)


def log_of_controller(*others: LogSource, **told: Any) -> dict[str, Any]:
    """Return how the log of the active controller was read in a round, and those of others."""
    log = BrokerLog(is_read=True, sources=(LogSource(name="controller", **told), *others))
    return {"broker_log": log}


def rounds(*observations: dict[str, Any]) -> list[Snapshot]:
    return [
        snapshot(taken_at=at(15 * number), **observation)
        for number, observation in enumerate(observations)
    ]


def said(judge: Judge, *observations: dict[str, Any]) -> Finding:
    return judge(view_of(rounds(*observations))).finding(0)


ALONE: Final = led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED)
AHEAD: Final = led_by_1(end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
