"""One attempt, seen without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import pytest

from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.answers import Failure, Outcome
from service.alerting.sending.calls import CallError, Reply
from service.alerting.sending.sender import Attempt, Sender
from tests.factories import at
from tests.unit.service.alerting.notifications.given import EVERY, webhook


class Said:
    """A receiver that gives one answer."""

    def __init__(self, answer: Reply | CallError) -> None:
        self.answer = answer
        self.called: list[tuple[ReceiverUrl, dict[str, str], bytes]] = []

    async def post(self, url: ReceiverUrl, headers: Mapping[str, str], body: bytes) -> Reply:
        self.called.append((url, dict(headers), body))
        if isinstance(self.answer, CallError):
            raise self.answer
        return self.answer


def attempt(answer: Reply | CallError, receiver: Receiver | None = None) -> Attempt:
    seconds = iter((10.0, 10.25))
    sender = Sender(Said(answer), utc_now=lambda: at(0), monotonic=lambda: next(seconds))
    return asyncio.run(sender.send(receiver or webhook(), b"{}", {}))


def test_a_success_says_when_and_how_long() -> None:
    assert attempt(Reply(status=200, body=b"ok")) == Attempt(
        outcome=Outcome.DELIVERED,
        status=200,
        reply="ok",
        at=at(0),
        took=timedelta(seconds=0.25),
    )


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_what_is_given_is_sent_to_the_receivers_endpoint(receiver: Receiver) -> None:
    said = Said(Reply(status=200))
    sender = Sender(said, utc_now=lambda: at(0), monotonic=lambda: 0.0)
    asyncio.run(sender.send(receiver, b"body", {"a": "b"}))
    assert said.called == [(receiver.endpoint, {"a": "b"}, b"body")]


def test_a_failure_says_what_the_receiver_asked_for() -> None:
    told = attempt(Reply(status=429, headers={"retry-after": "30"}))
    assert told.outcome is Outcome.RETRY
    assert told.failure is Failure.RATE_LIMITED
    assert told.not_before == at(30)
    assert told.detail == "https://hooks.example.org/… answered 429"


def test_a_success_waits_for_nothing() -> None:
    assert attempt(Reply(status=200, headers={"retry-after": "30"})).not_before is None


def test_what_a_person_has_to_mend_is_slow() -> None:
    assert attempt(Reply(status=403)).is_slow
    assert not attempt(Reply(status=503)).is_slow


def test_no_answer_is_an_attempt_too() -> None:
    told = attempt(CallError("no answer in time", Failure.TIMEOUT))
    assert (told.outcome, told.status, told.failure) == (Outcome.RETRY, None, Failure.TIMEOUT)
    assert told.detail == "no answer in time"
    assert told.reply == ""


def test_no_secret_is_kept_of_what_is_said() -> None:
    rejected = Reply(status=400, body=b"bad token query-secret at /path-secret")
    assert "secret" not in repr(attempt(rejected))
    broken = CallError("cannot reach /path-secret?key=query-secret", Failure.CONNECTION)
    assert "secret" not in repr(attempt(broken))


def test_a_long_reason_is_cut() -> None:
    assert len(attempt(CallError("x" * 5000, Failure.CONNECTION)).detail) == 300
