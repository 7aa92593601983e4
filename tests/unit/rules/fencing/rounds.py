"""Rounds in which producers are fenced: what the log, lines, counters and coordinators show, and playing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from rules.facts.broker_log import (
    BrokerLog,
    ClientInstance,
    EpochRejected,
    LogEvent,
    Origin,
    ProducerRequest,
)
from rules.facts.fencing import FencingEpisode
from rules.facts.memory import Memory
from rules.facts.scrapes import Counted, RequestErrors, Rise, Scrapes
from rules.facts.transaction_log import (
    Cut,
    EndedTransaction,
    Initialisation,
    Outcome,
    TransactionLog,
)
from rules.facts.transactions import IdVisibility
from rules.remembering import view_of_round
from rules.view import View
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, ended, snapshot, transaction, transactions
from tests.scraped import PAGE, endpoint_state

ID = "payments"
A = ClientInstance(client_id="a", host="10.0.0.1", port=5001)
B = ClientInstance(client_id="b", host="10.0.0.2", port=5002)
ROUND = 15

Observation = dict[str, Any]


def told(second: float) -> Origin:
    return Origin(source="log", at=at(second))


def state(*entries: EndedTransaction | Initialisation, is_read: bool = True) -> TransactionLog:
    return TransactionLog(
        is_read=is_read,
        ended=tuple(e for e in entries if isinstance(e, EndedTransaction)),
        initialised=tuple(e for e in entries if isinstance(e, Initialisation)),
    )


def abort(
    second: float, epoch: int, *, cut: Cut | None = None, v2: bool = False
) -> EndedTransaction:
    """Return an abort; its markers have the next epoch with v2, and if somebody else made it."""
    return ended(
        outcome=Outcome.ABORTED,
        started_at=at(second - 5),
        ended_at=at(second),
        producer_epoch=epoch,
        marker_epoch=epoch + (v2 or cut is not None),
        cut=cut,
    )


def begun(second: float, epoch: int) -> Initialisation:
    return Initialisation(transactional_id=ID, producer_id=7, producer_epoch=epoch, at=at(second))


def takeover(second: float, epoch: int) -> tuple[EndedTransaction, Initialisation]:
    """Return what v1 leaves of a second instance that aborts the transaction of `epoch`."""
    return abort(second, epoch, cut=Cut.SECOND_INSTANCE), begun(second + 0.1, epoch + 2)


def takeover_v2(second: float, epoch: int) -> tuple[EndedTransaction, Initialisation]:
    return abort(second, epoch, v2=True), begun(second + 0.1, epoch + 2)


def request(second: float, name: str, who: ClientInstance | None = None, **more: Any) -> LogEvent:
    base = ProducerRequest(
        origin=told(second),
        request=name,
        error=None,
        transactional_id=ID,
        producer_id=7,
        instance=who,
    )
    return replace(base, **more)


def fenced(
    second: float, epoch: int | None, who: ClientInstance = A, name: str = "EndTxn"
) -> LogEvent:
    return request(second, name, who, error="PRODUCER_FENCED", producer_epoch=epoch)


def initialised(second: float, epoch: int, who: ClientInstance, **more: Any) -> LogEvent:
    return request(second, "InitProducerId", who, producer_epoch=epoch, **more)


def old_epoch(second: float, epoch: int, current: int) -> LogEvent:
    return EpochRejected(
        origin=told(second),
        producer_id=7,
        topic="orders",
        partition=0,
        offset=3,
        producer_epoch=epoch,
        current_epoch=current,
    )


def lines(*events: LogEvent) -> BrokerLog:
    return BrokerLog(is_read=True, events=events)


def counted(second: float, name: str = "EndTxn", error: str = "PRODUCER_FENCED") -> Scrapes:
    rise = Rise(since=at(second - ROUND), until=at(second), count=1)
    counter = Counted(total=1, increase=1, since=at(second - ROUND), rate=None, rises=(rise,))
    errors = RequestErrors(
        endpoint=PAGE,
        address="broker-1:7071",
        request=name,
        error=error,
        is_gone=False,
        counted=counter,
    )
    return Scrapes(is_read=True, endpoints=(endpoint_state(),), request_errors=(errors,))


def observed(**facts: Any) -> Observation:
    return {"transaction_log": state()} | facts


IDEMPOTENT = {"transactions": transactions(resolved=frozenset({7}), visibility=IdVisibility.ACLS)}
HIDDEN = {"transactions": transactions(resolved=frozenset({7}), visibility=IdVisibility.UNPROVEN)}
NEVER_USED = {"transactions": transactions(visibility=IdVisibility.UNPROVEN, was_ever_used=False)}
OWNED = {"transactions": transactions(transaction(ID, producer_id=7), resolved=frozenset({7}))}


def play(
    rounds: tuple[Observation, ...], between: Callable[[Memory], Memory] = lambda memory: memory
) -> View:
    memory: Memory | None = None
    view: View | None = None
    for number, facts in enumerate(rounds, 1):
        seen = snapshot(taken_at=at(number * ROUND), **facts)
        view = view_of_round(seen, None if memory is None else between(memory))
        memory = view.memory
    assert view is not None
    return view


def only(view: View) -> FencingEpisode:
    [episode] = view.memory.fencing.episodes
    return episode


def restarted(memory: Memory) -> Memory:
    """Return the memory as a new process reads it."""
    read = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert read is not None
    return read


def comparable(memory: Memory) -> dict[str, Any]:
    """Return all that is remembered as values that are equal where they say the same."""
    known = memory.fencing
    others = {"aborts": known.aborts, "counted": dict(known.counted_us), "waiting": known.waiting}
    return {**others, **{each.id: asdict(each) for each in known.episodes}}
