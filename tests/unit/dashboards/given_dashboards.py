"""The generated dashboards, and what they consist of, read from the JSON and not from what made it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dashboards.files import FOLDER, DashboardFile, read_files

Document = Mapping[str, Any]
Dashboards = tuple[DashboardFile, ...]
DASHBOARDS: Final[Dashboards] = tuple(read_files({}))
RECORDED: Final[Dashboards] = tuple(read_files({}, is_recorded=True))
# What Grafana puts in the place of its variables, for programs that do not have them.
RANGES: Final = {"$__rate_interval": "1m", "$__range": "6h"}
ALL: Final = ".+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A panel, and the dashboard that it is on."""

    uid: str
    panel: Document

    @property
    def name(self) -> str:
        """Return a name for messages."""
        return f"{self.uid}/{self.panel['id']} {self.panel['title']}"


def every_panel(dashboards: Dashboards = DASHBOARDS) -> Iterator[Shown]:
    """Yield all panels but the headings of rows."""
    for dashboard in dashboards:
        for panel in dashboard.document["panels"]:
            if panel["type"] != "row":
                yield Shown(uid=dashboard.uid, panel=panel)


def every_target(dashboards: Dashboards = DASHBOARDS) -> Iterator[tuple[Shown, Document]]:
    """Yield every query with its panel."""
    for shown in every_panel(dashboards):
        for target in shown.panel["targets"]:
            yield shown, target


def every_expression(dashboards: Dashboards = DASHBOARDS) -> Iterator[tuple[str, str]]:
    """Yield every PromQL expression of a panel or an annotation as Grafana has it, with a name."""
    for shown, target in every_target(dashboards):
        if "expr" in target:
            yield f"{shown.name} {target['refId']}", target["expr"]
    for dashboard in dashboards:
        for annotation in dashboard.document["annotations"]["list"]:
            yield f"{dashboard.uid} {annotation['name']}", annotation["expr"]


def recorded_expressions() -> Mapping[str, tuple[str, str]]:
    """Return the expressions that differ where graphs read recorded series: as they are, and that one."""
    recorded = dict(every_expression(RECORDED))
    return {
        name: (expression, recorded[name])
        for name, expression in every_expression()
        if recorded[name] != expression
    }


def every_sql() -> Iterator[tuple[str, str]]:
    """Yield every SQL query, with a name."""
    for shown, target in every_target():
        if "rawSql" in target:
            yield f"{shown.name} {target['refId']}", target["rawSql"]


def with_ranges(expression: str, ranges: Mapping[str, str] = RANGES) -> str:
    """Return an expression as Prometheus gets it; variables within quotes stay."""
    for variable, value in ranges.items():
        expression = expression.replace(variable, value)
    return expression


def with_values(
    expression: str, chosen: Mapping[str, str], ranges: Mapping[str, str] = RANGES
) -> str:
    """Return an expression with everything chosen, as `All` does, or the one value of a variable that has one."""
    expression = re.sub(r'=~"\$\w+"', f'=~"{ALL}"', with_ranges(expression, ranges))
    return re.sub(r'="\$(\w+)"', lambda found: f'="{chosen[found[1]]}"', expression)


def with_sql_values(sql: str, start: datetime, end: datetime, chosen: Mapping[str, str]) -> str:
    """Return a query as PostgreSQL gets it: with macros and variables replaced, those not chosen by all."""
    first, last = (f"'{at:%Y-%m-%dT%H:%M:%SZ}'" for at in (start, end))
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {first} AND {last}", sql)
    sql = sql.replace("$__timeFrom()", first).replace("$__timeTo()", last)
    return re.sub(r"\$\{(\w+):regex\}", lambda match: chosen.get(match[1], ALL), sql)


def variables_of(document: Document) -> Mapping[str, Document]:
    """Return the variables of a dashboard by their names."""
    return {variable["name"]: variable for variable in document["templating"]["list"]}


def read_document(name: str) -> Document:
    """Read a file as it is committed."""
    document: Document = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return document
