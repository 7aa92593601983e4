"""The known state of a cluster, with which the next round is compared, as plain values for JSON.

Its partitions are stored apart: they are those of the memory, or nearly so.
"""

from __future__ import annotations

from typing import Any

from rules.facts.change_memory import ChangeMemory, KnownController, KnownState, MissingTopic
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.partitions import Partitions
from service.storage.formats.values import plain, read


def plain_changes(memory: ChangeMemory) -> dict[str, Any]:
    """Return the memory as JSON has it, without the partitions."""
    state = memory.state
    return {
        "partitions_us": state.partitions_us,
        "is_complete": state.is_complete,
        "missing": {topic: plain(entry) for topic, entry in state.missing.items()},
        "reassigned_from": [
            [name.topic, name.partition, list(replicas)]
            for name, replicas in state.reassigned_from.items()
        ],
        "former_ids": dict(state.former_ids),
        "brokers": None
        if state.brokers is None
        else {str(broker): address for broker, address in state.brokers.items()},
        "brokers_us": state.brokers_us,
        "controller": plain(state.controller),
        "controller_us": state.controller_us,
    }


def changes_of(stored: Any, partitions: Partitions | None) -> ChangeMemory:
    """Return the memory that `plain_changes` returned as JSON.

    Raises:
        LookupError, TypeError, ValueError: the stored value is malformed.
    """
    controller = stored["controller"]
    brokers = read(dict[str, str], stored["brokers"] or {})
    reassigned = read(tuple[tuple[str, int, tuple[int, ...]], ...], stored["reassigned_from"])
    return ChangeMemory(
        state=KnownState(
            partitions=partitions,
            partitions_us=int(stored["partitions_us"]),
            is_complete=bool(stored["is_complete"]),
            missing=read(dict[str, MissingTopic], stored["missing"]),
            reassigned_from={
                TopicPartition(topic, number): replicas for topic, number, replicas in reassigned
            },
            former_ids=read(dict[str, TopicId], stored["former_ids"]),
            brokers={int(broker): address for broker, address in brokers.items()} or None,
            brokers_us=int(stored["brokers_us"]),
            controller=None if controller is None else read(KnownController, controller),
            controller_us=int(stored["controller_us"]),
        )
    )
