"""A query of PostgreSQL for Grafana's SDK, which has none of its own.

Source: the form that Grafana saves for its data source grafana-postgresql-datasource.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from grafana_foundation_sdk.cog import builder, runtime, variants
from grafana_foundation_sdk.models.common import DataSourceRef

TYPE: Final = "grafana-postgresql-datasource"
POSTGRES: Final = DataSourceRef(type_val=TYPE, uid="${postgres_datasource}")
SCHEMA: Final = "tidemark_views"  # holds all that the role of dashboards can read


@dataclass
class PostgresQuery(variants.Dataquery):
    """A query as it is saved; `form` is table or time_series."""

    ref_id: str
    sql: str
    form: str

    def to_json(self) -> dict[str, object]:
        """Return what Grafana saves."""
        return {
            "datasource": POSTGRES,
            "editorMode": "code",
            "format": self.form,
            "rawQuery": True,
            "rawSql": self.sql,
            "refId": self.ref_id,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what Grafana saves."""
        return cls(ref_id=data["refId"], sql=data["rawSql"], form=data["format"])


class PostgresQueryBuilder(builder.Builder[PostgresQuery]):
    """Builds the query, as the SDK expects it of its own."""

    def __init__(self, query: PostgresQuery) -> None:
        self._query = query

    def build(self) -> PostgresQuery:
        """Return the query."""
        return self._query


def register() -> None:
    """Let the SDK read these queries back."""
    variant = runtime.DataqueryConfig(identifier=TYPE, from_json_hook=PostgresQuery.from_json)
    runtime.register_dataquery_variant(variant)


def chosen(column: str, variable: str) -> str:
    """Return the condition that a column has a value of a variable, all of which is `.+`.

    A name may hold a quote: the pattern is therefore quoted with dollars.
    """
    return rf"{column} ~ $q$\A(${{{variable}:regex}})\Z$q$"


LIMIT: Final = 500  # rows of a table


def within(column: str) -> str:
    """Return the condition that a column is within the time that is shown."""
    return f"$__timeFilter({column})"


def select(columns: str, view: str, *conditions: str, order: str, limit: int = LIMIT) -> str:
    """Return a query of one of our views."""
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns}\nFROM {SCHEMA}.{view}{where}\nORDER BY {order}\nLIMIT {limit}"
