"""The variables of the dashboards; a list comes from a metric with few series, also at 10,000 partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models.common import DataSourceRef

from dashboards.links import RULE_PAGES, RULE_PAGES_DEFAULT
from dashboards.postgres import TYPE as POSTGRES_TYPE
from dashboards.promql import TARGET_LABELS
from rules import names
from rules.names import Metric

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="${prometheus_datasource}")
ALL: Final = ".+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A list of the values that a label has."""

    label: str  # shown
    metric: Metric
    within: tuple[str, ...] = ("cluster",)  # variables that narrow the list
    is_multi: bool = True


VARIABLES: Final = {
    "cluster": Variable(label="Cluster", metric=names.ROUND_INTERVAL, within=()),
    "topic": Variable(label="Topic", metric=names.HAS_LEADER),
    "group": Variable(label="Group", metric=names.GROUP_MEMBERS),
    "receiver": Variable(label="Receiver", metric=names.NOTIFICATIONS_WAITING),
    "rule": Variable(label="Rule", metric=names.VERDICTS),
    "job": Variable(label="Job", metric=names.BUILD_INFO, within=()),
}
# On a dashboard that shows one series at a time.
SINGLE: Final = {
    "cluster": Variable(label="Cluster", metric=names.ROUND_INTERVAL, within=(), is_multi=False),
    "topic": Variable(label="Topic", metric=names.HAS_LEADER, is_multi=False),
    "partition": Variable(
        label="Partition", metric=names.HAS_LEADER, within=("cluster", "topic"), is_multi=False
    ),
    "group": Variable(
        label="Group",
        metric=names.COMMITTED_OFFSET,
        within=("cluster", "topic", "partition"),
        is_multi=False,
    ),
}


def data_sources() -> tuple[Builder[dashboard.VariableModel], ...]:
    """Return the variables that choose where data comes from."""
    return (
        build.DatasourceVariable("prometheus_datasource")
        .label("Prometheus data source")
        .type("prometheus"),
        build.DatasourceVariable("postgres_datasource")
        .label("PostgreSQL data source")
        .type(POSTGRES_TYPE),
    )


def rule_pages() -> Builder[dashboard.VariableModel]:
    """Return the hidden variable that says where the pages of rules are."""
    return (
        build.TextBoxVariable(RULE_PAGES)
        .label("Pages of the rules")
        .description("The URL below which each rule has a page.")
        .default_value(RULE_PAGES_DEFAULT)
        .current(dashboard.VariableOption(text=RULE_PAGES_DEFAULT, value=RULE_PAGES_DEFAULT))
        .hide(dashboard.VariableHide.HIDE_VARIABLE)
    )


def list_of(name: str, *, is_single: bool) -> Builder[dashboard.VariableModel]:
    """Return the variable that lists the values of a label."""
    variable = SINGLE[name] if is_single else VARIABLES[name]
    query = label_values(name, variable)
    built = (
        build.QueryVariable(name)
        .label(variable.label)
        .datasource(PROMETHEUS)
        .query({"query": query, "refId": "labels"})
        .definition(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.NATURAL_ASC)
        .multi(variable.is_multi)
    )
    if not variable.is_multi:
        # A link from a dashboard where all are chosen names none: the first one is taken.
        return built.allow_custom_value(allow_custom_value=False)
    everything = dashboard.VariableOption(selected=True, text="All", value="$__all")
    return built.include_all(include_all=True).all_value(ALL).current(everything)


def label_values(label: str, variable: Variable) -> str:
    """Return the query for the values of a label.

    Raises:
        ValueError: the metric lacks a label that is needed.
    """
    needed = {label, *variable.within} - TARGET_LABELS
    if not needed <= {*variable.metric.labels}:
        raise ValueError(f"{variable.metric.name} lacks a label of {sorted(needed)}")
    operator = "=~" if variable.is_multi else "="
    matchers = ", ".join(f'{name}{operator}"${name}"' for name in variable.within)
    selector = f"{variable.metric.name}{{{matchers}}}" if matchers else variable.metric.name
    return f"label_values({selector}, {label})"
