"""What a receiver is told, as plain values: every channel makes its body of this and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Status(StrEnum):
    """Whether something goes on: Alertmanager's words."""

    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedAlert:
    """One alert of a notification."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime  # aware; since when it fires
    ends_at: datetime | None = None  # aware; None: it goes on
    fingerprint: str  # Alertmanager's, 16 hexadecimal digits
    generator_url: str = ""  # where more is to be seen; empty for nowhere

    def __post_init__(self) -> None:
        for timestamp in (self.starts_at, self.ends_at):
            if timestamp is not None and timestamp.utcoffset() is None:
                raise ValueError("an alert's times need a time zone")

    @property
    def status(self) -> Status:
        """Return whether it goes on."""
        return Status.FIRING if self.ends_at is None else Status.RESOLVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one receiver is told of one group of alerts, once."""

    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    reason: str  # why it is told; Alertmanager's words where they fit
    external_url: str  # where people find Tidemark; empty for nowhere
    alerts: tuple[NotifiedAlert, ...]  # in the order in which they are to be told

    def __post_init__(self) -> None:
        if not self.alerts:
            raise ValueError("a notification without alerts tells nothing")

    @property
    def status(self) -> Status:
        """Return whether anything of it goes on."""
        return Status.FIRING if self.firing else Status.RESOLVED

    @property
    def firing(self) -> tuple[NotifiedAlert, ...]:
        """Return what goes on."""
        return tuple(alert for alert in self.alerts if alert.status is Status.FIRING)

    @property
    def resolved(self) -> tuple[NotifiedAlert, ...]:
        """Return what is over."""
        return tuple(alert for alert in self.alerts if alert.status is Status.RESOLVED)

    @property
    def most_urgent_first(self) -> tuple[NotifiedAlert, ...]:
        """Return what goes on before what is over: so that a limit cuts off what matters least."""
        return self.firing + self.resolved

    @property
    def common_labels(self) -> dict[str, str]:
        """Return the labels that all alerts share."""
        return common(alert.labels for alert in self.alerts)

    @property
    def common_annotations(self) -> dict[str, str]:
        """Return the annotations that all alerts share."""
        return common(alert.annotations for alert in self.alerts)


def common(many: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what all of them say alike."""
    every = iter(many)
    shared = dict(next(every, {}))
    for one in every:
        shared = {name: value for name, value in shared.items() if one.get(name) == value}
    return shared
