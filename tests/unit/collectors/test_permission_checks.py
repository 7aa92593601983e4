"""What is found out about our permissions, by brokers with an authorizer of made-up permissions.

Real brokers answer in tests/integration/test_doctor.py; here are the answers that a test cannot order there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors.name_scope import NameScope, PatternType
from collectors.permission_checks import (
    Observed,
    Outcome,
    PermissionCheck,
    Permissions,
    check_permissions,
)
from collectors.wire.api import DESCRIBE_ACLS, DESCRIBE_GROUPS, DESCRIBE_QUORUM, METADATA, Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker
from tests.factories import broker
from tests.unit.collectors.scripted_pool import ScriptedPool, scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

FIRST, SECOND = broker(1), broker(2)
SILENT = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED = 31, 54
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED = 30, 29
UNKNOWN_TOPIC, TOPIC, GROUP, LITERAL, PREFIXED = 3, 2, 3, 3, 4
Allow = Callable[[Broker, str], bool]


def everything(_: Broker, __: str) -> bool:
    return True


def acls(*patterns: tuple[int, str, int], error: int = 0) -> bytes:
    """Return a DescribeAcls answer with an entry for each (resource type, name, pattern type)."""
    resource = part(DESCRIBE_ACLS, 3, "DescribeAclsResource")
    entry = part(DESCRIBE_ACLS, 3, "AclDescription")
    acl = entry(principal="User:somebody", host="*", operation=8, permission_type=3)
    return answer(
        DESCRIBE_ACLS,
        3,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(error),
        error_message=None,
        resources=tuple(
            resource(resource_type=kind, resource_name=name, pattern_type=form, acls=(acl,))
            for kind, name, form in patterns
        ),
    )


def groups(codes: Mapping[str, int]) -> bytes:
    group = part(DESCRIBE_GROUPS, 5, "DescribedGroup")
    return answer(
        DESCRIBE_GROUPS,
        5,
        throttle_time=NO_THROTTLE,
        groups=tuple(
            group(
                error_code=ErrorCode(code), group_id=name, group_state="Dead", protocol_type="",
                protocol_data="", members=(),
            )
            for name, code in codes.items()
        ),
    )  # fmt: skip


def topics(codes: Mapping[str, int]) -> bytes:
    topic = part(METADATA, 12, "MetadataResponseTopic")
    return answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id="c",
        controller_id=1,
        topics=tuple(
            topic(
                error_code=ErrorCode(code), name=name, topic_id=None, is_internal=False,
                partitions=(),
            )
            for name, code in codes.items()
        ),
    )  # fmt: skip


def check(
    *patterns: tuple[int, str, int],
    allow: Allow = everything,
    error: int = 0,
    observed: Observed | None = None,
) -> tuple[dict[str, PermissionCheck], Permissions, ScriptedPool]:
    """Check against brokers on which `allow` says what we may do with a group or a topic."""

    def respond(asked: Broker, api: Api, request: Any) -> bytes | Failure:
        if api is DESCRIBE_ACLS:
            return acls(*patterns, error=error)
        if api is DESCRIBE_GROUPS:
            codes = {
                name: 0 if allow(asked, name) else GROUP_AUTHORIZATION_FAILED
                for name in request.groups
            }
            return groups(codes)
        if api is METADATA:
            names = [topic.name for topic in request.topics]
            return topics(
                {n: UNKNOWN_TOPIC if allow(asked, n) else TOPIC_AUTHORIZATION_FAILED for n in names}
            )
        return SILENT

    session, pool = scripted([FIRST, SECOND], respond)
    permissions = check_permissions(session, observed or Observed())
    return {each.needed.key: each for each in permissions.checks}, permissions, pool


def test_an_empty_cluster_is_tried_by_names_that_nobody_has() -> None:
    checks, permissions, pool = check()
    assert checks["describe_groups"].outcome is Outcome.ALLOWED
    assert checks["describe_topics"].outcome is Outcome.ALLOWED
    assert permissions.reads_acls
    assert [asked for asked, _ in pool.of(DESCRIBE_GROUPS)] == [FIRST, SECOND]


def test_what_nobody_answers_is_not_tried_and_never_allowed() -> None:
    checks, _, _ = check()
    for key in ("read_topics", "describe_topic_configs", "describe_transactional_ids"):
        assert (checks[key].outcome, checks[key].why) == (Outcome.NOT_TRIED, SILENT.why)


def test_a_grant_on_some_names_does_not_cover_all() -> None:
    checks, _, _ = check(
        (GROUP, "billing-", PREFIXED),
        allow=lambda _, name: name.startswith("billing-"),
        observed=Observed(existing_groups=["billing-1", "billing-2"]),
    )
    groups_check = checks["describe_groups"]
    assert (groups_check.outcome, groups_check.is_denial) == (Outcome.DENIED, False)
    assert (groups_check.scope, groups_check.denied) == (NameScope(), ())


def test_it_covers_all_where_only_these_are_observed() -> None:
    scope = NameScope(PatternType.PREFIXED, "billing-")
    checks, _, pool = check(
        (GROUP, "billing-", PREFIXED),
        (GROUP, "*", LITERAL),
        (GROUP, "other", LITERAL),
        allow=lambda _, name: name.startswith("billing-"),
        observed=Observed(groups=scope),
    )
    assert (checks["describe_groups"].outcome, checks["describe_groups"].scope) == (
        Outcome.ALLOWED,
        scope,
    )
    tried = [name for _, request in pool.of(DESCRIBE_GROUPS) for name in request.groups]
    assert tried
    assert all(name.startswith("billing-") for name in tried)


@pytest.mark.parametrize(
    ("pattern", "is_hidden", "denied"),
    [
        pytest.param((GROUP, "secret", LITERAL), "secret".__eq__, ("secret",), id="a-name"),
        pytest.param(
            (GROUP, "sec-", PREFIXED),
            lambda name: name.startswith("sec-"),
            ("sec-*",),
            id="a-prefix",
        ),
    ],
)
def test_a_denial_beside_a_grant_on_all_is_told_apart(
    pattern: tuple[int, str, int], is_hidden: Callable[[str], bool], denied: tuple[str, ...]
) -> None:
    checks, _, _ = check((GROUP, "*", LITERAL), pattern, allow=lambda _, name: not is_hidden(name))
    found = checks["describe_groups"]
    assert (found.outcome, found.is_denial, found.denied) == (Outcome.DENIED, True, denied)


def test_one_broker_that_denies_is_named() -> None:
    checks, _, _ = check(allow=lambda asked, _: asked == FIRST)
    found = checks["describe_groups"]
    assert found.outcome is Outcome.DENIED
    assert found.why == f"denied by {SECOND} alone"


def test_without_describe_on_the_cluster_the_others_are_tried_all_the_same() -> None:
    checks, permissions, _ = check(error=CLUSTER_AUTHORIZATION_FAILED)
    assert checks["describe_cluster"].outcome is Outcome.DENIED
    assert checks["describe_groups"].outcome is Outcome.ALLOWED
    assert (permissions.reads_acls, permissions.has_authorizer) == (False, True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(acls(), acls(), (Outcome.ALLOWED, None), id="both-answer"),
        pytest.param(acls(), SILENT, (Outcome.NOT_TRIED, SILENT.why), id="one-is-silent"),
        pytest.param(
            SILENT,
            acls(error=CLUSTER_AUTHORIZATION_FAILED),
            (Outcome.DENIED, None),
            id="one-denies",
        ),
    ],
)
def test_describe_on_the_cluster_is_tried_by_what_no_broker_passes_on_to_the_controller(
    first: bytes | Failure, second: bytes | Failure, expected: tuple[Outcome, str | None]
) -> None:
    def respond(asked: Broker, api: Api, _: Any) -> bytes | Failure:
        if api is DESCRIBE_ACLS:
            return first if asked == FIRST else second
        return SILENT

    session, pool = scripted([FIRST, SECOND], respond)
    permissions = check_permissions(session, Observed())
    [found] = [each for each in permissions.checks if each.needed.key == "describe_cluster"]
    assert (found.outcome, found.why) == expected
    assert pool.of(DESCRIBE_QUORUM) == []


def test_no_authorizer_is_said() -> None:
    checks, permissions, _ = check(error=SECURITY_DISABLED)
    assert permissions.has_authorizer is False
    assert checks["describe_cluster"].outcome is Outcome.ALLOWED
