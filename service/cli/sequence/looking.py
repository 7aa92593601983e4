"""The rounds that `tidemark sequence explain` makes where it may ask the brokers.

The pasted lines stand in the first round as if they had just been read; the rounds after it answer
what they leave open. Nothing is known of the time before, so that only what the logs of the
partitions still show can be proven: a leader that changed since may have lost records unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np

from rules.facts.broker_log import BrokerLog, LogEvent
from rules.facts.episodes import ChangeKind, Episode
from rules.facts.gap import Gap, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory
from rules.facts.sequence_verdicts import SequenceClass
from rules.question import EpochEndQuestion, Question
from rules.remembering import view_of_round
from rules.sequence.asking import questions_of
from rules.sequence.gathering import row_of
from rules.transactions.listing import gaps_about
from rules.view import View
from service.rounds import Scope
from service.sequence_rows import change_row, episode_row, line_row
from service.watch import SnapshotSource

Row = dict[str, Any]
Ends = dict[tuple[TopicPartition, int], int]  # partition and leader epoch -> where it ended

AT_MOST: Final = 4  # rounds: two decide, and one may fail
NO_GROUP: Final = re.compile(r"(?!)")
CONCERNED: Final = frozenset({
    GapScope.CLUSTER, GapScope.PLACEMENT, GapScope.OFFSETS, GapScope.PRODUCERS, GapScope.EPOCHS,
    GapScope.BATCHES,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the rounds found out."""

    rows: list[Row]  # of the events, each with its lines
    gaps: tuple[Gap, ...]


def look(source: SnapshotSource, events: Sequence[LogEvent]) -> Looked:
    """Ask the brokers what pasted lines leave open.

    Raises:
        CollectError: the cluster cannot be asked at all.
    """
    rounds = _Rounds(source, _topics_of(events))
    view = rounds.make(events)
    for _ in range(AT_MOST - 1):
        if not rounds.questions:
            break
        view = rounds.make()
    episodes = view.memory.sequences.episodes
    rows = [_row(view, episode, rounds.ends) for episode in episodes]
    return Looked(rows=rows, gaps=gaps_about(view.snapshot, CONCERNED))


class _Rounds:
    """Makes rounds that answer what the ones before left open."""

    def __init__(self, source: SnapshotSource, topics: re.Pattern[str]) -> None:
        self._source = source
        self._topics = topics
        self._memory: Memory | None = None
        self.questions: tuple[Question, ...] = ()
        self.ends: Ends = {}

    def make(self, events: Iterable[LogEvent] = ()) -> View:
        """Make one round in which these lines are read."""
        scope = Scope(topics=self._topics, groups=NO_GROUP, questions=self.questions)
        snapshot = self._source.read(scope)
        log = BrokerLog(is_read=True, events=tuple(_written_before(snapshot.taken_at, events)))
        view = view_of_round(replace(snapshot, broker_log=log), self._memory)
        self._memory = view.memory
        self.ends |= _ends(view)
        self.questions = (*questions_of(view), *_of_epochs(view, self.ends))
        return view


def _topics_of(events: Iterable[LogEvent]) -> re.Pattern[str]:
    names = {event.topic for event in events if event.topic is not None}
    return re.compile("|".join(sorted(map(re.escape, names))) or NO_GROUP.pattern)


def _written_before(now: datetime, events: Iterable[LogEvent]) -> Iterable[LogEvent]:
    """Give events without times that are still to come: they are of another zone than was said.

    A line that seems younger than the present leader epoch would be held for a part of it.
    """
    for event in events:
        at = event.origin.at
        is_ahead = at is not None and at > now
        yield replace(event, origin=replace(event.origin, at=None)) if is_ahead else event


# ------------------------------------------------------------------ where older epochs ended
def _of_epochs(view: View, known: Ends) -> Iterable[EpochEndQuestion]:
    """Ask where the epochs ended in which the last accepted batches were appended."""
    appended = (_appended(view, one) for one in view.memory.sequences.open.values())
    wanted = {place for place in appended if place is not None and place not in known}
    if wanted:
        names, epochs = zip(*sorted(wanted), strict=True)
        rows = [row_of(view.snapshot, name) for name in names]
        yield EpochEndQuestion(
            view.snapshot.partitions, np.array(rows, np.int64), np.array(epochs, np.int64)
        )


def _appended(view: View, episode: Episode) -> tuple[TopicPartition, int] | None:
    """Return partition and leader epoch of the last accepted batch, if the leader changed since."""
    row, before = row_of(view.snapshot, episode.name), episode.shown.before
    if episode.name is None or row is None or before is None:
        return None
    now = view.snapshot.offsets.leader_epoch[row]
    is_older = now is not None and before.leader_epoch < now
    return (episode.name, before.leader_epoch) if is_older else None


def _ends(view: View) -> Ends:
    told, index = view.snapshot.epoch_ends, view.snapshot.partitions.index
    answers = zip(told.row.tolist(), told.epoch.tolist(), told.end_offset.to_list(), strict=True)
    return {
        (index.topic_partition(row), epoch): end for row, epoch, end in answers if end is not None
    }


# ------------------------------------------------------------------ what is told
def _row(view: View, episode: Episode, ended: Ends) -> Row:
    """Return an event as a service would tell it, with what the brokers say now."""
    row = row_of(view.snapshot, episode.name)
    found, appended = episode_row(episode), _appended(view, episode)
    offsets = view.snapshot.offsets
    now = {
        "leader_epoch_now": None if row is None else offsets.leader_epoch[row],
        "log_end_offset_now": None if row is None else offsets.log_end_offset[row],
        "appended_epoch_end": None if appended is None else ended.get(appended),
    }
    return {
        **found,
        "id": None,  # nobody else knows it
        "evidence": {**found["evidence"], **now},
        "lines": [line_row(one) for one in episode.refusals],
        "changes": [change_row(one) for one in episode.changes],
        "next_command": next_command(episode),
    }


def next_command(episode: Episode) -> str | None:
    """Return what to type next; capital letters are to be filled in. None: it is settled.

    The controller's log says whether a change was unclean; that of the broker that led before, when
    it came back, how much it cut away.
    """
    is_open = episode.verdict.class_ in (SequenceClass.LOSS, SequenceClass.UNDETERMINED)
    name = episode.name
    if name is None or episode.verdict.is_confirmed or not is_open:
        return None
    if any(change.kind is ChangeKind.UNCLEAN for change in episode.changes):
        return f"grep -e 'Follower {name} starts' -e 'Truncating partition {name} ' OLD_LEADER_LOGS"
    return f"grep 'UNCLEAN partition change for {name} ' CONTROLLER_LOG"
