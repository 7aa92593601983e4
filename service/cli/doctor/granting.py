"""Prints commands that grant permissions: every one, or those that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import click

from collectors.name_scope import NameScope, scope_of
from collectors.permission_checks import Observed, Outcome
from rules.facts.permissions import NEEDED, NeededPermission
from service.cli.doctor import acls
from service.cli.doctor.cluster import TRANSACTION_LOG
from service.cli.doctor.examining import examine_cluster
from service.settings import Settings
from service.terminal.exit_codes import ExitCode

Granted: TypeAlias = Sequence[tuple[NeededPermission, NameScope]]


def print_every(settings: Settings, principal: str) -> ExitCode:
    """Print the commands for every permission that these settings need; no cluster is queried."""
    observed = Observed(
        topics=scope_of(settings.service.topics), groups=scope_of(settings.service.groups)
    )
    every = [(each, observed.scope_of(each)) for each in NEEDED if _is_used(each, settings)]
    _print(every, settings, principal)
    return ExitCode.OK


def print_missing(settings: Settings, principal: str) -> ExitCode:
    """Print the commands for what is missing; return 1 if something is, or could not be tried.

    Raises:
        SettingsError, UnreachableError, AuthenticationError: as for `examine_cluster`.
    """
    checks = [
        check
        for check in examine_cluster(settings).permissions.checks
        if _is_used(check.needed, settings)
    ]
    _print(acls.missing(checks), settings, principal)
    for check in checks:
        if check.outcome is Outcome.NOT_TRIED:
            click.echo(f"tidemark: {check.needed.title} could not be tried: {check.why}", err=True)
        elif check.is_denial:
            names = ", ".join(check.denied)
            click.echo(f"tidemark: an ACL denies {check.needed.title} for {names}", err=True)
    is_whole = all(check.outcome is Outcome.ALLOWED for check in checks)
    return ExitCode.OK if is_whole else ExitCode.INCOMPLETE


def _is_used(needed: NeededPermission, settings: Settings) -> bool:
    return needed.key != TRANSACTION_LOG or settings.kafka.transaction_log


def _print(granted: Granted, settings: Settings, principal: str) -> None:
    servers = settings.kafka.bootstrap_servers or acls.PLACEHOLDER
    for line in acls.script(granted, acls.with_type(principal), servers):
        click.echo(line)
