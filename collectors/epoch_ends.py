"""Collects the end offsets of leader epochs: OffsetForLeaderEpoch, sent to the present leaders.

An end is queried for three reasons: a rule requests it; a partition's leader answers in another epoch
than it was last seen in; or a commit was made in an older epoch, and then at once, because the group's
next commit wipes what it would prove. An answer stays true while the present leader epoch lasts, so
that it is queried once and idle groups cost nothing; only the end of the leader's own epoch, its log
end, moves on. A topic without an id is not queried: it could not be distinguished from one that was
created again under the same name. Needs DESCRIBE on the topic.
Source: OffsetForLeaderEpoch v3 and v4 (KIP-101, KIP-279, KIP-320).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from collectors.naming import counted, grouped, listed
from collectors.session import Request, Response, Session, body_of
from collectors.translate import failure_of, left_out
from collectors.wire import codec
from collectors.wire.api import CONSUMER, OFFSET_FOR_LEADER_EPOCH
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s
from rules.facts.epoch_ends import EPOCHS, EpochEnds
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits
from rules.facts.identity import Broker, TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.question import EpochEndQuestion

MAX_PER_LEADER: Final = 5000  # epochs in one round: some ten milliseconds of work for either side
# Epochs of one partition in one round. An answer names the partition and not the requested epoch, so
# that each further epoch is a request of its own.
MAX_PER_PARTITION: Final = 20

# Why a pair is queried; the lower number has its turn first.
_QUESTION: Final = 0
_CHANGE: Final = 1  # of the partition's leader epoch
_COMMIT: Final = 2
_NOBODY: Final = 3

# A pair (partition, epoch), and its answer if there is one.
_PAIR: Final = np.dtype(
    [
        ("row", np.int64),
        ("epoch", np.int64),
        ("leader_epoch", np.int64),  # the present one; the answer is true while it lasts
        ("reason", np.int64),
        ("turn", np.int64),  # number of the round in which it was last queried, 0: never
        ("is_reported", np.bool_),
        ("found_epoch", np.int64),  # as in the answer: -1 for none
        ("end_offset", np.int64),  # likewise
    ]
)
_Pairs = NDArray[np.void]  # of _PAIR, ordered by row and epoch, none twice


@dataclass(slots=True)
class EpochEndReader:
    """Queries where epochs ended, and remembers the answers as long as they are needed."""

    _round: int = 0
    _partitions: Partitions = field(default_factory=Partitions.none)
    # The epoch that each partition was last seen in; a new one replaces it once the end of the
    # previous one is known.
    _seen: Column = field(default_factory=lambda: Column.absent(0))
    _remembered: _Pairs = field(default_factory=lambda: np.zeros(0, _PAIR))

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        commits: Commits,
        questions: Sequence[EpochEndQuestion],
    ) -> EpochEnds:
        """Return the ends of the epochs that are queried in this round, as far as leaders answered.

        A partition whose leader gave no offsets in this round is left out: its offsets are a gap
        already, and whether an earlier answer still holds is unknown.
        """
        self._round += 1
        self._move_to(partitions)
        present = offsets.leader_epoch
        changed: Bools = self._seen.valid & present.valid & (self._seen.values != present.values)
        pairs = _pairs(
            present,
            [
                (_QUESTION, *_collect_questions(partitions, questions)),
                (_CHANGE, np.flatnonzero(changed), self._seen.values[changed]),
                (_COMMIT, *_older_commits(commits, present)),
            ],
        )
        self._recall(pairs, present)
        settled = pairs[_query(session, partitions, pairs, self._round)]
        self._note_epochs(present, changed, settled)
        self._remember(pairs)
        return _ends(pairs)

    def _move_to(self, partitions: Partitions) -> None:
        """Move the remembered pairs to the rows of this round; forget partitions that are gone."""
        if partitions is self._partitions:
            return
        old_row = matching_rows(partitions, self._partitions, needs_id=False)
        self._remembered["row"] = _inverse(old_row, len(self._partitions))[self._remembered["row"]]
        self._remembered = _sort_pairs(self._remembered[self._remembered["row"] >= 0])
        self._seen = self._seen.take(old_row)
        self._partitions = partitions

    def _recall(self, pairs: _Pairs, present: Column) -> None:
        """Fill in the remembered answers; keep of the others those that may be queried again.

        These are the pairs of the previous round, since a commit may be unseen for a round, and those
        of a partition whose leader gave no answer.
        """
        is_unseen = ~present.valid[self._remembered["row"]]
        holds = present.values[self._remembered["row"]] == self._remembered["leader_epoch"]
        remembered = self._remembered[is_unseen | holds]
        place, hit = _find(remembered, pairs)
        for name in ("turn", "is_reported", "found_epoch", "end_offset"):
            pairs[name][hit] = remembered[name][place[hit]]
        is_rest = np.ones(len(remembered), np.bool_)
        is_rest[place[hit]] = False
        is_unseen = ~present.valid[remembered["row"]]
        rest = is_rest & (is_unseen | (remembered["reason"] != _NOBODY))
        remembered["reason"] = _NOBODY
        self._remembered = remembered[rest]

    def _note_epochs(self, present: Column, changed: Bools, settled: _Pairs) -> None:
        """Take over the present epochs, except where the end of the previous one is still unknown."""
        waits = changed.copy()
        row = settled["row"]
        waits[row[settled["epoch"] == self._seen.values[row]]] = False
        is_new = present.valid & ~waits
        self._seen = Column(
            np.where(is_new, present.values, self._seen.values), is_new | self._seen.valid
        )

    def _remember(self, pairs: _Pairs) -> None:
        """Remember the answers, except the ends of present epochs, which are log ends and move on."""
        answers = pairs.copy()
        answers["is_reported"] &= answers["epoch"] != answers["leader_epoch"]
        self._remembered = _sort_pairs(np.concatenate([answers, self._remembered]))


def _collect_questions(
    partitions: Partitions, questions: Sequence[EpochEndQuestion]
) -> tuple[Int64s, Int64s]:
    """Return rows of this round and epochs; a row that is gone is negative."""
    nothing = np.zeros(0, np.int64)
    rows, epochs = [nothing], [nothing]
    for question in questions:
        moved = question.rows
        if question.partitions is not partitions:
            old_row = matching_rows(partitions, question.partitions, needs_id=False)
            moved = _inverse(old_row, len(question.partitions))[moved]
        rows.append(moved)
        epochs.append(question.epochs)
    return np.concatenate(rows), np.concatenate(epochs)


def _older_commits(commits: Commits, present: Column) -> tuple[Int64s, Int64s]:
    """Return rows and epochs of the commits that were made in an older epoch than the present."""
    committed, leading = commits.committed_leader_epoch, present.take(commits.row)
    is_older = committed.valid & leading.valid & (committed.values < leading.values)
    return commits.row[is_older], committed.values[is_older]


def _pairs(present: Column, reasons: Sequence[tuple[int, Int64s, Int64s]]) -> _Pairs:
    """Return the pairs from (reason, rows, epochs), each with its first reason."""
    pairs = np.zeros(sum(len(rows) for _, rows, _ in reasons), _PAIR)
    pairs["row"] = np.concatenate([rows for _, rows, _ in reasons])
    pairs["epoch"] = np.concatenate([epochs for _, _, epochs in reasons])
    pairs["reason"] = np.repeat(
        [reason for reason, _, _ in reasons], [len(r) for _, r, _ in reasons]
    )
    pairs = pairs[(pairs["row"] >= 0) & (pairs["epoch"] >= 0) & (pairs["epoch"] < EPOCHS)]
    pairs = pairs[present.valid[pairs["row"]]]
    pairs["leader_epoch"] = present.values[pairs["row"]]
    pairs = _sort_pairs(pairs)
    key = _key(pairs)
    is_first = np.concatenate([np.ones(min(len(key), 1), np.bool_), np.diff(key) != 0])
    first: _Pairs = pairs[is_first]
    return first


_Names = Mapping[int, TopicPartition]  # by place among the pairs
_Outcomes = dict[int, "tuple[int, int] | Failure"]  # by place: found epoch and end offset


@dataclass(frozen=True, slots=True)
class _Batch:
    """One request to a leader: one epoch of each partition."""

    leader: Broker
    places: Mapping[TopicPartition, int]  # among the pairs
    epochs: Mapping[TopicPartition, tuple[int, int]]  # the present one, the queried one

    @property
    def request(self) -> Request:
        by_topic = grouped(
            (
                name.topic,
                {
                    "partition": name.partition,
                    "current_leader_epoch": present,
                    "leader_epoch": epoch,
                },
            )
            for name, (present, epoch) in self.epochs.items()
        )
        topics = [{"topic": name, "partitions": parts} for name, parts in by_topic.items()]
        build = body_of(OFFSET_FOR_LEADER_EPOCH, replica_id=CONSUMER, topics=topics)
        return Request(self.leader, OFFSET_FOR_LEADER_EPOCH, build)


def _query(session: Session, partitions: Partitions, pairs: _Pairs, round_: int) -> Int64s:
    """Query the pairs without an answer, and fill in the answers.

    Return the places with nothing left to query: they have an answer, or never will.
    """
    due = np.flatnonzero(~pairs["is_reported"])
    if not len(due):
        return np.arange(len(pairs))
    names = _names(partitions, pairs["row"], due)
    outcomes = _without_id(partitions, pairs["row"], due)
    askable = np.array([place for place in due.tolist() if place not in outcomes], np.int64)
    batches, later = _batches(session, partitions, pairs, askable, names)
    responses = session.exchange([batch.request for batch in batches])
    for batch, response in zip(batches, responses, strict=True):
        pairs["turn"][list(batch.places.values())] = round_
        outcomes |= _outcomes(batch, response)
    answers = {
        place: outcome for place, outcome in outcomes.items() if not isinstance(outcome, Failure)
    }
    failed = {place: outcome for place, outcome in outcomes.items() if isinstance(outcome, Failure)}
    at = list(answers)
    pairs["is_reported"][at] = True
    pairs["found_epoch"][at] = [epoch for epoch, _ in answers.values()]
    pairs["end_offset"][at] = [end for _, end in answers.values()]
    _add_gaps(session, names, failed | later)
    hopeless = [place for place, why in failed.items() if why.cause is GapCause.UNSUPPORTED]
    return np.array([*np.flatnonzero(pairs["is_reported"]), *hopeless], np.int64)


def _names(partitions: Partitions, rows: Int64s, places: Int64s) -> _Names:
    index = partitions.index
    topic = np.searchsorted(index.starts, rows[places], side="right") - 1
    numbers = (rows[places] - index.starts[topic]).tolist()
    return {
        place: TopicPartition(index.topics[position], number)
        for place, position, number in zip(places.tolist(), topic.tolist(), numbers, strict=True)
    }


def _without_id(partitions: Partitions, rows: Int64s, places: Int64s) -> _Outcomes:
    why = (
        "its topic has no id, so that a recreated topic cannot be distinguished from it: it needs "
    )
    failure = Failure(GapCause.UNSUPPORTED, f"{why}Kafka 2.8 or newer")
    lacks_id = np.array([topic_id is None for topic_id in partitions.topic_ids], np.bool_)
    topic = np.searchsorted(partitions.index.starts, rows[places], side="right") - 1
    return dict.fromkeys(places[lacks_id[topic]].tolist(), failure)


def _batches(
    session: Session, partitions: Partitions, pairs: _Pairs, places: Int64s, names: _Names
) -> tuple[list[_Batch], dict[int, Failure]]:
    """Return the requests, and a failure for each urgent pair that has to wait.

    A commit's epoch may wait without a failure, since no rule needs it in this round.
    """
    candidates = pairs[places]
    leaders = partitions.leader.values[candidates["row"]]
    in_partition = _rank(candidates["row"], candidates["reason"], candidates["turn"])
    fits = in_partition < MAX_PER_PARTITION
    # Those beyond the limit of their partition are last, so that they displace nobody.
    fits &= _rank(leaders, ~fits, candidates["reason"], candidates["turn"]) < MAX_PER_LEADER
    batches: list[_Batch] = []
    later: dict[int, Failure] = {}
    for leader in session.brokers:
        mine = leaders == leader.broker_id
        late = places[mine & ~fits & (candidates["reason"] < _COMMIT)]
        why = f"one round queries {MAX_PER_LEADER:,} epochs of {leader} at most, and "
        limit = Failure(GapCause.LIMIT, f"{why}{MAX_PER_PARTITION} of one partition")
        later |= dict.fromkeys(late.tolist(), limit)
        for number in np.unique(in_partition[mine & fits]).tolist():
            chosen = places[mine & fits & (in_partition == number)]
            batches.append(_batch(leader, pairs, chosen.tolist(), names))
    return batches, later


def _batch(leader: Broker, pairs: _Pairs, places: Sequence[int], names: _Names) -> _Batch:
    present = pairs["leader_epoch"][places].tolist()
    epochs = zip(present, pairs["epoch"][places].tolist(), strict=True)
    chosen = [names[place] for place in places]
    return _Batch(
        leader,
        dict(zip(chosen, places, strict=True)),
        dict(zip(chosen, epochs, strict=True)),
    )


def _rank(group: NDArray[Any], *order: NDArray[Any]) -> Int64s:
    """Return each item's number within its group, ordered by the columns, the first one first."""
    place = np.lexsort((*reversed(order), group))
    in_order = group[place]
    rank = np.zeros(len(group), np.int64)
    rank[place] = np.arange(len(group)) - np.searchsorted(in_order, in_order)
    return rank


def _outcomes(batch: _Batch, response: Response) -> _Outcomes:
    answer = response.read()
    if isinstance(answer, Failure):
        return dict.fromkeys(batch.places.values(), answer)
    outcomes: _Outcomes = dict.fromkeys(batch.places.values(), left_out(batch.leader))
    for topic in answer.topics:
        for entry in topic.partitions:
            place = batch.places.get(TopicPartition(topic.topic, int(entry.partition)))
            if place is not None:
                outcomes[place] = _outcome(batch.leader, topic.topic, entry)
    return outcomes


def _outcome(leader: Broker, topic: str, entry: Any) -> tuple[int, int] | Failure:
    code = int(entry.error_code)
    if code != codec.NO_ERROR:
        return failure_of(code, leader, needs=f"DESCRIBE on Topic {topic}")
    return int(entry.leader_epoch), int(entry.end_offset)


def _ends(pairs: _Pairs) -> EpochEnds:
    """Return the answers; absent where the leader's log has no such epoch."""
    answered = pairs[pairs["is_reported"]]
    has_epoch = (answered["found_epoch"] >= 0) & (answered["end_offset"] >= 0)
    return EpochEnds(
        row=answered["row"].copy(),
        epoch=answered["epoch"].copy(),
        found_epoch=Column.known(answered["found_epoch"].copy()).where(has_epoch),
        end_offset=Column.known(answered["end_offset"].copy()).where(has_epoch),
    )


def _add_gaps(session: Session, names: _Names, failed: Mapping[int, Failure]) -> None:
    """Add a gap for each reason why ends are missing."""
    reasons = grouped((failure, str(names[place])) for place, failure in failed.items())
    for failure, named in reasons.items():
        partitions = list(dict.fromkeys(named))
        what = f"where leader epochs of {counted(len(partitions), 'partition')} ended"
        session.add_gap(GapScope.EPOCHS, f"{what} ({listed(partitions)})", failure)


def _key(pairs: _Pairs) -> Int64s:
    key: Int64s = pairs["row"] * EPOCHS + pairs["epoch"]
    return key


def _sort_pairs(pairs: _Pairs) -> _Pairs:
    return pairs[np.lexsort((pairs["reason"], pairs["epoch"], pairs["row"]))]


def _find(remembered: _Pairs, pairs: _Pairs) -> tuple[Int64s, Bools]:
    """Return the place of each pair among the remembered ones, and a mask of those that have one."""
    if not len(remembered):
        return np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.bool_)
    have, search_for = _key(remembered), _key(pairs)
    place = np.minimum(np.searchsorted(have, search_for), len(have) - 1)
    return place, have[place] == search_for


def _inverse(old_row: Int64s, old_rows: int) -> Int64s:
    """Return the new row of each old row, -1 if it is gone."""
    new_row = np.full(old_rows, -1, np.int64)
    is_present = old_row >= 0
    new_row[old_row[is_present]] = np.flatnonzero(is_present)
    return new_row
