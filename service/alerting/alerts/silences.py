"""Silences: a person holds back notifications for a while. Silenced alerts still fire and resolve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from rules.errors import TidemarkError
from service.alerting.alerts.identity import Labels
from service.alerting.alerts.matchers import Matchers, all_match

LONGEST_COMMENT: Final = 4096
LONGEST_NAME: Final = 256


class SilenceError(TidemarkError):
    """A silence that is rejected; the text says why."""


class SilenceState(StrEnum):
    """The state of a silence, in Alertmanager's words."""

    PENDING = "pending"
    ACTIVE = "active"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceTerms:
    """Who silences, from when until when, and why; both as it is stored and as it mutes."""

    starts_at: datetime  # aware, UTC, inclusive
    ends_at: datetime  # aware, UTC, exclusive
    created_by: str
    comment: str

    def state(self, now: datetime) -> SilenceState:
        """Return whether it is in force at a time."""
        if now < self.starts_at:
            return SilenceState.PENDING
        return SilenceState.ACTIVE if now < self.ends_at else SilenceState.EXPIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence(SilenceTerms):
    """A silence that mutes alerts."""

    silence_id: str
    matchers: Matchers
    is_for_all: bool = False  # whether it may match every alert: its author confirmed that

    def __post_init__(self) -> None:
        """Reject a silence that would hide everything, or has no author or reason.

        Raises:
            SilenceError: the text says what is wrong.
        """
        if not self.is_for_all and all_match(self.matchers, {}):
            raise SilenceError("it matches everything: one matcher must not match an empty label")
        if self.ends_at <= self.starts_at:
            raise SilenceError("it ends before it begins")
        if not self.created_by.strip() or len(self.created_by) > LONGEST_NAME:
            raise SilenceError(f"it needs its author's name, of at most {LONGEST_NAME} characters")
        if not self.comment.strip() or len(self.comment) > LONGEST_COMMENT:
            raise SilenceError(f"it needs a reason, of at most {LONGEST_COMMENT} characters")

    def mutes(self, labels: Labels, now: datetime) -> bool:
        """Whether notifications of an alert with these labels are held back now."""
        return self.state(now) is SilenceState.ACTIVE and all_match(self.matchers, labels)
