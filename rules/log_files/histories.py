"""Whether two copies of a partition can be compared, and from which offset on they differ.

What cannot be compared is UNKNOWN with its reason, and never "nothing is missing": another topic of the same
name, arguments that are swapped, a copy that was made after its broker had truncated, a log whose retention has
deleted the place where the histories part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rules.facts.log_states import EpochStart
from rules.log_files.epochs import EpochEnd, find_divergence

# To which brokers alone write: what a coordinator wrote again, it wrote as other records.
INTERNAL_TOPICS: Final = frozenset({
    "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata",
})  # fmt: skip


class DiffReason(StrEnum):
    """Why a comparison ends as it does; a closed set."""

    # BREACH
    COMMITTED_MISSING = "committed_missing"
    # UNKNOWN, and perhaps lost
    PERHAPS_MISSING = "perhaps_missing"
    # OK
    NOTHING_MISSING = "nothing_missing"
    NOTHING_LOST = "nothing_lost"
    # UNKNOWN
    OTHER_TOPIC_ID = "other_topic_id"
    NO_TOPIC_ID = "no_topic_id"
    COPY_IS_EMPTY = "copy_is_empty"
    COPY_IS_CUT = "copy_is_cut"
    NO_LEADER_EPOCHS = "no_leader_epochs"
    NEW_IS_NOT_LATER = "new_is_not_later"
    FOLLOWED_NEW_LEADER = "followed_new_leader"
    NEW_LOG_STARTS_LATER = "new_log_starts_later"
    NOT_COMPARED = "not_compared"
    NOT_IN_NEW = "not_in_new"
    NOT_READ = "not_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLog:
    """The former leader's copy, as far as it can be read."""

    topic_id: str | None
    epochs: tuple[EpochStart, ...]  # ordered; of the checkpoint and of the batches
    log_start: int
    log_end: int  # behind the last batch that can be read; the log start if there is none
    high_watermark: int | None = None  # that is proven: a lower bound
    is_cut: bool = False  # something behind a readable batch cannot be read

    @property
    def ends_early(self) -> bool:
        """Whether its broker had more: something cannot be read, or it ends before what was replicated."""
        is_short = self.high_watermark is not None and self.high_watermark > self.log_end
        return self.is_cut or is_short


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLog:
    """The new leader's log, or its copy."""

    topic_id: str | None
    latest_epoch: int | None
    log_start: int
    log_end: int  # of a leader its high watermark
    ends: Mapping[int, EpochEnd] = field(default_factory=dict)  # by the epochs of the old log


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two histories part; without `reason` what is behind has to be compared."""

    offset: int | None
    reason: DiffReason | None = None


def part(old: OldLog, new: NewLog) -> Parting:
    """Return where the logs part, or why that cannot be found, or that nothing is missing."""
    reason = _not_comparable(old, new)
    if reason is not None:
        return Parting(None, reason)
    divergence = find_divergence(old.epochs, old.log_end, new.ends)
    if divergence is None:
        return Parting(None, DiffReason.NO_LEADER_EPOCHS)
    if _is_deleted(old, new, divergence):
        return Parting(divergence, DiffReason.NEW_LOG_STARTS_LATER)
    if divergence < old.log_end:
        return Parting(divergence)
    return Parting(divergence, _why_nothing(old))


def _not_comparable(old: OldLog, new: NewLog) -> DiffReason | None:
    if None not in (old.topic_id, new.topic_id) and old.topic_id != new.topic_id:
        return DiffReason.OTHER_TOPIC_ID
    if old.topic_id is None or new.topic_id is None:
        return DiffReason.NO_TOPIC_ID
    if old.log_end <= old.log_start:
        return DiffReason.COPY_IS_EMPTY
    if not old.epochs or new.latest_epoch is None:
        return DiffReason.NO_LEADER_EPOCHS
    latest = old.epochs[-1].leader_epoch
    if new.latest_epoch > latest:
        return None
    is_behind = new.latest_epoch < latest or old.log_end > new.log_end
    return DiffReason.NEW_IS_NOT_LATER if is_behind else DiffReason.FOLLOWED_NEW_LEADER


def _is_deleted(old: OldLog, new: NewLog, divergence: int) -> bool:
    """Whether the new log begins where the histories part, or behind: what it had there is unknown.

    It then answers for each older epoch with its own log start. A log that begins at 0 has deleted nothing.
    """
    return new.log_start > 0 and (divergence <= new.log_start or old.log_end <= new.log_start)


def _why_nothing(old: OldLog) -> DiffReason:
    """Return what it says that the copy has nothing that the new log lacks.

    A copy that ends before what its broker knew to be replicated is not all that the broker had.
    """
    return DiffReason.COPY_IS_CUT if old.ends_early else DiffReason.NOTHING_MISSING


SENTENCES: Final[Mapping[DiffReason, str]] = {
    DiffReason.COMMITTED_MISSING: "Committed records of the copy are lost: the new log does not have them.",
    DiffReason.PERHAPS_MISSING: (
        "The new log does not have records of the copy, and whether they are lost is not proven."
    ),
    DiffReason.NOTHING_MISSING: (
        "The new log has all that the copy has. That proves something only of a copy of the broker that led last."
    ),
    DiffReason.NOTHING_LOST: (
        "What the copy has beyond the new log is there again, or a read_committed consumer would never have got it."
    ),
    DiffReason.OTHER_TOPIC_ID: (
        "The topic ids differ: the topic was deleted and created again, and these are two logs. Nothing was compared."
    ),
    DiffReason.NO_TOPIC_ID: (
        "A topic id is not known (`partition.metadata`): this may be another topic of the same name. "
        "Nothing was compared."
    ),
    DiffReason.COPY_IS_EMPTY: "The copy has no batch that can be read. Nothing was compared.",
    DiffReason.COPY_IS_CUT: (
        "The copy ends before what its broker had: it was copied in part, or is damaged. "
        "The new log has all that can be read of it."
    ),
    DiffReason.NO_LEADER_EPOCHS: (
        "The two logs have no leader epoch in common that shows where they part. Nothing was compared."
    ),
    DiffReason.NEW_IS_NOT_LATER: (
        "The new log has no later leader epoch than the copy: the arguments may be swapped, or the new log is a "
        "follower's or an older copy. Nothing was compared."
    ),
    DiffReason.FOLLOWED_NEW_LEADER: (
        "The copy has the leader epoch of the new log: its broker had followed the new leader when it was copied, "
        "and had truncated before. What it had lost is not in this copy."
    ),
    DiffReason.NEW_LOG_STARTS_LATER: (
        "The new log starts behind the place where the logs part: retention or DeleteRecords has taken it, and "
        "whether the records were there is not known."
    ),
    DiffReason.NOT_COMPARED: (
        "The copy has committed records that the new log does not have at their offsets. Not all of the new log could "
        "be read: whether they are there again is not known."
    ),
    DiffReason.NOT_IN_NEW: "There is no new log of this partition. Nothing was compared.",
    DiffReason.NOT_READ: "The new log could not be read. Nothing was compared.",
}
