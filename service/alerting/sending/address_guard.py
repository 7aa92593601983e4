"""Which network addresses may be called: those of the public internet, and what settings open.

A receiver's URL is text that somebody typed. Without this guard it would let them reach, from
inside the network, what trusts everyone inside it: above all the cloud's metadata service, which
hands out credentials.

An address that carries another one (IPv4 in IPv6, NAT64, 6to4, Teredo) is judged by both: the
wrapper has to be open, and so has what is inside. `ipaddress.is_global` alone would let loopback
through in several of these forms.

Source: IANA's registries of special-purpose addresses; the clouds' documentation of their metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias

from rules.errors import SettingsError, TidemarkError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Kind(StrEnum):
    """What an address is that may not be called."""

    METADATA = "a cloud's metadata service"
    UNSPECIFIED = "unspecified"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    PRIVATE = "private"
    SHARED = "shared by a provider's customers"
    TRANSLATED = "a translation of another address"
    RESERVED = "reserved"


class AddressDeniedError(TidemarkError):
    """A receiver's name leads to an address that may not be called; the text says what it is."""


_TABLE: Final[tuple[tuple[Kind, tuple[str, ...]], ...]] = (
    (
        Kind.METADATA,
        (
            "169.254.169.254/32",  # most clouds
            "169.254.170.2/32",  # Amazon's containers
            "169.254.170.23/32",  # Amazon's pods
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure; by its number a public address
            "192.0.0.192/32",  # Oracle, its first cloud
            "fd00:ec2::/32",  # Amazon: the services of a machine itself
            "fd20:ce::254/128",  # Google
            "fe80::a9fe:a9fe/128",  # OpenStack
        ),
    ),
    (Kind.UNSPECIFIED, ("0.0.0.0/8", "::/128")),  # Linux takes 0.0.0.0 for loopback
    (Kind.LOOPBACK, ("127.0.0.0/8", "::1/128")),
    (Kind.LINK_LOCAL, ("169.254.0.0/16", "fe80::/10")),
    (Kind.MULTICAST, ("224.0.0.0/4", "ff00::/8")),
    (Kind.SHARED, ("100.64.0.0/10",)),
    (
        Kind.PRIVATE,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    ),
    (
        Kind.TRANSLATED,
        ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "::ffff:0:0:0/96"),
    ),
    (
        Kind.RESERVED,
        (
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
            *("100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
        ),
    ),
)
_SPECIAL: Final = tuple((kind, ip_network(text)) for kind, texts in _TABLE for text in texts)
_ALLOCATED: Final = IPv6Network("2000::/3")  # of IPv6; no address outside is in use
_NEVER_OPENED: Final = {Kind.METADATA, Kind.UNSPECIFIED, Kind.LINK_LOCAL, Kind.MULTICAST}
_LAST_32_BITS: Final = tuple(
    IPv6Network(text) for text in ("::/96", "64:ff9b::/96", "::ffff:0:0:0/96")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressGuard:
    """Decides which addresses may be called: literal ones, and those that a name resolves to."""

    allowed_private_ranges: tuple[Network, ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[str]) -> AddressGuard:
        """Return a guard that lets these ranges be called too, like 10.20.0.0/16.

        Raises:
            SettingsError: a text is no range.
        """
        return cls(allowed_private_ranges=tuple(_range(text) for text in ranges))

    def check(self, text: str) -> str:
        """Return the address to connect to: the same, or the IPv4 address that it only wraps.

        Raises:
            AddressDeniedError: it may not be called.
        """
        address = _unwrap(ip_address(text))
        kind = self.deny_reason(address)
        if kind is not None:
            raise AddressDeniedError(f"{text} may not be called: it is {kind}")
        return str(address)

    def deny_reason(self, address: Address) -> Kind | None:
        """Return why an address may not be called; None if it may."""
        bare = _unwrap(address)
        inside = (self.deny_reason(inner) for inner in _list_embedded(bare))
        return next((kind for kind in inside if kind is not None), self._own_deny_reason(bare))

    def _own_deny_reason(self, address: Address) -> Kind | None:
        kind = _kind_of(address)
        if kind is None or kind in _NEVER_OPENED:
            return kind
        ranges = self.allowed_private_ranges
        is_open = any(_is_in(address, network) for network in ranges)
        return None if is_open else kind


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address of a mapped one: the kernel makes an IPv4 call of it."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _range(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as exc:
        raise SettingsError(f"{text!r} is no range of addresses like 10.20.0.0/16: {exc}") from exc


def _kind_of(address: Address) -> Kind | None:
    """Return what an address is; None for one of the public internet."""
    for kind, network in _SPECIAL:
        if _is_in(address, network):
            return kind
    is_allocated = address.version == 4 or address in _ALLOCATED
    return None if is_allocated and address.is_global else Kind.RESERVED


def _is_in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _list_embedded(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that are embedded in an IPv6 address."""
    if not isinstance(address, IPv6Address) or address.is_loopback or address.is_unspecified:
        return  # these two resemble an embedded IPv4 address, and are none
    if any(address in network for network in _LAST_32_BITS):
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
