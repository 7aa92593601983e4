"""What the role of a running service may and must do: read and change rows, and have partitions made.

It needs no right to change the schema. The role that owns the tables upgrades it, and functions of the schema
make, attach and drop the partitions of baselines as that role. Both may be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from service.storage.database.schema import SchemaState, check
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import EVERY_TABLE

CHANGED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
# Tables of which it needs less; `baselines` is written by its partitions.
LESS: Final[Mapping[str, tuple[str, ...]]] = {
    "alembic_version": ("SELECT",),
    "audit": ("SELECT", "INSERT"),
    "baselines": ("SELECT",),
}
FUNCTIONS: Final = (
    "create_baselines_partition(bigint, name)",
    "attach_baselines_partition(bigint)",
    "drop_baselines_partition(bigint)",
)
FIRST: Final = frozenset(("USAGE on the schema", "SELECT on alembic_version"))
SHOWN: Final = 5  # missing privileges in a message

# Of a table or function that is not there nothing is missing: that is drift.
_MISSING: Final = text("""
SELECT 'USAGE on the schema' WHERE current_schema() IS NULL
UNION ALL
SELECT privilege || ' on ' || name
FROM unnest(CAST(:tables AS text[]), CAST(:privileges AS text[])) AS t (name, privilege)
WHERE NOT has_table_privilege(:role, to_regclass(name), privilege)
UNION ALL
SELECT 'EXECUTE on ' || name FROM unnest(CAST(:functions AS text[])) AS f (name)
WHERE NOT has_function_privilege(:role, to_regprocedure(name), 'EXECUTE')
""")
# An empty database has no table yet; the views of dashboards may have a schema by an administrator.
_MAY_UPGRADE: Final = text("""
SELECT has_schema_privilege(current_schema(), 'CREATE')
   AND coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
                 WHERE oid = to_regclass('cluster')), true)
   AND coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace
                 WHERE nspname = 'tidemark_views'),
                has_database_privilege(current_database(), 'CREATE'))
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Privileges:
    """What the connected role may do."""

    role: str
    may_upgrade: bool
    missing: tuple[str, ...]  # that a service needs, in a database whose schema is at head

    @property
    def error(self) -> StoreError:
        """Return what is missing, as an error that says what to grant."""
        more = len(self.missing) - SHOWN
        listed = ", ".join(self.missing[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        return StoreError(
            f"role {self.role} lacks {listed}: run `tidemark db grant {self.role} --service` with the role "
            "that owns the tables",
            retryable=False,
        )


def read_privileges(engine: Engine) -> Privileges:
    """Return what the connected role may do.

    Raises:
        StoreError: it may not even read the revision of the schema, or the database is away.
    """
    with translate_errors("privileges cannot be read"), engine.connect() as connection:
        role = str(connection.scalar(text("SELECT current_user")))
        privileges = Privileges(
            role=role,
            may_upgrade=bool(connection.scalar(_MAY_UPGRADE)),
            missing=tuple(_list_missing(connection, role)),
        )
    if not FIRST.isdisjoint(privileges.missing):
        raise privileges.error
    return privileges


def require_running(engine: Engine) -> None:
    """Raise unless the connected role may do all that a service does, from its first round to its last job.

    Raises:
        StoreError: it may not, or the database is away; the message says what to grant.
    """
    privileges = read_privileges(engine)
    if privileges.missing:
        raise privileges.error


def require_upgradable(engine: Engine) -> None:
    """Raise if the schema is behind and the connected role may not upgrade it.

    Raises:
        StoreError: as said, or the database is away; the message says what to do.
    """
    privileges = read_privileges(engine)
    schema_check = check(engine)
    if schema_check.state is SchemaState.BEHIND and not privileges.may_upgrade:
        raise StoreError(
            f"the database has schema {schema_check.revision or 'none'}, this version needs "
            f"{schema_check.head}, and role {privileges.role} may not change it: run `tidemark db upgrade` "
            "with the role that owns the tables",
            retryable=False,
        )


def service_statements(engine: Engine, role: str) -> tuple[str, ...]:
    """Return the statements that let a role run the service, also with tables of later versions."""
    quote = engine.dialect.identifier_preparer.quote_identifier
    name = quote(role)
    with translate_errors("the schema cannot be read"), engine.connect() as connection:
        schema = quote(str(connection.scalar(text("SELECT current_schema()"))))
    by_privileges: dict[tuple[str, ...], list[str]] = {}
    for table, privileges in _tables().items():
        by_privileges.setdefault(privileges, []).append(table)
    tables = (
        f"GRANT {', '.join(privileges)} ON {', '.join(names)} TO {name}"
        for privileges, names in by_privileges.items()
    )
    return (
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        *tables,
        *(f"GRANT EXECUTE ON FUNCTION {function} TO {name}" for function in FUNCTIONS),
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT {', '.join(CHANGED)} ON TABLES TO {name}",
    )


def grant_service(engine: Engine, role: str) -> None:
    """Let a role run the service; doing it again changes nothing.

    Raises:
        StoreError: there is no such role, or we may not grant it.
    """
    statements = service_statements(engine, role)
    doing = f"the service cannot be granted to {role}"
    with translate_errors(doing), engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def _tables() -> dict[str, tuple[str, ...]]:
    """Return the privileges that a service needs, by table."""
    names = sorted({*EVERY_TABLE.tables, *LESS})
    return {name: LESS.get(name, CHANGED) for name in names}


def _list_missing(connection: Connection, role: str) -> Sequence[str]:
    """Return what a role lacks to run the service."""
    needed = [(name, privilege) for name, every in _tables().items() for privilege in every]
    tables, privileges = map(list, zip(*needed, strict=True))
    parameters = {
        "role": role,
        "tables": tables,
        "privileges": privileges,
        "functions": list(FUNCTIONS),
    }
    return connection.execute(_MISSING, parameters).scalars().all()
