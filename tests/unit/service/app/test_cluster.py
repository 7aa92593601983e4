"""Addresses of bootstrap servers, as people write them."""

from __future__ import annotations

import pytest

from collectors.wire.connection import Address
from rules.errors import SettingsError
from service.app import bootstrap_addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka:9092", [Address("kafka", 9092)]),
        ("a:1,b:65535", [Address("a", 1), Address("b", 65535)]),
        (" a:1 , b:2 ,", [Address("a", 1), Address("b", 2)]),
        ("127.0.0.1:9092", [Address("127.0.0.1", 9092)]),
        ("[::1]:9092", [Address("::1", 9092)]),
        ("[fe80::1%eth0]:9092", [Address("fe80::1%eth0", 9092)]),
    ],
)
def test_pairs_of_host_and_port_are_read(text: str, expected: list[Address]) -> None:
    assert bootstrap_addresses(text) == expected


@pytest.mark.parametrize("text", ["", "  ", ",", " , "])
def test_no_servers_at_all_are_told_with_the_flag(text: str) -> None:
    with pytest.raises(SettingsError, match="no bootstrap servers: give --bootstrap-servers"):
        bootstrap_addresses(text)


@pytest.mark.parametrize(
    "pair",
    ["kafka", "kafka:", ":9092", "kafka:http", "kafka:-1", "kafka:+1", "::1:9092", "[]:9092",
     "kafka://kafka:9092", "kafka:9092:9093", "kafka:٩٠٩٢", "[::1]"],
)  # fmt: skip
def test_what_is_no_pair_is_named(pair: str) -> None:
    with pytest.raises(SettingsError) as caught:
        bootstrap_addresses(f"good:9092,{pair}")
    assert repr(pair) in str(caught.value)


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_outside_the_range_is_told(port: str) -> None:
    with pytest.raises(SettingsError, match="port must be between 1 and 65535"):
        bootstrap_addresses(f"kafka:{port}")


@pytest.mark.parametrize("text", ["kafka:9092", "[::1]:9092"])
def test_an_address_reads_as_it_was_written(text: str) -> None:
    assert [str(address) for address in bootstrap_addresses(text)] == [text]
