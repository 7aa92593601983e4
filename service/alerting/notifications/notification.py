"""The content of a notification, as plain values: every channel builds its body of this alone.

A body is JSON. One value has one text, so that a repeated body is the same byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "str | int | bool | Mapping[str, Json] | Sequence[Json]"

_SECONDS_LONG = len("2025-06-02T12:00:00")


class Status(StrEnum):
    """Whether something still fires, in Alertmanager's words."""

    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedAlert:
    """One alert of a notification."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime  # aware; since when it fires
    ends_at: datetime | None = None  # aware; None: it still fires
    fingerprint: str  # Alertmanager's, 16 hexadecimal digits
    generator_url: str = ""  # page with details; empty if there is none

    def __post_init__(self) -> None:
        for timestamp in (self.starts_at, self.ends_at):
            if timestamp is not None and timestamp.utcoffset() is None:
                raise ValueError("an alert's times need a time zone")

    @property
    def status(self) -> Status:
        """Return whether it still fires."""
        return Status.FIRING if self.ends_at is None else Status.RESOLVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One notification of one group of alerts to one receiver."""

    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    reason: str  # why it is sent; Alertmanager's words where they fit
    external_url: str  # where people reach Tidemark; empty if unknown
    alerts: tuple[NotifiedAlert, ...]  # in the order in which they are shown

    def __post_init__(self) -> None:
        if not self.alerts:
            raise ValueError("a notification needs at least one alert")

    @property
    def status(self) -> Status:
        """Return FIRING if any of its alerts still fires."""
        return Status.FIRING if self.firing else Status.RESOLVED

    @property
    def firing(self) -> tuple[NotifiedAlert, ...]:
        """Return the alerts that still fire."""
        return tuple(alert for alert in self.alerts if alert.status is Status.FIRING)

    @property
    def resolved(self) -> tuple[NotifiedAlert, ...]:
        """Return the resolved alerts."""
        return tuple(alert for alert in self.alerts if alert.status is Status.RESOLVED)

    @property
    def most_urgent_first(self) -> tuple[NotifiedAlert, ...]:
        """Return firing alerts before resolved ones, so that a limit cuts off what matters least."""
        return self.firing + self.resolved

    @property
    def common_labels(self) -> dict[str, str]:
        """Return the labels that all alerts share."""
        return common(alert.labels for alert in self.alerts)

    @property
    def common_annotations(self) -> dict[str, str]:
        """Return the annotations that all alerts share."""
        return common(alert.annotations for alert in self.alerts)


def common(mappings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the entries that all mappings share."""
    remaining = iter(mappings)
    shared = dict(next(remaining, {}))
    for mapping in remaining:
        shared = {name: value for name, value in shared.items() if mapping.get(name) == value}
    return shared


def json_bytes(document: Json) -> bytes:
    """Return a document in UTF-8 with sorted names and no spaces.

    Half of a surrogate pair, which no decoder accepts, becomes a question mark: a topic's odd name
    must not prevent a page from being sent.
    """
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def timestamp(at: datetime) -> str:
    """Return a time in UTC as Go prints it (RFC 3339, no more digits than it has)."""
    utc = at.astimezone(UTC)
    digits = f"{utc.microsecond:06d}".rstrip("0")
    return utc.isoformat()[:_SECONDS_LONG] + (f".{digits}Z" if digits else "Z")
