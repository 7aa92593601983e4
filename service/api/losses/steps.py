"""What to do about a loss, in order, with shell commands; pure.

The first steps save what can still be saved; each names what is known and says what is not. Source
of the commands: Kafka's own tools, tested against its brokers.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, assert_never

from service.api.losses.models import GroupBeyond, LossClass, LossFacts

NAMED_GROUPS: Final = 5
SERVERS: Final = "--bootstrap-server HOST:PORT"
TRUNCATES: Final = "it truncates its log as soon as it follows the new leader"
KEEP_ALL_DOWN: Final = (
    "Keep every broker down that was a replica of this partition and is not in sync: one of them may "
    f"have the missing records, and {TRUNCATES}."
)
COPY_ALL_FIRST: Final = (
    "Whether anything is lost is not proven. Until that is known, copy the partition of every broker "
    "that was a replica of it and is not in sync, before it is started again: one of them may have "
    f"the missing records, and {TRUNCATES}."
)
NOT_DETERMINABLE: Final = (
    "The topic {topic} was deleted before its new leader could be queried: whether records were lost before "
    "that can no longer be determined, and nothing is left to save. If they are still needed, write them "
    "again from their source."
)
ELECTION_NOT_KNOWN: Final = (
    "Nothing that was seen to be committed is missing. Whether the new leader was in sync is not known: "
    "search for an unclean election of {folder} in the log of the controller that was active at the "
    "election. Where that log is whole and has no such line, the election was clean; controllers with "
    "ZooKeeper do not write of it."
)
NOT_LOST: Final = (
    "nothing was lost, unless its machine died too: the end of a log may not have reached the disk"
)
NOT_FOUND: Final = "check whether the topic was deleted and created again while these consumers ran: then nothing was lost"
OF_THE_COPY: Final = (
    "Of a copy that is what tidemark log diff writes, and of what it leaves out as undecided the transactions "
    "that are in `lost_transactions`: nothing of aborted or open ones, and nothing that is there again."
)
DELETED_SINCE: Final = (
    "The topic was deleted since. Only brokers that were down then still have its data, until they "
    "start: if it is needed, copy the folder {folder} first."
)
ELSEWHERE: Final = {  # reason -> the only step
    "proven": "Nothing more is known here; see committed_lost: tidemark loss show {folder}",
    "restored": (
        "A replica that has the lost records leads again: nothing has to be saved. Check whether records "
        "that were written meanwhile are a loss of their own: tidemark loss show {folder}"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The partition of a loss, and the group if it is about a commit."""

    topic: str
    partition: str
    group: str | None

    @property
    def folder(self) -> str:
        return f"{self.topic}-{self.partition}"

    def reset(self, group: str, to: str) -> str:
        """Return the command that moves one group on this partition."""
        topic = shlex.quote(f"{self.topic}:{self.partition}")
        return (
            f"kafka-consumer-groups.sh {SERVERS} --group {shlex.quote(group)} "
            f"--topic {topic} --reset-offsets {to} --execute"
        )


def next_steps(
    class_: LossClass, labels: Mapping[str, str], facts: LossFacts, *, is_deleted: bool = False
) -> list[str]:
    """Return the steps, the most urgent first."""
    steps = _steps(class_, labels, facts)
    if not is_deleted or class_ is LossClass.NOT_DETERMINABLE:
        return steps
    folder = f"{labels.get('topic', 'TOPIC')}-{labels.get('partition', 'PARTITION')}"
    return [DELETED_SINCE.format(folder=folder), *steps]


def _steps(class_: LossClass, labels: Mapping[str, str], facts: LossFacts) -> list[str]:
    place = _Place(
        topic=labels.get("topic", "TOPIC"),
        partition=labels.get("partition", "PARTITION"),
        group=labels.get("group"),
    )
    if facts.reason in ELSEWHERE:
        return [ELSEWHERE[facts.reason].format(folder=shlex.quote(place.folder))]
    match class_:
        case LossClass.COMMITTED_BEYOND_LOG_END:
            steps = _of_group(place)
        case LossClass.UNCLEAN_ELECTION:
            steps = iter([_see_what_is_lost(place), _forbid(place)])
        case LossClass.UNREPLICATED_LOST:
            steps = chain(_write_again(facts), _reset_groups(place, facts))
        case LossClass.NOT_DETERMINABLE:
            steps = _of_unknown(place, facts)
        case LossClass.POSSIBLY_LOST:
            groups = _reset_groups(place, facts, is_proven=False)
            steps = chain(_save(place, facts), groups, _find_out(place, facts))
        case LossClass.COMMITTED_LOST:
            saved = _save(place, facts, is_proven=True)
            steps = chain(saved, _reset_groups(place, facts), _mend(place, facts))
        case _:
            assert_never(class_)
    return list(steps)


def _of_unknown(place: _Place, facts: LossFacts) -> Iterator[str]:
    """Yield the steps of a loss that cannot be determined; what may be gone is saved first."""
    is_there = facts.reason == "election_not_known"
    if is_there and (facts.possible_offsets or 0) > 0:
        yield from _save(place, facts)
    step = ELECTION_NOT_KNOWN if is_there else NOT_DETERMINABLE
    yield step.format(topic=place.topic, folder=place.folder)


def _save(place: _Place, facts: LossFacts, *, is_proven: bool = False) -> Iterator[str]:
    if facts.exact_to is not None:
        yield (
            f"Broker {facts.former_leader} has come back and cut its log: "
            f"{_offsets(facts.exact_from, facts.exact_to)} all that is gone. Unless somebody copied "
            f"the folder {place.folder} before, no copy is left."
        )
        return
    if facts.leader_before is None:
        yield KEEP_ALL_DOWN if is_proven else COPY_ALL_FIRST
    elif facts.leader_before == facts.leader:
        yield (
            f"Broker {facts.leader} leads again, and its own log is shorter than it was: check "
            "its disk and its broker log before anything else. No other copy is known."
        )
        return
    else:
        yield _keep_down(facts) if is_proven else _copy_first(facts)
    begins = _begins(facts)
    start = "" if begins is None else f", from offset {begins} on"
    yield (
        f"Copy the folder {place.folder} of its log directory (log.dirs), while it is down, and its checkpoint: "
        f"cp -a {shlex.quote(f'LOG_DIR/{place.folder}')} LOG_DIR/replication-offset-checkpoint SAFE_PLACE/"
    )
    seen = "" if facts.certain_to is None else f"--high-watermark {facts.certain_to} "
    yield (
        f"Write out of the copy what the new leader lacks{start}: tidemark log diff "
        f"{shlex.quote(f'SAFE_PLACE/{place.folder}')} {seen}--records lost.jsonl --bootstrap-servers HOST:PORT"
    )


def _keep_down(facts: LossFacts) -> str:
    who = f"broker {facts.leader_before}"
    if facts.former_leader_end is not None:
        return (
            f"Stop {who} at once: it was up and still had what lies before offset "
            f"{facts.former_leader_end}, the only copy of what is missing, and {TRUNCATES}."
        )
    return (
        f"Keep {who} down: its disk holds the only copy of what is missing, and {TRUNCATES}. If it "
        'is back already, its broker log says how far it had come ("Follower ... starts ... from '
        'offset N") and where it truncated: what lies between is gone, and its last records may never '
        "have been acknowledged."
    )


def _copy_first(facts: LossFacts) -> str:
    who = f"broker {facts.leader_before}"
    is_up = "" if facts.former_leader_end is None else ", which was up when this was found"
    return (
        f"Whether anything is lost is not proven. Until that is known, copy the partition of {who}"
        f"{is_up}, before it follows the new leader: {TRUNCATES}. If it is back already, its broker log "
        'says how far it had come ("Follower ... starts ... from offset N") and where it truncated: '
        "what lies between was not on the new leader."
    )


def _offsets(start: int | None, end: int) -> str:
    """Return a range of offsets as the subject and verb of a sentence."""
    return f"offset {start} is" if start == end - 1 else f"offsets {start} to {end - 1} are"


def _find_out(place: _Place, facts: LossFacts) -> Iterator[str]:
    """Yield the steps where nothing proves that the missing records were acknowledged."""
    if facts.exact_to is not None:
        yield (
            "How much of it was acknowledged is not proven. If a producer got an acknowledgement of these "
            "records, have it write them again."
        )
    else:
        begins = _begins(facts)
        where = "" if begins is None else f" from offset {begins} on"
        has_none = NOT_LOST if facts.at_least_offsets is None else NOT_FOUND
        yield (
            f"Compare the copy with the topic{where}. If it has records that the topic lacks, decide "
            f"whether to write them again before the old leader is started; if it has none, {has_none}."
        )
    yield _forbid(place)


def _mend(place: _Place, facts: LossFacts) -> Iterator[str]:
    yield f"Have the producers write the lost records again, from the copy or from their source. {OF_THE_COPY}"
    if facts.exact_to is None:
        yield "Only then start the old leader."
    yield _forbid(place)


def _see_what_is_lost(place: _Place) -> str:
    """Refer to the findings about the same leader change, which know whether the old leader is back."""
    return (
        "What it lost or may have lost, and what to do at once, is in committed_lost or "
        f"possibly_lost of this partition: tidemark loss show {shlex.quote(place.folder)}"
    )


def _forbid(place: _Place) -> str:
    return (
        f"Turn off unclean.leader.election.enable for {place.topic}. Once its replicas are in sync "
        "again, raise min.insync.replicas to 2 where it is lower."
    )


def _write_again(facts: LossFacts) -> Iterator[str]:
    around = (
        ""
        if facts.last_observation is None
        else f" around {facts.last_observation:%Y-%m-%d %H:%M:%S} UTC"
    )
    yield (
        "Find out whether a producer of this topic uses acks=1 or acks=0. If none does, nothing "
        "that was acknowledged is lost: you are done."
    )
    yield f"Have such a producer write again what it sent{around}, and set acks=all."


def _reset_groups(place: _Place, facts: LossFacts, *, is_proven: bool = True) -> Iterator[str]:
    """Yield one command per group, with a placeholder where the begin of the loss is not known."""
    gone_on = [row.group for row in facts.groups_gone_on or ()]
    named = facts.groups_beyond or []
    groups = [row for row in named if row.group not in gone_on]
    unnamed = max((facts.group_count or 0) - len(named), 0)
    if groups:
        names = _some([row.group for row in groups], unnamed)
        read = "that are gone" if is_proven else "that this log does not have, by their commits"
        yield (
            f"Stop the consumers of {names}: they have read records {read}. Decide with their team what "
            "becomes of what they did with them: a record that is written again is processed twice."
        )
        yield (
            "See which of these groups are still beyond it: tidemark loss check "
            f"{shlex.quote(place.folder)}. A consumer that noticed has gone back by itself: leave its "
            "group, or it processes twice what it has processed since."
        )
    for row in groups[:NAMED_GROUPS]:
        to = f"--to-offset {_or(_begins(facts, row), 'OFFSET')}"
        yield f"If it is, move it to where the loss begins: {place.reset(row.group, to)}"
    if gone_on:
        yield f"Do not move {_some(gone_on)}: committed in the new leader's epoch since."


def _some(names: Sequence[str], unnamed: int = 0) -> str:
    """Return the first names, and how many more there are."""
    left = len(names) + unnamed - NAMED_GROUPS
    return ", ".join(names[:NAMED_GROUPS]) + (f" and {left} more" if left > 0 else "")


def _begins(facts: LossFacts, group: GroupBeyond | None = None) -> int | None:
    """Return where the loss begins: at the end of the older epoch, or of the one a group has read."""
    if facts.epoch_end is not None:
        return facts.epoch_end
    groups = [group] if group is not None else facts.groups_beyond or []
    ends = [
        entry.committed_offset - entry.read_beyond
        for entry in groups
        if entry.committed_offset is not None and entry.read_beyond is not None
    ]
    return min(ends, default=None)


def _or(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def _of_group(place: _Place) -> Iterator[str]:
    group = place.group or "GROUP"
    yield f"See what is lost there: tidemark loss show {shlex.quote(place.folder)}"
    yield (
        f"Stop the consumers of {group}: they have read records that are gone, and a consumer that does "
        "not notice skips what is now written at the same offsets."
    )
    yield (
        "Move it to where the loss begins, `epoch_end` of that loss, or else what tidemark loss check "
        f"{shlex.quote(place.folder)} names: {place.reset(group, '--to-offset EPOCH_END')}"
    )
    yield (
        "Do not move it to the end of the log: it would miss what has been written from there on. That is "
        "for its team to decide."
    )
