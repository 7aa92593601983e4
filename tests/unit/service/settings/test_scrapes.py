"""Which endpoints are set up, what is rejected, and where secrets do not appear."""

from __future__ import annotations

import pytest

from rules.errors import SettingsError
from rules.facts.scrapes import EndpointKind
from service.settings import read_settings, read_sourced
from service.settings.entries import effective
from service.settings.scrapes import read_broker_ids

START = "TIDEMARK_SCRAPES__"
SECRET = "very-secret-token"  # noqa: S105 - of this test alone


def rejection(**given: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_settings({f"{START}{key.upper()}": value for key, value in given.items()})
    return str(caught.value)


def test_no_metrics_are_read_unless_somebody_says_where_they_are() -> None:
    nothing = read_settings({}).scrapes
    assert not nothing.is_set
    assert nothing.endpoints() == []
    assert not read_settings({f"{START}PAGES": " , "}).scrapes.is_set


@pytest.mark.parametrize("key", ["PAGES", "PROMETHEUS", "TARGET_FILES"])
def test_one_place_is_enough(key: str) -> None:
    given = "/etc/targets.json" if key == "TARGET_FILES" else "http://app-1:8081"
    assert read_settings({f"{START}{key}": given}).scrapes.is_set


def test_pages_and_servers_are_endpoints_of_their_kind() -> None:
    found = read_settings(
        {
            f"{START}PAGES": "http://app-1:8081, https://app-2/actuator/prometheus",
            f"{START}PROMETHEUS": "http://prometheus:9090/",
        }
    ).scrapes.endpoints()
    assert [(one.kind, one.url) for one in found] == [
        (EndpointKind.PAGE, "http://app-1:8081/metrics"),
        (EndpointKind.PAGE, "https://app-2/actuator/prometheus"),
        (EndpointKind.PROMETHEUS, "http://prometheus:9090"),
    ]


@pytest.mark.parametrize("key", ["pages", "prometheus"])
@pytest.mark.parametrize("url", ["app-1:8081", "ftp://app-1", "http://app-1,http://"])
def test_an_address_that_is_none_is_rejected(key: str, url: str) -> None:
    assert f"scrapes.{key}: " in rejection(**{key: url})


@pytest.mark.parametrize("start", ["http://", "http:/", "", "ftp://"])
def test_a_password_in_an_address_is_rejected_and_not_repeated(start: str) -> None:
    told = rejection(pages=f"http://app-0,{start}me:{SECRET}@app-1:8081/metrics")
    assert "address 2: no address may hold @" in told
    assert SECRET not in told


def test_a_token_that_cannot_be_sent_is_rejected_and_not_repeated() -> None:
    for bad in (f"{SECRET} x", f"{SECRET}\n", f"{SECRET}é", ""):
        told = rejection(bearer_token=bad)
        assert "printable ASCII" in told
        assert SECRET not in told


@pytest.mark.parametrize("which", ["", "prometheus_"])
def test_two_ways_to_be_known_are_rejected(which: str) -> None:
    told = rejection(**{f"{which}bearer_token": SECRET, f"{which}username": "me"})
    assert f"{which}bearer_token or {which}username" in told
    assert SECRET not in told


@pytest.mark.parametrize("which", ["", "prometheus_"])
def test_a_password_without_a_user_is_rejected_since_it_would_not_be_sent(which: str) -> None:
    told = rejection(**{f"{which}password": SECRET})
    assert f"{which}password needs {which}username" in told
    assert SECRET not in told
    beside = rejection(**{f"{which}password": SECRET, f"{which}bearer_token": "x"})
    assert f"{which}password needs {which}username" in beside


def test_pages_and_servers_get_credentials_of_their_own() -> None:
    given = {"BEARER_TOKEN": SECRET, "PROMETHEUS_USERNAME": "me", "PROMETHEUS_PASSWORD": "hush"}
    sourced = read_sourced({f"{START}{key}": value for key, value in given.items()})
    found = sourced.settings.scrapes
    assert found.page_credentials().bearer_token == SECRET
    assert found.page_credentials().username is None
    assert found.server_credentials().bearer_token is None
    assert found.server_credentials().username == "me"
    assert found.server_credentials().password == "hush"  # noqa: S105 - of this test alone
    shown = str(list(effective(sourced))) + repr(found)
    assert SECRET not in shown
    assert "hush" not in shown


def test_brokers_are_configured_by_address_or_name() -> None:
    read = read_settings({f"{START}BROKER_IDS": "broker-1:7071=1, kafka-b=2"}).scrapes
    assert read_broker_ids(read.broker_ids) == {"broker-1:7071": 1, "kafka-b": 2}


@pytest.mark.parametrize(
    "text", ["kafka-b", "=1", "kafka-b=", "kafka-b=x", "kafka-b=-1", f"a={2**31}"]
)
def test_what_is_no_broker_is_rejected_by_its_place(text: str) -> None:
    assert "part 2 is not NAME=ID" in rejection(broker_ids=f"kafka-a=1,{text}")
