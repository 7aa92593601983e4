"""Inhibition: an alert is muted while another alert fires that explains it.

A target is muted while a source fires and both agree in the labels of `equal`; a missing label counts
as empty. An alert that matches both sides of a rule cannot be muted by another that does too, so that
nothing mutes itself. A silenced source still mutes.

Which of our rules explain which others is argued in docs/decisions/0003-what-inhibits-what.md.

Source: prometheus/alertmanager, inhibit/inhibit.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.identity import ALERTNAME, Labels
from service.alerting.alerts.matchers import Matcher, Matchers, Operator, all_match


@dataclass(frozen=True, slots=True, kw_only=True)
class Inhibition:
    """Alerts that match `source` mute those that match `target`."""

    source: Matchers
    target: Matchers
    equal: tuple[str, ...]

    def place(self, labels: Labels) -> tuple[str, ...]:
        """Return the label values in which source and target have to agree."""
        return tuple(labels.get(name, "") for name in self.equal)


def _explains(source: str, *targets: str) -> Inhibition:
    """Return an inhibition: `source` explains `targets` on the same partition."""
    return Inhibition(
        source=(Matcher(ALERTNAME, Operator.EQUAL, source),),
        target=(Matcher(ALERTNAME, Operator.MATCHES, "|".join(targets)),),
        equal=("cluster", "topic", "partition"),
    )


_BLOCKED: Final = "read_committed_consumers_blocked"
DEFAULT_INHIBITIONS: Final = (
    _explains(
        "partition_offline",
        "partition_under_min_isr",
        "high_watermark_stuck",
        "transaction_marker_stuck",
        "last_stable_offset_stuck",
        _BLOCKED,
    ),
    _explains("partition_under_min_isr", "high_watermark_stuck", "transaction_marker_stuck"),
    _explains("high_watermark_stuck", "transaction_marker_stuck"),
    _explains("transaction_hanging", "last_stable_offset_stuck", _BLOCKED),
    _explains("transaction_marker_stuck", "last_stable_offset_stuck", _BLOCKED),
)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Fingerprints of firing sources at one place: of any, and of one that is no target itself."""

    any: str
    one_sided: str | None


class Inhibitor:
    """Finds, among the alerts that fire now, the one that mutes a given alert."""

    def __init__(self, rules: Sequence[Inhibition], firing: Iterable[Alert]) -> None:
        self._rules = [(rule, dict[tuple[str, ...], _Sources]()) for rule in rules]
        for alert in firing:
            for rule, sources in self._rules:
                if all_match(rule.source, alert.labels):
                    _add(sources, rule, alert)

    def inhibited_by(self, alert: Alert) -> str | None:
        """Return the fingerprint of an alert that mutes this one; None if there is none."""
        for rule, sources in self._rules:
            if not sources or not all_match(rule.target, alert.labels):
                continue
            source = sources.get(rule.place(alert.labels))
            if source is None:
                continue
            is_both = all_match(rule.source, alert.labels)
            by = source.one_sided if is_both else source.any
            if by is not None:
                return by
        return None


def _add(sources: dict[tuple[str, ...], _Sources], rule: Inhibition, alert: Alert) -> None:
    """Add a source. Of several at one place the least fingerprint counts, whatever their order."""
    place, name = rule.place(alert.labels), alert.fingerprint
    source = sources.get(place, _Sources(name, None))
    one_sided = source.one_sided
    if not all_match(rule.target, alert.labels):
        one_sided = name if one_sided is None else min(one_sided, name)
    sources[place] = _Sources(min(source.any, name), one_sided)
