"""One transactional id: its coordinator knows it, and the others say that they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from collectors.transactions import look_up
from collectors.wire.api import DESCRIBE_TRANSACTIONS, METADATA, Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker
from rules.facts.transactions import Transaction, TransactionState
from tests.factories import broker
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part
from tests.unit.collectors.wire.transaction_messages import described

REJECTED, NOT_COORDINATOR, NOT_FOUND, LOADING = 53, 16, 105, 14
UNKNOWN_TOPIC = 3
SILENT = Failure(GapCause.TIMEOUT, "127.0.0.1:9092: no answer within 5.0 s")


def state_topic(error: int) -> bytes:
    """Return a Metadata answer about the topic of the coordinators, which has no partition."""
    topic: Any = part(METADATA, 12, "MetadataResponseTopic")
    named = topic(
        error_code=ErrorCode(error),
        name="__transaction_state",
        topic_id=UUID(int=7),
        is_internal=True,
        partitions=(),
    )
    return answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id="c",
        controller_id=1,
        topics=(named,),
    )


def observe(
    says: Mapping[int, int | Failure], *, topic_error: int = 0
) -> Transaction | Failure | None:
    """Ask for payments; `says` is what each broker answers: an error code, 0 for what it knows."""

    def respond(asked: Broker, api: Api, request: Any) -> bytes | Failure:
        if api is METADATA:
            return state_topic(topic_error)
        assert api is DESCRIBE_TRANSACTIONS
        assert list(request.transactional_ids) == ["payments"]
        said = says[asked.broker_id]
        if isinstance(said, Failure):
            return said
        return described(("payments", 7, "CompleteCommit"), errors={"payments": said}, began=None)

    session, _ = scripted([broker(number) for number in says], respond)
    return look_up(session, "payments")


def test_its_coordinator_is_believed_whoever_else_is_silent() -> None:
    found = observe({1: NOT_COORDINATOR, 2: SILENT, 3: 0})
    assert isinstance(found, Transaction)
    assert (found.coordinator, found.state) == (3, TransactionState.COMPLETE_COMMIT)
    assert (found.producer_id, found.started_at) == (7, None)


def test_an_id_that_its_coordinator_does_not_know_does_not_exist() -> None:
    assert observe({1: NOT_COORDINATOR, 2: NOT_FOUND, 3: NOT_COORDINATOR}) is None


@pytest.mark.parametrize(
    ("says", "cause"),
    [
        ({1: NOT_COORDINATOR, 2: SILENT}, GapCause.TIMEOUT),
        ({1: REJECTED, 2: REJECTED}, GapCause.NOT_AUTHORIZED),
        ({1: NOT_COORDINATOR, 2: LOADING}, GapCause.COORDINATOR_MOVING),
        ({1: NOT_COORDINATOR, 2: NOT_COORDINATOR}, GapCause.COORDINATOR_MOVING),
    ],
)
def test_what_could_not_be_asked_is_not_taken_for_absent(
    says: dict[int, int | Failure], cause: GapCause
) -> None:
    found = observe(says)
    assert isinstance(found, Failure)
    assert found.cause is cause


def test_a_rejection_names_the_permission() -> None:
    found = observe({1: REJECTED})
    assert isinstance(found, Failure)
    assert "DESCRIBE on TransactionalId" in found.why


def test_where_nobody_ever_used_a_transaction_no_id_exists() -> None:
    everybody = {1: NOT_COORDINATOR, 2: NOT_COORDINATOR}
    assert observe(everybody, topic_error=UNKNOWN_TOPIC) is None
