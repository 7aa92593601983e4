"""The known state of a cluster, with which the next round is compared, as plain values for JSON.

Its partitions are stored apart: they are those of the memory, or nearly so.
"""

from __future__ import annotations

from typing import Any, Final

from rules.facts.change_memory import ChangeMemory, KnownController, KnownState, MissingTopic
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.partitions import Partitions
from service.storage.formats.arrays import Arrays, read_text, text_of
from service.storage.formats.known_settings import put_settings, read_settings
from service.storage.formats.values import plain, read

CHANGES: Final = "changes"  # absent in older checkpoints


def add_places(places: list[Partitions], memory: ChangeMemory) -> None:
    """Add the partitions that the memory has and that are not among those to store."""
    for partitions in (memory.state.partitions, memory.state.settings.partitions):
        if partitions is not None and _place(places, partitions) is None:
            places.append(partitions)


def put_changes(into: Arrays, memory: ChangeMemory, places: list[Partitions]) -> None:
    """Add the memory; its partitions are stored at their place."""
    state = memory.state
    into[CHANGES] = text_of([_place(places, state.partitions), _plain(state)])
    put_settings(into, state.settings, _place(places, state.settings.partitions))


def _place(places: list[Partitions], partitions: Partitions | None) -> int | None:
    return next((number for number, place in enumerate(places) if place is partitions), None)


def _plain(state: KnownState) -> dict[str, Any]:
    """Return the state as JSON has it, without partitions and settings."""
    return {
        "partitions_us": state.partitions_us,
        "is_complete": state.is_complete,
        "topic_pattern": state.topic_pattern,
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
        "begun_us": state.begun_us,
        "starts_us": {str(broker): at for broker, at in state.starts_us.items()},
    }


def changes_of(arrays: Arrays, places: list[Partitions]) -> ChangeMemory:
    """Return the memory; it is empty in checkpoints of older versions: the next round changes nothing.

    Raises:
        LookupError, TypeError, ValueError: the stored value is malformed.
    """
    if CHANGES not in arrays:
        return ChangeMemory()
    place, stored = read_text(arrays[CHANGES])
    controller = stored["controller"]
    brokers = read(dict[str, str], stored["brokers"] or {})
    reassigned = read(tuple[tuple[str, int, tuple[int, ...]], ...], stored["reassigned_from"])
    return ChangeMemory(
        state=KnownState(
            partitions=None if place is None else places[place],
            partitions_us=int(stored["partitions_us"]),
            is_complete=bool(stored["is_complete"]),
            topic_pattern=stored["topic_pattern"],
            missing=read(dict[str, MissingTopic], stored["missing"]),
            reassigned_from={
                TopicPartition(topic, number): replicas for topic, number, replicas in reassigned
            },
            former_ids=read(dict[str, TopicId], stored["former_ids"]),
            brokers={int(broker): address for broker, address in brokers.items()} or None,
            brokers_us=int(stored["brokers_us"]),
            controller=None if controller is None else read(KnownController, controller),
            controller_us=int(stored["controller_us"]),
            settings=read_settings(arrays, places),
            begun_us=int(stored["begun_us"]),
            starts_us={int(broker): int(at) for broker, at in stored["starts_us"].items()},
        )
    )
