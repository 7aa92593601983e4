"""Sorts what a round observed into fencing episodes: takeovers, cut transactions, rejected requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.fencing import (
    KEPT_ABORTS,
    FencingEpisode,
    FencingMemory,
    OwnAbort,
    join_episodes,
    key_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.transaction_log import EndedTransaction, Outcome
from rules.facts.transactions import IdVisibility
from rules.fencing.gathered import Gathered
from rules.fencing.log_lines import add_lines
from rules.fencing.takeovers import add_cut, add_initialised

# As long as a client may go on sending a batch (delivery.timeout.ms), and as requests wait.
ABORTS_KEPT: Final = timedelta(minutes=5)
MAX_ABORTS: Final = 5000


def gather(snapshot: Snapshot, before: FencingMemory) -> Gathered:
    """Return the episodes with what this round observed, and the aborts to remember."""
    now = microseconds(snapshot.taken_at)
    aborts = (*before.aborts, *_own_aborts(snapshot.transaction_log.ended, now))
    oldest = now - ABORTS_KEPT // MICROSECOND
    recent = tuple(each for each in aborts if each.seen_us > oldest)[-MAX_ABORTS:]
    gathered = Gathered(snapshot=snapshot, now_us=now, open=dict(before.open), aborts=recent)
    for ended in snapshot.transaction_log.ended:
        if ended.cut is not None:
            add_cut(gathered, ended)
    for initialised in snapshot.transaction_log.initialised:
        add_initialised(gathered, initialised)
    add_lines(gathered)
    _resolve(gathered)
    _note_aborts(gathered)
    return gathered


def _own_aborts(ended: Iterable[EndedTransaction], now_us: int) -> Iterable[OwnAbort]:
    for each in ended:
        if each.outcome is Outcome.ABORTED and each.cut is None and each.marker_epoch is not None:
            yield OwnAbort(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                marker_epoch=each.marker_epoch,
                ended_us=microseconds(each.ended_at),
                seen_us=now_us,
            )


def _resolve(gathered: Gathered) -> None:
    """Find the transactional id of producers, or that they have none, by the coordinators' answers."""
    unknown = [
        each
        for each in gathered.open.values()
        if each.transactional_id is None
        and each.producer_id is not None
        and each.is_idempotent is None
    ]
    if not unknown:
        return
    transactions = gathered.snapshot.transactions
    is_visible = transactions.visibility is not IdVisibility.UNPROVEN
    resolved = transactions.resolved if is_visible else frozenset()
    for episode in unknown:
        owner = gathered.owner_of(episode.producer_id or 0)
        if owner is not None:
            _rename(gathered, episode, owner)
        elif transactions.is_complete and (
            not transactions.was_ever_used or episode.producer_id in resolved
        ):
            gathered.touched.add(episode.key)
            gathered.open[episode.key] = replace(episode, is_idempotent=True)


def _rename(gathered: Gathered, episode: FencingEpisode, transactional_id: str) -> None:
    """Make an episode of a producer id one of its transactional id."""
    del gathered.open[episode.key]
    gathered.touched.discard(episode.key)
    named = replace(episode, transactional_id=transactional_id)
    existing = gathered.open.get(named.key)
    gathered.touched.add(named.key)
    gathered.open[named.key] = named if existing is None else join_episodes(existing, named)


def _note_aborts(gathered: Gathered) -> None:
    """Note at episodes with rejected requests which epochs their owners are known to have left."""
    names = {
        episode.transactional_id
        for key in gathered.touched
        if (episode := gathered.open.get(key)) is not None and episode.requests
    }
    for name in names - {None}:
        episode = gathered.open[key_of(name, None)]
        aborts = gathered.aborts_of(name or "")
        epochs = {*episode.aborted_epochs, *(each.producer_epoch for each in aborts)}
        gathered.open[episode.key] = replace(
            episode, aborted_epochs=tuple(sorted(epochs))[-KEPT_ABORTS:]
        )
