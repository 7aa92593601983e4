"""Collects the transactions of a cluster: ListTransactions, then DescribeTransactions.

Every broker lists the ids that it coordinates: the open ones, and those of some producers whatever
their state. Each id is then described by its coordinator, one by one within an answer, so that an id
that ended meanwhile, or may not be seen, does not affect the others. An id that no broker lists does
not exist only if every partition of `__transaction_state` has a leader that answered.

Two kinds of gaps have the scope TRANSACTIONS. A gap of a listing names a broker or the topic
(`broker_id`, `topic`): there may be transactions that are missing here. A gap of details names
neither: the ids are here as listed, and were not described, because of an error or the limit.
Source: KIP-664, KIP-890.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from collectors.naming import chunks, grouped, listed
from collectors.session import Request, Response, Session, body_of
from collectors.state_topic import SeenTopic, StateTopic, StateTopicAnswer
from collectors.state_topic import collect as collect_state_topic
from collectors.translate import failure_of, left_out, timestamp_of
from collectors.visibility import VisibilityReader, describe_request
from collectors.wire import codec
from collectors.wire.api import LIST_TRANSACTIONS
from collectors.wire.failure import Failure
from collectors.wire.transaction_answers import DescribedTransaction, read_transactions
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TRANSACTION_STATE, Broker, BrokerId, TopicPartition
from rules.facts.transactions import (
    OPEN_STATES,
    IdVisibility,
    Transaction,
    Transactions,
    TransactionState,
)

AT_ONCE: Final = 500  # ids in one request
# Ids described in one round: a tenth of a second of reading at a dozen partitions each. The others
# have their turn in later rounds.
MAX_DESCRIBED: Final = 5000

_TRANSACTIONAL_ID_NOT_FOUND: Final = 105
_STATES: Final = set(TransactionState)
_NOTHING_OPEN: Final = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
)
# A broker names the states that it does not know in its answer; it has no transaction in them.
_OPEN_ONES: Final = body_of(
    LIST_TRANSACTIONS, state_filters=tuple(str(state) for state in OPEN_STATES)
)


@dataclass(slots=True)
class TransactionReader:
    """Reads transactions; remembers which ids had their turn, and whether all can be seen."""

    visibility: VisibilityReader = field(default_factory=VisibilityReader)
    _had_turn: set[str] = field(default_factory=set)
    _seen: SeenTopic = field(default_factory=SeenTopic)

    def collect(
        self,
        session: Session,
        state_topic: StateTopicAnswer,
        *,
        producer_ids: Collection[int],
        queried_ids: Collection[int] = (),
    ) -> Transactions:
        """Return every open transaction, and those of `producer_ids` whatever their state.

        So are those of `queried_ids`; that one of these is not listed is no ground to search for the reason.
        An id that could not be described keeps the fields of its listing and is a gap. Without the
        topic (None) transactions were never used, and no broker is queried; once it was seen, a
        broker without it is only not up to date.
        """
        state_topic = self._seen.judge(state_topic)
        holders = frozenset(producer_ids)
        resolved = holders.union(queried_ids)
        if state_topic is None:
            return self._never_used(session, holders)
        listings, all_answered = _list(session, resolved)
        transactions = _merge(session, listings, state_topic)
        # A producer that holds a partition and is not listed may only be hidden from us.
        is_needed = not holders <= {entry.producer_id for entry in transactions.values()}
        visibility = self.visibility.collect(session, is_needed=is_needed)
        self._describe(session, transactions, resolved)
        is_placed = _is_placed(session, state_topic, is_needed=is_needed)
        return Transactions(
            known={name: transactions[name] for name in sorted(transactions)},
            visibility=visibility,
            is_complete=all_answered and is_placed,
            resolved=resolved,
        )

    def _never_used(self, session: Session, resolved: frozenset[int]) -> Transactions:
        """Return the transactions of a cluster without the state topic: none."""
        visibility = (
            self.visibility.collect(session, is_needed=True) if resolved else IdVisibility.UNPROVEN
        )
        return Transactions(
            known={},
            visibility=visibility,
            is_complete=True,
            resolved=resolved,
            was_ever_used=False,
        )

    def _describe(
        self, session: Session, transactions: dict[str, Transaction], resolved: frozenset[int]
    ) -> None:
        """Fill in the coordinators' description of each id, and drop those that have just ended."""
        batches = _batches(session, self._whose_turn(session, transactions, resolved))
        responses = session.exchange([batch.request for batch in batches])
        failed: list[tuple[Failure, str]] = []
        for batch, response in zip(batches, responses, strict=True):
            for name, outcome in _outcomes(batch, response).items():
                if isinstance(outcome, Failure):
                    failed.append((outcome, name))
                elif outcome is None or not _is_relevant(outcome, transactions[name], resolved):
                    del transactions[name]
                else:
                    transactions[name] = outcome
        _report_not_described(session, failed)

    def _whose_turn(
        self, session: Session, transactions: Mapping[str, Transaction], resolved: frozenset[int]
    ) -> list[Transaction]:
        """Return the ids to describe in this round: first those of producers that hold a partition."""
        self._had_turn &= transactions.keys()

        def order(entry: Transaction) -> tuple[bool, bool, str]:
            name = entry.transactional_id
            return entry.producer_id not in resolved, name in self._had_turn, name

        ordered = sorted(transactions.values(), key=order)
        turn, others = ordered[:MAX_DESCRIBED], ordered[MAX_DESCRIBED:]
        limit = Failure(GapCause.LIMIT, f"{MAX_DESCRIBED:,} were described in this round")
        _report_not_described(session, [(limit, entry.transactional_id) for entry in others])
        if all(entry.transactional_id in self._had_turn for entry in others):
            self._had_turn.clear()
        self._had_turn.update(entry.transactional_id for entry in turn)
        return turn


def _list(session: Session, resolved: frozenset[int]) -> tuple[list[Transaction], bool]:
    """Return every listing, and whether all brokers gave theirs."""
    bodies = [_OPEN_ONES]
    if resolved:
        bodies.append(body_of(LIST_TRANSACTIONS, producer_id_filters=tuple(sorted(resolved))))
    requests = [Request(b, LIST_TRANSACTIONS, body) for b in session.brokers for body in bodies]
    transactions: list[Transaction] = []
    failures: dict[Broker, Failure] = {}
    for response in session.exchange(requests):
        broker, answer = response.request.broker, response.read_without_error()
        if isinstance(answer, Failure):
            failures.setdefault(broker, answer)
            continue
        transactions += [_decode_listing(entry, broker) for entry in answer.transaction_states]
    _report_silent(session, failures)
    return transactions, not failures


def _decode_listing(entry: Any, coordinator: Broker) -> Transaction:
    return Transaction(
        transactional_id=entry.transactional_id,
        coordinator=coordinator.broker_id,
        producer_id=int(entry.producer_id),
        state=_state(entry.transaction_state),
    )


def _state(word: str) -> TransactionState:
    return TransactionState(word) if word in _STATES else TransactionState.UNKNOWN


def _report_silent(session: Session, failures: Mapping[Broker, Failure]) -> None:
    """Add a gap per broker without a listing, and a single one for all that are too old for the API.

    The single gap names the first of them, in its reason too.
    """
    too_old = [b for b, failure in failures.items() if failure.cause is GapCause.UNSUPPORTED]
    for broker in too_old[:1]:
        first = broker.broker_id
        session.add_gap(GapScope.TRANSACTIONS, "transactions", failures[broker], broker_id=first)
    for broker, failure in failures.items():
        if failure.cause is not GapCause.UNSUPPORTED:
            what = f"transactions coordinated by broker {broker.broker_id}"
            session.add_gap(GapScope.TRANSACTIONS, what, failure, broker_id=broker.broker_id)


def _merge(
    session: Session, listings: Iterable[Transaction], state_topic: StateTopic | Failure
) -> dict[str, Transaction]:
    """Return one listing per id, to be described by the leader of the id's partition.

    Two brokers may list the same id while its coordinator moves. An open one is never lost; but a broker
    that does not lead there may have been frozen, so that only the leader's description counts.
    """

    def leader_of(entry: Transaction) -> BrokerId | None:
        topic = None if isinstance(state_topic, Failure) else state_topic
        return None if topic is None else topic.leader_of(entry.transactional_id)

    merged: dict[str, Transaction] = {}
    for entry in listings:
        leader, other = leader_of(entry), merged.get(entry.transactional_id)
        rank = entry.is_open, entry.coordinator == leader
        if other is None or rank > (other.is_open, other.coordinator == leader):
            merged[entry.transactional_id] = entry
    return {name: _at_leader(session, entry, leader_of(entry)) for name, entry in merged.items()}


def _at_leader(session: Session, entry: Transaction, leader: BrokerId | None) -> Transaction:
    if leader is None or session.broker(leader) is None:
        return entry
    return replace(entry, coordinator=leader)


def _is_placed(session: Session, state_topic: StateTopic | Failure, *, is_needed: bool) -> bool:
    """Whether every partition of the topic has a leader that was queried; add a gap if not.

    Without DESCRIBE on the topic that is unknown. This is a gap only if `is_needed`: for a principal
    with few permissions it would otherwise be noise in every round.
    """
    if isinstance(state_topic, Failure):
        if is_needed or state_topic.cause is not GapCause.NOT_AUTHORIZED:
            what = "whether every transaction has a coordinator"
            session.add_gap(GapScope.TRANSACTIONS, what, state_topic, topic=TRANSACTION_STATE)
        return False
    lost = [number for number, leader in enumerate(state_topic.leaders) if leader is None]
    _report_lost(
        session, lost, Failure(GapCause.NO_LEADER, "without a leader there no broker lists these")
    )
    unknown = {leader for leader in state_topic.leaders if leader is not None} - {
        broker.broker_id for broker in session.brokers
    }
    for leader in sorted(unknown):
        numbers = [n for n, leader_id in enumerate(state_topic.leaders) if leader_id == leader]
        why = f"broker {leader}, which leads there, could not be queried"
        _report_lost(session, numbers, Failure(GapCause.UNREACHABLE, why), broker_id=leader)
    return bool(state_topic.leaders) and not lost and not unknown


def _report_lost(
    session: Session, numbers: Sequence[int], failure: Failure, broker_id: BrokerId | None = None
) -> None:
    if numbers:
        names = listed([str(TopicPartition(TRANSACTION_STATE, number)) for number in numbers])
        what = f"transactions coordinated by {names}"
        session.add_gap(
            GapScope.TRANSACTIONS, what, failure, topic=TRANSACTION_STATE, broker_id=broker_id
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some ids of one coordinator: one request."""

    coordinator: Broker
    ids: tuple[str, ...]

    @property
    def request(self) -> Request:
        return describe_request(self.coordinator, self.ids)


def _batches(session: Session, chosen: Iterable[Transaction]) -> list[_Batch]:
    by_coordinator = grouped((entry.coordinator, entry.transactional_id) for entry in chosen)
    brokers = {broker.broker_id: broker for broker in session.brokers}
    return [
        _Batch(brokers[coordinator], tuple(part))
        for coordinator, ids in by_coordinator.items()
        for part in chunks(ids, AT_ONCE)
    ]


def _outcomes(batch: _Batch, response: Response) -> dict[str, Transaction | Failure | None]:
    """Return the result for each id; None: it does not exist any more."""
    described = response.read_by(read_transactions)
    if isinstance(described, Failure):
        return dict.fromkeys(batch.ids, described)
    outcomes: dict[str, Transaction | Failure | None] = dict.fromkeys(
        batch.ids, left_out(batch.coordinator)
    )
    for entry in described:
        if entry.transactional_id in outcomes:
            outcomes[entry.transactional_id] = outcome_of(entry, batch.coordinator)
    return outcomes


def outcome_of(entry: DescribedTransaction, coordinator: Broker) -> Transaction | Failure | None:
    """Return a broker's description of one id, None if no such id exists."""
    if entry.error == _TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if entry.error != codec.NO_ERROR:
        return failure_of(entry.error, coordinator, needs="DESCRIBE on TransactionalId")
    return Transaction(
        transactional_id=entry.transactional_id,
        coordinator=coordinator.broker_id,
        producer_id=entry.producer_id,
        state=_state(entry.state),
        producer_epoch=entry.producer_epoch,
        timeout=timedelta(milliseconds=entry.timeout_ms),
        started_at=timestamp_of(entry.start_ms),
        partitions=frozenset(TopicPartition(*place) for place in entry.partitions),
    )


def _is_relevant(described: Transaction, as_listed: Transaction, resolved: frozenset[int]) -> bool:
    """Whether an id still belongs in the result: its transaction may have ended since it was listed."""
    of_producer = {described.producer_id, as_listed.producer_id} & resolved
    return bool(of_producer) or described.state not in _NOTHING_OPEN


def _report_not_described(session: Session, failed: Iterable[tuple[Failure, str]]) -> None:
    """Add gaps of details: they name no broker and no topic, as a gap of listings would."""
    session.add_gaps(GapScope.TRANSACTIONS, "details of", failed, noun="transactional id")


def look_up(session: Session, transactional_id: str) -> Transaction | Failure | None:
    """Return the transaction as its coordinator answers it, None if no such id exists, or a failure.

    Every broker is queried, because only its coordinator knows an id, and any other answers so.
    FindCoordinator would name it in one request, but creates `__transaction_state` where transactions
    were never used: Tidemark changes nothing in a cluster.
    """
    requests = [describe_request(broker, [transactional_id]) for broker in session.brokers]
    answers = [_answer(response, transactional_id) for response in session.exchange(requests)]
    for answer in answers:
        if isinstance(answer, Transaction):
            return answer
    if None in answers:
        return None
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    informative = [
        failure for failure in failures if failure.cause is not GapCause.COORDINATOR_MOVING
    ]
    if not informative and collect_state_topic(session) is None:
        return None  # transactions were never used
    nobody = Failure(GapCause.COORDINATOR_MOVING, "no broker coordinates it now")
    return next(iter(informative), nobody)


def _answer(response: Response, transactional_id: str) -> Transaction | Failure | None:
    broker, described = response.request.broker, response.read_by(read_transactions)
    if isinstance(described, Failure):
        return described
    entry = next((entry for entry in described if entry.transactional_id == transactional_id), None)
    if entry is None:
        return Failure(GapCause.UNREADABLE, f"{broker} left it out of its answer")
    return outcome_of(entry, broker)
