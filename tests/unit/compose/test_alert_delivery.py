"""Who watches Tidemark in the Compose stack, and who delivers alerts."""

from __future__ import annotations

import re

import pytest

from rules.catalogue.all_rules import EVERY
from service.alerting.receivers.receivers import AlertmanagerReceiver
from tests.unit.compose.stack import SERVICES, STACK, mounts, read_yaml, tidemark_settings
from tests.unit.dashboards.prometheus.cases import ALERTS


def test_prometheus_reaches_services_of_the_stack_with_the_token_that_is_mounted() -> None:
    config = read_yaml(STACK / "prometheus.yml")
    (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "tidemark"]
    (mounted,) = SERVICES["prometheus"]["secrets"]
    assert mounted["target"] == f"/etc/prometheus/{job['authorization']['credentials_file']}"
    port = tidemark_settings().http.port
    assert job["static_configs"] == [{"targets": [f"tidemark:{port}"]}]


def alert_files(alerts_by: str) -> set[str]:
    return {path.name for path in (STACK / "alerts_by" / alerts_by).glob("*.yml")}


@pytest.mark.parametrize("alerts_by", ["tidemark", "prometheus"])
def test_either_tidemark_or_prometheus_delivers_alerts_on_kafka(alerts_by: str) -> None:
    is_tidemark = tidemark_settings(alerts_by).alerting.routing().default is not None
    assert is_tidemark is (alerts_by == "tidemark")
    assert alert_files(alerts_by) == (set() if is_tidemark else {"tidemark_alerting.yml"})


def test_one_variable_decides_for_both() -> None:
    folder = mounts("prometheus")["/etc/prometheus/alerts"]
    assert folder == mounts("tidemark")["/etc/tidemark"]
    assert {path.name for path in (STACK / "alerts_by").iterdir()} == {"tidemark", "prometheus"}


def test_prometheus_always_records_and_watches_tidemark() -> None:
    config = read_yaml(STACK / "prometheus.yml")
    assert config["rule_files"] == ["rules/*.yml", "alerts/*.yml"]
    assert mounts("prometheus")["/etc/prometheus/rules"] == "./dashboards/stack/rules"
    always = {path.name for path in (STACK / "rules").glob("*.yml")}
    assert always == {"tidemark_recording.yml", "tidemark_watching.yml"}


def test_tidemark_may_push_to_the_alertmanager_of_the_stack() -> None:
    alerting = tidemark_settings().alerting
    (receiver,) = alerting.receivers_by_name().values()
    assert isinstance(receiver, AlertmanagerReceiver)
    config = read_yaml(STACK / "prometheus.yml")
    (peers,) = config["alerting"]["alertmanagers"]
    (target,) = peers["static_configs"][0]["targets"]
    assert f"{receiver.endpoint.host}:{receiver.endpoint.port}" == target
    for address in ("172.18.0.2", "192.168.16.2", "10.89.0.2"):  # of Docker and Podman
        assert alerting.guard().check(address) == address


def test_alertmanager_mutes_by_alerts_that_exist() -> None:
    rules = read_yaml(STACK / "alertmanager.yml")["inhibit_rules"]
    text = " ".join(matcher for rule in rules for key in rule for matcher in rule[key])
    muted = set(re.findall(r"\w+", text)) - {"alertname"}
    assert muted <= {*ALERTS, *(rule.meta.rule_id for rule in EVERY)}
