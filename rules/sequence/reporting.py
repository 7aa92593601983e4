"""Selects the episodes that a round reports, and judges them for a rule: one subject per partition.

An episode is reported when it is proven, or when no further answer could change it, and again when
more is known of it. Partitions without an episode of the last day are no subjects: a quiet cluster
costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from rules.evidence import Evidence, generic
from rules.facts.broker_log import BrokerLog
from rules.facts.column import marked
from rules.facts.episodes import Episode
from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.sequence_verdicts import SequenceClass
from rules.facts.times import iso_time
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.question import Question
from rules.sequence.evidence_fields import SequenceEvidence, ShortEpisode, SourceError
from rules.sequence.explained import explain_episode
from rules.sequence.numbers import RANK
from rules.sequence.transaction_outcome import costs_transaction
from rules.suspicion.evidence import list_suspicion_evidence
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

SHOWN: Final = 20  # episodes of one partition

ReasonOf: TypeAlias = Callable[[Episode], Reason | None]


class CommonReason(Reason):
    """Reasons of every sequence rule for partitions of which it reports nothing."""

    NOTHING_NEW = "nothing_new"
    NO_SOURCE = "no_source"  # no source of broker logs is configured
    LOG_NOT_READ = "log_not_read"  # a source is configured and could not be read
    # A broker counted rejected batches, no line shows whose, and a loss cannot be excluded
    REJECTIONS_COUNTED = "rejections_counted"
    TOO_MANY = "too_many"  # more producers were rejected in the last day than Tidemark keeps
    # Log lines of the last day lack it (before Kafka 2.2)
    PARTITION_NOT_REPORTED = "partition_not_reported"
    INVESTIGATING = "investigating"  # a producer was rejected, and nothing is proven yet


def sequence_rule(
    rule_id: str,
    severity: Severity,
    summary: str,
    *,
    milder: tuple[tuple[str, Severity], ...] = (),
    lowering: tuple[str, ...] = (),
) -> RuleMeta:
    """Return what a rule about episodes declares: events of partitions that it remembers."""
    return RuleMeta(
        rule_id=rule_id,
        subject=SubjectKind.PARTITION,
        kind=Kind.EVENT,
        severity=severity,
        summary=summary,
        milder=milder,
        lowering=lowering,
        forgets=True,
        undecided=(CommonReason.REJECTIONS_COUNTED,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRule:
    """A sequence rule: which episodes it reports, and why."""

    rule: RuleMeta
    why: type[Reason]  # its own reasons
    of: ReasonOf  # None: the episode is another rule's
    # Remembered episodes with this reason are listed again beside the new ones of their partition.
    lasting: Reason | None = None
    # An episode reported as this class and then proven to be something else is reported as this reason.
    refuted: tuple[SequenceClass, Reason] | None = None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return the closed set of its reasons."""
        nothing_new, *others = CommonReason
        return nothing_new, *self.why, *others


def list_newly_reported(view: View) -> tuple[Episode, ...]:
    """Return the episodes that this round reports, for the first time or again."""
    now = view.memory.sequences
    if not now.open and (view.before is None or not view.before.sequences.open):
        return ()
    episodes_before = () if view.before is None else view.before.sequences.episodes
    before = {episode.id: _times(episode) for episode in episodes_before}
    return tuple(episode for episode in now.episodes if _times(episode) > before.get(episode.id, 0))


def _times(episode: Episode) -> int:
    return 0 if episode.reported is None else episode.reported.times


def judge_episodes(
    view: View, rule: EpisodeRule, questions: tuple[Question, ...] = ()
) -> Judgement:
    """Judge the partitions with episodes; a BREACH reports their new verdicts."""
    names = _names(view)
    if not names:
        return _of_cluster(view, rule, questions)
    new = {episode.id: episode for episode in list_newly_reported(view)}
    by_name = _group_reported(view, new.values(), rule)
    by_name = {**_group_refuted(view, new.values(), rule), **by_name}
    quiet = _judge_quiet(view, rule)

    def details(position: int) -> Evidence:
        episodes = by_name.get(names[position])
        return generic(_details(view, episodes, new) if episodes else _unknown_details(view, quiet))

    awaited = _list_awaited(view) if quiet[0] is Verdict.OK else ()
    places: dict[Reason, list[int]] = {}
    for place, name in enumerate(names):
        if name in by_name:
            places.setdefault(_reason(by_name[name][0], rule), []).append(place)
    return decide(
        rule.rule,
        NamedSubjects(SubjectKind.PARTITION, tuple(_labels(view, name) for name in names)),
        [Case(marked(len(names), rows), Verdict.BREACH, reason) for reason, rows in places.items()]
        + [
            Case(
                np.array([name in awaited for name in names], np.bool_),
                Verdict.UNKNOWN,
                CommonReason.INVESTIGATING,
            )
        ],
        quiet,
        details=details,
        questions=questions,
        reasons=rule.reasons,
    )


def _reason(episode: Episode, rule: EpisodeRule) -> Reason:
    """Return the reason why a rule reports an episode: as its own, or as refuted."""
    refuted = CommonReason.NOTHING_NEW if rule.refuted is None else rule.refuted[1]
    return rule.of(episode) or refuted


def _group_refuted(
    view: View, new: Iterable[Episode], rule: EpisodeRule
) -> dict[TopicPartition, list[Episode]]:
    """Return by partition the episodes that a rule reported and that are now proven to be another class.

    A partition with other episodes of the rule reports those instead, and nothing if one is lasting.
    """
    if rule.refuted is None or view.before is None:
        return {}
    class_, _ = rule.refuted
    before = {episode.id: episode.reported for episode in view.before.sequences.open.values()}
    refuted_episodes: dict[TopicPartition, list[Episode]] = {}
    for own in new:
        reported_before = before.get(own.id)
        was_own = reported_before is not None and reported_before.class_ is class_
        if own.name is not None and was_own and own.verdict.is_confirmed and not rule.of(own):
            refuted_episodes.setdefault(own.name, []).append(own)
    if not refuted_episodes:
        return {}
    unchanged: dict[TopicPartition, list[Episode]] = {}
    for episode in view.memory.sequences.episodes:
        if episode.name in refuted_episodes and episode.reported is not None and rule.of(episode):
            unchanged.setdefault(episode.name, []).append(episode)
    return {
        name: sorted(unchanged.get(name, ()), key=_badness) or episodes
        for name, episodes in refuted_episodes.items()
        if not any(rule.of(episode) is rule.lasting for episode in unchanged.get(name, ()))
    }


def _of_cluster(view: View, rule: EpisodeRule, questions: tuple[Question, ...]) -> Judgement:
    """Judge the cluster where nothing was rejected; UNKNOWN if a configured source was not read."""
    subject = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": view.snapshot.cluster},))
    quiet = _judge_quiet(view, rule)

    def details(_: int) -> Evidence:
        return generic(_unknown_details(view, quiet))

    return decide(
        rule.rule,
        subject,
        [],
        quiet,
        details=details,
        questions=questions,
        reasons=rule.reasons,
    )


def _judge_quiet(view: View, rule: EpisodeRule) -> tuple[Verdict, Reason]:
    """Return verdict and reason where nothing is new: UNKNOWN if something may have been missed."""
    if any(gap.scope is GapScope.BROKER_LOG for gap in view.snapshot.gaps):
        return Verdict.UNKNOWN, CommonReason.LOG_NOT_READ
    if view.memory.sequences.unreported:
        return Verdict.UNKNOWN, CommonReason.TOO_MANY
    if any(_may_be_of(episode, rule) for episode in _nameless(view)):
        return Verdict.UNKNOWN, CommonReason.PARTITION_NOT_REPORTED
    if view.memory.suspicions.undecided:  # the last one: it is no blindness
        return Verdict.UNKNOWN, CommonReason.REJECTIONS_COUNTED
    log: BrokerLog = view.snapshot.broker_log
    return Verdict.OK, CommonReason.NOTHING_NEW if log.is_read else CommonReason.NO_SOURCE


def _list_awaited(view: View) -> frozenset[TopicPartition | None]:
    """Return the partitions with an open episode that is not confirmed yet."""
    open_episodes = view.memory.sequences.open.values()
    return frozenset(episode.name for episode in open_episodes if not episode.verdict.is_confirmed)


def _nameless(view: View) -> list[Episode]:
    return [episode for episode in view.memory.sequences.episodes if episode.name is None]


def _may_be_of(episode: Episode, rule: EpisodeRule) -> bool:
    """Whether an episode is the rule's, or may turn out to be."""
    return rule.of(episode) is not None or not episode.verdict.is_confirmed


def _names(view: View) -> list[TopicPartition]:
    names = {episode.name for episode in view.memory.sequences.episodes if episode.name is not None}
    return sorted(names)


def _group_reported(
    view: View, new: Iterable[Episode], rule: EpisodeRule
) -> dict[TopicPartition, list[Episode]]:
    """Return the episodes to report by partition, the worst first, where one is new."""
    by_name: dict[TopicPartition, dict[str, Episode]] = {}
    for new_episode in new:
        if new_episode.name is not None and rule.of(new_episode) is not None:
            by_name.setdefault(new_episode.name, {})[new_episode.id] = new_episode
    if by_name and rule.lasting is not None:
        for episode in view.memory.sequences.episodes:
            if episode.name in by_name and rule.of(episode) is rule.lasting:
                by_name[episode.name][episode.id] = episode
    return {name: sorted(episodes.values(), key=_badness) for name, episodes in by_name.items()}


def _badness(episode: Episode) -> tuple[bool, bool, int, bool, int]:
    """Return the sort key: losses first, then episodes that cost a transaction."""
    verdict = episode.verdict
    is_loss = verdict.class_ is SequenceClass.LOSS
    rank = RANK.index(verdict.class_)
    first = episode.first_seen_us
    return not is_loss, not costs_transaction(episode), rank, not verdict.is_confirmed, first


def _labels(view: View, name: TopicPartition) -> dict[str, str]:
    return {
        "cluster": view.snapshot.cluster,
        "topic": name.topic,
        "partition": str(name.partition),
    }


def _details(view: View, episodes: Sequence[Episode], new: Collection[str]) -> SequenceEvidence:
    return {
        "topic_id": episodes[0].topic_id,
        **episode_evidence(episodes[0]),
        "episodes": [_short(episode, is_new=episode.id in new) for episode in episodes[:SHOWN]],
        "episode_count": len(episodes),
        "source_errors": _errors(view.snapshot.broker_log),
    }


def _unknown_details(view: View, quiet: tuple[Verdict, Reason]) -> SequenceEvidence:
    """Return the evidence for an UNKNOWN verdict: what the rule could not read."""
    if quiet[0] is not Verdict.UNKNOWN:
        return {}
    nameless = _nameless(view)
    return {
        "source_errors": _errors(view.snapshot.broker_log),
        "unreported_episodes": view.memory.sequences.unreported,
        "without_partition": [_short(episode, is_new=False) for episode in nameless[-SHOWN:]],
        "without_partition_count": len(nameless),
        "suspicions": list_suspicion_evidence(view),
    }


def episode_evidence(episode: Episode) -> SequenceEvidence:
    """Return the evidence of one episode."""
    explanation = explain_episode(episode)
    verdict = explanation.verdict
    return {
        "episode": episode.id,
        "class": str(verdict.class_),
        "phase": str(verdict.phase),
        "why": str(verdict.reason),
        "explanation": explanation.explanation,
        "needed_evidence": explanation.needed_evidence,
        "check": explanation.check,
        "producer_id": explanation.producer_id,
        "producer_epoch": explanation.producer_epoch,
        "offset": explanation.offset,
        "incoming_sequence": explanation.incoming_sequence,
        "current_sequence": explanation.current_sequence,
        "gap": explanation.gap,
        "lost_from": verdict.lost_from,
        "lost_to": verdict.lost_to,
        "lost_offsets": verdict.lost_offsets,
        "at_most_records": verdict.at_most_records,
        "first_seen": iso_time(episode.first_seen_us),
        "last_seen": iso_time(episode.last_seen_us),
        **explanation.evidence,
    }


def _short(episode: Episode, *, is_new: bool) -> ShortEpisode:
    explanation = explain_episode(episode)
    return {
        "episode": episode.id,
        "producer_id": explanation.producer_id,
        "class": str(explanation.class_),
        "phase": str(explanation.phase),
        "why": str(explanation.reason),
        "gap": explanation.gap,
        "rejections": explanation.rejections,
        "is_new": is_new,
        "transaction": None if explanation.transaction is None else str(explanation.transaction),
    }


def _errors(log: BrokerLog) -> list[SourceError]:
    failed = [source for source in log.sources if source.error is not None]
    return [{"source": source.name, "error": source.error} for source in failed[:SHOWN]]
