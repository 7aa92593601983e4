"""What is concluded of the active controller from answers, and from their absence."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from collectors.quorum import METADATA_TOPIC, collect
from collectors.session import Limits, Session, address_of
from collectors.wire.api import DESCRIBE_QUORUM, LIST_GROUPS, Api
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from rules.facts.brokers import ControllerState, Quorum
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId
from tests.factories import broker
from tests.unit.collectors.fake_pool import FakePool, Prepared, session_of
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import answer, part

FIRST, SECOND = broker(1), broker(2)
LATE = Failure(GapCause.TIMEOUT, "no answer within 2.0 s")
TIMED_OUT, UNAUTHORIZED = 7, 31


def quorum(leader: int = 100, *, error: int = 0) -> bytes:
    partition = part(DESCRIBE_QUORUM, 2, "PartitionData")(
        partition_index=0,
        error_code=ErrorCode.none,
        error_message=None,
        leader_id=leader,
        leader_epoch=4,
        high_watermark=1,
        current_voters=(),
        observers=(),
    )
    topic = part(DESCRIBE_QUORUM, 2, "TopicData")(
        topic_name=METADATA_TOPIC, partitions=(partition,)
    )
    return answer(
        DESCRIBE_QUORUM,
        2,
        error_code=ErrorCode(error),
        error_message=None,
        topics=(topic,),
        nodes=(),
    )


def session(first: Prepared, second: Prepared = LATE, *, answered: bool = True) -> Session:
    answers = {(FIRST, DESCRIBE_QUORUM): first, (SECOND, DESCRIBE_QUORUM): second}
    made = session_of(FIRST, SECOND, answers=answers)
    if answered:
        made.answered = {FIRST.broker_id, SECOND.broker_id}
    return made


ACTIVE = Quorum(state=ControllerState.ACTIVE, leader=BrokerId(100), leader_epoch=4)


@pytest.mark.parametrize(
    ("first", "second"), [(quorum(), LATE), (LATE, quorum()), (quorum(error=TIMED_OUT), quorum())]
)
def test_one_answer_is_enough(first: Prepared, second: Prepared) -> None:
    made = session(first, second)
    assert collect(made) == ACTIVE
    assert made.gaps == []


def test_a_quorum_may_say_that_it_has_no_leader() -> None:
    assert collect(session(quorum(leader=-1))).state is ControllerState.NO_LEADER


def test_brokers_that_answer_all_else_reach_no_controller() -> None:
    made = session(LATE, quorum(error=TIMED_OUT))
    assert collect(made).state is ControllerState.NO_ANSWER
    assert [gap.what for gap in made.gaps] == ["active controller"]


def test_a_shorter_limit_of_requests_is_no_lack_of_time() -> None:
    made = session(quorum())
    made.limits = Limits(request_seconds=0.5)
    assert collect(made) == ACTIVE


def test_without_time_nothing_is_concluded() -> None:
    made = session(LATE)
    made.limits = Limits(round_seconds=1.0)
    assert collect(made).state is ControllerState.NOT_KNOWN
    assert [gap.cause for gap in made.gaps] == [GapCause.TIMEOUT]


def test_one_silent_broker_proves_nothing_where_no_time_is_left_for_the_others() -> None:
    """It may be cut off from the controllers alone."""

    def respond(*_: object) -> Failure:
        made.began -= made.limits.round_seconds
        return LATE

    made, _ = scripted([FIRST, SECOND], respond)
    made.answered = {FIRST.broker_id, SECOND.broker_id}
    assert collect(made).state is ControllerState.NOT_KNOWN
    assert [gap.cause for gap in made.gaps] == [GapCause.TIMEOUT]


def test_brokers_that_answered_nothing_prove_nothing() -> None:
    assert collect(session(LATE, answered=False)).state is ControllerState.NOT_KNOWN


def test_brokers_without_a_quorum_are_no_gap_and_no_absence() -> None:
    made = session_of(FIRST, SECOND, too_old=[DESCRIBE_QUORUM])
    assert (collect(made), made.gaps) == (Quorum(), [])


def test_an_older_broker_is_passed_over_during_an_upgrade() -> None:
    class FirstIsOlder(FakePool):
        def version(self, address: Address, api: Api) -> int | None:
            return None if address == address_of(FIRST) else super().version(address, api)

    pool = FirstIsOlder({(SECOND.port, DESCRIBE_QUORUM.name): quorum()})
    made = Session(pool, brokers=(FIRST, SECOND), answered_last=address_of(FIRST))
    assert (collect(made), made.gaps) == (ACTIVE, [])


def test_a_missing_permission_is_a_gap_and_no_absence() -> None:
    made = session(quorum(error=UNAUTHORIZED))
    assert collect(made).state is ControllerState.NOT_KNOWN
    assert [gap.cause for gap in made.gaps] == [GapCause.NOT_AUTHORIZED]


def test_a_broker_that_answers_anything_is_not_silent() -> None:
    made = session_of(FIRST, SECOND, answers={(FIRST, LIST_GROUPS): LATE})
    made.unanswered = {FIRST.broker_id: "late", SECOND.broker_id: "late"}
    made.answered = {FIRST.broker_id}
    assert dict(made.contact.silent) == {SECOND.broker_id: "late"}
