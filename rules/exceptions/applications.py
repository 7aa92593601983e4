"""Which application an error belongs to: two of them in one text are kept apart, clients of one are not.

What a shipper put first (a container, a pod, a service) separates at once. Within that, client ids and transactional ids
do; a line without any belongs to the application whose lines are around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from rules.facts.application_log import ApplicationError, Client, Names

# What frameworks add to the names of one thread or task.
_STREAMS: Final = re.compile(r"(.*-StreamThread-\d+)(?:-(?:producer|consumer|restore-consumer))?$")
_CONNECT: Final = re.compile(r"connector-(?:producer|consumer|adminclient)-(.*)$")
Key = tuple[str, ...]


def keys_of(event: ApplicationError) -> list[Key]:
    """Return the names that events of one application share; empty: the line has none."""
    names = event.names
    space = names.application or ""
    keys: list[Key] = []
    if names.client_id is not None and event.client is not Client.BROKER:
        keys.append((space, "client", _instance(names.handle or names.client_id)))
    if names.transactional_id is not None:
        keys.append(("", "transaction", names.transactional_id))
    if names.thread is not None and _STREAMS.match(names.thread):
        keys.append((space, "client", _instance(names.thread)))
    if names.producer_id is not None and names.producer_id >= 0:
        keys.append(("", "producer", str(names.producer_id)))
    if event.client is Client.BROKER and _errors(event) & OF_A_DISK and names.broker is not None:
        keys.append((space, "disk", str(names.broker)))
    return keys


def _instance(client_id: str) -> str:
    match = _STREAMS.match(client_id) or _CONNECT.match(client_id)
    return client_id if match is None else match[1]


class Groups:
    """Joins indices of events that share a key."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def find(self, index: int) -> int:
        """Return the representative of an event's group."""
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index

    def join(self, index: int, other: int) -> None:
        """Make one group of two."""
        first, second = sorted((self.find(index), self.find(other)))
        self._parents[second] = first


def applications(events: Sequence[ApplicationError]) -> list[list[int]]:
    """Return the indices of events by application, in the order of their first ones."""
    groups = Groups(len(events))
    by_key: dict[Key, int] = {}
    keys = [keys_of(event) for event in events]
    for index, its_keys in enumerate(keys):
        for key in its_keys:
            groups.join(by_key.setdefault(key, index), index)
    named = [index for index, its_keys in enumerate(keys) if its_keys]
    for index, its_keys in enumerate(keys):
        if not its_keys:
            neighbour = _neighbour(events, index, named)
            if neighbour is not None:
                groups.join(neighbour, index)
    _join_nameless(events, keys, groups)
    members: dict[int, list[int]] = {}
    for index in range(len(events)):
        members.setdefault(groups.find(index), []).append(index)
    return list(members.values())


def _neighbour(events: Sequence[ApplicationError], index: int, named: Iterable[int]) -> int | None:
    """Return the event whose application a line without names belongs to: the same error, else the nearest."""
    event = events[index]
    ids = {each.names.transactional_id for each in events} - {None}
    only_id = ids.pop() if len(ids) == 1 else None
    candidates = [each for each in named if _may_be_of_one(event, events[each], only_id)]
    if not candidates:
        return None

    def distance(other: int) -> tuple[bool, bool, bool, int]:
        is_elsewhere = not _is_about_one(event.names, events[other].names)
        is_another = not (_errors(event) & _errors(events[other]))
        return is_another, is_elsewhere, other > index, abs(other - index)

    return min(candidates, key=distance)


def _may_be_of_one(event: ApplicationError, other: ApplicationError, only_id: str | None) -> bool:
    """Whether two lines may come from one application: a broker's line only about the same partition or id.

    A client's line that names nothing may belong to the one transactional id of the text.
    """
    if Client.BROKER in (event.client, other.client):
        is_its_id = only_id is not None and other.names.transactional_id == only_id
        is_fenced = bool(_errors(event) & OF_ONE_ID) and event.names.topic is None
        return (
            _is_about_one(event.names, other.names)
            or (is_its_id and is_fenced)
            or _got_the_same(event, other)
        )
    return (
        event.names.application == other.names.application
        and event.client in (None, other.client)
        and event.source == other.source
    )


OF_A_DISK: Final = frozenset({"KAFKA_STORAGE_ERROR", "_DISK_FAILED"})
# Errors that only the holder of a transactional id gets.
OF_ONE_ID: Final = frozenset({
    "PRODUCER_FENCED", "_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE",
})  # fmt: skip


def _got_the_same(event: ApplicationError, other: ApplicationError) -> bool:
    """Whether a client that names no partition got what a broker's line says: the same rejection of a sequence."""
    is_clients = event.client is not Client.BROKER and event.names.topic is None
    return is_clients and "OUT_OF_ORDER_SEQUENCE_NUMBER" in _errors(event) & _errors(other)


def _is_about_one(names: Names, other: Names) -> bool:
    return (
        names.topic is not None
        and names.partition is not None
        and (names.topic, names.partition) == (other.topic, other.partition)
    )


def _errors(event: ApplicationError) -> set[str]:
    return {thrown.error for thrown in event.chain} - {"KAFKA"}


def _join_nameless(
    events: Sequence[ApplicationError], keys: Sequence[Sequence[Key]], groups: Groups
) -> None:
    """Join lines that have no names, and none near them, by source, shipper's name, library and thread."""
    by_place: dict[object, dict[Client | None, int]] = {}
    nameless = [
        index for index in range(len(events)) if not keys[index] and groups.find(index) == index
    ]
    for index in sorted(nameless, key=lambda each: events[each].client is None):
        event, names = events[index], events[index].names
        place: object = (event.source, names.application, names.thread)
        if event.client is Client.BROKER:
            place = (names.topic, names.partition)
        by_client = by_place.setdefault(place, {})
        others = [other for client, other in by_client.items() if client is not None]
        is_of_any = event.client is None and len(others) == 1
        groups.join(others[0] if is_of_any else by_client.setdefault(event.client, index), index)
