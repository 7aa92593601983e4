"""Muting: silences and inhibitions hold back an alert's notification, while the alert itself fires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.identity import Labels
from service.alerting.alerts.inhibition import Inhibition, Inhibitor
from service.alerting.alerts.matchers import Operator, all_match
from service.alerting.alerts.silences import Silence, SilenceState


@dataclass(frozen=True, slots=True, kw_only=True)
class Muted:
    """By what an alert is muted; empty if it is not."""

    silenced_by: tuple[str, ...] = ()  # ids of silences
    inhibited_by: str | None = None  # fingerprint of an alert


class Muting:
    """Decides at one point in time which alerts are muted."""

    def __init__(
        self,
        silences: Iterable[Silence],
        inhibitions: Sequence[Inhibition],
        firing: Iterable[Alert],
        now: datetime,
    ) -> None:
        self._silences = _by_label(
            silence for silence in silences if silence.state(now) is SilenceState.ACTIVE
        )
        self._inhibitor = Inhibitor(inhibitions, firing)

    def of(self, alert: Alert) -> Muted:
        """Return by what an alert is muted."""
        return Muted(
            silenced_by=tuple(sorted(self._silenced_by(alert.labels))),
            inhibited_by=self._inhibitor.inhibited_by(alert),
        )

    def is_muted(self, alert: Alert) -> bool:
        """Whether an alert is muted by anything."""
        is_silenced = any(True for _ in self._silenced_by(alert.labels))
        return is_silenced or self._inhibitor.inhibited_by(alert) is not None

    def _silenced_by(self, labels: Labels) -> Iterator[str]:
        for name, by_value in self._silences.items():
            for silence in by_value.get(labels.get(name, ""), ()):
                if all_match(silence.matchers, labels):
                    yield silence.silence_id


def _by_label(silences: Iterable[Silence]) -> dict[str, dict[str, list[Silence]]]:
    """Index silences by a label and the value that they require of it.

    Hundreds of silences of one topic each are then found in one step. Silences that require no exact
    value are indexed under the empty label, which no alert has.
    """
    by_label: dict[str, dict[str, list[Silence]]] = {}
    for silence in silences:
        exact = (m for m in silence.matchers if m.operator is Operator.EQUAL)
        name, value = next(((m.name, m.value) for m in exact), ("", ""))
        by_label.setdefault(name, {}).setdefault(value, []).append(silence)
    return by_label
