"""Settings in answers: read by hand, equal ones once, and rejected where bytes are missing."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CONFIGS
from collectors.wire.codec import UnreadableError
from collectors.wire.config_answers import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigAnswerReader,
    configs_body,
)
from rules.facts.configs import ConfigEntry, ConfigSource
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

VERSION = DESCRIBE_CONFIGS.newest


def entry(name: str, value: str | None, source: int, **fields: Any) -> Any:
    """Return one setting, with all that a broker may add."""
    synonym = part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsSynonym")
    return part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResourceResult")(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=value is None,
        synonyms=(synonym(name=name, value=value, source=source),),
        documentation="what it is for",
        **fields,
    )


def body(*results: tuple[str, int, tuple[Any, ...]]) -> bytes:
    """Return an answer about topics: name, error, settings."""
    kind = part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResult")
    made = tuple(
        kind(
            error_code=ErrorCode(error),
            error_message="why" if error else None,
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=entries,
        )
        for name, error, entries in results
    )
    return answer(DESCRIBE_CONFIGS, VERSION, throttle_time=NO_THROTTLE, results=made)


SETTINGS = (entry("b", "1", 5), entry("a", "", 1), entry("c", None, 4), entry("d", "x", 9))


def test_settings_are_read_with_their_sources_in_the_order_of_their_names() -> None:
    [described] = ConfigAnswerReader().read(body(("orders", 0, SETTINGS)))
    assert (described.error, described.resource, described.name) == (0, TOPIC_RESOURCE, "orders")
    assert described.config.entries == (
        ConfigEntry("a", "", ConfigSource.TOPIC),
        ConfigEntry("b", "1", ConfigSource.DEFAULT),
        ConfigEntry("c", None, ConfigSource.STATIC_BROKER),
        ConfigEntry("d", "x", ConfigSource.UNKNOWN),
    )


def test_equal_settings_are_the_same_object_whatever_their_order_and_answer() -> None:
    reader = ConfigAnswerReader()
    first, second = reader.read(body(("a", 0, SETTINGS), ("b", 0, SETTINGS[::-1])))
    [third] = reader.read(body(("c", 0, SETTINGS)))
    assert first.config is second.config is third.config
    reader.keep([])
    [again] = reader.read(body(("c", 0, SETTINGS)))
    assert again.config is not first.config
    assert again.config == first.config


def test_an_error_has_no_settings_and_the_next_resource_is_read() -> None:
    denied, fine = ConfigAnswerReader().read(body(("a", 29, ()), ("b", 0, SETTINGS[:1])))
    assert (denied.error, denied.config.entries) == (29, ())
    assert fine.config.number("b") == 1


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_an_answer_that_ends_early_is_rejected_known_or_not(cut: int) -> None:
    reader, whole = ConfigAnswerReader(), body(("orders", 0, SETTINGS))
    for _ in range(2):
        with pytest.raises(UnreadableError):
            reader.read(whole[:-cut])
        reader.read(whole)


def test_the_request_is_what_the_codec_reads() -> None:
    made = configs_body(
        (BROKER_RESOURCE, ["1"], ("x",)), (TOPIC_RESOURCE, ["orders", "bills"], ("y", "z"))
    )
    kind = codec.message(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsRequest")
    request, size = entity_reader(kind)(made, 0)
    assert size == len(made)
    assert [
        (r.resource_type, r.resource_name, r.configuration_keys) for r in request.resources
    ] == [
        (BROKER_RESOURCE, "1", ("x",)),
        (TOPIC_RESOURCE, "orders", ("y", "z")),
        (TOPIC_RESOURCE, "bills", ("y", "z")),
    ]
    assert (request.include_synonyms, request.include_documentation) == (False, False)
