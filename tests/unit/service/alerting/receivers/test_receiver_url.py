"""Receivers' addresses: checked, and kept out of sight."""

from __future__ import annotations

import pytest

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import ReceiverUrl


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must begin with http"),
        ("hooks.example.org/secret", "must begin with http"),
        ("ftp://hooks.example.org/secret", "must begin with http"),
        ("file:///secret", "must begin with http"),
        ("http:///secret", "names no host"),
        ("http://[/secret", "cannot exist"),
        ("http://a%00b/secret", "cannot exist"),
        ("http:// hooks/secret", "cannot exist"),
        ("http://[fe80::1%25eth0]/secret", "cannot exist"),
        ("https://user:secret@hooks.example.org/", "user name or password"),
        ("https://secret@hooks.example.org/", "user name or password"),
        ("https://@hooks.example.org/secret", "user name or password"),
        ("https://hooks.example.org/#secret", "after #"),
        ("https://hooks.example.org/secret#", "after #"),
        ("https://hooks.example.org:0/secret", "a port that does not exist"),
        ("https://hooks.example.org:65536/secret", "a port that does not exist"),
        ("https://[::1/secret", "cannot be read"),
        ("https://hooks.example.org/se\r\ncret", "cannot be read"),
        ("http://0177.0.0.1/secret", "cannot be read"),  # octal
        ("https://hooks.example.org:port/secret", "cannot be read"),
        ("https://hooks.example.org/" + "secret" * 400, "longer than 2048"),
    ],
)
def test_an_unusable_address_is_rejected_without_repeating_it(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        ReceiverUrl(text)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_address_is_taken_apart_for_the_call() -> None:
    url = ReceiverUrl("http://exämple.org:8080/a b?q=ä@")
    assert (url.scheme, url.host, url.port) == ("http", "xn--exmple-cua.org", 8080)
    assert (url.host_header, url.target) == ("xn--exmple-cua.org:8080", "/a%20b?q=%C3%A4@")


def test_ports_and_brackets_are_as_http_wants_them() -> None:
    plain, secure = ReceiverUrl("http://[2001:db8::1]/"), ReceiverUrl("https://a.example.org:443")
    assert (plain.host, plain.port, plain.host_header) == ("2001:db8::1", 80, "[2001:db8::1]")
    assert (secure.port, secure.host_header, secure.target) == (443, "a.example.org", "/")


def test_an_address_prints_without_path_and_query() -> None:
    url = ReceiverUrl("https://hooks.example.org/services/secret?token=secret")
    assert str(url) == "https://hooks.example.org/…"
    assert repr(url) == "ReceiverUrl(https://hooks.example.org/…)"


def test_every_part_that_gives_an_address_away_is_a_secret() -> None:
    url = ReceiverUrl("https://hooks.example.org/services/a%20secret?token=other&x=third")
    assert {
        "services",
        "a secret",
        "other",
        "third",
        "/services/a%20secret?token=other&x=third",
    } < (set(url.secrets))


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("http://am:9093", "/api/v2/alerts"),
        ("http://am:9093/prefix/", "/prefix/api/v2/alerts"),
        ("http://am:9093/a%2Fb?tenant=x", "/a%2Fb/api/v2/alerts?tenant=x"),
        ("http://[::1]:9093/", "/api/v2/alerts"),
    ],
)
def test_a_path_is_put_below_an_address(base: str, target: str) -> None:
    below = ReceiverUrl(base).below("/api/v2/alerts")
    assert below.target == target
    assert below.host_header == ReceiverUrl(base).host_header


def test_equal_addresses_are_equal() -> None:
    first, same = ReceiverUrl("https://a.example.org/x"), ReceiverUrl("https://A.example.org:443/x")
    assert first == same
    assert hash(first) == hash(same)
    assert first != ReceiverUrl("https://a.example.org/y")
