"""Makes all checks, one part after the other: what fails in one part leaves the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from rules.errors import AuthenticationError, CollectError, UnreachableError
from rules.version import VERSION
from service.app import cluster_checker
from service.cli.doctor.acls import principal_of
from service.cli.doctor.cluster import cluster_checks
from service.cli.doctor.database import database_checks
from service.cli.doctor.machine import machine_checks
from service.cli.doctor.receivers import receiver_checks
from service.cli.doctor.running import running_checks
from service.cli.server.server_options import client_of
from service.observe.cluster_checks import ClusterChecks
from service.observe.cluster_reader import Scope
from service.runtime.clock import utc_now
from service.settings import Settings, Source, Sourced
from service.terminal.exit_codes import ExitCode
from service.views.doctor import Area, Check, CheckState, Doctor, worst

# Groups of settings that only a service uses: if the environment sets one, all that it uses is checked.
SERVICE_GROUPS: Final = frozenset({"service", "database", "alerting", "nightly", "history", "http"})
FIRST_CODES: Final = (ExitCode.AUTHENTICATION, ExitCode.UNREACHABLE, ExitCode.STORE)


def examine(sourced: Sourced, options: Mapping[str, Any]) -> Doctor:
    """Return all checks that settings and options ask for.

    Raises:
        SettingsError: there are no addresses of brokers, or addresses or security settings cannot be used.
    """
    examination = _Examination(sourced.settings, options)
    has_service = _has_service(sourced, options)
    is_given = bool(sourced.settings.kafka.bootstrap_servers)
    has_cluster = is_given or has_service or options["server"] is None
    checks = [
        *(examination.cluster() if has_cluster else ()),
        *(examination.surroundings() if has_service else ()),
        *(examination.running() if options["server"] is not None else ()),
    ]
    kafka = sourced.settings.kafka
    return Doctor(
        version=VERSION,
        at=utc_now(),
        state=worst(checks),
        exit_code=exit_code(checks, examination.codes),
        cluster=kafka.name if has_cluster else None,
        cluster_id=examination.cluster_id,
        principal=principal_of(kafka) if has_cluster else None,
        checks=checks,
    )


def exit_code(checks: Sequence[Check], codes: Sequence[ExitCode]) -> ExitCode:
    """Return the code of a part that failed as a whole, the first to mend first; else 1 or 0."""
    for code in FIRST_CODES:
        if code in codes:
            return code
    wrong = {CheckState.MISSING, CheckState.UNKNOWN}
    return ExitCode.INCOMPLETE if any(c.state in wrong for c in checks) else ExitCode.OK


def examine_cluster(settings: Settings) -> ClusterChecks:
    """Check the cluster of these settings, as a service would observe it.

    Raises:
        SettingsError: no addresses, or they or the security settings cannot be used.
        UnreachableError: no bootstrap address gave a usable answer.
        AuthenticationError: the cluster rejected our credentials.
    """
    scope = Scope(
        topics=settings.service.topics,
        groups=settings.service.groups,
        transaction_log=settings.kafka.transaction_log,
    )
    with closing(cluster_checker(settings.kafka)) as checker:
        return checker.check(scope)


@dataclass(slots=True)
class _Examination:
    """The parts, and what their failures make of the exit code."""

    settings: Settings
    options: Mapping[str, Any]
    cluster_id: str | None = None
    codes: list[ExitCode] = field(default_factory=list)

    def cluster(self) -> Iterator[Check]:
        """Yield the checks of the cluster."""
        kafka = self.settings.kafka
        try:
            checks = examine_cluster(self.settings)
        except (UnreachableError, AuthenticationError) as exc:
            yield self._failed(Area.CLUSTER, f"cluster {kafka.name}", exc)
            return
        self.cluster_id = checks.snapshot.cluster_id
        yield from cluster_checks(
            checks,
            principal=principal_of(kafka),
            servers=kafka.bootstrap_servers,
            reads_transaction_log=kafka.transaction_log,
            limit_seconds=kafka.round_timeout_seconds,
        )

    def surroundings(self) -> Iterator[Check]:
        """Yield the checks of what a service uses beside the cluster."""
        yield from machine_checks(self.settings)
        for check in database_checks(self.settings):
            if check.area is Area.DATABASE and check.state is CheckState.MISSING:
                self.codes.append(ExitCode.STORE)
            yield check
        yield from receiver_checks(self.settings.alerting)

    def running(self) -> Iterator[Check]:
        """Yield the checks of a running Tidemark."""
        try:
            with client_of(self.options) as client:
                yield from running_checks(client)
        except (UnreachableError, AuthenticationError) as exc:
            yield self._failed(Area.SERVICE, "service", exc)

    def _failed(self, area: Area, subject: str, error: CollectError) -> Check:
        is_rejected = isinstance(error, AuthenticationError)
        self.codes.append(ExitCode.AUTHENTICATION if is_rejected else ExitCode.UNREACHABLE)
        return Check(
            area=area,
            subject=subject,
            state=CheckState.MISSING if is_rejected else CheckState.UNKNOWN,
            summary="rejects us" if is_rejected else "cannot be reached",
            detail=str(error),
        )


def _has_service(sourced: Sourced, options: Mapping[str, Any]) -> bool:
    """Whether settings or options are those of a service, not only of a cluster."""
    if options["path"] is not None or options["data_dir"] is not None:
        return True
    return any(
        group in SERVICE_GROUPS and origin is Source.ENVIRONMENT
        for (group, _), origin in sourced.origins.items()
    )
