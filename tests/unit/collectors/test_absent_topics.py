"""Why topics are not listed: every broker is asked by name, and none of them counts alone."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from collectors.absent_topics import AbsentTopicsReader
from collectors.wire.api import METADATA, Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker
from rules.facts.snapshot import Absence
from tests.factories import broker
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

EXISTS, UNKNOWN, HIDDEN = 0, 3, 29
SILENT = Failure(GapCause.TIMEOUT, "no answer")


class Case(NamedTuple):
    """What brokers 1 and 2 answer for a topic, and what that proves."""

    name: str
    answers: tuple[int | Failure, int | Failure]
    expected: dict[str, Absence]
    gaps: int = 0


CASES = [
    Case("deleted", (UNKNOWN, UNKNOWN), {"orders": Absence.DELETED}),
    Case("hidden", (HIDDEN, HIDDEN), {"orders": Absence.HIDDEN}),
    Case("one_broker_is_behind", (UNKNOWN, EXISTS), {}),
    Case("permission_on_one_broker_only", (UNKNOWN, HIDDEN), {}),
    Case("one_broker_is_silent", (UNKNOWN, SILENT), {}, gaps=1),
    Case("listed_again", (EXISTS, EXISTS), {}),
]


def metadata(topics: tuple[Any, ...], code: int) -> bytes:
    """Return an answer with the same error for every topic that was named."""
    described: Any = part(METADATA, 12, "MetadataResponseTopic")
    return answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id="c",
        controller_id=1,
        topics=tuple(
            described(
                error_code=ErrorCode(code),
                name=topic.name,
                topic_id=UUID(int=7),
                is_internal=False,
                partitions=(),
            )
            for topic in topics
        ),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    def respond(asked: Broker, _api: Api, request: Any) -> bytes | Failure:
        code = case.answers[asked.broker_id - 1]
        assert not request.allow_auto_topic_creation
        return code if isinstance(code, Failure) else metadata(request.topics, code)

    session, _ = scripted((broker(1), broker(2)), respond)
    assert AbsentTopicsReader().collect(session, ["orders"]) == case.expected
    assert len(session.gaps) == case.gaps


def test_without_a_vanished_topic_nothing_is_sent_and_a_hidden_one_is_not_asked_for_every_round() -> (
    None
):
    session, pool = scripted((broker(1),), lambda _b, _a, request: metadata(request.topics, HIDDEN))
    reader = AbsentTopicsReader()
    assert reader.collect(session, []) == {}
    assert not pool.requests
    for _ in range(3):
        reader.collect(session, ["orders"])
    assert len(pool.requests) == 1
