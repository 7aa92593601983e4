"""Settings that can be used and still observation wrong."""

from __future__ import annotations

import json

import pytest

from service.settings import read_settings
from service.settings.advice import warnings

PHRASE = "correct-horse-battery"
USER, PASSWORD = "TIDEMARK_KAFKA__SASL_USERNAME", "TIDEMARK_KAFKA__SASL_PASSWORD"
PROTOCOL, HOST = "TIDEMARK_KAFKA__SECURITY_PROTOCOL", "TIDEMARK_HTTP__HOST"
TOKEN = "TIDEMARK_HTTP__TOKEN"  # noqa: S105 - the name of a variable
ANY = "0.0.0.0"  # noqa: S104 - nothing listens
PAGES, SERVER = "TIDEMARK_SCRAPES__PAGES", "TIDEMARK_SCRAPES__PROMETHEUS"
PAGE_TOKEN = "TIDEMARK_SCRAPES__BEARER_TOKEN"  # noqa: S105 - the name of a variable
PAGE_USER, PAGE_PASSWORD = "TIDEMARK_SCRAPES__USERNAME", "TIDEMARK_SCRAPES__PASSWORD"
SERVER_TOKEN = "TIDEMARK_SCRAPES__PROMETHEUS_BEARER_TOKEN"  # noqa: S105 - the name of a variable
FILES = "TIDEMARK_SCRAPES__TARGET_FILES"
RECEIVERS, DEFAULT = "TIDEMARK_ALERTING__RECEIVERS", "TIDEMARK_ALERTING__DEFAULT_RECEIVER"
ROUTES = "TIDEMARK_ALERTING__ROUTES"
PAGER = '[{"name": "pager", "url": "http://%s/hook"}]'
INTERVAL = "TIDEMARK_SERVICE__INTERVAL_SECONDS"
ROUND, REQUEST = "TIDEMARK_KAFKA__ROUND_TIMEOUT_SECONDS", "TIDEMARK_KAFKA__REQUEST_TIMEOUT_SECONDS"


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        pytest.param({}, [], id="defaults are in order"),
        pytest.param(
            {RECEIVERS: PAGER % "[::1]"}, ["alerting.receivers are set"], id="told nobody"
        ),
        pytest.param(
            {RECEIVERS: PAGER % "pager", DEFAULT: "pager"},
            ["alerting.receivers: notifications"],
            id="an open receiver",
        ),
        pytest.param(
            {RECEIVERS: PAGER % "localhost", DEFAULT: "pager"}, [], id="a receiver of our own"
        ),
        pytest.param({INTERVAL: "10"}, ["kafka.round_timeout_seconds (10)"], id="as long"),
        pytest.param({INTERVAL: "119"}, [], id="seldom"),
        pytest.param({INTERVAL: "120"}, ["service.interval_seconds (120)"], id="too seldom"),
        pytest.param({ROUND: "16"}, ["kafka.round_timeout_seconds (16)"], id="longer"),
        pytest.param({REQUEST: "10"}, ["kafka.request_timeout_seconds (10)"], id="one request"),
        pytest.param({USER: "me"}, ["kafka.sasl_username set"], id="a user that is not sent"),
        pytest.param(
            {PASSWORD: PHRASE, PROTOCOL: "SSL"}, ["kafka.sasl_password set"], id="password"
        ),
        pytest.param({USER: "me", PASSWORD: PHRASE, PROTOCOL: "SASL_SSL"}, [], id="SASL is used"),
        pytest.param({HOST: ANY}, [f"http.host {ANY}", "http.token is not"], id="open"),
        pytest.param({HOST: "::"}, ["http.host ::", "http.token is not"], id="open by IPv6"),
        pytest.param({HOST: "tide.example", TOKEN: PHRASE}, ["http.host tide"], id="unknown name"),
        pytest.param({HOST: ANY, TOKEN: PHRASE}, [f"http.host {ANY}"], id="open with a token"),
        pytest.param({HOST: "::1"}, [], id="loopback by IPv6"),
        pytest.param({HOST: "127.0.0.9"}, [], id="another loopback address"),
        pytest.param({HOST: "localhost"}, [], id="loopback by name"),
        pytest.param({PAGES: "http://app-1", PAGE_TOKEN: PHRASE}, ["scrapes: a token"], id="plain"),
        pytest.param({PAGES: "https://app-1", PAGE_TOKEN: PHRASE}, [], id="an encrypted page"),
        pytest.param({PAGES: "http://[::1]:80", PAGE_TOKEN: PHRASE}, [], id="a page of our own"),
        pytest.param({PAGES: "http://app-1"}, [], id="a page without a secret"),
        pytest.param({FILES: "/a.json", PAGE_TOKEN: PHRASE}, ["scrapes.target_files"], id="lists"),
        pytest.param(
            {FILES: "/a.json", PAGE_USER: "me", PAGE_PASSWORD: PHRASE},
            ["scrapes.target_files"],
            id="lists with a password",
        ),
        pytest.param({FILES: "/a.json"}, [], id="lists without a secret"),
        pytest.param({FILES: "/a.json", SERVER_TOKEN: PHRASE}, [], id="lists, a server's secret"),
        pytest.param({SERVER: "http://app-1", PAGE_TOKEN: PHRASE}, [], id="a secret of others"),
    ],
)
def test_what_is_told(environment: dict[str, str], named: list[str]) -> None:
    told = warnings(read_settings(environment))
    assert [line[: len(start)] for line, start in zip(told, named, strict=True)] == named
    assert PHRASE not in "".join(told)


@pytest.mark.parametrize(
    ("matchers", "wants", "is_in_vain"),
    [
        pytest.param("alertname=duplicates_possible", False, True, id="only-information"),
        pytest.param("alertname=~sequence_gap_u.*,topic=a", False, True, id="by-a-pattern"),
        pytest.param("alertname=duplicates_possible", True, False, id="its-receiver-asks"),
        pytest.param("alertname=duplicates_possible,severity=info", False, False, id="it-asks"),
        pytest.param("alertname=~sequence_gap.*", False, False, id="worse-ones-too"),
        pytest.param("alertname=of_the_past", False, False, id="no-rule"),
        pytest.param("topic=orders", False, False, id="any-rule"),
    ],
)
def test_a_route_that_is_sent_nothing_is_told(
    matchers: str, *, wants: bool, is_in_vain: bool
) -> None:
    """Whoever routed such alerts by name before would miss them without a word."""
    receiver = {"name": "pager", "url": "http://[::1]/hook", "send_info": wants}
    route = {"receiver": "pager", "matchers": matchers}
    environment = {RECEIVERS: json.dumps([receiver]), ROUTES: json.dumps([route])}
    told = warnings(read_settings(environment))
    assert [line.startswith("alerting.routes: one takes only") for line in told] == [
        True
    ] * is_in_vain
