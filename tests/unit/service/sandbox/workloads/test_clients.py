"""Errors are classified, and a client that is unusable is made anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from collectors.security import Security
from rules.errors import SandboxError
from service.sandbox.workloads.clients import (
    client_config,
    count_delivery,
    give_up,
    is_fatal,
    is_retriable,
    text_of,
)
from service.sandbox.workloads.consumer import GroupProtocol, consumer_settings
from service.sandbox.workloads.counts import Counts, Tally
from service.sandbox.workloads.pipeline import TransactionalPipeline
from service.sandbox.workloads.producer import IdempotentProducer, value_of
from service.sandbox.workloads.transactions import call_patiently

LOST = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "a gap", fatal=True)
HIDDEN = SystemError("<built-in method poll> returned a result with an exception set")


def error_of(code: int, **flags: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "text", **flags))


def test_fatal_errors_are_known_by_flag_by_code_and_by_what_hides_them() -> None:
    assert is_fatal(KafkaException(LOST))
    assert is_fatal(error_of(KafkaError._FATAL))  # noqa: SLF001 - its public name
    assert is_fatal(HIDDEN)
    assert not is_fatal(error_of(KafkaError.NOT_COORDINATOR))


def test_only_a_flagged_error_may_be_tried_again() -> None:
    assert is_retriable(error_of(KafkaError.NOT_COORDINATOR, retriable=True))
    assert not is_retriable(error_of(KafkaError.NOT_COORDINATOR))
    assert not is_retriable(HIDDEN)


def test_text_has_kafkas_name_and_words() -> None:
    assert text_of(KafkaException(LOST)) == "OUT_OF_ORDER_SEQUENCE_NUMBER: a gap"
    assert text_of(HIDDEN) == str(HIDDEN)


def test_lost_connections_are_noted_apart() -> None:
    tally = Tally()
    note = client_config("b", Security(), tally, {})["error_cb"]
    note(KafkaError(KafkaError._TRANSPORT, "rejected"))  # noqa: SLF001 - its public name
    note(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no"))
    assert tally.read().last_connection_error == "_TRANSPORT: rejected"
    assert tally.read().last_error == "TOPIC_AUTHORIZATION_FAILED: no"


def test_a_purged_record_fails_without_hiding_why_it_was_purged() -> None:
    tally = Tally()
    tally.note("fenced")
    count_delivery(tally, KafkaError(KafkaError._PURGE_QUEUE))  # noqa: SLF001 - its public name
    assert tally.read() == Counts(failed=1, last_error="fenced")


@dataclass
class StuckClient:
    """Never gets an answer; purging empties it without reports."""

    records: int

    def poll(self, _seconds: float) -> None:
        """Serve nothing."""

    def purge(self) -> None:
        self.records = 0

    def __len__(self) -> int:
        return self.records


def test_records_without_an_answer_are_given_up_and_that_is_said() -> None:
    tally = Tally()
    tally.add(Counts(sent=4))
    give_up(StuckClient(4), tally, seconds=0.01)
    assert tally.read() == Counts(sent=4, failed=4, last_error="4 records were given up after 0 s")


def test_given_settings_win() -> None:
    assert client_config("b", Security(), Tally(), {"log_level": 7})["log_level"] == 7


def test_the_new_protocol_takes_its_session_from_the_broker() -> None:
    classic = consumer_settings("g", GroupProtocol.CLASSIC, {})
    modern = consumer_settings("g", GroupProtocol.CONSUMER, {})
    assert "session.timeout.ms" in classic
    assert "session.timeout.ms" not in modern
    assert modern["group.protocol"] == "consumer"


def failing(times: int, error: KafkaException) -> tuple[list[float], Callable[[float], None]]:
    calls: list[float] = []

    def call(seconds: float) -> None:
        calls.append(seconds)
        if len(calls) <= times:
            raise error

    return calls, call


def test_a_retriable_call_is_repeated() -> None:
    calls, call = failing(2, error_of(KafkaError._TIMED_OUT, retriable=True))  # noqa: SLF001 - its public name
    call_patiently(call)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("retriable", "seconds", "goes_on"),
    [(False, 10, True), (True, 0, True), (True, 10, False)],
    ids=["not retriable", "time is over", "stopped"],
)
def test_a_call_is_given_up(retriable: bool, seconds: float, goes_on: bool) -> None:  # noqa: FBT001 - cases
    calls, call = failing(99, error_of(KafkaError._TIMED_OUT, retriable=retriable))  # noqa: SLF001 - its public name
    with pytest.raises(KafkaException):
        call_patiently(call, seconds=seconds, goes_on=lambda: goes_on)
    assert len(calls) == 1


@pytest.mark.parametrize(("number", "size", "value"), [(7, 4, b"0007"), (12345, 3, b"345")])
def test_a_value_has_exactly_its_size(number: int, size: int, value: bytes) -> None:
    assert value_of(number, size) == value


@dataclass
class FakeClient:
    """Delivers at once; after `dies_after` records poll raises `error` and reports are lost."""

    dies_after: int | None = None
    error: Exception = HIDDEN
    lost: int = 0
    waiting: list[Callable[[Any, Any], None]] = field(default_factory=list)
    taken: int = 0

    def produce(self, _topic: str, *, on_delivery: Callable[[Any, Any], None], **_: Any) -> None:
        self.taken += 1
        self.waiting.append(on_delivery)

    def poll(self, _seconds: float) -> None:
        if self.dies_after is not None and self.taken >= self.dies_after:
            self.waiting.clear()
            raise self.error
        while self.waiting:
            self.waiting.pop()(None, None)

    def purge(self) -> None:
        self.waiting.clear()

    def __len__(self) -> int:
        return len(self.waiting)


@dataclass(eq=False, kw_only=True)
class FakeProducer(IdempotentProducer):
    clients: list[FakeClient]

    def _make_client(self) -> FakeClient:
        return self.clients.pop(0)


@pytest.mark.parametrize("error", [HIDDEN, KafkaException(LOST)], ids=["hidden", "plain"])
def test_a_producer_goes_on_after_a_fatal_error_and_accounts_for_every_record(
    error: Exception,
) -> None:
    clients = [FakeClient(dies_after=3, error=error), FakeClient()]
    load = FakeProducer("b", topic="t", rate=1000, count=10, clients=clients)
    with load:
        assert load.wait(20)
    counts = load.counts
    assert (counts.sent, counts.restarts, counts.unreported) == (10, 1, 0)
    assert counts.failed >= 1
    assert counts.last_error == text_of(error)


def test_an_error_that_is_not_fatal_ends_a_producer_with_kafkas_words() -> None:
    clients = [FakeClient(dies_after=1, error=error_of(KafkaError._INVALID_ARG))]  # noqa: SLF001 - its public name
    load = FakeProducer("b", topic="t", clients=clients)
    load.start()
    with pytest.raises(SandboxError, match="producer to t: _INVALID_ARG"):
        load.wait(20)


@pytest.mark.parametrize("wrong", [{"abort_every": 1}, {"commit_records": 0}])
def test_a_pipeline_that_never_commits_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(SandboxError):
        TransactionalPipeline("b", topic="in", output_topic="out", **wrong)
