"""The transactions that states of one transactional id show: when each began and was decided, and who decided it.

A coordinator writes Ongoing at the first partition, Prepare… when the end is decided, and Complete… when all markers are
written. It aborts by itself after the timeout, and when another instance is initialized with the same id; only a client
commits. Source: KIP-98, KIP-360, KIP-890 (with transactions v2 each end raises the epoch, so that a raised epoch alone
says nothing).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from rules.facts.application_log import TransactionLogged

ENDS: Final = {"PrepareCommit": True, "PrepareAbort": False, "CompleteCommit": True, "CompleteAbort": False}  # fmt: skip
AT_ONCE_MS: Final = (
    2000  # in which an instance that waits for the abort has asked again: every 100 ms by default
)


class EndedBy(StrEnum):
    """Who decided the end of a transaction."""

    CLIENT = "client"
    TIMEOUT = "timeout"  # the coordinator, after its timeout
    NEXT_INSTANCE = (
        "next_instance"  # the coordinator, because a producer was initialized with the id
    )
    NOT_SHOWN = "not_shown"  # the states do not decide


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTransaction:
    """One transaction; a time is None where its state is not in the text."""

    line: int  # of its first state
    producer_id: int | None
    producer_epoch: int | None
    started_at: datetime | None
    decided_at: datetime | None
    completed_at: datetime | None
    is_commit: bool | None  # None: open
    ended_by: EndedBy | None  # None: open
    timeout_ms: int | None
    partitions: tuple[str, ...]

    @property
    def open_ms(self) -> int | None:
        """Return how long it was open until its end was decided."""
        return _milliseconds(self.started_at, self.decided_at)

    @property
    def completing_ms(self) -> int | None:
        """Return how long it took to write its markers."""
        return _milliseconds(self.decided_at, self.completed_at)


def _milliseconds(begin: datetime | None, end: datetime | None) -> int | None:
    if begin is None or end is None:
        return None
    return round((end - begin).total_seconds() * 1000)


@dataclass(slots=True)
class _Open:
    """A transaction while its states come."""

    states: list[TransactionLogged] = field(default_factory=list)

    @property
    def is_decided(self) -> bool:
        return any(each.state in ENDS for each in self.states)

    @property
    def is_complete(self) -> bool:
        return any((each.state or "").startswith("Complete") for each in self.states)


def transactions_of(states: Sequence[TransactionLogged]) -> list[ShownTransaction]:
    """Return the transactions of one id in order; states between two of them belong to none."""
    shown: list[ShownTransaction] = []
    current = _Open()
    for state in states:
        if current.states and _begins_another(current, state):
            shown += _ended(current, state)
            current = _Open()
        if state.state == "Ongoing" or state.state in ENDS:
            current.states.append(state)
    return [*shown, *_ended(current, None)]


def _begins_another(current: _Open, state: TransactionLogged) -> bool:
    if state.state == "Ongoing":
        return current.is_decided or state.started_at != current.states[-1].started_at
    is_end = state.state in ENDS
    return not is_end or (current.is_complete and not (state.state or "").startswith("Complete"))


def _ended(current: _Open, after: TransactionLogged | None) -> Iterator[ShownTransaction]:
    if not current.states:
        return
    states = current.states
    prepared = next((each for each in states if (each.state or "").startswith("Prepare")), None)
    completed = next((each for each in states if (each.state or "").startswith("Complete")), None)
    last, first = states[-1], states[0]
    is_commit = ENDS.get(last.state or "")
    started = next((each.started_at for each in states if each.started_at is not None), None)
    yield ShownTransaction(
        line=first.line,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        started_at=started,
        decided_at=None if prepared is None else prepared.updated_at,
        completed_at=None if completed is None else completed.updated_at,
        is_commit=is_commit,
        ended_by=None if is_commit is None else _ended_by(states, prepared, after),
        timeout_ms=first.timeout_ms,
        partitions=max((each.partitions for each in states), key=len),
    )


def _ended_by(
    states: Sequence[TransactionLogged], prepared: TransactionLogged | None, after: TransactionLogged | None
) -> EndedBy:  # fmt: skip
    if ENDS[states[-1].state or ""]:
        return EndedBy.CLIENT
    if prepared is None:
        return EndedBy.NOT_SHOWN
    if states[0].state == "Ongoing" and _producer(states[0]) == _producer(prepared):
        return EndedBy.CLIENT  # a coordinator that aborts by itself raises the epoch first
    if is_timed_out(prepared):
        return EndedBy.TIMEOUT
    return _ended_before(after, prepared)


def _ended_before(after: TransactionLogged | None, prepared: TransactionLogged) -> EndedBy:
    """Return who aborted, by the state that follows."""
    if after is None:
        return EndedBy.NOT_SHOWN  # an instance may have been initialized next
    if after.state != "Empty" or _producer(after) == _producer(prepared):
        return EndedBy.CLIENT
    # With transactions v2 a client that aborts and starts again later leaves the same states.
    waited_ms = _milliseconds(prepared.updated_at, after.updated_at)
    is_next = waited_ms is not None and waited_ms <= AT_ONCE_MS
    return EndedBy.NEXT_INSTANCE if is_next else EndedBy.NOT_SHOWN


def _producer(state: TransactionLogged) -> tuple[int | None, int | None]:
    return state.producer_id, state.producer_epoch


def is_timed_out(state: TransactionLogged) -> bool:
    """Whether a transaction was aborted no earlier than after its timeout."""
    open_ms = _milliseconds(state.started_at, state.updated_at)
    if state.state != "PrepareAbort" or open_ms is None or state.timeout_ms is None:
        return False
    return open_ms >= state.timeout_ms
