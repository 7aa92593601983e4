"""Reading answers about 10,000 partitions in 200 topics, once for the check of their lengths; stats are printed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from collectors.wire import blocks, codec, lengths
from collectors.wire.api import LIST_OFFSETS, METADATA, Api
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, list_offsets_answer, part

TOPICS: Final = 200
PARTITIONS: Final = 50
TRIES: Final = 15
OK: Final = ErrorCode(0)


def metadata(*, short_isrs: bool) -> bytes:
    """Return where partitions are; with `short_isrs` every second one lacks a replica in its ISR."""
    topic = part(METADATA, METADATA.newest, "MetadataResponseTopic")
    partition = part(METADATA, METADATA.newest, "MetadataResponsePartition")

    def partitions() -> Any:
        return tuple(
            partition(
                error_code=OK,
                partition_index=number,
                leader_id=1,
                leader_epoch=3,
                replica_nodes=(1, 2, 3),
                isr_nodes=(1, 2) if short_isrs and number % 2 else (1, 2, 3),
                offline_replicas=(),
            )
            for number in range(PARTITIONS)
        )

    topics = tuple(
        topic(
            error_code=OK,
            name=f"load-{number}",
            topic_id=uuid.UUID(int=number + 1),
            is_internal=False,
            partitions=partitions(),
        )
        for number in range(TOPICS)
    )
    about = {"brokers": (), "cluster_id": None, "controller_id": 1}
    return answer(METADATA, METADATA.newest, throttle_time=NO_THROTTLE, topics=topics, **about)


def milliseconds(read: Callable[[], object]) -> float:
    """Return how much of the processor a reading takes at best."""
    took = []
    for _ in range(TRIES):
        begin = time.process_time()
        read()
        took.append(time.process_time() - begin)
    return 1000 * min(took)


def report(name: str, api: Api, body: bytes) -> None:
    response = part(api, api.newest, f"{api.name}Response")
    whole = milliseconds(lambda: codec.decode(api, api.newest, body))
    checked = milliseconds(lambda: lengths.prepare(response, body))
    print(f"  {name}: {len(body) / 1000:.0f} kB, {whole:.1f} ms, of which lengths {checked:.1f} ms")


def test_answers_about_many_partitions() -> None:
    offsets = list_offsets_answer(
        {f"load-{t}": [(p, 0, 5, 1) for p in range(PARTITIONS)] for t in range(TOPICS)}
    )
    print(f"\nanswers about {TOPICS * PARTITIONS} partitions")
    report("Metadata", METADATA, metadata(short_isrs=False))
    report("Metadata, half of the ISRs short", METADATA, metadata(short_isrs=True))
    report("ListOffsets by the codec", LIST_OFFSETS, offsets)
    print(
        f"  ListOffsets as columns: {milliseconds(lambda: blocks.read_list_offsets(offsets)):.1f} ms"
    )
