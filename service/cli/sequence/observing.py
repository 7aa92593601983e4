"""The rounds that `tidemark sequence explain` makes if it may query the brokers.

The first round takes the pasted lines as if they had just been read; later rounds answer the questions
that are left. Nothing is known of the time before, so that a proof can only use what the logs of the
partitions still hold, and what other pasted lines show of leader changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.facts.broker_log import BrokerLog, LogEvent, partition_of
from rules.facts.episodes import ChangeKind, Episode, EpisodeKey, LeaderChange, merge_changes
from rules.facts.gap import Gap, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.facts.times import MICROSECOND
from rules.question import EpochEndQuestion, Question
from rules.remembering import view_of_round
from rules.sequence.gathering import row_of
from rules.sequence.requests import questions_of
from rules.sequence.transaction_outcome import awaited_rejections
from rules.transactions.listing import gaps_about
from rules.view import View
from service.cli.sequence.explaining import ReadEvent, without_change
from service.cli.sequence.input_logs import InputLog, describe_no_change
from service.cli.sequence.leader_changes import check_after, find_bad_change
from service.observe.cluster_reader import Scope
from service.observe.watch import SnapshotSource
from service.views import sequences as models
from service.views.model import Row

Ends = dict[tuple[TopicPartition, int], int]  # partition and leader epoch -> where it ended

AT_MOST: Final = 4  # rounds: two decide, and one may fail
ZONES_APART: Final = timedelta(hours=12)  # the farthest a time zone lies west of UTC
ZONE_SETTLES: Final = (
    "The age of the lines: a client tries again for 120 s. Give the time zone of their times "
    "(`--time-zone`), or run this again after 120 s."
)
NO_GROUP: Final = re.compile(r"(?!)")
CONCERNED: Final = frozenset({
    GapScope.CLUSTER, GapScope.PLACEMENT, GapScope.OFFSETS, GapScope.PRODUCERS, GapScope.EPOCHS,
    GapScope.BATCHES,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRounds:
    """The result of the rounds."""

    rows: list[Row]  # of the events, each with its lines
    gaps: tuple[Gap, ...]


def observe(
    source: SnapshotSource, events: Sequence[ReadEvent], *, is_zone_given: bool = False
) -> ObservedRounds:
    """Query the brokers for what pasted lines leave open.

    `is_zone_given`: the time zone of the lines was set by an option, and is not the default.

    Raises:
        CollectError: the cluster cannot be read at all.
    """
    rejections = [line for event in events for line in event.pasted.rejections]
    rounds = _Rounds(
        source, _topics_of(rejections), _PastedEvents(events, is_zone_given=is_zone_given)
    )
    view = rounds.make(rejections)
    for _ in range(AT_MOST - 1):
        if not rounds.questions:
            break
        view = rounds.make()
    episodes = view.memory.sequences.episodes
    rows = [_row(view, episode, rounds) for episode in episodes]
    return ObservedRounds(rows=rows, gaps=gaps_about(view.snapshot, CONCERNED))


class _Rounds:
    """Makes rounds, each with the questions that the one before left open."""

    def __init__(
        self, source: SnapshotSource, topics: re.Pattern[str], lines: _PastedEvents
    ) -> None:
        self._source = source
        self._topics = topics
        self.given = lines
        self._memory: Memory | None = None
        self.questions: tuple[Question, ...] = ()
        self.ends: Ends = {}

    def make(self, events: Iterable[LogEvent] = ()) -> View:
        """Make one round that takes these lines."""
        scope = Scope(topics=self._topics, groups=NO_GROUP, questions=self.questions)
        snapshot = self._source.read(scope)
        log = BrokerLog(is_read=True, events=tuple(_written_before(snapshot.taken_at, events)))
        view = view_of_round(replace(snapshot, broker_log=log), self._memory)
        self._memory = self.given.put_into(view.memory)
        self.ends |= _ends(view)
        is_open = any(map(_is_asked, view.memory.sequences.episodes))
        questions = questions_of(view) if is_open else ()
        self.questions = (*questions, *_of_epochs(view, self.ends))
        return view


def _is_asked(episode: Episode) -> bool:
    """Whether another round may add something: a proof, or the end of a transaction."""
    is_in_transaction = bool(episode.transaction.is_transactional)
    is_awaited = is_in_transaction and bool(awaited_rejections(episode))
    return is_awaited or not episode.verdict.is_confirmed


def _topics_of(events: Iterable[LogEvent]) -> re.Pattern[str]:
    names = {event.topic for event in events if event.topic is not None}
    return re.compile("|".join(sorted(map(re.escape, names))) or NO_GROUP.pattern)


def _written_before(now: datetime, events: Iterable[LogEvent]) -> Iterable[LogEvent]:
    """Yield events, without their times if these are in the future: the time zone must be wrong.

    A line that seems younger than the current leader epoch would be taken for a part of it.
    """
    for event in events:
        at = event.origin.at
        is_ahead = at is not None and at > now
        yield replace(event, origin=replace(event.origin, at=None)) if is_ahead else event


def _of_epochs(view: View, ends: Ends) -> Iterable[EpochEndQuestion]:
    """Yield the question where the epochs ended in which the last accepted batches were appended."""
    appended = (_appended(view, episode) for episode in view.memory.sequences.open.values())
    places = {place for place in appended if place is not None and place not in ends}
    if places:
        names, epochs = zip(*sorted(places), strict=True)
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
    epoch_ends, index = view.snapshot.epoch_ends, view.snapshot.partitions.index
    answers = zip(
        epoch_ends.row.tolist(),
        epoch_ends.epoch.tolist(),
        epoch_ends.end_offset.to_list(),
        strict=True,
    )
    return {
        (index.topic_partition(row), epoch): end for row, epoch, end in answers if end is not None
    }


class _PastedEvents:
    """The pasted events, by partition and producer, and whether their time zone is known."""

    def __init__(self, events: Iterable[ReadEvent], *, is_zone_given: bool) -> None:
        self._events: dict[EpisodeKey, list[ReadEvent]] = {}
        for event in events:
            first = event.pasted.rejections[0]
            key = partition_of(first), first.producer_id
            self._events.setdefault(key, []).append(event)
        self._is_zone_given = is_zone_given

    def of(self, episode: Episode) -> Sequence[ReadEvent]:
        """Return the pasted events of an episode."""
        return self._events.get(episode.key, ())

    def put_into(self, memory: Memory) -> Memory:
        """Return the memory with the pasted leader changes added to its episodes."""
        sequences = memory.sequences
        open_episodes = {key: self._put_into(episode) for key, episode in sequences.open.items()}
        return replace(memory, sequences=replace(sequences, open=open_episodes))

    def _put_into(self, episode: Episode) -> Episode:
        changes = _changes(self.of(episode))
        if not changes:
            return episode
        episode = replace(episode, changes=merge_changes(episode.changes, changes))
        if find_bad_change(changes, episode.rejections) is None:
            return episode
        return replace(episode, last_seen_us=self._last_us(episode))

    def _last_us(self, episode: Episode) -> int:
        """Return an upper bound of the time of the last rejection."""
        times = [rejection.last_us for rejection in episode.rejections]
        stamped = [time for time in times if time is not None]
        if len(stamped) < len(times):
            return episode.last_seen_us
        late = 0 if self._is_zone_given else ZONES_APART // MICROSECOND
        return min(episode.last_seen_us, max(stamped) + late)

    def has_doubtful_time(self, episode: Episode) -> bool:
        """Whether the verdict only waits for the time zone of the lines."""
        is_waiting = episode.verdict.reason is SequenceReason.UNCLEAN_CHANGE
        return is_waiting and not self._is_zone_given


def _changes(events: Iterable[ReadEvent]) -> tuple[LeaderChange, ...]:
    by_epoch = {change.leader_epoch: change for event in events for change in event.changes}
    return tuple(by_epoch[epoch] for epoch in sorted(by_epoch))


def _row(view: View, episode: Episode, rounds: _Rounds) -> Row:
    """Return an event as the API of a service shows it, with the current state of the brokers."""
    ended, read_events = rounds.ends, rounds.given.of(episode)
    row = row_of(view.snapshot, episode.name)
    own_row, appended = models.sequence_event(episode).to_row(), _appended(view, episode)
    offsets = view.snapshot.offsets
    now = {
        "leader_epoch_now": None if row is None else offsets.leader_epoch[row],
        "log_end_offset_now": None if row is None else offsets.log_end_offset[row],
        "appended_epoch_end": None if appended is None else ended.get(appended),
    }
    document = {
        **own_row,
        "id": None,  # no service has it
        "check": check_after(own_row["check"], _changes(read_events)),
        "evidence": {**own_row["evidence"], **now},
        "lines": models.RejectedBatch.rows_of(episode.rejections),
        "changes": models.LeaderChange.rows_of(episode.changes),
        "next_command": next_command(episode, read_events),
    }
    if rounds.given.has_doubtful_time(episode):
        return {**document, "needed_evidence": ZONE_SETTLES}
    log = _controllers_log(read_events)
    if log is None or episode.changes or not _is_open(episode):
        return document
    needed_evidence = f"The log of the former leader. {describe_no_change(log)}."
    return {**document, "needed_evidence": needed_evidence, "check": without_change(log)}


def _controllers_log(read_events: Sequence[ReadEvent]) -> InputLog | None:
    logs = (event.controllers_log for event in read_events)
    return next((log for log in logs if log is not None), None)


def _is_open(episode: Episode) -> bool:
    is_bad = episode.verdict.class_ in (SequenceClass.LOSS, SequenceClass.UNDETERMINED)
    return is_bad and not episode.verdict.is_confirmed


def next_command(episode: Episode, read_events: Sequence[ReadEvent] = ()) -> str | None:
    """Return the next command, with capital letters for what to fill in; None: nothing is left to read.

    The controller's log shows whether a change was unclean; that of the former leader, once it is
    back, how much it truncated.
    """
    name = episode.name
    if name is None or not _is_open(episode):
        return models.show_transaction(episode)
    if any(change.epoch_end is not None for change in episode.changes):
        return None  # that log was given
    if _controllers_log(read_events) is not None or any(
        change.kind is ChangeKind.UNCLEAN for change in episode.changes
    ):
        return f"grep -e 'Follower {name} starts' -e 'Truncating partition {name} ' OLD_LEADER_LOGS"
    return f"grep 'UNCLEAN partition change for {name} ' CONTROLLER_LOG"
