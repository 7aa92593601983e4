"""What is proven of our sight, by brokers with an authorizer of made-up permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from collectors.visibility import MAX_AGE_SECONDS, MAX_TRIED, VisibilityReader, ids_to_try
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_ACLS, DESCRIBE_TRANSACTIONS, Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker
from rules.facts.transactions import IdVisibility
from service.runtime.clock import monotonic
from tests.factories import broker
from tests.unit.collectors.scripted_pool import ScriptedPool, scripted
from tests.unit.collectors.wire.transaction_messages import LITERAL, PREFIXED, acls, described

FIRST, SECOND = broker(1), broker(2)
CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED, UNKNOWN_SERVER_ERROR = 31, 54, -1
REJECTED, NOT_COORDINATOR, NOT_FOUND = 53, 16, 105
NOTHING_DESCRIBED = described()
SILENT = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")


def brokers_that(
    *patterns: tuple[str, int], allow: Callable[[str], bool], error: int = 0
) -> Callable[[Broker, Api, Any], bytes]:
    """Answer like brokers with these patterns in their list, of which `allow` is what they mean."""

    def respond(asked: Broker, api: Api, request: Any) -> bytes:
        if api is DESCRIBE_ACLS:
            return acls(*patterns, error=error)
        assert api is DESCRIBE_TRANSACTIONS
        ids = request.transactional_ids
        unknown = NOT_FOUND if asked == FIRST else NOT_COORDINATOR
        errors = {name: unknown if allow(name) else REJECTED for name in ids}
        return described(*((name, 0, "") for name in ids), errors=errors)

    return respond


def everything(_: str) -> bool:
    return True


def prove(
    respond: Callable[[Broker, Api, Any], bytes | Failure], reader: VisibilityReader | None = None
) -> tuple[IdVisibility, ScriptedPool]:
    session, pool = scripted([FIRST, SECOND], respond)
    visibility = (reader or VisibilityReader()).collect(session, is_needed=False)
    assert session.gaps == []
    return visibility, pool


def test_without_an_authorizer_nothing_is_hidden() -> None:
    visibility, pool = prove(brokers_that(allow=everything, error=SECURITY_DISABLED))
    assert visibility is IdVisibility.NO_AUTHORIZER
    assert (len(pool.of(DESCRIBE_ACLS)), pool.of(DESCRIBE_TRANSACTIONS)) == (2, [])


def test_an_authorizer_on_one_broker_alone_is_one() -> None:
    def respond(asked: Broker, api: Api, request: Any) -> bytes:
        error = SECURITY_DISABLED if asked == FIRST else 0
        return brokers_that(allow=lambda _: asked == FIRST, error=error)(asked, api, request)

    assert prove(respond)[0] is IdVisibility.UNPROVEN


@pytest.mark.parametrize(
    ("patterns", "allow", "expected"),
    [
        pytest.param([], everything, IdVisibility.ACLS, id="a-super-user-or-no-denials-at-all"),
        pytest.param([], lambda _: False, IdVisibility.UNPROVEN, id="nobody-may-see-anything"),
        pytest.param([("*", LITERAL)], everything, IdVisibility.ACLS, id="everything-is-allowed"),
        pytest.param(
            [("*", LITERAL), ("secret", LITERAL)],
            lambda name: name != "secret",
            IdVisibility.UNPROVEN,
            id="one-name-is-denied",
        ),
        pytest.param(
            [("*", LITERAL), ("secret-", PREFIXED)],
            lambda name: not name.startswith("secret-"),
            IdVisibility.UNPROVEN,
            id="a-prefix-is-denied",
        ),
        pytest.param(
            [("pay", PREFIXED)],
            lambda name: name.startswith("pay"),
            IdVisibility.UNPROVEN,
            id="only-a-prefix-is-allowed",
        ),
        pytest.param(
            [("a", PREFIXED), ("b", PREFIXED), ("c", PREFIXED)],
            lambda name: name[0] in "abc",
            IdVisibility.UNPROVEN,
            id="prefixes-leave-something-out",
        ),
        pytest.param(
            [("p", PREFIXED), ("pa", PREFIXED), ("pb", PREFIXED)],
            lambda name: not name.startswith("p") or name[1] in "ab",
            IdVisibility.UNPROVEN,
            id="a-prefix-is-denied-but-for-longer-ones",
        ),
    ],
)
def test_one_id_of_each_kind_is_tried(
    patterns: list[tuple[str, int]], allow: Callable[[str], bool], expected: IdVisibility
) -> None:
    visibility, pool = prove(brokers_that(*patterns, allow=allow))
    assert visibility is expected
    assert [asked for asked, _ in pool.of(DESCRIBE_TRANSACTIONS)] == [FIRST, SECOND]


def test_one_broker_that_refuses_is_enough_to_be_blind() -> None:
    def respond(asked: Broker, api: Api, request: Any) -> bytes:
        return brokers_that(allow=lambda _: asked == FIRST)(asked, api, request)

    assert prove(respond)[0] is IdVisibility.UNPROVEN


def test_ids_are_made_up_anew_and_stand_for_one_kind_each() -> None:
    patterns = codec.decode(DESCRIBE_ACLS, 3, acls(("x", LITERAL), ("ab", PREFIXED))).resources
    first, second = ids_to_try(patterns), ids_to_try(patterns)
    assert first is not None
    assert second is not None
    assert first[0] == second[0] == "x"
    assert set(first) & set(second) == {"x"}
    assert [name[:2] == "ab" for name in first] == [False, False, True]


def test_too_many_patterns_prove_nothing() -> None:
    patterns = [(f"id-{number}", LITERAL) for number in range(MAX_TRIED)]
    visibility, pool = prove(brokers_that(*patterns, allow=everything))
    assert visibility is IdVisibility.UNPROVEN
    assert pool.of(DESCRIBE_TRANSACTIONS) == []


def test_without_describe_on_cluster_nothing_is_proven_and_nothing_tried() -> None:
    visibility, pool = prove(brokers_that(allow=everything, error=CLUSTER_AUTHORIZATION_FAILED))
    assert visibility is IdVisibility.UNPROVEN
    assert pool.of(DESCRIBE_TRANSACTIONS) == []


def test_a_declared_visibility_asks_nobody() -> None:
    visibility, pool = prove(brokers_that(allow=everything), VisibilityReader(declared=True))
    assert (visibility, pool.requests) == (IdVisibility.DECLARED, [])


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(lambda *_: SILENT, id="nobody-answers"),
        pytest.param(
            brokers_that(allow=everything, error=UNKNOWN_SERVER_ERROR), id="authorizer-without-list"
        ),
        pytest.param(
            lambda _, api, __: acls() if api is DESCRIBE_ACLS else SILENT, id="no-answer-to-the-try"
        ),
        pytest.param(
            lambda _, api, __: acls() if api is DESCRIBE_ACLS else NOTHING_DESCRIBED, id="left-out"
        ),
        pytest.param(lambda _, api, __: acls() if api is DESCRIBE_ACLS else b"\0", id="unreadable"),
    ],
)
def test_what_failed_proves_nothing(
    failing: Callable[[Broker, Api, Any], bytes | Failure],
) -> None:
    assert prove(failing)[0] is IdVisibility.UNPROVEN


def test_an_answer_is_kept_for_five_minutes_and_a_failure_for_one_round() -> None:
    reader, start = VisibilityReader(), float(int(monotonic()))  # whole, so that ages are exact

    def round_at(
        second: float, respond: Any, *, is_needed: bool = False
    ) -> tuple[IdVisibility, int]:
        session, pool = scripted([FIRST], respond, began=start + second)
        return reader.collect(session, is_needed=is_needed), len(pool.requests)

    good, bad = brokers_that(allow=everything), brokers_that(allow=lambda _: False)
    assert round_at(0, lambda *_: SILENT) == (IdVisibility.UNPROVEN, 1)
    assert round_at(15, good) == (IdVisibility.ACLS, 2)
    assert round_at(30, bad) == (IdVisibility.ACLS, 0)
    assert round_at(45, bad, is_needed=True) == (IdVisibility.UNPROVEN, 2)
    assert round_at(60, good) == (IdVisibility.UNPROVEN, 0)
    assert round_at(45 + MAX_AGE_SECONDS, good) == (IdVisibility.ACLS, 2)
