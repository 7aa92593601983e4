"""Addresses of endpoints: what is asked, what it is called, and what is rejected."""

from __future__ import annotations

import pytest

from collectors.scrapes.endpoints import (
    BadAddressError,
    Credentials,
    page_at,
    server_at,
    target_of,
)
from rules.facts.scrapes import EndpointKind

PAGES = {
    "http://app-1:8081": ("http://app-1:8081/metrics", "app-1:8081"),
    "http://app-1:8081/": ("http://app-1:8081/", "app-1:8081"),
    "https://app-1/actuator/prometheus": ("https://app-1/actuator/prometheus", "app-1:443"),
    "http://app-1": ("http://app-1/metrics", "app-1:80"),
    "http://[::1]:9404/metrics": ("http://[::1]:9404/metrics", "[::1]:9404"),
}


@pytest.mark.parametrize(("url", "expected"), PAGES.items(), ids=PAGES)
def test_a_page_has_a_path_and_an_address(url: str, expected: tuple[str, str]) -> None:
    page = page_at(url)
    assert (page.url, page.address) == expected
    assert (page.kind, page.name) == (EndpointKind.PAGE, page.url)


def test_a_query_is_asked_and_not_shown() -> None:
    page = page_at("http://app-1:8081/metrics?token=very-secret")
    assert page.url.endswith("?token=very-secret")
    assert page.name == "http://app-1:8081/metrics"


def test_a_server_may_live_below_a_path() -> None:
    server = server_at("https://monitoring.example/prometheus/")
    assert server.url == "https://monitoring.example/prometheus"
    assert (server.kind, server.address) == (EndpointKind.PROMETHEUS, "monitoring.example:443")


BAD = {
    "no scheme": "app-1:8081",
    "another scheme": "ftp://app-1/metrics",
    "no host": "http:///metrics",
    "a port that is none": "http://app-1:http/metrics",
    "a port too large": "http://app-1:65536",
    "port 0": "http://app-1:0/metrics",
    "a fragment": "http://app-1/metrics#top",
    "a blank": "http://app-1/me trics",
    "a control letter": "http://app-1/\x7fmetrics",
    "half an IPv6 address": "http://[::1/metrics",
    "user and password": "http://me:very-secret@app-1/metrics",
    "a user": "http://very-secret@app-1/metrics",
    "a password and a bad port": "http://me:very-secret@app-1:x/metrics",
    "a password with a slash": "http://me:very-secret/x@app-1/metrics",
    "a password like a port": "http://me:80/very-secret@app-1/metrics",
    "a password with a question mark": "http://me:80?very-secret@app-1/metrics",
    "a password without a scheme": "me:very-secret@app-1:8081",
    "a password with half a scheme": "http:/me:very-secret@app-1:8081",
    "a password behind another scheme": "ftp://me:very-secret@app-1",
    "a secret path without a host": "http:///very-secret",
    "a secret path and a fragment": "http://app-1/very-secret#top",
    "a secret host without a scheme": "very-secret:8081",
}


@pytest.mark.parametrize("url", BAD.values(), ids=BAD)
def test_an_address_that_cannot_be_asked_is_rejected_without_its_secret(url: str) -> None:
    with pytest.raises(BadAddressError) as caught:
        page_at(url)
    assert "very-secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_has_no_query() -> None:
    with pytest.raises(BadAddressError) as caught:
        server_at("http://prometheus:9090/very-secret?x=1")
    assert "very-secret" not in str(caught.value)


TARGETS: dict[str, tuple[dict[str, str], str]] = {
    "nothing but a host": ({}, "http://app-1:8081/metrics"),
    "labels that we do not know": ({"job": "kafka", "__x": "1"}, "http://app-1:8081/metrics"),
    "a scheme": ({"__scheme__": "https"}, "https://app-1:8081/metrics"),
    "a path": ({"__metrics_path__": "/actuator"}, "http://app-1:8081/actuator"),
    "a path without its slash": ({"__metrics_path__": "m"}, "http://app-1:8081/m"),
    "parameters": ({"__param_a": "b c", "__param_d": "&"}, "http://app-1:8081/metrics?a=b+c&d=%26"),
}


@pytest.mark.parametrize(("labels", "url"), TARGETS.values(), ids=TARGETS)
def test_a_target_is_asked_as_prometheus_would(labels: dict[str, str], url: str) -> None:
    assert target_of("app-1:8081", labels).url == url


NO_TARGETS = [
    "",
    "app-1/metrics",
    "http://app-1",
    "app 1:80",
    "a:b",
    "me:very-secret@app-1:80",
    "http://me:very-secret@app-1:80/metrics",
    "app-1:80/x?token=very-secret",
    "app-1:80?token=very-secret",
    "app-1:very-secret",
]


@pytest.mark.parametrize("target", NO_TARGETS)
def test_a_target_that_is_no_host_and_port_is_rejected(target: str) -> None:
    with pytest.raises(BadAddressError) as caught:
        target_of(target, {})
    assert "very-secret" not in str(caught.value)


def test_credentials_are_never_shown() -> None:
    secret = Credentials(bearer_token="very-secret", password="hush-hush")  # noqa: S106 - none
    assert "very-secret" not in repr(secret)
    assert "hush-hush" not in repr(secret)
    assert secret.hide("Bearer very-secret, hush-hush") == "Bearer ***, ***"
    assert Credentials().hide("as it is") == "as it is"
