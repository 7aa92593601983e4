"""States that a coordinator wrote about a transactional id, as a timeline, and what the last one means.

A decision is durable with PrepareCommit or PrepareAbort, and stays whatever becomes of the client. Source: KIP-98,
KIP-890, `TransactionState` of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rules.exceptions.logged_transactions import ShownTransaction, is_timed_out, transactions_of
from rules.exceptions.meaning import Next, Records
from rules.facts.application_log import TransactionLogged

MOST_STATES: Final = 200  # of one id, the last ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the last state means."""

    title: str
    records: Records
    condition: str
    action: str
    next: tuple[Next, ...] = (Next.TRANSACTION,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that was given about one transactional id, in order."""

    transactional_id: str
    states: tuple[TransactionLogged, ...]
    not_kept: int  # earlier ones beyond the limit
    transactions: tuple[ShownTransaction, ...]  # of the states that are kept
    conclusion: Conclusion
    remarks: tuple[str, ...]


LAST: Final = {
    "Empty": Conclusion(
        title="no transaction is open: the producer has begun none since it was initialized",
        records=Records.NEITHER, condition="Nothing is undecided.", action="Nothing.",
    ),
    "Ongoing": Conclusion(
        title="a transaction is open and undecided",
        records=Records.UNKNOWN,
        condition="It depends on how it ends; without an end, the coordinator aborts it after its timeout.",
        action="Wait for its timeout; if it lasts longer, see whether it hangs.",
        next=(Next.TRANSACTION, Next.HANGING),
    ),
    "PrepareCommit": Conclusion(
        title="the commit is decided; markers are being written",
        records=Records.NEITHER,
        condition="It is committed whatever becomes of the client; readers get it once the markers are written.",
        action="Nothing; if it lasts, a leader of its partitions cannot write the marker. Do not process it again.",
    ),
    "PrepareAbort": Conclusion(
        title="the abort is decided; markers are being written",
        records=Records.NEITHER,
        condition="It is aborted: read_committed never shows it. Process its input again.",
        action="Nothing for the brokers; if it lasts, a leader of its partitions cannot write the marker.",
    ),
    "PrepareEpochFence": Conclusion(
        title="the coordinator fences a former producer of this id",
        records=Records.NEITHER,
        condition="An open transaction of the former producer is aborted.",
        action="Nothing.",
    ),
    "CompleteCommit": Conclusion(
        title="the last transaction is committed",
        records=Records.NEITHER,
        condition="It is visible to all readers. Processing its input again would duplicate it.",
        action="Nothing. Do not process it again.",
    ),
    "CompleteAbort": Conclusion(
        title="the last transaction is aborted",
        records=Records.NEITHER,
        condition="read_committed never shows it; lost only if the application takes it for committed.",
        action="Process its input again from the last committed offsets.",
    ),
    "Dead": Conclusion(
        title="the transactional id is being removed",
        records=Records.NEITHER,
        condition="Nothing is undecided.",
        action="Nothing; a producer that still uses it has to be started again.",
    ),
}  # fmt: skip
FORGOTTEN: Final = Conclusion(
    title="the coordinator has forgotten the transactional id",
    records=Records.NEITHER,
    condition="It was unused for transactional.id.expiration.ms; nothing is undecided.",
    action="A producer that still uses it has to be started again.",
)


def timelines(events: Iterable[TransactionLogged]) -> list[Timeline]:
    """Return the timelines in the order of the first lines of their ids."""
    by_id: dict[str, list[TransactionLogged]] = {}
    for event in events:
        by_id.setdefault(event.transactional_id, []).append(event)
    return [_timeline(name, states) for name, states in by_id.items()]


def _timeline(name: str, states: Sequence[TransactionLogged]) -> Timeline:
    if len({state.source for state in states}) == 1:
        states = sorted(states, key=lambda state: state.line)
    last = states[-1]
    return Timeline(
        transactional_id=name,
        states=tuple(states[-MOST_STATES:]),
        transactions=tuple(transactions_of(states[-MOST_STATES:])),
        not_kept=max(len(states) - MOST_STATES, 0),
        conclusion=FORGOTTEN if last.state is None else LAST[last.state],
        remarks=tuple(_remarks(states)),
    )


def _remarks(states: Sequence[TransactionLogged]) -> Iterable[str]:
    """Yield what the steps between states show."""
    for before, after in pairwise(states):
        if before.producer_id is not None and after.producer_id not in (None, before.producer_id):
            yield f"the producer id changed from {before.producer_id} to {after.producer_id}"
        if is_timed_out(after):
            yield "it was aborted after its timeout: the client did not end it in time"
