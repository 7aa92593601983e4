"""Which episodes a round tells anew, and how a rule tells them: one subject per partition.

An episode is told when it is proven, or when no answer is awaited that could change it, and again
when more is known of it. Partitions without an episode of the last day are no subjects: a quiet
cluster costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.broker_log import BrokerLog
from rules.facts.column import marked
from rules.facts.episodes import Episode
from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.loss.loss_evidence import timestamp
from rules.question import Question
from rules.sequence.explained import explain_episode
from rules.sequence.numbers import RANK
from rules.verdict import RuleMeta, SubjectKind, Verdict
from rules.view import View

SHOWN: Final = 20  # episodes of one partition

ReasonOf: TypeAlias = Callable[[Episode], Reason | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """The reasons of one rule of sequences, as far as all of them need them."""

    of: ReasonOf  # None: the episode is another rule's
    nothing_new: Reason
    no_source: Reason
    log_not_read: Reason
    too_many: Reason
    partition_not_reported: Reason
    investigating: Reason
    # Where an episode is remembered for this reason, what is new is told beside it.
    lasting: Reason | None = None
    # Where what was told as this class is proven to be something else, it is told for this reason.
    refuted: tuple[SequenceClass, Reason] | None = None


def newly_reported(view: View) -> tuple[Episode, ...]:
    """Return the episodes of which this round says something that was not said before."""
    now = view.memory.sequences
    if not now.open and (view.before is None or not view.before.sequences.open):
        return ()
    known = () if view.before is None else view.before.sequences.episodes
    before = {one.id: _times(one) for one in known}
    return tuple(episode for episode in now.episodes if _times(episode) > before.get(episode.id, 0))


def _times(episode: Episode) -> int:
    return 0 if episode.reported is None else episode.reported.times


def judge_episodes(
    view: View, rule: RuleMeta, reasons: Reasons, questions: tuple[Question, ...] = ()
) -> Judgement:
    """Judge the partitions with episodes; a BREACH says what is new of one."""
    names = _names(view)
    if not names:
        return _of_cluster(view, rule, reasons, questions)
    new = {one.id: one for one in newly_reported(view)}
    told = _by_name(view, new.values(), reasons)
    told = {**_refuted(view, new.values(), reasons), **told}
    quiet = _quiet(view, reasons)

    def details(position: int) -> dict[str, EvidenceValue]:
        episodes = told.get(names[position])
        return _details(view, episodes, new) if episodes else _unknown_details(view, quiet)

    awaited = _awaited(view) if quiet[0] is Verdict.OK else ()
    places: dict[Reason, list[int]] = {}
    for place, name in enumerate(names):
        if name in told:
            places.setdefault(_reason(told[name][0], reasons), []).append(place)
    return decide(
        rule,
        NamedSubjects(SubjectKind.PARTITION, tuple(_labels(view, name) for name in names)),
        [
            Case(marked(len(names), found), Verdict.BREACH, reason)
            for reason, found in places.items()
        ]
        + [
            Case(
                np.array([name in awaited for name in names], np.bool_),
                Verdict.UNKNOWN,
                reasons.investigating,
            )
        ],
        quiet,
        details=details,
        questions=questions,
    )


def _reason(episode: Episode, reasons: Reasons) -> Reason:
    """Return why an episode is told: as a rule's own, or as none of it any more."""
    refuted = reasons.nothing_new if reasons.refuted is None else reasons.refuted[1]
    return reasons.of(episode) or refuted


def _refuted(
    view: View, new: Iterable[Episode], reasons: Reasons
) -> dict[TopicPartition, list[Episode]]:
    """Return by partition the episodes that were told as a rule's own, and are proven not to be.

    Where others are still its own the partition is told for these: not at all if one is lasting.
    """
    if reasons.refuted is None or view.before is None:
        return {}
    class_, _ = reasons.refuted
    before = {one.id: one.reported for one in view.before.sequences.open.values()}
    found: dict[TopicPartition, list[Episode]] = {}
    for one in new:
        known = before.get(one.id)
        was_own = known is not None and known.class_ is class_
        if one.name is not None and was_own and one.verdict.is_confirmed and not reasons.of(one):
            found.setdefault(one.name, []).append(one)
    if not found:
        return {}
    unchanged: dict[TopicPartition, list[Episode]] = {}
    for episode in view.memory.sequences.episodes:
        if episode.name in found and episode.reported is not None and reasons.of(episode):
            unchanged.setdefault(episode.name, []).append(episode)
    return {
        name: sorted(unchanged.get(name, ()), key=_badness) or episodes
        for name, episodes in found.items()
        if not any(reasons.of(one) is reasons.lasting for one in unchanged.get(name, ()))
    }


def _of_cluster(
    view: View, rule: RuleMeta, reasons: Reasons, questions: tuple[Question, ...]
) -> Judgement:
    """Answer where nothing was rejected: whether that is known, and whether anybody wanted to know."""
    subject = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": view.snapshot.cluster},))
    quiet = _quiet(view, reasons)

    def details(_: int) -> dict[str, EvidenceValue]:
        return _unknown_details(view, quiet)

    return decide(rule, subject, [], quiet, details=details, questions=questions)


def _quiet(view: View, reasons: Reasons) -> tuple[Verdict, Reason]:
    """Return what is said where nothing is new: it may be that it could not be told."""
    if any(gap.scope is GapScope.BROKER_LOG for gap in view.snapshot.gaps):
        return Verdict.UNKNOWN, reasons.log_not_read
    if view.memory.sequences.unreported:
        return Verdict.UNKNOWN, reasons.too_many
    if any(_may_be_of(one, reasons) for one in _nameless(view)):
        return Verdict.UNKNOWN, reasons.partition_not_reported
    log: BrokerLog = view.snapshot.broker_log
    return Verdict.OK, reasons.nothing_new if log.is_read else reasons.no_source


def _awaited(view: View) -> frozenset[TopicPartition | None]:
    """Return the partitions of which it is still to be found out what an episode is."""
    known = view.memory.sequences.open.values()
    return frozenset(one.name for one in known if not one.verdict.is_confirmed)


def _nameless(view: View) -> list[Episode]:
    return [episode for episode in view.memory.sequences.episodes if episode.name is None]


def _may_be_of(episode: Episode, reasons: Reasons) -> bool:
    """Whether an episode is what a rule is about, as far as is known."""
    return reasons.of(episode) is not None or not episode.verdict.is_confirmed


def _names(view: View) -> list[TopicPartition]:
    found = {episode.name for episode in view.memory.sequences.episodes if episode.name is not None}
    return sorted(found)


def _by_name(
    view: View, new: Iterable[Episode], reasons: Reasons
) -> dict[TopicPartition, list[Episode]]:
    """Return what is told of the partitions of which something is new, the worst first."""
    found: dict[TopicPartition, dict[str, Episode]] = {}
    for one in new:
        if one.name is not None and reasons.of(one) is not None:
            found.setdefault(one.name, {})[one.id] = one
    if found and reasons.lasting is not None:
        for episode in view.memory.sequences.episodes:
            if episode.name in found and reasons.of(episode) is reasons.lasting:
                found[episode.name][episode.id] = episode
    return {name: sorted(episodes.values(), key=_badness) for name, episodes in found.items()}


def _badness(episode: Episode) -> tuple[int, bool, int]:
    said = episode.verdict
    return RANK.index(said.class_), not said.is_confirmed, episode.first_seen_us


def _labels(view: View, name: TopicPartition) -> dict[str, str]:
    return {
        "cluster": view.snapshot.cluster,
        "topic": name.topic,
        "partition": str(name.partition),
    }


# ------------------------------------------------------------------ evidence
def _details(
    view: View, episodes: Sequence[Episode], new: Collection[str]
) -> dict[str, EvidenceValue]:
    return {
        "topic_id": episodes[0].topic_id,
        **told(episodes[0]),
        "episodes": [_short(episode, is_new=episode.id in new) for episode in episodes[:SHOWN]],
        "episode_count": len(episodes),
        "source_errors": _errors(view.snapshot.broker_log),
    }


def _unknown_details(view: View, quiet: tuple[Verdict, Reason]) -> dict[str, EvidenceValue]:
    """Return what keeps a rule from telling, where something does."""
    if quiet[0] is not Verdict.UNKNOWN:
        return {}
    nameless = _nameless(view)
    return {
        "source_errors": _errors(view.snapshot.broker_log),
        "untold_episodes": view.memory.sequences.unreported,
        "without_partition": [_short(one, is_new=False) for one in nameless[-SHOWN:]],
        "without_partition_count": len(nameless),
    }


def told(episode: Episode) -> dict[str, EvidenceValue]:
    """Return all that is known of one episode, as evidence."""
    said = explain_episode(episode)
    verdict = said.verdict
    return {
        "episode": episode.id,
        "class": str(verdict.class_),
        "phase": str(verdict.phase),
        "why": str(verdict.reason),
        "explanation": said.explanation,
        "needed_evidence": said.needed_evidence,
        "check": said.check,
        "producer_id": said.producer_id,
        "producer_epoch": said.producer_epoch,
        "offset": said.offset,
        "incoming_sequence": said.incoming_sequence,
        "current_sequence": said.current_sequence,
        "gap": said.gap,
        "lost_from": verdict.lost_from,
        "lost_to": verdict.lost_to,
        "lost_offsets": verdict.lost_offsets,
        "at_most_records": verdict.at_most_records,
        "first_seen": timestamp(episode.first_seen_us),
        "last_seen": timestamp(episode.last_seen_us),
        **said.evidence,
    }


def _short(episode: Episode, *, is_new: bool) -> dict[str, Scalar]:
    said = explain_episode(episode)
    return {
        "episode": episode.id,
        "producer_id": said.producer_id,
        "class": str(said.class_),
        "phase": str(said.phase),
        "why": str(said.reason),
        "gap": said.gap,
        "rejections": said.rejections,
        "is_new": is_new,
    }


def _errors(log: BrokerLog) -> list[dict[str, Scalar]]:
    troubled = [source for source in log.sources if source.error is not None]
    return [{"source": one.name, "error": one.error} for one in troubled[:SHOWN]]
