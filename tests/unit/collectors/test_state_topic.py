"""Where the partitions of `__transaction_state` are, and what hides them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from collectors.session import Session
from collectors.state_topic import SeenTopic, StateTopic, collect
from collectors.translate import topic_id_of
from collectors.wire.api import METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import TRANSACTION_STATE, BrokerId
from tests.factories import broker
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

ID = UUID(int=7)


def metadata(*placed: tuple[int, int, int], name: str = TRANSACTION_STATE, error: int = 0) -> bytes:
    """Return a Metadata answer with (partition, leader, leader epoch)."""
    entry = part(METADATA, 12, "MetadataResponsePartition")
    described: Any = part(METADATA, 12, "MetadataResponseTopic")
    topic = described(
        error_code=ErrorCode(error),
        name=name,
        topic_id=ID,
        is_internal=True,
        partitions=tuple(
            entry(
                error_code=ErrorCode(0 if leader >= 0 else 5),
                partition_index=number,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=(1, 2),
                isr_nodes=(1,),
                offline_replicas=(),
            )
            for number, leader, epoch in placed
        ),
    )
    return answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id="c",
        controller_id=1,
        topics=(topic,),
    )


def session_with(prepared: Prepared) -> Session:
    return session_of(broker(1), answers={(broker(1), METADATA): prepared})


def failure_with(prepared: Prepared) -> Failure:
    found = collect(session_with(prepared))
    assert isinstance(found, Failure)
    return found


def test_leaders_stand_at_the_number_of_their_partition() -> None:
    body = metadata((2, 3, 5), (0, 1, 4), (1, -1, -1))
    assert collect(session_with(body)) == StateTopic(
        leaders=(BrokerId(1), None, BrokerId(3)),
        leader_epochs=(4, None, 5),
        topic_id=topic_id_of(ID),
    )


def test_a_partition_that_the_answer_left_out_has_no_leader() -> None:
    found = collect(session_with(metadata((1, 2, 5))))
    assert isinstance(found, StateTopic)
    assert (found.leaders, found.leader_epochs) == ((None, 2), (None, 5))


def test_a_topic_that_nobody_needed_yet_is_no_failure() -> None:
    assert collect(session_with(metadata(error=3))) is None


def test_once_it_was_seen_a_topic_that_a_broker_does_not_know_is_a_failure() -> None:
    memory = SeenTopic()
    placed = StateTopic(leaders=(None,), leader_epochs=(None,))
    hidden = Failure(GapCause.NOT_AUTHORIZED, "hidden")
    assert [memory.judge(answer) for answer in (None, hidden, None)] == [None, hidden, None]
    assert memory.judge(placed) is placed
    vanished = memory.judge(None)
    assert isinstance(vanished, Failure)
    assert vanished.cause is GapCause.GONE
    assert memory.judge(hidden) is hidden
    assert memory.judge(placed) is placed


def test_what_we_may_not_see_names_the_permission() -> None:
    failure = failure_with(metadata(error=29))
    assert failure.cause is GapCause.NOT_AUTHORIZED
    assert failure.why.endswith("needs DESCRIBE on Topic __transaction_state")


def test_no_answer_is_a_failure() -> None:
    late = Failure(GapCause.TIMEOUT, "late")
    assert failure_with(late) == late
    assert failure_with(b"\0").cause is GapCause.UNREADABLE
    assert failure_with(metadata(name="another")).cause is GapCause.UNREADABLE


def test_a_number_that_no_partition_can_have_is_a_failure() -> None:
    failure = failure_with(metadata((2**31 - 1, 1, 4), (0, 1, 4)))
    assert failure.cause is GapCause.UNREADABLE
    assert "of which one is number 2147483647" in failure.why


def test_an_error_of_another_kind_is_a_failure() -> None:
    assert failure_with(metadata(error=-1)).cause is GapCause.BROKER_ERROR
