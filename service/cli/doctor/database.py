"""Checks of the database that a service would use: reachable, schema, privileges, clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rules.errors import StoreError
from service.cli.doctor.cluster import clock_check
from service.runtime.clock import utc_now
from service.views.doctor import Area, Check, CheckState

if TYPE_CHECKING:
    from service.settings import Settings
    from service.storage.database.running_role import Privileges
    from service.storage.database.schema import SchemaCheck


def database_checks(settings: Settings) -> Iterator[Check]:
    """Yield the checks of the database; none is created, and its rows are not touched."""
    from service.storage.database import running_role, schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import has_database, open_existing  # noqa: PLC0415 - same
    from service.storage.database.server_clock import read_clock  # noqa: PLC0415 - same

    if not has_database(settings):
        yield _check(CheckState.OK, "none yet", "`tidemark serve` makes it in the data directory.")
        return
    try:
        with open_existing(settings) as engine:
            yield schema_check(schema.check(engine))
            yield role_check(running_role.read_privileges(engine))
            yield clock_check("clock of the database", read_clock(engine, utc_now))
    except StoreError as exc:
        yield _check(CheckState.MISSING, "cannot be used", str(exc))


def schema_check(schema: SchemaCheck) -> Check:
    """Check the revision of the schema."""
    state = str(schema.state.value)
    if state == "at_head" and not schema.drift:
        return _check(CheckState.OK, f"schema {schema.revision}")
    if state == "at_head":
        detail = f"It differs from what the migrations make: {'; '.join(schema.drift)}"
        return _check(CheckState.MISSING, f"schema {schema.revision} drifted", detail)
    todo = (
        "run `tidemark db upgrade`" if state == "behind" else "run the newer Tidemark that made it"
    )
    detail = f"This version needs schema {schema.head}: {todo}."
    return _check(CheckState.MISSING, f"schema {schema.revision or 'none'}", detail)


def role_check(privileges: Privileges) -> Check:
    """Check what the connected role may do."""
    subject = f"role {privileges.role}"
    if privileges.missing:
        many = len(privileges.missing)
        summary = f"lacks {many} privilege{'' if many == 1 else 's'}"
        return _check(CheckState.MISSING, summary, str(privileges.error), subject=subject)
    upgrades = "may upgrade" if privileges.may_upgrade else "may run, not upgrade"
    return _check(CheckState.OK, upgrades, subject=subject)


def _check(
    state: CheckState, summary: str, detail: str | None = None, *, subject: str = "database"
) -> Check:
    return Check(area=Area.DATABASE, subject=subject, state=state, summary=summary, detail=detail)
