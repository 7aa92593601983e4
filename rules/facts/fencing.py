"""Fencing episodes: all that was observed of one transactional id whose producers were fenced.

A producer is fenced by a newer epoch of its producer id: another instance was initialised, the coordinator
aborted its transaction, or it raised the epoch by itself. Whatever is rejected as of an older epoch was not
written. Times by brokers' clocks are those of their log lines and records; all others are by our own.
Source: KIP-98, KIP-360, KIP-588, KIP-890, and what real 4.1.1 brokers wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from rules.facts.broker_log import ClientInstance
from rules.facts.identity import TopicPartition
from rules.facts.times import change_if_set
from rules.facts.transaction_log import Cut

KEPT_TAKEOVERS: Final = 16  # of one episode, the newest
KEPT_CUTS: Final = 8
KEPT_REQUESTS: Final = 16
KEPT_ABORTS: Final = 8


class FencingClass(StrEnum):
    """Who fenced a producer, and whether somebody has to act."""

    ZOMBIE = "zombie"  # an older instance still writes after a newer one was initialised
    INSTANCES_FIGHTING = (
        "instances_fighting"  # two instances take the id from each other repeatedly
    )
    COORDINATOR_TIMEOUT = "coordinator_timeout"  # the coordinator aborted what took too long
    LATE_BATCH = "late_batch"  # a late request of an epoch that the same instance has left
    HANDOVER = "handover"  # a newer instance was initialised once, and the older one is silent
    UNDETERMINED = "undetermined"  # evidence is missing


class FencingReason(StrEnum):
    """What decides the class of an episode."""

    OLDER_EPOCH_REJECTED = "older_epoch_rejected"  # older than the epoch of the newest instance
    OTHER_INSTANCE_REJECTED = "other_instance_rejected"  # not the client that was initialised last
    COUNTED_AFTER_TAKEOVER = "counted_after_takeover"  # by brokers; only this id was taken over
    INSTANCES_ALTERNATE = "instances_alternate"  # the request log names both
    TAKEOVERS_AND_REJECTIONS = "takeovers_and_rejections"
    TIMEOUT_OVER = "timeout_over"
    OWN_EPOCH_RAISED = (
        "own_epoch_raised"  # it ended the transaction of the rejected epoch by itself
    )
    NO_TRANSACTIONS = "no_transactions"  # an idempotent producer: nobody shares its producer id
    NOTHING_REJECTED = "nothing_rejected"
    # With transactions v2 both leave the same records; only the request log distinguishes them.
    OWNER_OR_SECOND_INSTANCE = "owner_or_second_instance"
    OWN_EPOCH_OR_SECOND_INSTANCE = "own_epoch_or_second_instance"  # KIP-360, before v2
    REPEATED_TAKEOVERS = "repeated_takeovers"  # restarts, or two instances
    NO_TAKEOVER_SEEN = "no_takeover_seen"  # it was rejected, and what fenced it was not observed
    PRODUCER_NOT_KNOWN = "producer_not_known"  # whether it has a transactional id
    NOT_ATTRIBUTED = "not_attributed"  # brokers only count; none or several ids were taken over


class RejectionSource(StrEnum):
    """Where a rejected request was observed."""

    BROKER_LOG = "broker_log"  # the line of a partition's leader
    REQUEST_LOG = "request_log"  # kafka.request.logger
    COUNTER = "counter"  # ErrorsPerSec of a broker, which names nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingVerdict:
    """The class of an episode, and why."""

    class_: FencingClass
    reason: FencingReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """A transactional id was initialised again: older epochs are fenced from then on."""

    producer_id: int
    producer_epoch: int  # that was given
    at_us: int  # by the coordinator's clock
    # Whether it aborted an open transaction; None: that, or the owner aborted it just before.
    is_cut: bool | None = False
    # Whether the owner itself raised its epoch (KIP-360); None: not known.
    is_own: bool | None = False
    instance: ClientInstance | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Return the producer id and epoch that were given, which identify it."""
        return self.producer_id, self.producer_epoch


def in_order(takeovers: Iterable[Takeover]) -> tuple[Takeover, ...]:
    """Return takeovers in their order: by epoch, and by time where the epochs of an id were used up."""
    every = tuple(takeovers)
    began = dict[int, int]()
    for each in every:
        began[each.producer_id] = min(each.at_us, began.get(each.producer_id, each.at_us))
    return tuple(sorted(every, key=lambda each: (began[each.producer_id], each.producer_epoch)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CutTransaction:
    """A transaction that was aborted by somebody other than its producer; times by the coordinator."""

    cut: Cut
    ended_us: int
    # None: only the coordinator's line is known.
    producer_id: int | None = None
    producer_epoch: int | None = None
    started_us: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedRequests:
    """Requests that were rejected as of an older epoch; the same ones are counted together."""

    source: RejectionSource
    request: str  # Kafka's name of the API
    error: str  # and of the error
    first_us: int  # by the broker's clock; of a counter between two observations, by ours
    last_us: int
    count: int = 1  # at least
    producer_id: int | None = None  # of the request, as is the epoch
    producer_epoch: int | None = None
    current_epoch: int | None = None  # that the broker had
    name: TopicPartition | None = None
    instance: ClientInstance | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the same requests have in common."""
        identity = None if self.instance is None else self.instance.identity
        producer = self.producer_id, self.producer_epoch
        return self.source, self.request, self.error, *producer, self.name, identity


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAbort:
    """A transaction that ended as aborted, by its owner as far as is known."""

    transactional_id: str
    producer_id: int
    producer_epoch: int  # of its records
    marker_epoch: int
    ended_us: int  # by the coordinator's clock
    seen_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRise:
    """A broker's counter of rejected requests rose between two observations."""

    request: str
    error: str
    since_us: int
    until_us: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFencing:
    """What an episode was last reported as; again when the class changes, or more is to be reported."""

    class_: FencingClass
    cuts: int
    rejections: int
    reported_us: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class FencingEpisode:
    """One transactional id, or one producer id where no transactional id is known."""

    id: str  # unique, lasting
    transactional_id: str | None
    producer_id: int | None
    first_seen_us: int
    last_seen_us: int
    takeovers: tuple[Takeover, ...] = ()  # in the order of `in_order`
    takeover_count: int = 0
    cuts: tuple[CutTransaction, ...] = ()  # ascending by when they ended
    cut_count: int = 0
    requests: tuple[FencedRequests, ...] = ()
    # Epochs of transactions that the owner aborted: as the request log says, or as far as is known.
    aborted_by_owner: tuple[int, ...] = ()
    aborted_epochs: tuple[int, ...] = ()
    has_request_log: bool = False  # the coordinator's requests about this id are read
    is_idempotent: bool | None = (
        None  # whether the producer has no transactional id; None: not known
    )
    verdict: FencingVerdict
    reported: ReportedFencing | None = None
    ended_us: int | None = None

    @property
    def rejections(self) -> int:
        """Return how many requests were rejected, as far as they are kept."""
        return sum(each.count for each in self.requests)

    @property
    def key(self) -> str:
        """Return what the episode is about, among those that are open."""
        return key_of(self.transactional_id, self.producer_id)


def key_of(transactional_id: str | None, producer_id: int | None) -> str:
    """Return the key of an episode; without both ids it is what brokers only counted."""
    if transactional_id is not None:
        return f"id {transactional_id}"
    return "counted" if producer_id is None else f"producer {producer_id}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FencingMemory:
    """The fencing episodes of one cluster id."""

    open: Mapping[str, FencingEpisode] = field(default_factory=dict)
    ended: tuple[FencingEpisode, ...] = ()  # ascending by when they ended
    # Recent aborts that no other instance is known to have made: an initialisation that follows at once,
    # or a late request of their epoch, is judged by them.
    aborts: tuple[OwnAbort, ...] = ()
    counted_us: Mapping[str, int] = field(default_factory=dict)  # by endpoint: rises judged so far
    waiting: tuple[CountedRise, ...] = ()  # until log lines of the same time are there
    dropped: int = 0  # episodes that were replaced, being too many

    @property
    def episodes(self) -> tuple[FencingEpisode, ...]:
        """Return all episodes, those that ended first."""
        return (*self.ended, *self.open.values())


def merge_fencing(stored: FencingMemory, seen: FencingMemory) -> FencingMemory:
    """Merge the stored episodes into memory; the verdicts are made anew by the next round."""
    ids = {episode.id for episode in seen.ended}
    joined = {
        key: join_episodes(stored.open[key], episode)
        for key, episode in seen.open.items()
        if key in stored.open
    }
    return FencingMemory(
        open={**stored.open, **seen.open, **joined},
        ended=(*(each for each in stored.ended if each.id not in ids), *seen.ended),
        aborts=tuple(dict.fromkeys((*stored.aborts, *seen.aborts))),
        counted_us={
            name: max(stored.counted_us.get(name, 0), seen.counted_us.get(name, 0))
            for name in {**stored.counted_us, **seen.counted_us}
        },
        waiting=tuple(dict.fromkeys((*stored.waiting, *seen.waiting))),
        dropped=stored.dropped + seen.dropped,
    )


def join_episodes(earlier: FencingEpisode, later: FencingEpisode) -> FencingEpisode:
    """Return one episode of two about the same id; the earlier one has the lasting name."""
    takeovers = {each.key: each for each in (*earlier.takeovers, *later.takeovers)}
    cuts = {(each.cut, each.ended_us): each for each in (*earlier.cuts, *later.cuts)}
    requests = dict[tuple[object, ...], FencedRequests]()
    for each in (*earlier.requests, *later.requests):
        before = requests.get(each.key)
        requests[each.key] = each if before is None else join_requests(before, each)
    return replace(
        later,
        id=earlier.id,
        first_seen_us=min(earlier.first_seen_us, later.first_seen_us),
        last_seen_us=max(earlier.last_seen_us, later.last_seen_us),
        takeovers=in_order(takeovers.values())[-KEPT_TAKEOVERS:],
        takeover_count=max(
            len(takeovers),
            earlier.takeover_count + later.takeover_count - _shared(earlier, later),
        ),
        cuts=tuple(sorted(cuts.values(), key=lambda each: each.ended_us))[-KEPT_CUTS:],
        cut_count=max(earlier.cut_count, later.cut_count, len(cuts)),
        requests=tuple(requests.values())[-KEPT_REQUESTS:],
        aborted_by_owner=_newest((*earlier.aborted_by_owner, *later.aborted_by_owner)),
        aborted_epochs=_newest((*earlier.aborted_epochs, *later.aborted_epochs)),
        has_request_log=earlier.has_request_log or later.has_request_log,
        is_idempotent=earlier.is_idempotent if later.is_idempotent is None else later.is_idempotent,
        verdict=earlier.verdict,
        reported=later.reported or earlier.reported,
    )


def join_requests(first: FencedRequests, second: FencedRequests) -> FencedRequests:
    """Return two counts of the same requests as one."""
    epochs = [e.current_epoch for e in (first, second) if e.current_epoch is not None]
    return replace(
        second,
        first_us=min(first.first_us, second.first_us),
        last_us=max(first.last_us, second.last_us),
        count=first.count + second.count,
        current_epoch=max(epochs, default=None),
    )


def _shared(earlier: FencingEpisode, later: FencingEpisode) -> int:
    keys = {each.key for each in earlier.takeovers}
    return sum(each.key in keys for each in later.takeovers)


def _newest(epochs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(epochs)))[-KEPT_ABORTS:]


def fencing_with_times(memory: FencingMemory, change: Callable[[int], int]) -> FencingMemory:
    """Return the memory with the times by our own clock changed."""
    return replace(
        memory,
        open={key: _move(episode, change) for key, episode in memory.open.items()},
        ended=tuple(_move(episode, change) for episode in memory.ended),
        aborts=tuple(replace(each, seen_us=change(each.seen_us)) for each in memory.aborts),
        counted_us={name: change(until) for name, until in memory.counted_us.items()},
        waiting=tuple(
            replace(rise, since_us=change(rise.since_us), until_us=change(rise.until_us))
            for rise in memory.waiting
        ),
    )


def latest_fencing_time(memory: FencingMemory) -> int:
    """Return the latest time by our own clock, 0 where there is none."""
    times = [episode.last_seen_us for episode in memory.open.values()]
    times += [episode.ended_us or 0 for episode in memory.ended]
    return max((*times, *memory.counted_us.values()), default=0)


def _move(episode: FencingEpisode, change: Callable[[int], int]) -> FencingEpisode:
    reported = episode.reported
    return replace(
        episode,
        first_seen_us=change(episode.first_seen_us),
        last_seen_us=change(episode.last_seen_us),
        reported=None
        if reported is None
        else replace(reported, reported_us=change(reported.reported_us)),
        ended_us=change_if_set(episode.ended_us, change),
    )
