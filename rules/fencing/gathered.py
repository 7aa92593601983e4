"""The open fencing episodes of a round while its observations are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rules.facts.column import replace_fields
from rules.facts.fencing import (
    KEPT_REQUESTS,
    FencedRequests,
    FencingClass,
    FencingEpisode,
    FencingReason,
    FencingVerdict,
    OwnAbort,
    join_requests,
    key_of,
)
from rules.facts.identity import short_id
from rules.facts.snapshot import Snapshot

UNJUDGED: Final = FencingVerdict(
    class_=FencingClass.UNDETERMINED, reason=FencingReason.PRODUCER_NOT_KNOWN
)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The open episodes of a round while its observations are added."""

    snapshot: Snapshot
    now_us: int
    open: dict[str, FencingEpisode]
    aborts: tuple[OwnAbort, ...]
    touched: set[str] = field(default_factory=set)  # keys with something new
    # Found when they are first needed: a quiet round needs neither.
    _aborts: dict[str, list[OwnAbort]] | None = None
    _owners: dict[int, str] | None = None

    def add(self, transactional_id: str | None, producer_id: int | None) -> FencingEpisode:
        """Return the episode of an id, which is opened if there is none."""
        key = key_of(transactional_id, producer_id)
        self.touched.add(key)
        episode = self.open.get(key)
        if episode is None:
            episode = FencingEpisode(
                id=short_id(self.snapshot.cluster_id, key, self.now_us),
                transactional_id=transactional_id,
                producer_id=producer_id,
                first_seen_us=self.now_us,
                last_seen_us=self.now_us,
                verdict=UNJUDGED,
            )
        return episode

    def put(self, episode: FencingEpisode, **news: object) -> None:
        """Keep an episode that got something new."""
        self.open[episode.key] = replace_fields(episode, last_seen_us=self.now_us, **news)

    def aborts_of(self, transactional_id: str) -> Sequence[OwnAbort]:
        """Return the remembered aborts of an id."""
        if self._aborts is None:
            self._aborts = {}
            for each in self.aborts:
                self._aborts.setdefault(each.transactional_id, []).append(each)
        return self._aborts.get(transactional_id, ())

    def owner_of(self, producer_id: int) -> str | None:
        """Return the transactional id of a producer, as far as this round and the episodes show."""
        if self._owners is None:
            self._owners = _find_owners(self)
        return self._owners.get(producer_id)


def add_requests(
    gathered: Gathered,
    transactional_id: str | None,
    producer_id: int | None,
    requests: FencedRequests,
) -> None:
    """Add rejected requests to the episode of an id."""
    episode = gathered.add(transactional_id, producer_id)
    by_key = {each.key: each for each in episode.requests}
    before = by_key.pop(requests.key, None)
    by_key[requests.key] = requests if before is None else join_requests(before, requests)
    gathered.put(episode, requests=tuple(by_key.values())[-KEPT_REQUESTS:])


def _find_owners(gathered: Gathered) -> dict[int, str]:
    snapshot = gathered.snapshot
    return {
        **{
            each.producer_id: each.transactional_id
            for each in gathered.open.values()
            if each.producer_id is not None and each.transactional_id is not None
        },
        **{each.producer_id: each.transactional_id for each in gathered.aborts},
        **{each.producer_id: each.transactional_id for each in snapshot.transaction_log.ended},
        **{pid: each.transactional_id for pid, each in snapshot.transactions.by_producer().items()},
    }
