"""Which addresses may be called."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from rules.errors import SettingsError
from service.alerting.sending.address_guard import AddressDeniedError, AddressGuard, Kind

CLOSED = AddressGuard()


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", Kind.LOOPBACK),
        ("127.255.255.254", Kind.LOOPBACK),
        ("::1", Kind.LOOPBACK),
        ("0.0.0.0", Kind.UNSPECIFIED),  # noqa: S104 - denied, not bound
        ("0.1.2.3", Kind.UNSPECIFIED),
        ("::", Kind.UNSPECIFIED),
        ("10.0.0.1", Kind.PRIVATE),
        ("172.16.0.1", Kind.PRIVATE),
        ("172.31.255.255", Kind.PRIVATE),
        ("192.168.1.1", Kind.PRIVATE),
        ("fc00::1", Kind.PRIVATE),
        ("fdff::1", Kind.PRIVATE),
        ("fec0::1", Kind.PRIVATE),  # site-local, given up in 2004 and still routed here and there
        ("169.254.1.1", Kind.LINK_LOCAL),
        ("fe80::1", Kind.LINK_LOCAL),
        ("fe80::1%2", Kind.LINK_LOCAL),
        ("169.254.169.254", Kind.METADATA),
        ("169.254.170.2", Kind.METADATA),
        ("fd00:ec2::254", Kind.METADATA),
        ("fd00:ec2::23", Kind.METADATA),
        ("fd20:ce::254", Kind.METADATA),
        ("100.100.100.200", Kind.METADATA),
        ("168.63.129.16", Kind.METADATA),
        ("192.0.0.192", Kind.METADATA),
        ("100.64.0.1", Kind.SHARED),
        ("100.127.255.255", Kind.SHARED),
        ("224.0.0.1", Kind.MULTICAST),
        ("239.255.255.250", Kind.MULTICAST),
        ("ff02::1", Kind.MULTICAST),
        ("255.255.255.255", Kind.RESERVED),
        ("240.0.0.1", Kind.RESERVED),
        ("192.0.0.9", Kind.RESERVED),
        ("192.0.2.1", Kind.RESERVED),
        ("198.18.0.1", Kind.RESERVED),
        ("198.51.100.1", Kind.RESERVED),
        ("203.0.113.1", Kind.RESERVED),
        ("2001:db8::1", Kind.RESERVED),
        ("100::1", Kind.RESERVED),
        ("4000::1", Kind.RESERVED),  # not given to anybody
        ("64:ff9b::808:808", Kind.TRANSLATED),
        ("64:ff9b:1::1", Kind.TRANSLATED),
        ("2002:808:808::", Kind.TRANSLATED),
        ("2001::1", Kind.UNSPECIFIED),  # Teredo by the server 0.0.0.0
        ("::808:808", Kind.TRANSLATED),
        # What is inside counts, and is told.
        ("::ffff:127.0.0.1", Kind.LOOPBACK),
        ("::ffff:169.254.169.254", Kind.METADATA),
        ("::ffff:10.0.0.1", Kind.PRIVATE),
        ("64:ff9b::7f00:1", Kind.LOOPBACK),
        ("64:ff9b::a9fe:a9fe", Kind.METADATA),
        ("2002:7f00:1::", Kind.LOOPBACK),
        ("2002:a9fe:a9fe::1", Kind.METADATA),
        ("::7f00:1", Kind.LOOPBACK),
        ("2001:0:808:808::80ff:fffe", Kind.LOOPBACK),  # Teredo: the client's address is inverted
        ("2001:0:7f00:1::f7f7:f7f7", Kind.LOOPBACK),  # and the server's is not
    ],
)
def test_an_address_that_is_not_public_is_denied(address: str, kind: Kind) -> None:
    assert CLOSED.deny_reason(ip_address(address)) is kind
    with pytest.raises(AddressDeniedError, match="may not be called"):
        CLOSED.check(address)


@pytest.mark.parametrize(
    "address",
    [
        *("8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1"),
        *("2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"),
    ],
)
def test_a_public_address_may_be_called(address: str) -> None:
    assert CLOSED.check(address) == address.removeprefix("::ffff:")


@pytest.mark.parametrize(
    ("opened", "address"),
    [
        ("10.20.0.0/16", "10.20.3.4"),
        ("10.20.0.0/16", "::ffff:10.20.3.4"),
        ("127.0.0.1/32", "127.0.0.1"),
        ("::1/128", "::1"),
        ("100.64.0.0/10", "100.64.0.1"),
        ("fd12::/16", "fd12::1"),
        ("64:ff9b::/96", "64:ff9b::808:808"),
        ("203.0.113.0/24", "203.0.113.9"),
    ],
)
def test_a_range_is_opened_by_settings(opened: str, address: str) -> None:
    AddressGuard.of([opened]).check(address)


@pytest.mark.parametrize(
    ("opened", "address"),
    [
        ("10.20.0.0/16", "10.21.0.1"),
        ("0.0.0.0/0", "169.254.169.254"),
        ("0.0.0.0/0", "100.100.100.200"),
        ("0.0.0.0/0", "168.63.129.16"),
        ("0.0.0.0/0", "169.254.7.7"),
        ("0.0.0.0/0", "0.0.0.0"),  # noqa: S104 - denied, not bound
        ("0.0.0.0/0", "::ffff:169.254.169.254"),
        ("::/0", "fd00:ec2::254"),
        ("::/0", "fd20:ce::254"),
        ("::/0", "fe80::1"),
        ("::/0", "ff02::1"),
        ("::/0", "64:ff9b::a9fe:a9fe"),
        ("::/0", "64:ff9b::7f00:1"),  # the wrapper is open, what is inside is not
        ("::/0", "127.0.0.1"),
        ("::ffff:0:0/96", "127.0.0.1"),
    ],
)
def test_a_range_opens_no_more_than_it_says_and_never_metadata(opened: str, address: str) -> None:
    with pytest.raises(AddressDeniedError):
        AddressGuard.of([opened]).check(address)


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "10.0.0.1/8", "internal", "fd00::/129"])
def test_what_is_no_range_is_denied(text: str) -> None:
    with pytest.raises(SettingsError, match="is no range of addresses"):
        AddressGuard.of([text])
