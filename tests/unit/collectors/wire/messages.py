"""Answers of brokers, encoded with the codec library's own classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from kio.schema.errors import ErrorCode

from collectors.wire import codec
from collectors.wire.api import (
    API_VERSIONS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)

NO_THROTTLE: Final = timedelta(0)

# (partition, error, offset, leader epoch)
OffsetEntry = tuple[int, int, int, int]
# (partition, error, offset, leader epoch, metadata)
CommitEntry = tuple[int, int, int, int, str | None]


def part(api: Api, version: int, name: str) -> Any:
    """Return a class of the response message."""
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()
    return getattr(import_module(f"kio.schema.{module}.v{version}.response"), name)


def answer(api: Api, version: int, **fields: Any) -> bytes:
    """Return the body of an answer."""
    return codec.encode(part(api, version, f"{api.name}Response")(**fields))


def list_offsets_answer(topics: dict[str, list[OffsetEntry]], *, version: int = 10) -> bytes:
    """Return the body of a ListOffsets answer."""
    entry = part(LIST_OFFSETS, version, "ListOffsetsPartitionResponse")
    topic = part(LIST_OFFSETS, version, "ListOffsetsTopicResponse")
    told = tuple(
        topic(
            name=name,
            partitions=tuple(
                entry(
                    partition_index=partition,
                    error_code=ErrorCode(error),
                    offset=offset,
                    leader_epoch=epoch,
                )
                for partition, error, offset, epoch in entries
            ),
        )
        for name, entries in topics.items()
    )
    return answer(LIST_OFFSETS, version, throttle_time=NO_THROTTLE, topics=told)


def offset_fetch_answer(
    groups: dict[str, tuple[int, dict[str, list[CommitEntry]]]], *, version: int = 9
) -> bytes:
    """Return the body of an OffsetFetch answer from group -> (error, topic -> commits)."""
    group = part(OFFSET_FETCH, version, "OffsetFetchResponseGroup")
    told = tuple(
        group(
            group_id=name,
            error_code=ErrorCode(error),
            topics=tuple(
                _commit_topic(topic, commits, version) for topic, commits in topics.items()
            ),
        )
        for name, (error, topics) in groups.items()
    )
    return answer(OFFSET_FETCH, version, throttle_time=NO_THROTTLE, groups=told)


def _commit_topic(name: str, commits: list[CommitEntry], version: int) -> Any:
    entry = part(OFFSET_FETCH, version, "OffsetFetchResponsePartitions")
    topic = part(OFFSET_FETCH, version, "OffsetFetchResponseTopics")
    told = tuple(
        entry(
            partition_index=partition,
            error_code=ErrorCode(error),
            committed_offset=offset,
            committed_leader_epoch=epoch,
            metadata=metadata,
        )
        for partition, error, offset, epoch, metadata in commits
    )
    return topic(name=name, partitions=told)


def api_versions_answer(
    offered: Mapping[int, tuple[int, int]], *, version: int = 3, error: int = 0
) -> bytes:
    """Return the body of an ApiVersions answer from API key -> (oldest, newest)."""
    entry = part(API_VERSIONS, version, "ApiVersion")
    keys = tuple(
        entry(api_key=key, min_version=oldest, max_version=newest)
        for key, (oldest, newest) in offered.items()
    )
    throttle = {"throttle_time": NO_THROTTLE} if version else {}
    return answer(API_VERSIONS, version, error_code=ErrorCode(error), api_keys=keys, **throttle)


def sasl_handshake_answer(*mechanisms: str, error: int = 0) -> bytes:
    """Return the body of a SaslHandshake answer."""
    return answer(SASL_HANDSHAKE, 1, error_code=ErrorCode(error), mechanisms=mechanisms)


def sasl_answer(
    token: bytes = b"",
    *,
    error: int = 0,
    message: str | None = None,
    lifetime: timedelta = NO_THROTTLE,
) -> bytes:
    """Return the body of a SaslAuthenticate answer."""
    return answer(
        SASL_AUTHENTICATE,
        2,
        error_code=ErrorCode(error),
        error_message=message,
        auth_bytes=token,
        session_lifetime=lifetime,
    )
