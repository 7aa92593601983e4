"""Which clients of an episode's topic had records fail, or sent them again, within the episode's time.

They are hints beside the proof: an idempotent Java producer that meets a real loss raises only its retries,
as it does when a reordering heals. Times in microseconds since 1970-01-01 UTC, by our own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rules.facts.times import change_if_set

MAX_CLIENTS: Final = 10  # of one episode

ClientKey: TypeAlias = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRises:
    """The rises of one counter; without times there was none."""

    # Records, at least: what is older than `RISES_KEPT` is counted once. None: only a rate is exposed.
    count: int | None = 0
    since_us: int | None = None  # the observation before the first rise
    until_us: int | None = None  # the observation after the last one

    @property
    def has_risen(self) -> bool:
        """Whether there was a rise."""
        return self.until_us is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRises:
    """The rises of one client in one process."""

    address: str
    client_id: str
    topic: str | None  # None: its sum over all topics, of which this one may be none
    errors: RecordRises | None  # None: not reported
    retries: RecordRises | None

    @property
    def key(self) -> ClientKey:
        """Return the identity of the client."""
        return self.address, self.client_id, self.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecordErrors:
    """The clients that rose within the time of an episode."""

    is_read: bool = False  # False: no metrics of clients are read
    clients: tuple[ClientRises, ...] = ()  # those of the topic first, then by errors and retries
    client_count: int = 0  # also those that are not kept
    # Up to when every endpoint answered, from the beginning of the episode's time on; None: not even then.
    whole_until_us: int | None = None

    def with_times(self, change: Callable[[int], int]) -> EpisodeRecordErrors:
        """Return it with its times changed."""
        if not self.is_read:
            return self
        return replace(
            self,
            clients=tuple(
                replace(
                    client,
                    errors=_move(client.errors, change),
                    retries=_move(client.retries, change),
                )
                for client in self.clients
            ),
            whole_until_us=change_if_set(self.whole_until_us, change),
        )


NOT_READ: Final = EpisodeRecordErrors()


def merge_record_errors(
    stored: EpisodeRecordErrors, seen: EpisodeRecordErrors
) -> EpisodeRecordErrors:
    """Return what both know; a rise may be in both, so that counts of one client are not added up.

    Between two processes nobody read metrics, so that they are whole up to the end of the first at most.
    """
    clients = merge_clients(stored.clients, seen.clients)
    return EpisodeRecordErrors(
        is_read=stored.is_read or seen.is_read,
        clients=bound_clients(clients),
        client_count=max(stored.client_count, seen.client_count, len(clients)),
        whole_until_us=stored.whole_until_us,
    )


def merge_clients(
    first: Iterable[ClientRises], second: Iterable[ClientRises]
) -> tuple[ClientRises, ...]:
    """Return each client once, with the larger count of each counter."""
    by_key = {client.key: client for client in first}
    for client in second:
        other = by_key.get(client.key)
        by_key[client.key] = client if other is None else _merge(other, client)
    return tuple(by_key.values())


def bound_clients(clients: Sequence[ClientRises]) -> tuple[ClientRises, ...]:
    """Return the clients that say most: those of the topic first, then the largest counts."""
    return tuple(sorted(clients, key=_order)[:MAX_CLIENTS])


def _order(client: ClientRises) -> tuple[bool, int, int, str, str]:
    errors, retries = (
        0 if rises is None else rises.count or 0 for rises in (client.errors, client.retries)
    )
    return client.topic is None, -errors, -retries, client.client_id, client.address


def _merge(first: ClientRises, second: ClientRises) -> ClientRises:
    return replace(
        first,
        errors=_merge_rises(first.errors, second.errors),
        retries=_merge_rises(first.retries, second.retries),
    )


def _merge_rises(first: RecordRises | None, second: RecordRises | None) -> RecordRises | None:
    if first is None or second is None:
        return first or second
    begins = [each.since_us for each in (first, second) if each.since_us is not None]
    ends = [each.until_us for each in (first, second) if each.until_us is not None]
    counts = [each.count for each in (first, second) if each.has_risen and each.count is not None]
    return RecordRises(
        count=max(counts, default=None if ends else 0),
        since_us=min(begins, default=None),
        until_us=max(ends, default=None),
    )


def _move(rises: RecordRises | None, change: Callable[[int], int]) -> RecordRises | None:
    if rises is None:
        return None
    return replace(
        rises,
        since_us=change_if_set(rises.since_us, change),
        until_us=change_if_set(rises.until_us, change),
    )
