"""The uids of the dashboards, which are lasting, and links to them and to the pages of rules."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from dashboards.panels import Link

TAG: Final = "tidemark"  # of every dashboard: the menu lists what has it
RULE_PAGES: Final = "rule_pages"  # the variable that holds the URL below which each rule has a page
# Where Grafana of the Compose stack serves docs/rules: below its own folder of static files.
RULE_PAGES_DEFAULT: Final = "/public/tidemark/rules"
_KEPT: Final = (
    "${__url_time_range}&${prometheus_datasource:queryparam}&${postgres_datasource:queryparam}"
)


class Uid(StrEnum):
    """Every dashboard's uid."""

    FLEET = "tidemark-fleet"
    PIPELINE = "tidemark-pipeline"
    GROUPS = "tidemark-groups"
    TRANSACTIONS = "tidemark-transactions"
    LOSSES = "tidemark-losses"
    REPLICATION = "tidemark-replication"
    USUAL = "tidemark-usual"
    ALERTS = "tidemark-alerts"
    TIDEMARK = "tidemark-itself"


def to_board(uid: Uid, title: str, *variables: str) -> Link:
    """Link to a dashboard with the present values of variables, in the same time range."""
    present = "".join(f"&${{{variable}:queryparam}}" for variable in variables)
    return Link(title=title, url=f"/d/{uid}?{_KEPT}{present}")


def from_row(uid: Uid, title: str, **fields: str) -> Link:
    """Link to a dashboard whose variables get the values of a row's columns, named by their sources."""
    return _with_values(uid, title, "data.fields", fields)


def from_series(uid: Uid, title: str, **labels: str) -> Link:
    """Link to a dashboard whose variables get the values of a series' labels."""
    return _with_values(uid, title, "field.labels", labels)


def to_rule_page(field: str = "rule") -> Link:
    """Link to the page of the rule that a column of the row names."""
    return Link(
        title="What it means and what to do",
        url=f"${{{RULE_PAGES}:raw}}/${{__data.fields.{field}}}.md",
    )


def _with_values(uid: Uid, title: str, place: str, names: dict[str, str]) -> Link:
    values = "".join(
        f'&var-{variable}=${{__{place}["{name}"]:percentencode}}'
        for variable, name in names.items()
    )
    return Link(title=title, url=f"/d/{uid}?{_KEPT}{values}")
