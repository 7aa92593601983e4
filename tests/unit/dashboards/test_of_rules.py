"""Links from an alert to the panel that shows it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from dashboards.links import Uid
from dashboards.of_rules import PANELS, VARIABLES, alert_links
from rules.catalogue.all_rules import EVERY
from tests.unit.dashboards.given_dashboards import DASHBOARDS, every_panel

LABELS = {"cluster": "pay & ship", "topic": "orders", "partition": "0", "topic_id": "x"}


def test_every_rule_has_a_panel_that_is_there() -> None:
    assert PANELS.keys() == {rule.meta.rule_id for rule in EVERY}
    there = {(shown.uid, shown.panel["id"]) for shown in every_panel()}
    assert {(uid.value, panel) for uid, panel in PANELS.values()} <= there


def test_every_label_that_is_passed_is_a_variable_of_the_dashboard() -> None:
    names = {
        dashboard.uid: {entry["name"] for entry in dashboard.document["templating"]["list"]}
        for dashboard in DASHBOARDS
    }
    assert VARIABLES.keys() == {uid for uid, _ in PANELS.values()}
    assert all(set(labels) <= names[uid] for uid, labels in VARIABLES.items())


def test_the_panel_is_shown_with_the_alerts_subject_from_an_hour_before() -> None:
    links = alert_links(
        "https://grafana.example", "committed_records_lost", LABELS, since_ms=7_200_000
    )
    page = urlsplit(links["dashboardURL"])
    assert (page.netloc, page.path) == ("grafana.example", f"/d/{Uid.LOSSES}")
    assert parse_qs(page.query) == {
        "from": ["3600000"],
        "to": ["now"],
        "var-cluster": ["pay & ship"],
        "var-topic": ["orders"],
    }
    assert links["panelURL"] == links["dashboardURL"] + "&viewPanel=20"


@pytest.mark.parametrize(("grafana", "rule"), [("", "partition_offline"), ("https://g", "other")])
def test_without_a_grafana_or_a_panel_there_are_no_links(grafana: str, rule: str) -> None:
    assert alert_links(grafana, rule, LABELS, since_ms=0) == {}
