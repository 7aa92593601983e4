"""Requests that need one permission and change nothing, and the error code of each name in their answers.

A broker checks the permission on a name before it checks whether the name exists, or whether it leads or
coordinates it: any broker can be given any name, and every code but a denial means that it is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collectors.offset_plan import UNFENCED
from collectors.range_fetch import fetch_body
from collectors.session import Build, body_of
from collectors.wire.api import (
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    FETCH,
    METADATA,
    READ_UNCOMMITTED,
    Api,
)
from collectors.wire.config_answers import BROKER_RESOURCE, TOPIC_RESOURCE
from rules.facts.config_keys import MIN_INSYNC_REPLICAS
from rules.facts.permissions import NeededPermission, Operation, ResourceType

_PAST_THE_END: Final = 2**62  # of a log: a fetch from there returns no records


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request about some names."""

    api: Api
    build: Build
    codes: Callable[[Any], Mapping[str, int]]  # error codes by name, of the answer


def attempt(needed: NeededPermission, names: Sequence[str]) -> Attempt:
    """Return the request that tries a permission on names; on the cluster only that on settings of brokers."""
    match needed.resource, needed.operation:
        case ResourceType.TOPIC, Operation.DESCRIBE:
            return _metadata(names)
        case ResourceType.TOPIC, Operation.DESCRIBE_CONFIGS:
            return _configs(TOPIC_RESOURCE, names)
        case ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS:
            return _configs(BROKER_RESOURCE, names)
        case ResourceType.TOPIC, _:
            return Attempt(
                FETCH, fetch_body(map(_past_the_end, names), READ_UNCOMMITTED), _codes_of_fetch
            )
        case ResourceType.GROUP, _:
            fields = {"groups": tuple(names), "include_authorized_operations": False}
            return Attempt(DESCRIBE_GROUPS, body_of(DESCRIBE_GROUPS, **fields), _codes_of_groups)
        case _:
            build = body_of(DESCRIBE_TRANSACTIONS, transactional_ids=tuple(names))
            return Attempt(DESCRIBE_TRANSACTIONS, build, _codes_of_transactions)


def _metadata(names: Sequence[str]) -> Attempt:
    build = body_of(
        METADATA,
        topics=[{"topic_id": None, "name": name} for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return Attempt(
        METADATA, build, lambda answer: {t.name: int(t.error_code) for t in answer.topics}
    )


def _configs(resource: int, names: Sequence[str]) -> Attempt:
    keys = (MIN_INSYNC_REPLICAS,)
    resources = [
        {"resource_type": resource, "resource_name": name, "configuration_keys": keys}
        for name in names
    ]
    build = body_of(DESCRIBE_CONFIGS, resources=resources)
    return Attempt(
        DESCRIBE_CONFIGS,
        build,
        lambda answer: {r.resource_name: int(r.error_code) for r in answer.results},
    )


def _past_the_end(name: str) -> tuple[str, dict[str, int]]:
    return name, {
        "partition": 0,
        "current_leader_epoch": UNFENCED,
        "fetch_offset": _PAST_THE_END,
        "partition_max_bytes": 1,
    }


def _codes_of_fetch(answer: Any) -> Mapping[str, int]:
    return {t.topic: int(p.error_code) for t in answer.responses for p in t.partitions}


def _codes_of_groups(answer: Any) -> Mapping[str, int]:
    return {group.group_id: int(group.error_code) for group in answer.groups}


def _codes_of_transactions(answer: Any) -> Mapping[str, int]:
    return {t.transactional_id: int(t.error_code) for t in answer.transaction_states}
