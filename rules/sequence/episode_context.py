"""What a round shows of the partition of an episode, and what keeps it from seeing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason

# A Java client gives a batch up after `delivery.timeout.ms`, by default 120 s: what has not come by
# then is not expected any more. librdkafka tries on for `message.timeout.ms`, by default 300 s.
DELIVERY_TIMEOUT: Final = timedelta(seconds=120)

# Who of a topic's producers, and nobody else, had records fail between two times; None: it is not
# known, or it was not exactly one.
OnlyFailed: TypeAlias = Callable[[str, datetime, datetime], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeContext:
    """The partition of an episode in this round; times in microseconds since 1970-01-01 UTC."""

    now_us: int
    row: int | None = None  # of the snapshot; None: it has no such partition
    leader_epoch: int | None = None  # in the leader's own answer
    known_epoch: int | None = None  # of the last round that saw it; None: it was never seen
    epoch_since_us: int | None = None  # the round that first saw it
    watched_from: int | None = None  # since which epoch every change is known
    clean_from: int | None = None  # since which one every change was clean for certain
    # It changed, and the new leader has not told yet what is left.
    is_change_unreported: bool = False
    error: SequenceReason | None = None  # why nothing can be asked
    scan_error: SequenceReason | None = None  # why what was asked was not answered

    @property
    def is_silent(self) -> bool:
        """Whether a partition that was seen before is not seen in this round: that says nothing."""
        return self.error is SequenceReason.PARTITION_NOT_SEEN and self.known_epoch is not None

    def is_after(self, rejection: Rejection) -> bool:
        """Whether the leader epoch of this round was seen after the rejection."""
        if rejection.seen_us < self.now_us:
            return True
        last = rejection.last_us
        return last is not None and last + CLOCKS_AGREE_US <= self.now_us

    def holds_at(self, rejection: Rejection) -> bool:
        """Whether the present leader epoch had begun when the rejection was written."""
        since, first = self.epoch_since_us, rejection.first_us
        if since is None or self.leader_epoch is None:
            return False
        return first is not None and first >= since + CLOCKS_AGREE_US
