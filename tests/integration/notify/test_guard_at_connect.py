"""The guard holds where it counts: when a connection is made, whatever a name says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from service.alerting.sending.address_guard import AddressDeniedError, AddressGuard
from service.alerting.sending.answers import Failure, Outcome
from service.alerting.sending.calls import (
    GuardedNetwork,
    UnknownNameError,
    system_resolve,
)
from service.alerting.sending.sender import Attempt, Sender
from tests.integration.notify.receiving import Receiver, receiving, status
from tests.integration.notify.sending import Names, send, to, trusting, with_sender

pytestmark = pytest.mark.integration

CLOSED = AddressGuard()
SECOND_ONLY = AddressGuard.of(["127.0.0.2/32"])
SPELLINGS = [
    *("127.0.0.1", "localhost", "LOCALHOST", "127.1", "127.0.1", "2130706433", "0x7f000001"),
    *("0x7f.0.0.1", "017700000001", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    "127。0。0。1",
]


@contextlib.contextmanager
def two_on_one_port() -> Iterator[tuple[Receiver, Receiver]]:
    """Give receivers with two addresses and the same port, which may be taken on one of them."""
    for _ in range(50):
        with contextlib.ExitStack() as both:
            checked = both.enter_context(receiving(host="127.0.0.2"))
            try:
                other = both.enter_context(receiving(port=checked.port))
            except OSError:
                continue
            yield checked, other
            return


@pytest.mark.parametrize("host", SPELLINGS)
def test_this_machine_is_rejected_in_every_spelling_and_reached_if_settings_allow(
    host: str,
) -> None:
    with receiving() as receiver:
        url = f"http://{host}:{receiver.port}/x"
        rejected = send(url, guard=CLOSED)
        assert receiver.connections == []
        assert (rejected.outcome, rejected.failure) == (Outcome.RETRY, Failure.ADDRESS_DENIED)
        assert rejected.is_slow
        assert "loopback" in rejected.detail
        assert send(url).outcome is Outcome.DELIVERED


def test_octal_numbers_are_rejected_even_if_a_url_could_hold_them() -> None:
    with receiving() as receiver, pytest.raises(AddressDeniedError, match=r"127\.0\.0\.1 may not"):
        asyncio.run(GuardedNetwork(CLOSED).connect_tcp("0177.0.0.1", receiver.port, 1.0))


def test_this_machine_is_rejected_by_ipv6() -> None:
    told = send("http://[::1]:9/", guard=CLOSED)
    assert (told.failure, told.detail) == (
        Failure.ADDRESS_DENIED,
        "::1 may not be called: it is loopback",
    )


def test_zero_which_reaches_this_machine_is_rejected_always() -> None:
    with receiving() as receiver:
        for host in ("0", "0.0.0.0", "[::]"):  # noqa: S104 - called, not bound
            url = f"http://{host}:{receiver.port}/"
            everything = AddressGuard.of(["0.0.0.0/0", "::/0"])
            assert send(url, guard=everything).failure is Failure.ADDRESS_DENIED
        assert receiver.connections == []


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "2852039166",
    ],
)
def test_metadata_is_rejected_whatever_settings_allow(host: str) -> None:
    everything = AddressGuard.of(["0.0.0.0/0", "::/0"])
    told = send(f"http://{host}/latest/meta-data/", guard=everything)
    assert told.failure is Failure.ADDRESS_DENIED


def test_a_name_server_that_changes_its_answer_after_the_check_changes_nothing() -> None:
    names = Names(("127.0.0.2",), ("127.0.0.1",))
    with two_on_one_port() as (checked, other):
        url = f"http://hooks.example.org:{checked.port}/x"
        told = send(url, guard=SECOND_ONLY, resolve=names)
        assert told.outcome is Outcome.DELIVERED
        assert names.queries == ["hooks.example.org"]
        assert [one.headers["host"] for one in checked.got] == [f"hooks.example.org:{checked.port}"]
        again = send(url, guard=SECOND_ONLY, resolve=names)
        assert again.failure is Failure.ADDRESS_DENIED
        assert other.connections == []


def test_one_forbidden_address_of_a_name_refuses_it_whole() -> None:
    for answer in (("127.0.0.2", "127.0.0.1"), ("127.0.0.1", "127.0.0.2")):
        with receiving(host="127.0.0.2") as receiver:
            url = f"http://hooks.example.org:{receiver.port}/"
            told = send(url, guard=SECOND_ONLY, resolve=Names(answer))
            assert told.failure is Failure.ADDRESS_DENIED
            assert receiver.connections == []


def test_the_next_address_is_tried_if_one_does_not_answer() -> None:
    with receiving(host="127.0.0.2") as receiver:
        url = f"http://hooks.example.org:{receiver.port}/"
        told = send(url, resolve=Names(("127.0.0.3", "127.0.0.2")))
        assert told.outcome is Outcome.DELIVERED


def test_a_name_without_address_is_named() -> None:
    told = send("http://a..b/")
    assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.NAME)
    assert "a..b has no address" in told.detail
    assert not told.is_slow
    with pytest.raises(UnknownNameError, match="has no address"):
        asyncio.run(system_resolve("::1%none", 80))  # no such network card; asks no name server
    assert send(f"http://{'a' * 70}/").failure is Failure.NAME
    assert send("http://hooks.example.org/", resolve=Names(())).failure is Failure.NAME


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(code: int) -> None:
    with receiving() as inner:
        to_inner = status(code, Location=f"{inner.address}/stolen")
        with receiving(to_inner, host="127.0.0.2") as outer:
            told = send(f"{outer.address}/", guard=SECOND_ONLY)
        assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.REDIRECT)
        assert told.is_slow
        assert inner.connections == []


def test_the_environments_proxies_and_passwords_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as proxy, receiving(host="127.0.0.2") as receiver:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        assert send(f"{receiver.address}/").outcome is Outcome.DELIVERED
        assert proxy.connections == []
        assert "authorization" not in receiver.got[0].headers


def test_tls_proves_the_name_of_the_url_not_the_address_behind_it() -> None:
    with receiving(tls=True) as receiver:
        good = send(f"https://localhost:{receiver.port}/", tls=trusting())
        assert good.outcome is Outcome.DELIVERED
        other = f"https://hooks.example.org:{receiver.port}/"
        bad = send(other, tls=trusting(), resolve=Names(("127.0.0.1",)))
        assert (bad.outcome, bad.failure, bad.is_slow) == (Outcome.RETRY, Failure.TLS, True)
        assert receiver.server_names == ["localhost", "hooks.example.org"]
        assert len(receiver.got) == 1


def test_a_certificate_that_nobody_vouches_for_is_rejected() -> None:
    with receiving(tls=True) as receiver:
        told = send(f"https://localhost:{receiver.port}/")
        assert told.failure is Failure.TLS
        assert receiver.got == []


def test_a_connection_is_kept_and_its_address_stays_checked() -> None:
    names = Names(("127.0.0.2",), ("127.0.0.1",))
    with receiving(host="127.0.0.2") as receiver:
        url = f"http://hooks.example.org:{receiver.port}/"

        async def thrice(sender: Sender) -> list[Attempt]:
            return [await sender.send(to(url), b"{}", {}) for _ in range(3)]

        told = with_sender(thrice, guard=SECOND_ONLY, resolve=names)
        assert [one.outcome for one in told] == [Outcome.DELIVERED] * 3
        assert len(receiver.connections) == 1
        assert names.queries == ["hooks.example.org"]
