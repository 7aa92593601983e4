"""Puts into an episode what a round found out: leader changes, batches, the producer's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rules.facts.batches import BatchesOf
from rules.facts.changed import changed
from rules.facts.episodes import Episode, LeaderChange, StateObservation
from rules.facts.identity import TopicPartition
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.arrivals import arrival_of
from rules.sequence.log_entries import reaches, resolved
from rules.sequence.proofs import proof_of
from rules.sequence.sight import Sight
from rules.sequence.sights import Sights

KnownChanges = Mapping[TopicPartition, tuple[LeaderChange, ...]]


def with_answers(episode: Episode, sights: Sights, sight: Sight, changes: KnownChanges) -> Episode:
    """Return an episode with all that this round found out of it."""
    if sight.error is SequenceReason.TOPIC_RECREATED:
        return episode
    if sight.leader_epoch is not None and not sight.is_change_untold:
        episode = _with_leaders(episode, sight)
    known = () if episode.name is None else changes.get(episode.name, ())
    if known:
        by_epoch = {one.leader_epoch: one for one in (*episode.changes, *known)}
        episode = replace(episode, changes=tuple(by_epoch[epoch] for epoch in sorted(by_epoch)))
    found = sights.batches.get(episode.key)
    if found is not None:
        episode = _with_batches(episode, found, sight.now_us, _end(sights, sight))
    observation = _observe_state(episode, sights, sight)
    return episode if observation is None else _with_state(episode, observation)


def _with_leaders(episode: Episode, sight: Sight) -> Episode:
    """Return an episode that keeps what is known of the leaders of its partition."""
    news = sight.leader_epoch, sight.watched_from, sight.clean_from
    if news == (episode.seen_epoch, episode.watched_from, episode.clean_from):
        return episode
    epoch, watched, clean = news
    return changed(episode, seen_epoch=epoch, watched_from=watched, clean_from=clean)


def proven(episode: Episode, sight: Sight) -> tuple[Rejection, ...]:
    """Return the rejections with what is proven of them by now."""
    found = tuple(_proven(rejection, episode, sight) for rejection in episode.rejections)
    is_same = all(one is other for one, other in zip(found, episode.rejections, strict=True))
    return episode.rejections if is_same else found


def _proven(rejection: Rejection, episode: Episode, sight: Sight) -> Rejection:
    proof = proof_of(rejection, episode, sight)
    is_new = proof is not None and rejection.proof_leader_epoch is None
    if proof is not rejection.proof or is_new:
        epoch = sight.leader_epoch if is_new else rejection.proof_leader_epoch
        rejection = changed(rejection, proof=proof, proof_leader_epoch=epoch)
    arrival = arrival_of(rejection, episode, sight)
    return rejection if arrival is rejection.arrival else changed(rejection, arrival=arrival)


def _end(sights: Sights, sight: Sight) -> int | None:
    """Return up to where there is something to scan."""
    return None if sight.row is None else sights.snapshot.offsets.high_watermark[sight.row]


def _with_batches(episode: Episode, found: BatchesOf, now_us: int, end: int | None) -> Episode:
    epochs = [one.producer_epoch for one in found.batches]
    epochs += [one.producer_epoch for one in found.markers]
    is_whole = reaches(episode.rejections, found)
    is_to_end = is_whole and end is not None and found.scanned_to >= end
    return changed(
        episode,
        rejections=resolved(episode.rejections, found),
        largest_batch=max(found.largest_batch or 0, episode.largest_batch or 0) or None,
        batches_scanned_us=now_us if is_whole else episode.batches_scanned_us,
        end_scanned_us=now_us if is_to_end else episode.end_scanned_us,
        newest_producer_epoch=_newest(episode, epochs),
    )


def _observe_state(episode: Episode, sights: Sights, sight: Sight) -> StateObservation | None:
    """Return what the leader told of the producer; only if this episode had asked."""
    if sight.row is None or sight.leader_epoch is None or not episode.is_asking:
        return None
    producers = sights.snapshot.producers
    states = producers.states.get(sight.row)
    if states is None or episode.producer_id is None or not producers.observed[sight.row]:
        return None
    return StateObservation(
        leader_epoch=sight.leader_epoch,
        observed_us=sight.now_us,
        state=states.get(episode.producer_id),
    )


def _with_state(episode: Episode, observation: StateObservation) -> Episode:
    epochs = [] if observation.state is None else [observation.state.producer_epoch]
    return changed(
        episode,
        first_state=episode.first_state or observation,
        last_state=observation,
        newest_producer_epoch=_newest(episode, epochs),
    )


def _newest(episode: Episode, epochs: Iterable[int]) -> int | None:
    known = [] if episode.newest_producer_epoch is None else [episode.newest_producer_epoch]
    return max([*known, *epochs], default=None)
