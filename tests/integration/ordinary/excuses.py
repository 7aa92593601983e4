"""What may be said while ordinary things happen: only what somebody else than Tidemark has seen too.

Nothing is allowed because of its family or its time alone. Each rule whose breach can be true has a
witness here, and a finding above info that its witness does not confirm is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from tests.integration.ordinary.audited import Place
from tests.integration.ordinary.truth import Truth
from tests.integration.ordinary.watchers import INTERVALS, Said

# A finding is dated by the round that saw it. What it saw began before that round, and it is not
# seen to have ended before the next one, which a silent broker makes late by ten seconds.
ROUND_LATE: Final = 10.0
STUCK_SECONDS: Final = 28.0  # of the rules' 30 s; clocks are read at other moments
OPEN_SECONDS: Final = 115.0  # of last_stable_offset_stuck's 2 minutes
STALLED_SECONDS: Final = 55.0  # of consumer_group_stalled's minute

Excuse = Callable[[Said, Truth], str | None]


def place_of(said: Said) -> Place:
    return said.labels.get("topic", ""), int(said.labels.get("partition", -1))


def _from(said: Said, seconds: float = 0.0) -> timedelta:
    """Return how far before a finding what it tells may have begun."""
    return timedelta(seconds=seconds + INTERVALS[said.service] + ROUND_LATE)


def too_few_in_sync(said: Said, truth: Truth) -> str | None:
    """A broker said so too, at that time."""
    begin, end = said.since - _from(said), said.last_breach
    for sight in truth.witness.sights:
        if sight.place == place_of(said) and begin <= sight.at <= end and sight.has_leader:
            return f"a broker told an ISR of {sight.in_sync} at {sight.at:%H:%M:%S}"
    return None


def no_leader(said: Said, truth: Truth) -> str | None:
    """A broker said so too, at that time."""
    begin, end = said.since - _from(said), said.last_breach
    for sight in truth.witness.sights:
        if sight.place == place_of(said) and begin <= sight.at <= end and not sight.has_leader:
            return f"a broker told of no leader at {sight.at:%H:%M:%S}"
    return None


def nothing_acknowledged(said: Said, truth: Truth) -> str | None:
    """Producers that wait for all replicas got no acknowledgement from it for that long."""
    begin, end = said.since - _from(said, STUCK_SECONDS), said.last_breach
    for producer in truth.producers:
        for found in producer.pauses:
            is_long = (found.end - found.begin).total_seconds() >= STUCK_SECONDS
            if (
                found.place == place_of(said)
                and is_long
                and found.begin <= end
                and found.end >= begin
            ):
                return (
                    f"nothing was acknowledged from {found.begin:%H:%M:%S} to {found.end:%H:%M:%S}"
                )
    return None


def group_stood(said: Said, truth: Truth) -> str | None:
    """The coordinator's log holds no progress for that long, of a group that had made some."""
    group = said.labels.get("group", "")
    begin = said.since - _from(said, STALLED_SECONDS)
    is_used = any(len(moves) > 1 for commit, moves in truth.commits.items() if commit[0] == group)
    stood = truth.stood((group, *place_of(said)), begin, said.last_breach, STALLED_SECONDS)
    return "its commits stood" if is_used and stood else None


def went_back(said: Said, truth: Truth) -> str | None:
    """The coordinator's log holds a lower commit behind a higher one."""
    topic, partition = place_of(said)
    commit = (said.labels.get("group", ""), topic, partition)
    return "a lower commit was written" if truth.went_back(commit) else None


def lost(said: Said, truth: Truth) -> str | None:
    """A record that was acknowledged is not at its place."""
    return "clients miss acknowledged records" if truth.has_lost(place_of(said)) else None


def elected_uncleanly(said: Said, truth: Truth) -> str | None:
    """The controller wrote it."""
    return "the controller wrote UNCLEAN" if place_of(said) in truth.unclean else None


def marker_was_missing(said: Said, truth: Truth) -> str | None:
    """The coordinator's log holds so long a time between decision and completion."""
    begin = said.since - _from(said, STUCK_SECONDS)
    topic, _ = place_of(said)
    if truth.waited_for_markers(topic, begin, said.last_breach, STUCK_SECONDS):
        return "a coordinator waited for its markers"
    return None


def transaction_was_long(said: Said, truth: Truth) -> str | None:
    """The coordinator's log holds so long a transaction."""
    topic, _ = place_of(said)
    begin = said.since - _from(said, OPEN_SECONDS)
    if truth.was_open(topic, begin, said.last_breach, OPEN_SECONDS):
        return "a transaction was open for so long"
    return None


def was_replaced(said: Said, truth: Truth) -> str | None:
    """Its client was beyond use, and another took the transactional id over."""
    name = said.labels.get("transactional_id", "")
    return "a new client took it over" if truth.replaced.get(name) else None


EXCUSES: Final[Mapping[str, Excuse]] = {
    "committed_beyond_log_end": lost,
    "committed_records_lost": lost,
    "consumer_group_rewound": went_back,
    "consumer_group_stalled": group_stood,
    "high_watermark_stuck": nothing_acknowledged,
    "last_stable_offset_stuck": transaction_was_long,
    "partition_offline": no_leader,
    "partition_under_min_isr": too_few_in_sync,
    "producer_fenced": was_replaced,
    "read_committed_consumers_blocked": marker_was_missing,
    "records_possibly_lost": lost,
    "sequence_gap_loss": lost,
    "transaction_marker_stuck": marker_was_missing,
    "unclean_leader_election": elected_uncleanly,
}


def excuse_of(said: Said, truth: Truth) -> str | None:
    """Return why a finding may be; None where it is wrong."""
    if said.severity == "info":
        return None if calls_it_unclean(said, truth) else "info"
    judge = EXCUSES.get(said.rule)
    return None if judge is None else judge(said, truth)


def calls_it_unclean(said: Said, truth: Truth) -> bool:
    """Whether a finding of any severity gives a clean election out for an unclean one."""
    is_said = said.rule == "unclean_leader_election" or said.evidence.get("election") == "unclean"
    return is_said and place_of(said) not in truth.unclean
