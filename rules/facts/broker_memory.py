"""Since when brokers are gone or silent, and how the controller moved; carried from round to round.

A broker counts as gone while it has replicas and is not registered; one without replicas is of no
consequence, as after it was decommissioned. What a round did not see keeps its older state. It is in
the checkpoint. Times are microseconds since 1970-01-01 UTC, by our own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.brokers import ControllerState, Quorum
from rules.facts.identity import Broker
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND, change_if_set

HISTORY: Final = timedelta(hours=1)  # for which changes of the controller are remembered
CHANGES_KEPT: Final = 100  # the newest
# An absence that no round observed for longer than this begins anew: otherwise two short ones, and nothing
# known in between, would be a long one. What lasts for less does not count as absent by its rule.
LONGEST_UNSEEN: Final = timedelta(minutes=2)
FORGOTTEN_AFTER: Final = timedelta(days=7)  # of a broker that is listed no more and has no replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBroker:
    """A broker as it was registered last."""

    host: str
    port: int
    rack: str | None
    listed_us: int  # the last round that listed it


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerTerm:
    """An active controller, and when it was first seen in its leader epoch."""

    leader: int
    leader_epoch: int
    seen_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMemory:
    """The memory of a cluster's brokers and of its controllers."""

    listed: Mapping[int, ListedBroker] = field(default_factory=dict)  # by broker id
    gone_us: Mapping[int, int] = field(default_factory=dict)  # the first round that missed it
    silent_us: Mapping[int, int] = field(default_factory=dict)  # the first round without an answer
    no_controller_us: int | None = None  # the first round without an active controller
    no_controller_seen_us: int | None = None  # the last one of these
    terms: tuple[ControllerTerm, ...] = ()  # oldest first; the first one began before it was seen
    answered: frozenset[int] = frozenset()  # brokers that have answered this process; not stored

    def changes_since(self, since_us: int) -> tuple[ControllerTerm, ...]:
        """Return the terms that were seen to begin after a time: each is an election."""
        return tuple(term for term in self.terms[1:] if term.seen_us > since_us)

    def with_times(self, change: Callable[[int], int]) -> BrokerMemory:
        """Return the memory with its times changed."""
        return BrokerMemory(
            listed={
                broker: replace(entry, listed_us=change(entry.listed_us))
                for broker, entry in self.listed.items()
            },
            gone_us={broker: change(at) for broker, at in self.gone_us.items()},
            silent_us={broker: change(at) for broker, at in self.silent_us.items()},
            no_controller_us=change_if_set(self.no_controller_us, change),
            no_controller_seen_us=change_if_set(self.no_controller_seen_us, change),
            terms=tuple(replace(term, seen_us=change(term.seen_us)) for term in self.terms),
            answered=self.answered,
        )

    @property
    def latest_us(self) -> int:
        """Return the latest of its times, 0 where there is none."""
        return max(
            (
                *(entry.listed_us for entry in self.listed.values()),
                *self.gone_us.values(),
                *self.silent_us.values(),
                *(term.seen_us for term in self.terms),
                self.no_controller_us or 0,
                self.no_controller_seen_us or 0,
            ),
        )


def advance_brokers(snapshot: Snapshot, now_us: int, old: BrokerMemory) -> BrokerMemory:
    """Return the memory one round later."""
    registered = {int(broker.broker_id) for broker in snapshot.brokers}
    gone = _missing(snapshot, registered, old) if registered else set(old.gone_us)
    answered, silent = snapshot.contact.answered, set(snapshot.contact.silent)
    not_queried = (old.silent_us.keys() & registered) - answered
    absent, absent_seen = _no_controller(snapshot.quorum, now_us, old)
    return BrokerMemory(
        listed=_listed(snapshot.brokers, gone, now_us, old),
        gone_us={broker: old.gone_us.get(broker, now_us) for broker in sorted(gone)},
        silent_us={
            broker: old.silent_us.get(broker, now_us) for broker in sorted(silent | not_queried)
        },
        no_controller_us=absent,
        no_controller_seen_us=absent_seen,
        terms=_terms(snapshot.quorum, now_us, old),
        answered=old.answered | {int(broker) for broker in answered},
    )


def merge_brokers(stored: BrokerMemory, seen: BrokerMemory) -> BrokerMemory:
    """Merge the stored memory of an earlier process; what was seen to be well since then is well.

    Gone brokers that were not missed are kept: the next complete list decides whether they have replicas.
    """
    gone = {broker: at for broker, at in stored.gone_us.items() if broker not in seen.listed}
    return BrokerMemory(
        listed={**stored.listed, **seen.listed},
        gone_us={
            **gone,
            **{broker: min(at, gone.get(broker, at)) for broker, at in seen.gone_us.items()},
        },
        silent_us={
            broker: at if broker in seen.answered else min(at, stored.silent_us.get(broker, at))
            for broker, at in seen.silent_us.items()
        },
        no_controller_us=_merged_absence(stored, seen),
        no_controller_seen_us=seen.no_controller_seen_us,
        terms=_merged_terms(stored.terms, seen.terms),
        answered=seen.answered,
    )


def _missing(snapshot: Snapshot, registered: set[int], old: BrokerMemory) -> set[int]:
    """Return the brokers with replicas that are not registered; without all topics, older ones too."""
    holding = set(np.unique(snapshot.partitions.replicas.values).tolist())
    still_gone = set() if snapshot.placement_complete else set(old.gone_us)
    return (holding | still_gone) - registered


def _listed(
    brokers: tuple[Broker, ...], gone: set[int], now_us: int, old: BrokerMemory
) -> dict[int, ListedBroker]:
    oldest = now_us - FORGOTTEN_AFTER // MICROSECOND
    unlisted = {
        broker: entry
        for broker, entry in old.listed.items()
        if broker in gone or entry.listed_us > oldest
    }
    listed = {
        int(broker.broker_id): ListedBroker(
            host=broker.host, port=broker.port, rack=broker.rack, listed_us=now_us
        )
        for broker in brokers
    }
    return {**unlisted, **listed}


def _no_controller(quorum: Quorum, now_us: int, old: BrokerMemory) -> tuple[int | None, int | None]:
    """Return the first and the last round of an absence of the controller."""
    match quorum.state:
        case ControllerState.ACTIVE:
            return None, None
        case ControllerState.NOT_KNOWN:
            return old.no_controller_us, old.no_controller_seen_us
        case _:
            return _continued(old, now_us), now_us


def _continued(before: BrokerMemory, since_us: int) -> int:
    """Return when an absence that was observed at `since_us` began, as far as rounds observed it."""
    began, seen = before.no_controller_us, before.no_controller_seen_us
    if began is None or seen is None or since_us - seen > LONGEST_UNSEEN // MICROSECOND:
        return since_us
    return min(began, since_us)


def _merged_absence(stored: BrokerMemory, seen: BrokerMemory) -> int | None:
    """Return since when there is no controller; a term that this process saw ended what was stored."""
    since_us = seen.no_controller_us
    return since_us if since_us is None or seen.terms else _continued(stored, since_us)


def _terms(quorum: Quorum, now_us: int, old: BrokerMemory) -> tuple[ControllerTerm, ...]:
    """Add the term of this round, if it is another one; a lower epoch is an older answer."""
    terms = _recent(old.terms, now_us)
    if quorum.leader is None or quorum.leader_epoch is None:
        return terms
    if terms and quorum.leader_epoch <= terms[-1].leader_epoch:
        return terms
    term = ControllerTerm(
        leader=int(quorum.leader), leader_epoch=quorum.leader_epoch, seen_us=now_us
    )
    return (*terms, term)[-CHANGES_KEPT:]


def _recent(terms: tuple[ControllerTerm, ...], now_us: int) -> tuple[ControllerTerm, ...]:
    """Return the terms of the last hour, and the one before them."""
    oldest = now_us - HISTORY // MICROSECOND
    begun = [place for place, term in enumerate(terms) if term.seen_us <= oldest]
    return terms[begun[-1] :] if begun else terms


def _merged_terms(
    stored: tuple[ControllerTerm, ...], seen: tuple[ControllerTerm, ...]
) -> tuple[ControllerTerm, ...]:
    newest = stored[-1].leader_epoch if stored else -1
    return (*stored, *(term for term in seen if term.leader_epoch > newest))[-CHANGES_KEPT:]
