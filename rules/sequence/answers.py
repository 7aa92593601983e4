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
from rules.sequence.episode_context import EpisodeContext
from rules.sequence.episode_contexts import EpisodeContexts
from rules.sequence.log_entries import reaches, resolved
from rules.sequence.proofs import proof_of

KnownChanges = Mapping[TopicPartition, tuple[LeaderChange, ...]]


def with_answers(
    episode: Episode, contexts: EpisodeContexts, context: EpisodeContext, changes: KnownChanges
) -> Episode:
    """Return an episode with all that this round found out of it."""
    if context.error is SequenceReason.TOPIC_RECREATED:
        return episode
    if context.leader_epoch is not None and not context.is_change_unreported:
        episode = _with_leaders(episode, context)
    known = () if episode.name is None else changes.get(episode.name, ())
    if known:
        by_epoch = {one.leader_epoch: one for one in (*episode.changes, *known)}
        episode = replace(episode, changes=tuple(by_epoch[epoch] for epoch in sorted(by_epoch)))
    found = contexts.batches.get(episode.key)
    if found is not None:
        episode = _with_batches(episode, found, context.now_us, _end(contexts, context))
    observation = _observe_state(episode, contexts, context)
    return episode if observation is None else _with_state(episode, observation)


def _with_leaders(episode: Episode, context: EpisodeContext) -> Episode:
    """Return an episode that keeps what is known of the leaders of its partition."""
    news = context.leader_epoch, context.watched_from, context.clean_from
    if news == (episode.seen_epoch, episode.watched_from, episode.clean_from):
        return episode
    epoch, watched, clean = news
    return changed(episode, seen_epoch=epoch, watched_from=watched, clean_from=clean)


def proven(episode: Episode, context: EpisodeContext) -> tuple[Rejection, ...]:
    """Return the rejections with what is proven of them by now."""
    found = tuple(_proven(rejection, episode, context) for rejection in episode.rejections)
    is_same = all(one is other for one, other in zip(found, episode.rejections, strict=True))
    return episode.rejections if is_same else found


def _proven(rejection: Rejection, episode: Episode, context: EpisodeContext) -> Rejection:
    proof = proof_of(rejection, episode, context)
    is_new = proof is not None and rejection.proof_leader_epoch is None
    if proof is not rejection.proof or is_new:
        epoch = context.leader_epoch if is_new else rejection.proof_leader_epoch
        rejection = changed(rejection, proof=proof, proof_leader_epoch=epoch)
    arrival = arrival_of(rejection, episode, context)
    return rejection if arrival is rejection.arrival else changed(rejection, arrival=arrival)


def _end(contexts: EpisodeContexts, context: EpisodeContext) -> int | None:
    """Return up to where there is something to scan."""
    return None if context.row is None else contexts.snapshot.offsets.high_watermark[context.row]


def _with_batches(episode: Episode, found: BatchesOf, now_us: int, end: int | None) -> Episode:
    epochs = [batch.producer_epoch for batch in found.batches]
    epochs += [marker.producer_epoch for marker in found.markers]
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


def _observe_state(
    episode: Episode, contexts: EpisodeContexts, context: EpisodeContext
) -> StateObservation | None:
    """Return what the leader told of the producer; only if this episode had asked."""
    if context.row is None or context.leader_epoch is None or not episode.is_querying:
        return None
    producers = contexts.snapshot.producers
    states = producers.states.get(context.row)
    if states is None or episode.producer_id is None or not producers.observed[context.row]:
        return None
    return StateObservation(
        leader_epoch=context.leader_epoch,
        observed_us=context.now_us,
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
