"""`tidemark collect` beside a peer that answers to do harm; no Kafka is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from collectors.wire.api import API_VERSIONS, DESCRIBE_CLUSTER, LIST_GROUPS, METADATA
from collectors.wire.connection import Address
from service.terminal.exit_codes import ExitCode
from tests.integration.peer import Peer, Script, listening
from tests.integration.test_collect import collect, rejected
from tests.integration.test_discovery import cluster_answer
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, api_versions_answer, part

pytestmark = pytest.mark.integration

MOST: Final = b"\xff\xff\xff\xff\x0f"  # as a length: 4 G
OFFERED: Final = {
    API_VERSIONS.key: (0, 4),
    METADATA.key: (0, 12),
    LIST_GROUPS.key: (0, 5),
    DESCRIBE_CLUSTER.key: (0, 1),
}
Listen = Callable[[Script], Address]


@pytest.fixture
def listen() -> Iterator[Listen]:
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(listening(script))


def answering(answers: Callable[[], dict[int, bytes]]) -> Script:
    """Answer requests by the key of their API; ApiVersions a second time too, for feature levels."""

    def script(peer: Peer) -> None:
        peer.versions(OFFERED)
        versions = {API_VERSIONS.key: api_versions_answer(OFFERED)}
        while True:
            request = peer.request()
            peer.answer(request, (versions | answers())[request.api_key])

    return script


def metadata_answer() -> bytes:
    partition = part(METADATA, 12, "MetadataResponsePartition")
    topic = part(METADATA, 12, "MetadataResponseTopic")
    where: dict[str, Any] = {"leader_id": 1, "leader_epoch": 3, "replica_nodes": (1,)}
    only = partition(
        error_code=ErrorCode(0), partition_index=0, isr_nodes=(1,), offline_replicas=(), **where
    )
    orders = topic(
        error_code=ErrorCode(0), name="orders", topic_id=None, is_internal=False, partitions=(only,)
    )
    return answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id=None,
        controller_id=1,
        topics=(orders,),
    )


def groups_answer() -> bytes:
    group = part(LIST_GROUPS, 5, "ListedGroup")
    billing = group(
        group_id="billing", protocol_type="consumer", group_state="Empty", group_type="classic"
    )
    return answer(
        LIST_GROUPS, 5, throttle_time=NO_THROTTLE, error_code=ErrorCode(0), groups=(billing,)
    )


@pytest.mark.parametrize("body", [b"\0\0" + MOST + b"\0\0\0", b"\xff" * (1 << 15)])
def test_ten_bytes_before_authentication_are_one_clear_line(body: bytes, listen: Listen) -> None:
    address = listen(lambda peer: peer.answer(peer.request(), body))
    line = rejected(collect("--bootstrap-servers", str(address)), ExitCode.UNREACHABLE)
    assert str(address) in line
    assert "ApiVersions v3 answer cannot be read" in line


def with_brokers(answers: dict[int, bytes], places: dict[int, Address]) -> dict[int, bytes]:
    return answers | {DESCRIBE_CLUSTER.key: cluster_answer(places)}


def test_a_hostile_answer_is_a_gap_of_its_broker_alone(listen: Listen) -> None:
    places: dict[int, Address] = {}
    honest = {METADATA.key: metadata_answer(), LIST_GROUPS.key: groups_answer()}
    hostile = honest | {LIST_GROUPS.key: b"\0" * 6 + MOST}
    for broker_id, answers in ((1, honest), (2, hostile)):
        places[broker_id] = listen(answering(partial(with_brokers, answers, places)))
    done = collect("--bootstrap-servers", str(places[1]), "-o", "json")
    assert done.returncode == ExitCode.INCOMPLETE, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert [row["topic"] for row in document["partitions"]] == ["orders"]
    assert [group["group"] for group in document["groups"]] == ["billing"]
    [gap] = [gap for gap in document["gaps"] if gap["what"] == "groups coordinated by broker 2"]
    assert gap["cause"] == "unreadable"
    assert "ListGroups v5 answer cannot be read: it announces 4294967294 elements" in gap["why"]
