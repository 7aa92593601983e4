"""Lets a role read the views of dashboards, and makes sure that it reads nothing else of ours.

The role itself is an administrator's: not every server lets us make one.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from service.storage.database.translate import translate_errors

SCHEMA: Final = "tidemark_views"  # what the migrations make; nothing but views is in it
ROLE: Final = text("SELECT rolsuper FROM pg_roles WHERE rolname = :role")
READABLE: Final = text(
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
    "AND relkind IN ('r', 'p', 'v', 'm') AND has_table_privilege(:role, oid, 'SELECT') "
    "ORDER BY relname LIMIT 3"
)


def grant_statements(engine: Engine, role: str) -> tuple[str, ...]:
    """Return the statements that let a role read the views, also those of later versions."""
    name = engine.dialect.identifier_preparer.quote_identifier(role)
    return (
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {name}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {SCHEMA} GRANT SELECT ON TABLES TO {name}",
    )


def grant_views(engine: Engine, role: str) -> None:
    """Let a role read the views; doing it again changes nothing.

    Raises:
        StoreError: there is no such role, it can read the tables too, or we may not grant it.
    """
    doing = f"the views cannot be granted to {role}"
    with translate_errors(doing), engine.begin() as connection:
        _check(connection, role)
        for statement in grant_statements(engine, role):
            connection.exec_driver_sql(statement)


def _check(connection: Connection, role: str) -> None:
    """Raise unless a role exists and reads no table of ours."""
    is_superuser = connection.scalar(ROLE, {"role": role})
    if is_superuser is None:
        raise StoreError(
            f"there is no role {role}: create it with CREATE ROLE ... LOGIN PASSWORD '...'",
            retryable=False,
        )
    tables = connection.scalars(READABLE, {"role": role}).all()
    if tables:
        raise StoreError(
            f"role {role} can read the tables themselves ({', '.join(tables)}): give dashboards a "
            "role that is no superuser, owns nothing here, and was granted nothing else",
            retryable=False,
        )
