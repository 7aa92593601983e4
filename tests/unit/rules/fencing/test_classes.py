"""Cases of fencing: what was observed of a transactional id, round after round, and what it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from rules.catalogue import producer_fenced
from rules.facts.broker_log import (
    BrokerLog,
    ClientInstance,
    EpochRejected,
    LogEvent,
    Origin,
    ProducerInitialised,
    ProducerRequest,
    TransactionTimedOut,
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
from rules.fencing.evidence import evidence_of
from rules.judgement import Finding
from rules.question import TransactionsQuestion
from rules.remembering import view_of_round
from rules.verdict import Severity, Verdict
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was observed in each round, why it is so, and what it is."""

    because: str
    rounds: tuple[Observation, ...]
    class_: str
    reason: str


CASES = {
    "restart-v1": Case(
        because="a new process took over once, and nothing of the old one was seen",
        rounds=(observed(transaction_log=state(*takeover(10, 0))), observed(), observed()),
        class_="handover",
        reason="nothing_rejected",
    ),
    "restart-in-order": Case(
        because="nothing was open when the new process began",
        rounds=(observed(transaction_log=state(begun(10, 2))),),
        class_="handover",
        reason="nothing_rejected",
    ),
    "restart-v2": Case(
        because="the owner may have aborted before it started again: the records are the same",
        rounds=(observed(transaction_log=state(*takeover_v2(10, 0))),),
        class_="undetermined",
        reason="owner_or_second_instance",
    ),
    "restart-v2-in-two-rounds": Case(
        because="the abort and the initialisation were read in different rounds",
        rounds=(
            observed(transaction_log=state(abort(14, 0, v2=True))),
            observed(transaction_log=state(begun(15, 2))),
        ),
        class_="undetermined",
        reason="owner_or_second_instance",
    ),
    "aborted-then-restarted-v2": Case(
        because="the request log has the owner's own abort",
        rounds=(
            observed(
                transaction_log=state(*takeover_v2(10, 0)),
                broker_log=lines(
                    initialised(10.1, 2, B),
                    request(9.9, "EndTxn", A, producer_epoch=0, is_commit=False),
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "zombie-v1-request-log": Case(
        because="an epoch older than the newest instance's was rejected",
        rounds=(
            observed(
                transaction_log=state(*takeover(10, 0)),
                broker_log=lines(initialised(10.1, 2, B), fenced(12, 0)),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "zombie-v2-writes": Case(
        because="a Produce names no epoch: it was another client than the one initialised last",
        rounds=(
            observed(
                transaction_log=state(*takeover_v2(10, 0)),
                broker_log=lines(initialised(10.1, 2, B), fenced(12, None, A, "Produce")),
            ),
        ),
        class_="zombie",
        reason="other_instance_rejected",
    ),
    "zombie-by-counter": Case(
        because="a coordinator counted a fenced request, and only this id was taken over",
        rounds=(
            observed(transaction_log=state(*takeover_v2(10, 0))),
            observed(scrapes=counted(25)),
            observed(scrapes=counted(25)),
        ),
        class_="zombie",
        reason="counted_after_takeover",
    ),
    "zombie-unverified": Case(
        because="without verification the leader's own line has the older epoch",
        rounds=(
            observed(
                transaction_log=state(*takeover(10, 0)), broker_log=lines(old_epoch(12, 0, 2))
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "took-over-without-the-state-log": Case(
        because="the coordinator's line is enough to know of the newer instance",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(10), transactional_id=ID, producer_id=7, producer_epoch=2
                    ),
                    fenced(12, 0),
                ),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "rejected-before-the-restart": Case(
        because="the owner was fenced by the timeout, and only then started again",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(20, 2)),
                broker_log=lines(fenced(12, 0)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "rejected-before-the-restart-by-a-fast-clock": Case(
        because="the leader's clock may be ahead of the coordinator's, and the owner was fenced before",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(7, 2)),
                broker_log=lines(old_epoch(8, 0, 1)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "zombie-after-a-timeout": Case(
        because="the owner goes on writing long after the newer instance began",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(7, 2)),
                broker_log=lines(old_epoch(12, 0, 1)),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "timeout-and-late-batch": Case(
        because="whatever the owner sends after its timeout is of the aborted transaction",
        rounds=(
            observed(transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT))),
            observed(broker_log=lines(fenced(18, None, A, "Produce")), scrapes=counted(25)),
            observed(),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "timeout-by-line": Case(
        because="the coordinator says so where its log may not be read",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(TransactionTimedOut(origin=told(5), transactional_id=ID)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "fight-v1-counted": Case(
        because="it was taken three times with a transaction open, and older epochs were rejected",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0), *takeover(12, 2), *takeover(14, 4))),
            observed(scrapes=counted(25)),
            observed(scrapes=counted(40)),
            observed(),
        ),
        class_="instances_fighting",
        reason="takeovers_and_rejections",
    ),
    "fight-v2-request-log": Case(
        because="the first client took the id back from the second",
        rounds=(
            observed(
                transaction_log=state(
                    *takeover_v2(10, 0), *takeover_v2(12, 2), *takeover_v2(14, 4)
                ),
                broker_log=lines(
                    initialised(10.1, 2, B), initialised(12.1, 4, A), initialised(14.1, 6, B)
                ),
            ),
        ),
        class_="instances_fighting",
        reason="instances_alternate",
    ),
    "failed-over-and-back": Case(
        because="nothing was open when the other began: a failover and its return, or a roll-back",
        rounds=(
            observed(
                transaction_log=state(begun(10, 2), begun(130, 3), begun(300, 4)),
                broker_log=lines(
                    initialised(10, 2, A), initialised(130, 3, B), initialised(300, 4, A)
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "fenced-by-an-administrator-twice": Case(
        because="Kafka Connect fences the producers of its source tasks before it starts them again",
        rounds=(
            observed(
                transaction_log=state(
                    *takeover(10, 0), begun(12, 3), *takeover(60, 3), begun(62, 6)
                ),
                broker_log=lines(
                    initialised(10.1, 2, A),
                    initialised(12, 3, B),
                    initialised(60.1, 5, A),
                    initialised(62, 6, B),
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "crash-loop": Case(
        because="one process that crashes again and again leaves the same records as two that fight",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0), *takeover(12, 2), *takeover(14, 4))),
        ),
        class_="undetermined",
        reason="repeated_takeovers",
    ),
    "crash-loop-of-a-day": Case(
        because="three restarts within an hour and a half are no fight",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0))),
            observed(transaction_log=state(*takeover(1810, 2))),
            observed(transaction_log=state(*takeover(3610, 4))),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "late-after-own-abort-v2": Case(
        because="the owner aborted the transaction of that epoch, and nobody took over",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, v2=True)),
                broker_log=lines(fenced(6, None, A, "Produce")),
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
    "late-after-the-epochs-were-used-up": Case(
        because="the epochs of the former producer id are no newer ones of this producer",
        rounds=(
            observed(transaction_log=state(begun(5, 32000))),
            observed(transaction_log=state(replace(abort(20, 8, v2=True), producer_id=9))),
            observed(
                broker_log=lines(replace(cast("EpochRejected", old_epoch(40, 8, 9)), producer_id=9))
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
    "late-idempotent": Case(
        because="no coordinator knows its producer id: nobody else can have it",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**IDEMPOTENT)),
        class_="late_batch",
        reason="no_transactions",
    ),
    "late-idempotent-without-transactions": Case(
        because="the cluster never had a transaction, so that no producer has a transactional id",
        rounds=(
            observed(broker_log=lines(old_epoch(5, 0, 1)), **NEVER_USED),
            observed(**NEVER_USED),
        ),
        class_="late_batch",
        reason="no_transactions",
    ),
    "old-epoch-of-a-hidden-producer": Case(
        because="transactional ids may be hidden from us: it may have one",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**HIDDEN)),
        class_="undetermined",
        reason="producer_not_known",
    ),
    "old-epoch-of-an-unwatched-takeover": Case(
        because="the producer has a transactional id, and what fenced it was before our time",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**OWNED)),
        class_="undetermined",
        reason="no_takeover_seen",
    ),
    "own-bump-v1": Case(
        because="before v2 an owner raises its epoch after an abort exactly as a new instance does",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0), begun(5.1, 1)),
                broker_log=lines(old_epoch(6, 0, 1)),
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "own-bump-without-the-state-log": Case(
        because="the coordinator's line does not say who was initialised, and no abort is known",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(5), transactional_id=ID, producer_id=7, producer_epoch=1
                    ),
                    old_epoch(6, 0, 1),
                ),
                **OWNED,
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "own-bump-in-a-line-before-the-state-log": Case(
        because="the line was read in the round before the records of the abort",
        rounds=(
            observed(
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(5.1), transactional_id=ID, producer_id=7, producer_epoch=1
                    ),
                    old_epoch(6, 0, 1),
                ),
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "taken-over-in-a-line-before-the-state-log": Case(
        because="the records show that it was no abort of its owner",
        rounds=(
            observed(
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(10.1), transactional_id=ID, producer_id=7, producer_epoch=2
                    ),
                    old_epoch(12, 0, 2),
                ),
            ),
            observed(transaction_log=state(*takeover(10, 0))),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "own-bump-v1-request-log": Case(
        because="InitProducerId named the producer's own epoch (KIP-360)",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0), begun(5.1, 1)),
                broker_log=lines(initialised(5.1, 1, A, is_own_epoch=True), old_epoch(6, 0, 1)),
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
}


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


@pytest.mark.parametrize("name", CASES)
def test_an_episode_has_its_class(name: str) -> None:
    case = CASES[name]
    verdict = only(play(case.rounds)).verdict
    assert (verdict.class_, verdict.reason) == (case.class_, case.reason), case.because


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


@pytest.mark.parametrize("name", CASES)
def test_a_restart_after_every_round_changes_nothing(name: str) -> None:
    rounds = CASES[name].rounds
    stayed, again = play(rounds).memory, play(rounds, between=restarted).memory
    assert comparable(again) == comparable(stayed)


def finding_of(view: View, label: str = "transactional_id") -> Finding:
    judgement = producer_fenced.judge(view)
    places = [n for n in range(len(judgement.subjects)) if label in judgement.subjects.labels(n)]
    [place] = places
    return judgement.finding(place)


@pytest.mark.parametrize(
    ("name", "verdict", "severity"),
    [
        ("restart-v1", Verdict.BREACH, Severity.INFO),
        ("restart-in-order", Verdict.OK, Severity.INFO),
        ("restart-v2", Verdict.UNKNOWN, Severity.WARNING),
        ("zombie-v1-request-log", Verdict.BREACH, Severity.WARNING),
        ("fight-v2-request-log", Verdict.BREACH, Severity.WARNING),
        ("timeout-by-line", Verdict.BREACH, Severity.WARNING),
        ("late-after-own-abort-v2", Verdict.OK, Severity.WARNING),
        ("crash-loop", Verdict.UNKNOWN, Severity.WARNING),
    ],
)
def test_what_the_rule_says_of_it(name: str, verdict: Verdict, severity: Severity) -> None:
    said = finding_of(play(CASES[name].rounds[:1]))
    assert (said.verdict, said.reason) == (verdict, CASES[name].class_)
    assert verdict is Verdict.UNKNOWN or name.startswith("late") or said.severity is severity


def test_a_breach_is_said_once_and_again_when_it_becomes_worse() -> None:
    rounds = CASES["restart-v1"].rounds[:1]
    quiet = producer_fenced.judge(play((*rounds, observed())))
    assert quiet.count(Verdict.BREACH) == 0
    worse = finding_of(play((*rounds, observed(broker_log=lines(fenced(20, 0))))))
    assert (worse.verdict, worse.reason) == (Verdict.BREACH, "zombie")


def test_a_zombie_is_shown_with_both_instances_and_what_to_do() -> None:
    evidence = finding_of(play(CASES["zombie-v1-request-log"].rounds)).evidence
    assert str(evidence["older_instance"]).startswith("a at 10.0.0.1:5001")
    assert str(evidence["newer_instance"]).startswith("b at 10.0.0.2:5002")
    assert (evidence["producer_id"], evidence["newest_epoch"]) == (7, 2)
    assert evidence["rejected"] == [
        {
            "request": "EndTxn",
            "error": "PRODUCER_FENCED",
            "source": "request_log",
            "count": 1,
            "producer_epoch": 0,
            "last_at": "2025-06-02T12:00:12.000+00:00",
            "client": "a at 10.0.0.1:5001",
        }
    ]
    assert {"read_committed", "not_lost", "advice"} <= evidence.keys()


@pytest.mark.parametrize(
    ("name", "cuts"),
    [("restart-v1", 1), ("restart-v2", None), ("fight-v2-request-log", 3), ("own-bump-v1-request-log", 0)],
)  # fmt: skip
def test_transactions_that_only_the_request_log_shows_to_be_cut_are_counted(
    name: str, cuts: int | None
) -> None:
    """With transactions v2 `__transaction_state` does not say who aborted."""
    evidence = evidence_of(only(play(CASES[name].rounds)))
    assert evidence.get("cut_transactions") == cuts
    assert ("read_committed" in evidence) == bool(cuts)


def test_a_handover_that_only_the_request_log_shows_to_have_cut_is_reported() -> None:
    took_over = observed(
        transaction_log=state(*takeover_v2(10, 0)), broker_log=lines(initialised(10.1, 2, B))
    )
    [finding] = producer_fenced.judge(play((took_over,))).findings(Verdict.BREACH)
    assert (finding.reason, finding.severity) == ("handover", Severity.INFO)


def test_what_is_counted_belongs_to_nobody_where_two_ids_were_taken_over() -> None:
    other = replace(begun(11, 2), transactional_id="invoices", producer_id=8)
    rounds = (
        observed(transaction_log=state(begun(10, 2), other)),
        observed(scrapes=counted(25)),
        observed(),
    )
    classes = {e.key: str(e.verdict.reason) for e in play(rounds).memory.fencing.episodes}
    assert classes["counted"] == "not_attributed"
    assert classes[f"id {ID}"] == classes["id invoices"] == "nothing_rejected"


OTHERS = lines(replace(cast("EpochRejected", old_epoch(20, 0, 1)), producer_id=9))
NOBODYS = {"transactions": transactions(resolved=frozenset({9}), visibility=IdVisibility.ACLS)}


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            {"transaction_log": state(replace(abort(20, 3, v2=True), transactional_id="invoices"))},
            id="another owner has just aborted its transaction",
        ),
        pytest.param(
            {"transaction_log": state(abort(20, 5, v2=True))}, id="its own owner has just done so"
        ),
    ],
)
def test_a_late_batch_of_a_transaction_that_its_owner_aborted_makes_no_zombie(
    facts: Observation,
) -> None:
    """The leader asks the coordinator about it, and both count a rejection."""
    for name, error in (
        ("Produce", "INVALID_PRODUCER_EPOCH"),
        ("AddPartitionsToTxn", "PRODUCER_FENCED"),
    ):
        rounds = (
            observed(transaction_log=state(begun(10, 5))),
            observed(scrapes=counted(25, name, error), broker_log=lines(), **facts),
            observed(broker_log=lines()),
            observed(broker_log=lines()),
        )
        episodes = play(rounds).memory.fencing.episodes
        assert "zombie" not in {str(each.verdict.class_) for each in episodes}


def test_what_is_counted_belongs_to_nobody_where_takeovers_may_be_unknown() -> None:
    """Without the state log only the coordinators whose log lines are read show takeovers."""
    unread = state(is_read=False)
    took = lines(initialised(10, 2, B))
    rounds = (
        observed(transaction_log=unread, broker_log=took),
        observed(transaction_log=unread, scrapes=counted(25)),
        observed(transaction_log=unread),
    )
    classes = {e.key: str(e.verdict.class_) for e in play(rounds).memory.fencing.episodes}
    assert classes == {f"id {ID}": "handover", "counted": "undetermined"}


@pytest.mark.parametrize("broker_log", [BrokerLog.unread(), OTHERS], ids=["unread", "logged"])
def test_a_late_batch_that_is_counted_makes_no_zombie(broker_log: BrokerLog) -> None:
    """A leader counts a late batch of an idempotent producer, too, and logs it."""
    rounds = (
        observed(transaction_log=state(*takeover_v2(10, 4))),
        observed(scrapes=counted(25, "Produce", "INVALID_PRODUCER_EPOCH"), broker_log=broker_log),
        observed(**NOBODYS),
    )
    classes = {e.key: str(e.verdict.class_) for e in play(rounds).memory.fencing.episodes}
    assert classes[f"id {ID}"] == "undetermined"
    assert "zombie" not in classes.values()


def test_the_coordinators_are_asked_whose_producer_was_rejected() -> None:
    rejected = observed(broker_log=lines(old_epoch(5, 0, 1)))
    [question] = producer_fenced.judge(play((rejected,))).questions
    assert question == TransactionsQuestion(frozenset({7}))
    assert producer_fenced.judge(play((rejected, observed(**IDEMPOTENT)))).questions == ()
    assert producer_fenced.judge(play((observed(),))).questions == ()


def many(count: int, *, is_cut: bool) -> TransactionLog:
    """Return so many restarts, each of an id of its own."""
    names = [f"app-{number}" for number in range(count)]
    cuts = [replace(abort(1, 0, cut=Cut.TIMEOUT), transactional_id=name) for name in names]
    starts = [
        replace(begun(2, 2), transactional_id=name, producer_id=number)
        for number, name in enumerate(names)
    ]
    return state(*(cuts if is_cut else ()), *starts)


def test_episodes_are_bounded_and_kept_for_a_day() -> None:
    view = play((observed(transaction_log=many(1200, is_cut=True)),))
    assert (len(view.memory.fencing.open), len(view.memory.fencing.ended)) == (1000, 200)
    assert comparable(restarted(view.memory)) == comparable(view.memory)
    hour = snapshot(taken_at=at(0) + timedelta(hours=1.5), transaction_log=state())
    memory = view_of_round(hour, view.memory).memory
    assert (len(memory.fencing.open), len(memory.fencing.ended)) == (0, 1000)
    later = snapshot(taken_at=at(0) + timedelta(hours=26), transaction_log=state())
    assert view_of_round(later, memory).memory.fencing.episodes == ()


def test_restarts_that_cut_nothing_are_not_kept_when_they_are_over() -> None:
    view = play((observed(transaction_log=many(10, is_cut=False)),))
    assert len(view.memory.fencing.open) == 10
    hour = snapshot(taken_at=at(0) + timedelta(hours=1.5), transaction_log=state())
    assert view_of_round(hour, view.memory).memory.fencing.episodes == ()
