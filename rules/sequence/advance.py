"""Carries episodes on by one round: new lines, answers, proofs, the verdict, and what to ask next.

It comes after the memory of offsets was advanced, because it needs what leader changes left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from rules.facts.batches import BatchesOf
from rules.facts.episodes import Episode, EpisodeKey, LeaderChange, SequenceMemory, StateLook
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.last_look import microseconds
from rules.facts.leaderships import Leaderships
from rules.facts.refusals import Refusal
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.facts.snapshot import Snapshot
from rules.loss.proof import Changes
from rules.sequence.changes import advance_changes
from rules.sequence.classify import (
    ASKED_AT_ONCE,
    ASKED_IN_A_ROW,
    ASKED_IN_ALL,
    is_final,
    is_patient,
    leading,
)
from rules.sequence.gathering import gathered, row_of
from rules.sequence.log_entries import looked_up, reaches
from rules.sequence.proofs import proof_of
from rules.sequence.sight import MICROSECOND, OnlyFailed, Sight
from rules.view import View

ENDS_AFTER: Final = timedelta(minutes=5)  # since the last refusal; a client gave up long before
LOSS_ENDS_AFTER: Final = timedelta(hours=1)  # an old leader that comes back tells the exact range
ENDED_KEPT: Final = timedelta(hours=24)
MAX_ENDED: Final = 1000
MAX_OPEN: Final = 1000
MAX_ASKING: Final = 100  # episodes of one round


def nobody_tells(*_: object) -> None:
    """Answer where no metrics of clients are read."""


def with_sequences(view: View, only_failed: OnlyFailed = nobody_tells) -> View:
    """Return a view whose memory holds this round of the sequences too."""
    sequences = advance_sequences(view, only_failed)
    return replace(view, memory=replace(view.memory, sequences=sequences))


def advance_sequences(view: View, only_failed: OnlyFailed = nobody_tells) -> SequenceMemory:
    """Return the memory of sequences one round later; `view.memory` holds that of the round before.

    `only_failed` names the one producer of a topic whose records failed within a time, if it was
    exactly one.
    """
    before, snapshot = view.memory.sequences, view.snapshot
    changes, leaderships = advance_changes(view, before)
    found = gathered(snapshot, before)
    if not found.open and not found.replaced and not before.ended:
        return SequenceMemory(changes=changes, leaderships=leaderships)
    sights = _Sights.of(view, leaderships)
    episodes = [
        _advanced(episode, snapshot, sights.of_episode(episode), changes, only_failed)
        for episode in found.open.values()
    ]
    known = SequenceMemory(ended=before.ended, changes=changes, leaderships=leaderships)
    return _sorted(known, episodes, found.replaced, sights)


def _advanced(
    episode: Episode,
    snapshot: Snapshot,
    sight: Sight,
    changes: Mapping[TopicPartition, tuple[LeaderChange, ...]],
    only_failed: OnlyFailed,
) -> Episode:
    if sight.trouble is not SequenceReason.TOPIC_RECREATED:
        episode = _with_changes(episode, changes)
        episode = _with_states(_with_batches(episode, snapshot), snapshot, sight)
    episode = replace(episode, refusals=tuple(_proven(episode, sight)))
    decided = leading(episode, sight, only_failed)
    place = episode.refusals.index(decided.refusal)
    episode = replace(episode, verdict=decided.verdict, leading=place)
    is_asking = _wants_more(episode, sight)
    return replace(
        episode,
        is_asking=is_asking,
        is_waiting=False,
        asked=episode.asked + is_asking,
        asked_in_all=episode.asked_in_all + is_asking,
    )


def _wants_more(episode: Episode, sight: Sight) -> bool:
    """Whether the next round should look: at once, and again when the client has given up."""
    if sight.trouble is not None or episode.asked_in_all >= ASKED_IN_ALL:
        return False
    if episode.verdict.is_confirmed:  # only whether it is sent once more under a new epoch
        is_stale = episode.verdict.class_ is SequenceClass.STALE_RETRY
        return is_stale and not episode.is_resent and episode.asked < ASKED_AT_ONCE
    most = ASKED_AT_ONCE if is_patient(episode, sight) else ASKED_IN_A_ROW
    return episode.asked < most


# ------------------------------------------------------------------ what was found since
def _with_changes(
    episode: Episode, changes: Mapping[TopicPartition, tuple[LeaderChange, ...]]
) -> Episode:
    known = () if episode.name is None else changes.get(episode.name, ())
    if not known:
        return episode
    by_epoch = {one.leader_epoch: one for one in (*episode.changes, *known)}
    return replace(episode, changes=tuple(by_epoch[epoch] for epoch in sorted(by_epoch)))


def _with_batches(episode: Episode, snapshot: Snapshot) -> Episode:
    for found in snapshot.batches:
        if (found.name, found.producer_id) == episode.key and found.looked_from >= 0:
            return _with_found(episode, found, microseconds(snapshot.taken_at))
    return episode


def _with_found(episode: Episode, found: BatchesOf, now_us: int) -> Episode:
    epochs = [one.producer_epoch for one in found.batches]
    epochs += [one.producer_epoch for one in found.markers]
    is_whole = reaches(episode.refusals, found)
    return replace(
        episode,
        refusals=looked_up(episode.refusals, found),
        largest_batch=max(found.largest_batch or 0, episode.largest_batch or 0) or None,
        batches_looked_us=now_us if is_whole else episode.batches_looked_us,
        newest_producer_epoch=_newest(episode, epochs),
    )


def _with_states(episode: Episode, snapshot: Snapshot, sight: Sight) -> Episode:
    row = row_of(snapshot, episode.name)
    if row is None or episode.producer_id is None or sight.leader_epoch is None:
        return episode
    if not episode.is_asking:
        return episode  # nobody asked for this producer
    states = snapshot.producers.states.get(row)
    if states is None or not snapshot.producers.looked[row]:
        return episode
    look = StateLook(
        leader_epoch=sight.leader_epoch,
        looked_us=sight.now_us,
        state=states.get(episode.producer_id),
    )
    epochs = [] if look.state is None else [look.state.producer_epoch]
    return replace(
        episode,
        first_state=episode.first_state or look,
        last_state=look,
        newest_producer_epoch=_newest(episode, epochs),
    )


def _newest(episode: Episode, epochs: Iterable[int]) -> int | None:
    known = [] if episode.newest_producer_epoch is None else [episode.newest_producer_epoch]
    return max([*known, *epochs], default=None)


def _proven(episode: Episode, sight: Sight) -> Iterable[Refusal]:
    for refusal in episode.refusals:
        proof = proof_of(refusal, episode, sight)
        is_new = proof is not None and refusal.proof_leader_epoch is None
        epoch = sight.leader_epoch if is_new else refusal.proof_leader_epoch
        yield replace(refusal, proof=proof, proof_leader_epoch=epoch)


# ------------------------------------------------------------------ what is seen
@dataclass(frozen=True, slots=True, eq=False)
class _Sights:
    """What this round shows of partitions."""

    view: View
    leaderships: Leaderships
    untold: frozenset[int]  # rows whose new leader has not told what is left
    look_trouble: SequenceReason | None

    @classmethod
    def of(cls, view: View, leaderships: Leaderships) -> _Sights:
        changes = Changes.of(view)
        untold = () if changes is None else changes.rows[changes.waiting].tolist()
        causes = {gap.cause for gap in view.snapshot.gaps if gap.scope is GapScope.BATCHES}
        trouble = SequenceReason.LOOK_FAILED if causes else None
        if GapCause.NOT_AUTHORIZED in causes:
            trouble = SequenceReason.NOT_READABLE
        return cls(view, leaderships, frozenset(untold), trouble)

    def of_episode(self, episode: Episode) -> Sight:
        """Return what it shows of an episode's partition."""
        now, row = microseconds(self.view.now), row_of(self.view.snapshot, episode.name)
        if row is None:
            return Sight(now_us=now, trouble=self._trouble(episode, row))
        is_answered = any(
            (one.name, one.producer_id) == episode.key for one in self.view.snapshot.batches
        )
        known = None if episode.name is None else self.leaderships.row(episode.name)
        watch = self.leaderships
        return Sight(
            now_us=now,
            leader_epoch=self.view.snapshot.offsets.leader_epoch[row],
            epoch_since_us=None if known is None else watch.since_us[known],
            watched_from=None if known is None else watch.watched_from[known],
            is_change_untold=row in self.untold,
            trouble=self._trouble(episode, row),
            look_trouble=None if is_answered or not episode.asked else self.look_trouble,
        )

    def _trouble(self, episode: Episode, row: int | None) -> SequenceReason | None:
        if episode.name is None:
            return SequenceReason.PARTITION_NOT_TOLD
        if row is None:
            return SequenceReason.PARTITION_NOT_SEEN
        present = self.view.snapshot.partitions.topic_id(row)
        if None not in (present, episode.topic_id) and present != episode.topic_id:
            return SequenceReason.TOPIC_RECREATED
        if self.view.snapshot.offsets.leader_epoch[row] is None:
            return SequenceReason.PARTITION_NOT_SEEN
        return SequenceReason.PRODUCER_NOT_TOLD if episode.producer_id is None else None


# ------------------------------------------------------------------ what has ended
def _sorted(
    known: SequenceMemory,
    episodes: Sequence[Episode],
    replaced: Iterable[Episode],
    sights: _Sights,
) -> SequenceMemory:
    """Put aside the episodes that are over, and let the newest of the others ask."""
    now = microseconds(sights.view.now)
    over = [one for one in episodes if _is_over(one, sights.of_episode(one))]
    ids = {one.id for one in over}
    left = [one for one in episodes if one.id not in ids]
    if len(left) > MAX_OPEN:
        left.sort(key=lambda one: (not one.verdict.is_confirmed, one.last_seen_us))
        over, left = [*over, *left[:-MAX_OPEN]], left[-MAX_OPEN:]
    ended = (*known.ended, *(_ended(one, now) for one in (*replaced, *over)))
    oldest = now - ENDED_KEPT // MICROSECOND
    return replace(
        known,
        open=_taking_turns(left),
        ended=tuple(one for one in ended if (one.ended_us or now) > oldest)[-MAX_ENDED:],
    )


def _ended(episode: Episode, now_us: int) -> Episode:
    return replace(episode, ended_us=now_us, is_asking=False, is_waiting=False)


def _is_over(episode: Episode, sight: Sight) -> bool:
    """Whether nothing was refused for a while, and nothing more is to be found out."""
    is_loss = episode.verdict.class_ is SequenceClass.LOSS
    waits = LOSS_ENDS_AFTER if is_loss else ENDS_AFTER
    if sight.now_us < episode.last_seen_us + waits // MICROSECOND:
        return False
    return episode.verdict.is_confirmed or is_final(episode, sight)


def _taking_turns(episodes: Iterable[Episode]) -> dict[EpisodeKey, Episode]:
    """Let the newest of many episodes ask; the others wait."""
    found = {one.key: one for one in episodes}
    asking = sorted(
        (one for one in found.values() if one.is_asking), key=lambda one: -one.last_seen_us
    )
    for one in asking[MAX_ASKING:]:
        asked, in_all = one.asked - 1, one.asked_in_all - 1
        found[one.key] = replace(
            one, is_asking=False, is_waiting=True, asked=asked, asked_in_all=in_all
        )
    return found
