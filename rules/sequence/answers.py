"""Adds a round's answers to an episode: leader changes, scanned batches, the producer's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rules.facts.batches import BatchesOf
from rules.facts.column import replace_fields
from rules.facts.episodes import Episode, LeaderChange, StateObservation
from rules.facts.identity import TopicPartition
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.arrivals import arrival_of
from rules.sequence.episode_context import EpisodeContext, EpisodeContexts
from rules.sequence.log_entries import covers_rejections, resolve_rejections
from rules.sequence.proofs import proof_of

KnownChanges = Mapping[TopicPartition, tuple[LeaderChange, ...]]


def with_answers(
    episode: Episode, contexts: EpisodeContexts, context: EpisodeContext, changes: KnownChanges
) -> Episode:
    """Return an episode with this round's leader changes, batches and producer state."""
    if context.error is SequenceReason.TOPIC_RECREATED:
        return episode
    if context.leader_epoch is not None and not context.is_change_unreported:
        episode = _with_leaders(episode, context)
    known_changes = () if episode.name is None else changes.get(episode.name, ())
    if known_changes:
        by_epoch = {change.leader_epoch: change for change in (*episode.changes, *known_changes)}
        episode = replace(episode, changes=tuple(by_epoch[epoch] for epoch in sorted(by_epoch)))
    batches = contexts.batches.get(episode.key)
    if batches is not None:
        episode = _with_batches(episode, batches, context.now_us, _scan_end(contexts, context))
    observation = _observe_state(episode, contexts, context)
    return episode if observation is None else _with_state(episode, observation)


def _with_leaders(episode: Episode, context: EpisodeContext) -> Episode:
    """Return an episode with the present leader epoch, and since when its leaders are watched."""
    news = context.leader_epoch, context.watched_from, context.clean_from
    if news == (episode.seen_epoch, episode.watched_from, episode.clean_from):
        return episode
    epoch, watched, clean = news
    return replace_fields(episode, seen_epoch=epoch, watched_from=watched, clean_from=clean)


def prove_rejections(episode: Episode, context: EpisodeContext) -> tuple[Rejection, ...]:
    """Return the rejections of an episode with their proofs and arrivals as of this round."""
    rejections = tuple(
        _prove_rejection(rejection, episode, context) for rejection in episode.rejections
    )
    is_same = all(new is old for new, old in zip(rejections, episode.rejections, strict=True))
    return episode.rejections if is_same else rejections


def _prove_rejection(rejection: Rejection, episode: Episode, context: EpisodeContext) -> Rejection:
    proof = proof_of(rejection, episode, context)
    is_new = proof is not None and rejection.proof_leader_epoch is None
    if proof is not rejection.proof or is_new:
        epoch = context.leader_epoch if is_new else rejection.proof_leader_epoch
        rejection = replace_fields(rejection, proof=proof, proof_leader_epoch=epoch)
    arrival = arrival_of(rejection, episode, context)
    return rejection if arrival is rejection.arrival else replace_fields(rejection, arrival=arrival)


def _scan_end(contexts: EpisodeContexts, context: EpisodeContext) -> int | None:
    """Return the high watermark of the partition: a scan reaches no further."""
    return None if context.row is None else contexts.snapshot.offsets.high_watermark[context.row]


def _with_batches(episode: Episode, batches: BatchesOf, now_us: int, end: int | None) -> Episode:
    epochs = [batch.producer_epoch for batch in batches.batches]
    epochs += [marker.producer_epoch for marker in batches.markers]
    is_whole = covers_rejections(episode.rejections, batches)
    is_to_end = is_whole and end is not None and batches.scanned_to >= end
    return replace_fields(
        episode,
        rejections=resolve_rejections(episode.rejections, batches),
        largest_batch=max(batches.largest_batch or 0, episode.largest_batch or 0) or None,
        batches_scanned_us=now_us if is_whole else episode.batches_scanned_us,
        end_scanned_us=now_us if is_to_end else episode.end_scanned_us,
        newest_producer_epoch=_newest_epoch(episode, epochs),
    )


def _observe_state(
    episode: Episode, contexts: EpisodeContexts, context: EpisodeContext
) -> StateObservation | None:
    """Return the producer's state at the leader, if this episode had requested it."""
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
    return replace_fields(
        episode,
        first_state=episode.first_state or observation,
        last_state=observation,
        newest_producer_epoch=_newest_epoch(episode, epochs),
    )


def _newest_epoch(episode: Episode, epochs: Iterable[int]) -> int | None:
    seen_epochs = [] if episode.newest_producer_epoch is None else [episode.newest_producer_epoch]
    return max([*seen_epochs, *epochs], default=None)
