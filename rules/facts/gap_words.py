"""Explains a gap: its cause, whether it ends by itself, and what is unknown while it lasts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot

# The subject of a gap. Its text may differ from round to round, as in a count of partitions.
GapKey: TypeAlias = tuple[
    GapScope, GapCause, BrokerId | None, str | None, int | None, str | None
]  # broker, topic, partition, group

EXPLANATIONS: Final[Mapping[GapCause, str]] = {
    GapCause.TIMEOUT: "no answer came in time; each round asks again",
    GapCause.UNREACHABLE: "it cannot be reached; each round tries again",
    GapCause.NOT_AUTHORIZED: "Tidemark lacks a permission, until somebody grants it",
    GapCause.UNSUPPORTED: "the broker is older than the request needs, until it is upgraded",
    GapCause.NO_LEADER: "no replica leads; it ends when one is elected",
    GapCause.LEADER_CHANGING: "the leader is changing; it ends by itself within a round or two",
    GapCause.COORDINATOR_MOVING: "the coordinator is moving; it ends by itself, mostly in seconds",
    GapCause.GONE: "deleted or recreated during the round; it ends by itself with the next one",
    GapCause.IMPOSSIBLE_VALUE: "an answer that cannot be true was left out",
    GapCause.UNREADABLE: "an answer could not be decoded",
    GapCause.LIMIT: "a limit of Tidemark's was reached first",
    GapCause.BROKER_ERROR: "the broker answered with an error; each round asks again",
}
MAKES_UNKNOWN: Final[Mapping[GapScope, str]] = {
    GapScope.CLUSTER: "all that only this broker or this permission shows",
    GapScope.PLACEMENT: "which partitions there are and who leads them: none of these is judged",
    GapScope.CONFIGS: "settings of these topics, such as whether elections may be unclean",
    GapScope.GROUPS: "groups that were not listed, and whether they read what is gone",
    GapScope.MEMBERS: "whether these groups are running",
    GapScope.COMMITS: "how far these groups have read, and whether they read what is gone",
    GapScope.OFFSETS: "whether these partitions lost records, and what holds back their readers",
    GapScope.REPLICAS: "what followers have: what is not replicated yet, and who may lead safely",
    GapScope.READABLE: "whether there is something left to read for groups that do not advance",
    GapScope.TRANSACTIONS: "which transactions are open, and whether one of them hangs",
    GapScope.PRODUCERS: "who has a transaction open there, and what a leader knows of a producer",
    GapScope.TRANSACTION_LOG: "how transactions ended, and whether a committed one lost its records",
    GapScope.EPOCHS: "what a new leader has of the one before: whether their change lost records",
    GapScope.BATCHES: "whether a gap in a producer's sequences is a reordering or a loss",
    GapScope.BATCH_SAMPLES: "whether producers of these topics are idempotent, and who continues whom",
    GapScope.BROKER_LOG: "rejected batches and what former leaders truncated: gaps in sequences are not "
    "seen, nor is the exact range of a loss",
    GapScope.SCRAPES: "errors that clients and brokers count: whether a client gave up its batches",
}


def gap_key(gap: Gap) -> GapKey:
    """Return the key by which a gap is the same in two rounds."""
    return gap.scope, gap.cause, gap.broker_id, gap.topic, gap.partition, gap.group


def gaps_since(
    before: Mapping[GapKey, datetime], snapshot: Snapshot | None
) -> Mapping[GapKey, datetime]:
    """Return for each gap of a snapshot since which round it has lasted without a break."""
    if snapshot is None:
        return before
    keys = map(gap_key, snapshot.gaps)
    return {key: before.get(key, snapshot.taken_at) for key in keys}
