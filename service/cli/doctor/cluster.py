"""Turns what was found out about a cluster into checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from collectors.capabilities import Capabilities, CapabilityCheck
from collectors.permission_checks import Outcome, PermissionCheck, Permissions
from collectors.wire.failure import Failure
from rules.facts.clocks import ClockDifference
from rules.facts.gap import Gap, GapCause
from service.cli.doctor.acls import acl_of, list_command
from service.observe.cluster_checks import ClusterChecks
from service.terminal.words import duration, names_text
from service.views.doctor import Area, Check, CheckState

TOLERATED: Final = timedelta(seconds=1)  # between two clocks: lags in seconds are wrong by as much
SLOW: Final = 0.5  # of the time limit of a round
SHOWN: Final = 3
TRANSACTION_LOG: Final = "read_transaction_state"
TOPICS: Final = "describe_topics"
HIDDEN: Final = (
    "Brokers leave out of their lists, without an error, what may not be described: how many topics are "
    "hidden cannot be known."
)


def cluster_checks(
    checks: ClusterChecks,
    *,
    principal: str,
    servers: str,
    reads_transaction_log: bool,
    limit_seconds: float,
) -> Iterator[Check]:
    """Yield the checks of a cluster; `limit_seconds` is that of a round."""
    yield _brokers(checks)
    yield _round(checks, limit_seconds)
    yield from _requests(checks.capabilities)
    for check in checks.permissions.checks:
        if check.needed.key == TRANSACTION_LOG and not reads_transaction_log:
            yield _permission(check, CheckState.OK, "not needed: kafka.transaction_log is off")
        else:
            yield _checked(check, checks.permissions, principal, servers)
    yield controller_clock(checks.controller_clock)


def _brokers(checks: ClusterChecks) -> Check:
    snapshot = checks.snapshot
    gone = [gap for gap in snapshot.gaps if gap.cause is GapCause.UNREACHABLE]
    return Check(
        area=Area.CLUSTER,
        subject=f"cluster {snapshot.cluster}",
        state=CheckState.UNKNOWN if gone or not checks.capabilities.brokers else CheckState.OK,
        summary=f"{len(snapshot.brokers)} brokers, {_release(checks.capabilities)}",
        detail=_gap_lines(gone)
        or f"id {snapshot.cluster_id}; {len(snapshot.partitions.index.topics)} topics and "
        f"{len(snapshot.groups)} groups are seen",
    )


def _release(capabilities: Capabilities) -> str:
    if not capabilities.brokers:
        return "release not known"
    release = capabilities.oldest_release
    return "older than Kafka 2.0" if release is None else f"Kafka {release} or newer"


def _round(checks: ClusterChecks, limit_seconds: float) -> Check:
    """Check what a round misses but for what other checks explain: permissions, releases, brokers."""
    denied = any(check.outcome is Outcome.DENIED for check in checks.permissions.checks)
    explained = {GapCause.UNSUPPORTED, GapCause.UNREACHABLE}
    gaps = [gap for gap in checks.snapshot.gaps if gap.cause not in explained]
    others = [gap for gap in gaps if gap.cause is not GapCause.NOT_AUTHORIZED or not denied]
    took = checks.snapshot.report.took_seconds
    state, detail = CheckState.OK, None
    if others:
        is_denied = any(gap.cause is GapCause.NOT_AUTHORIZED for gap in others)
        state = CheckState.MISSING if is_denied else CheckState.UNKNOWN
        detail = _gap_lines(others)
    elif took > SLOW * limit_seconds:
        state = CheckState.WARN
        detail = f"The limit is {limit_seconds:g} s (kafka.round_timeout_seconds)."
    many = len(checks.snapshot.gaps)
    summary = f"{took:.1f} s, " + (f"{many} gap{'' if many == 1 else 's'}" if many else "complete")
    return Check(
        area=Area.CLUSTER, subject="one round", state=state, summary=summary, detail=detail
    )


def _gap_lines(gaps: Sequence[Gap]) -> str | None:
    lines = [f"{gap.what}: {gap.why}" for gap in gaps[:SHOWN]]
    more = len(gaps) - SHOWN
    return "; ".join([*lines, *([f"{more} more gaps"] if more > 0 else [])]) or None


def _requests(capabilities: Capabilities) -> Iterator[Check]:
    """Yield a check for each request that is vital and missing, and one for all others."""
    if not capabilities.brokers:
        yield Check(
            area=Area.REQUEST, subject="requests", state=CheckState.UNKNOWN,
            summary="not known", detail="No broker is connected.",
        )  # fmt: skip
        return
    checks = capabilities.checks
    vital = [check for check in checks if check.missing_at and check.capability.is_vital]
    for check in vital:
        yield Check(
            area=Area.REQUEST,
            subject=check.capability.api.name,
            state=CheckState.MISSING,
            summary=f"needs Kafka {check.capability.api.since}",
            detail=_off(check, None),
        )
    release = capabilities.oldest_release
    optional = [check for check in checks if check.missing_at and not check.capability.is_vital]
    old = [check for check in optional if not check.is_turned_off(release)]
    yield Check(
        area=Area.REQUEST,
        subject="requests",
        state=CheckState.WARN if old else CheckState.OK,
        summary=f"{len(checks) - len(vital) - len(optional)} of {len(checks)} can be answered",
        detail=" ".join(_off(check, release) for check in optional) or None,
    )


def _off(check: CapabilityCheck, release: str | None) -> str:
    api, brokers = check.capability.api, ", ".join(map(str, check.missing_at))
    why = "it is turned off there" if check.is_turned_off(release) else f"since Kafka {api.since}"
    return f"{api.name} is not offered by brokers {brokers} ({why}): {check.capability.gives}."


def _checked(
    check: PermissionCheck, permissions: Permissions, principal: str, servers: str
) -> Check:
    match check.outcome:
        case Outcome.ALLOWED if permissions.has_authorizer is False:
            return _permission(check, CheckState.OK, "no authorizer: allowed to all")
        case Outcome.ALLOWED:
            named = "" if permissions.reads_acls or check.needed.name else " by a made-up name"
            return _permission(check, CheckState.OK, f"allowed{named}")
        case Outcome.NOT_TRIED:
            return _permission(check, CheckState.UNKNOWN, "could not be tried", check.why)
        case Outcome.DENIED:
            return _denied(check, principal, servers)


def _denied(check: PermissionCheck, principal: str, servers: str) -> Check:
    needed = check.needed
    acl = None if check.is_denial else acl_of(needed, check.scope, principal, servers)
    names = names_text(check.denied)
    texts = [f"Without it: {needed.without.replace('`', '')}."]
    if needed.key == TOPICS and not check.is_denial:
        texts.insert(0, HIDDEN)
    if check.is_denial:
        listing = list_command(needed, check.denied[0].rstrip("*"), servers)
        texts.append(f"An ACL denies it, and no grant is stronger: {listing}")
    if check.why is not None:
        texts.insert(0, f"{check.why}.")
    summary = f"denied on {names}" if check.is_denial else "denied"
    return _permission(check, CheckState.MISSING, summary, " ".join(texts)).model_copy(
        update={"acl": acl, "denied": check.denied, "rules": needed.rules}
    )


def _permission(
    check: PermissionCheck, state: CheckState, summary: str, detail: str | None = None
) -> Check:
    return Check(
        area=Area.PERMISSION,
        key=check.needed.key,
        subject=_subject(check),
        state=state,
        summary=summary,
        detail=detail,
    )


def _subject(check: PermissionCheck) -> str:
    needed, scope = check.needed, check.scope
    if needed.name is not None or scope.is_every:
        return needed.title
    return f"{needed.title} {scope.name}{'' if scope.is_single else '*'}"


def controller_clock(clock: ClockDifference | Failure) -> Check:
    """Return the check of the active controller's clock, the only one that Kafka tells."""
    if isinstance(clock, Failure):
        return Check(
            area=Area.CLOCK, subject="clock of the controller", state=CheckState.UNKNOWN,
            summary="not known", detail=f"{clock.why}. No request returns a broker's own clock.",
        )  # fmt: skip
    return clock_check("clock of the controller", clock, "No request returns a broker's own clock.")


def clock_check(subject: str, clock: ClockDifference, note: str | None = None) -> Check:
    """Return the check of a clock against ours."""
    apart = clock.certain
    if abs(apart) <= TOLERATED:
        within = max(abs(clock.least), abs(clock.most))
        return Check(
            area=Area.CLOCK, subject=subject, state=CheckState.OK,
            summary=f"ours, within {duration(within)}", detail=note,
        )  # fmt: skip
    side = "ahead of" if apart > timedelta(0) else "behind"
    return Check(
        area=Area.CLOCK,
        subject=subject,
        state=CheckState.WARN,
        summary=f"{duration(abs(apart))} {side} ours",
        detail="Ages and lags in seconds are wrong by as much, and a log line may seem to come before its "
        "cause: synchronise both (chrony, systemd-timesyncd).",
    )
