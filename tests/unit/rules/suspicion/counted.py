"""Rounds over brokers 1 and 2, 15 s apart, where only counters show that a batch was rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rules.catalogue import sequence_gap_loss
from rules.facts.batches import BatchesOf
from rules.facts.column import Column, Ragged
from rules.facts.memory import Memory
from rules.facts.producers import NewestProducers, Producers
from rules.facts.scrapes import ClientReading, RequestErrors
from rules.facts.suspicions import Suspicion
from rules.remembering import view_of_round
from rules.view import View
from tests.factories import (
    at,
    broker,
    epoch_ends,
    no_producers,
    offsets,
    partitions,
    snapshot,
    transactions,
)
from tests.scraped import counted, endpoint_state, request_errors, rise, scrapes

OUT_OF_ORDER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
BROKER_1: Final = "broker-1:7071"


def errors(*rises: tuple[float, float, int], **overrides: Any) -> RequestErrors:
    """Return the rejections that broker 1 counted: from, to, how many; none: it has counted some before."""
    total = overrides.pop("total", sum(count for *_, count in rises))
    return request_errors(
        **{
            "address": BROKER_1,
            "error": OUT_OF_ORDER,
            "counted": counted(*(rise(*one) for one in rises), total=total),
            **overrides,
        }
    )


def seen(
    *readings: RequestErrors,
    leaders: Sequence[int | None] = (1,),
    epochs: Sequence[int | None] = (0,),
    allowed: bool = False,
    ends: tuple[tuple[int, int, int | None], ...] = (),
    end: int = 100,
    isr: tuple[int, ...] = (1, 2, 3),
    newest: dict[int, tuple[int, ...]] | None = None,
    found: Sequence[BatchesOf] = (),
    clients: Sequence[ClientReading] = (),
    second: float = 0,
    **more: Any,
) -> dict[str, Any]:
    """Return one round: partitions orders-0, orders-1, ..., and what was counted until `second`."""
    rows = len(leaders)
    producers = no_producers(rows)
    if newest is not None:
        described = {row: NewestProducers(ids=ids, count=len(ids)) for row, ids in newest.items()}
        producers = Producers(observed=producers.observed, open=(), newest=described)
    at_end = [None if epoch is None else end for epoch in epochs]
    return {
        "partitions": partitions(
            {"orders": rows},
            leader=Column.of(leaders),
            isr=Ragged.of([isr] * rows),
            unclean_election_enabled=Column.of([int(allowed)] * rows),
        ),
        "offsets": offsets(
            rows,
            leader_epoch=list(epochs),
            last_stable_offset=at_end,
            high_watermark=at_end,
            log_end_offset=at_end,
        ),
        "epoch_ends": epoch_ends(*ends),
        "producers": producers,
        "batches": tuple(found),
        "transactions": transactions(was_ever_used=False),
        "scrapes": scrapes(
            *clients,
            request_errors=tuple(readings),
            endpoints=(endpoint_state(answered_at=at(second)),),
        ),
        **more,
    }


def play(
    *rounds: dict[str, Any],
    memory: Memory | None = None,
    between: Callable[[Memory], Memory] = lambda memory: memory,
    first: int = 0,
    seconds: float = 15,
) -> list[View]:
    """Return what the rules are given in each round; the first one is at noon."""
    views: list[View] = []
    for number, one in enumerate(rounds, first):
        view = view_of_round(snapshot(taken_at=at(seconds * number), **one), memory)
        views.append(view)
        memory = between(view.memory)
    return views


def only(view: View) -> Suspicion:
    """Return the only suspicion that is remembered."""
    [suspicion] = view.memory.suspicions.suspicions
    return suspicion


def outcomes(*rounds: dict[str, Any], **options: Any) -> list[str | None]:
    """Return the outcome after each round, None where nothing is suspected."""
    return [
        str(view.memory.suspicions.suspicions[-1].outcome)
        if view.memory.suspicions.suspicions
        else None
        for view in play(*rounds, **options)
    ]


def judged(view: View) -> tuple[str, str]:
    """Return what sequence_gap_loss says of the cluster: verdict and reason."""
    judgement = sequence_gap_loss.judge(view)
    finding = judgement.finding(0)
    return finding.verdict.name, finding.reason


QUIET: Final = errors(total=4)
ROSE: Final = errors((0, 14, 2), total=6)
ELSEWHERE: Final = (broker(1, host="broker-1"), broker(2, host="broker-2"))
LATE: Final[dict[str, Any]] = {"epochs": [7], "brokers": ELSEWHERE}


CHANGED: Final[dict[str, Any]] = {
    "leaders": [2],
    "epochs": [1],
    "isr": (2,),
    "allowed": True,
    "brokers": ELSEWHERE,
}


SETTLED: Final = ("OK", "no_source")
