"""What a round observes of an episode's partition, and what keeps it from observing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason

# A Java client gives a batch up after `delivery.timeout.ms`, by default 120 s: it is not expected any
# more then. librdkafka retries for `message.timeout.ms`, by default 300 s.
DELIVERY_TIMEOUT: Final = timedelta(seconds=120)

# The only producer of a topic that had records fail between two times; None: not known, or not
# exactly one.
OnlyFailed: TypeAlias = Callable[[str, datetime, datetime], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeContext:
    """The partition of an episode in this round; times in microseconds since 1970-01-01 UTC."""

    now_us: int
    row: int | None = None  # of the snapshot; None: it has no such partition
    leader_epoch: int | None = None  # in the leader's own answer
    known_epoch: int | None = None  # of the last round that saw it; None: it was never seen
    epoch_since_us: int | None = None  # the round that first saw it
    watched_from: int | None = None  # the epoch from which on every change is known
    clean_from: int | None = None  # the epoch from which on every change was certainly clean
    # The leader changed, and the new one has not reported yet where the older epoch ended.
    is_change_unreported: bool = False
    error: SequenceReason | None = None  # why nothing can be queried
    scan_error: SequenceReason | None = None  # why a requested scan was not answered

    @property
    def is_silent(self) -> bool:
        """Whether a partition that was observed before is not observed in this round: no evidence."""
        return self.error is SequenceReason.PARTITION_NOT_SEEN and self.known_epoch is not None

    def is_after(self, rejection: Rejection) -> bool:
        """Whether the leader epoch of this round was seen after the rejection."""
        if rejection.seen_us < self.now_us:
            return True
        last = rejection.last_us
        return last is not None and last + CLOCKS_AGREE_US <= self.now_us

    def holds_at(self, rejection: Rejection) -> bool:
        """Whether the present leader epoch had begun when the rejection was logged."""
        since, first = self.epoch_since_us, rejection.first_us
        if since is None or self.leader_epoch is None:
            return False
        return first is not None and first >= since + CLOCKS_AGREE_US
