"""The table, the document and the exit code of a report."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from collectors.capabilities import CAPABILITIES, Capabilities, CapabilityCheck, check_capabilities
from collectors.name_scope import NameScope
from collectors.permission_checks import Outcome, PermissionCheck, Permissions
from rules.facts.clocks import difference
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import BrokerId
from rules.facts.permissions import NEEDED
from service.cli.doctor.cluster import cluster_checks
from service.cli.doctor.examining import exit_code
from service.cli.doctor.tables import render
from service.cli.main import run
from service.observe.cluster_checks import ClusterChecks
from service.terminal.exit_codes import ExitCode
from service.views.doctor import Area, Check, CheckState, Doctor, worst
from tests.factories import snapshot
from tests.unit.collectors.fake_pool import session_of
from tests.unit.service.cli.printing import printed

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
DENIED_GAP = Gap(
    what="x",
    why="TOPIC_AUTHORIZATION_FAILED",
    cause=GapCause.NOT_AUTHORIZED,
    scope=GapScope.OFFSETS,
)


def checks_of(
    *,
    outcome: Outcome = Outcome.ALLOWED,
    gaps: tuple[Gap, ...] = (),
    lacking: tuple[str, ...] = (),
    connected: tuple[int, ...] = (1,),
    reads_transaction_log: bool = True,
) -> list[Check]:
    permissions = Permissions(
        checks=tuple(
            PermissionCheck(
                needed=needed, scope=NameScope(name=needed.name or "*"), outcome=outcome
            )
            for needed in NEEDED
        ),
        has_authorizer=True,
        reads_acls=True,
    )
    capabilities = tuple(
        CapabilityCheck(capability=each, missing_at=(1,) if each.api.name in lacking else ())
        for each in CAPABILITIES
    )
    found = ClusterChecks(
        snapshot=snapshot(gaps=gaps),
        permissions=permissions,
        capabilities=Capabilities(brokers=connected, checks=capabilities),
        controller_clock=difference(NOW, NOW, NOW),
    )
    return list(
        cluster_checks(
            found,
            principal="User:x",
            servers="broker-1:9092",
            reads_transaction_log=reads_transaction_log,
            limit_seconds=10,
        )
    )


def report(checks: list[Check]) -> Doctor:
    return Doctor(
        version="0.1", at=NOW, state=worst(checks), exit_code=1, cluster="c", cluster_id="id",
        principal="User:x", checks=checks,
    )  # fmt: skip


def states(checks: list[Check], area: Area) -> set[CheckState]:
    return {check.state for check in checks if check.area is area}


def test_every_line_but_the_commands_fits_80_columns_and_keeps_its_state() -> None:
    lines = printed(render(report(checks_of(outcome=Outcome.DENIED))), width=80).splitlines()
    assert [
        line for line in lines if len(line) > 80 and not line.startswith("  kafka-acls.sh")
    ] == []
    for needed in NEEDED:
        assert [line for line in lines if line.split("  ")[:2] == ["MISSING", needed.title]]


def test_what_is_denied_has_its_rules_and_its_command() -> None:
    checks = {check.key: check for check in checks_of(outcome=Outcome.DENIED)}
    for needed in NEEDED:
        check = checks[needed.key]
        assert (check.state, check.rules) == (CheckState.MISSING, needed.rules)
        assert check.acl is not None


def test_what_could_not_be_tried_is_unknown_and_not_ok() -> None:
    assert states(checks_of(outcome=Outcome.NOT_TRIED), Area.PERMISSION) == {CheckState.UNKNOWN}


def test_the_transaction_log_that_is_off_is_not_missing() -> None:
    checks = checks_of(outcome=Outcome.DENIED, reads_transaction_log=False)
    [check] = [check for check in checks if check.key == "read_transaction_state"]
    assert check.state is CheckState.OK


def test_a_denial_that_no_try_explains_is_missing() -> None:
    checks = checks_of(gaps=(DENIED_GAP,))
    [one_round] = [check for check in checks if check.subject == "one round"]
    assert (one_round.state, one_round.key) == (CheckState.MISSING, None)
    explained = checks_of(gaps=(DENIED_GAP,), outcome=Outcome.DENIED)
    assert CheckState.MISSING not in states(explained, Area.CLUSTER)


def test_a_broker_that_is_away_leaves_the_cluster_unknown() -> None:
    gap = Gap(
        what="broker 3", why="connection refused", cause=GapCause.UNREACHABLE,
        scope=GapScope.CLUSTER, broker_id=BrokerId(3),
    )  # fmt: skip
    assert CheckState.UNKNOWN in states(checks_of(gaps=(gap,)), Area.CLUSTER)


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [
        pytest.param((), CheckState.OK, id="all-there"),
        pytest.param(("StreamsGroupDescribe",), CheckState.OK, id="turned-off-at-its-release"),
        pytest.param(
            ("StreamsGroupDescribe", "ShareGroupDescribe", "DescribeShareGroupOffsets"),
            CheckState.WARN,
            id="an-older-release",
        ),
        pytest.param(("DescribeProducers",), CheckState.MISSING, id="vital"),
    ],
)
def test_requests_that_brokers_lack(lacking: tuple[str, ...], expected: CheckState) -> None:
    checks = [check for check in checks_of(lacking=lacking) if check.area is Area.REQUEST]
    assert worst(checks) is expected
    assert all(name in "".join(f"{c.subject} {c.detail}" for c in checks) for name in lacking)


def test_of_a_request_that_no_broker_was_queried_for_nothing_is_known() -> None:
    found = check_capabilities(session_of())
    assert (found.brokers, found.oldest_release) == ((), None)
    checks = checks_of(connected=found.brokers)
    assert states(checks, Area.REQUEST) == {CheckState.UNKNOWN}
    [cluster] = [check for check in checks if check.subject == "cluster default"]
    assert (cluster.state, cluster.summary) == (CheckState.UNKNOWN, "3 brokers, release not known")


@pytest.mark.parametrize(
    ("state", "codes", "expected"),
    [
        (CheckState.OK, [], ExitCode.OK),
        (CheckState.WARN, [], ExitCode.OK),
        (CheckState.UNKNOWN, [], ExitCode.INCOMPLETE),
        (CheckState.MISSING, [], ExitCode.INCOMPLETE),
        (CheckState.MISSING, [ExitCode.STORE], ExitCode.STORE),
        (CheckState.MISSING, [ExitCode.STORE, ExitCode.UNREACHABLE], ExitCode.UNREACHABLE),
        (CheckState.MISSING, [ExitCode.UNREACHABLE, ExitCode.AUTHENTICATION], ExitCode.AUTHENTICATION),
    ],
)  # fmt: skip
def test_the_exit_code_is_of_what_to_mend_first(
    state: CheckState, codes: list[ExitCode], expected: ExitCode
) -> None:
    check = Check(area=Area.MACHINE, subject="x", state=state, summary="y")
    assert exit_code([check], codes) is expected


def test_nothing_answers_is_one_unknown_line_and_its_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(["doctor", "--bootstrap-servers", "127.0.0.1:1", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    [check] = document["checks"]
    assert (code, document["exit_code"]) == (ExitCode.UNREACHABLE, ExitCode.UNREACHABLE)
    assert (check["state"], check["summary"]) == ("unknown", "cannot be reached")
    assert document["cluster_id"] is None
