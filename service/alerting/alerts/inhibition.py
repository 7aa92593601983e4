"""Inhibition: an alert is muted while another alert fires that explains it.

A target is muted while a source fires and both agree in the labels of `equal`; a missing label counts
as empty. An alert that matches both sides of a rule cannot be muted by another that does too, so that
nothing mutes itself. A silenced source still mutes.

An inhibition may demand more of the target: a reason, and evidence that lists what explains it, each
with a source of its own. It is muted only while all of these fire.

Which of our rules explain which others is argued in docs/decisions/0003-what-inhibits-what.md.

Source: prometheus/alertmanager, inhibit/inhibit.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rules.gone_brokers import BROKER, GONE_BROKERS, GONE_REASON
from rules.verdict import SEVERITIES, Severity
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.identity import ALERTNAME, SEVERITY, Labels
from service.alerting.alerts.matchers import Matcher, Matchers, Operator, all_match


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryRow:
    """What a target has to say: for this reason, and each row of a list names one of the sources."""

    reason: str
    evidence: str  # the list; a target without a row is not muted
    name: str  # of the value in a row, and of the source's label that has to equal it


@dataclass(frozen=True, slots=True, kw_only=True)
class Inhibition:
    """Alerts that match `source` mute those that match `target`."""

    source: Matchers
    target: Matchers
    equal: tuple[str, ...]
    every: EveryRow | None = None  # None: any one source mutes the target

    def place(self, labels: Labels) -> tuple[str, ...]:
        """Return the label values in which source and target have to agree."""
        return tuple(labels.get(name, "") for name in self.equal)

    def place_of_source(self, labels: Labels) -> tuple[str, ...]:
        """Return the values that a target has to name to be muted by a source with these labels."""
        own = () if self.every is None else (labels.get(self.every.name, ""),)
        return (*self.place(labels), *own)

    def places_needed(self, target: Alert) -> list[tuple[str, ...]]:
        """Return the places that all need a firing source; none if the target cannot be muted."""
        place, every = self.place(target.labels), self.every
        if every is None:
            return [place]
        rows = target.evidence.get(every.evidence)
        if target.reason != every.reason or not isinstance(rows, list):
            return []
        return [(*place, str(row.get(every.name, ""))) for row in rows]


def _explains(source: str, *targets: str) -> Inhibition:
    """Return an inhibition: `source` explains `targets` on the same partition."""
    return Inhibition(
        source=(Matcher(ALERTNAME, Operator.EQUAL, source),),
        target=(Matcher(ALERTNAME, Operator.MATCHES, "|".join(targets)),),
        equal=("cluster", "topic", "partition"),
    )


def _broker_explains(*targets: str, severity: Severity) -> Inhibition:
    """Return an inhibition: gone brokers, all at least as severe, explain partitions that miss no others."""
    may = "|".join(SEVERITIES[: SEVERITIES.index(severity) + 1])
    return Inhibition(
        source=(
            Matcher(ALERTNAME, Operator.EQUAL, "broker_gone"),
            Matcher(SEVERITY, Operator.MATCHES, may),
        ),
        target=(Matcher(ALERTNAME, Operator.MATCHES, "|".join(targets)),),
        equal=("cluster",),
        every=EveryRow(reason=GONE_REASON, evidence=GONE_BROKERS, name=BROKER),
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
    _broker_explains("partition_offline", "partition_under_min_isr", severity=Severity.CRITICAL),
    _broker_explains("partition_under_replicated", severity=Severity.WARNING),
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
            places = rule.places_needed(alert)
            causes = [sources[place] for place in places if place in sources]
            if not causes or len(causes) < len(places):
                continue
            is_both = all_match(rule.source, alert.labels)
            by = causes[0].one_sided if is_both else causes[0].any
            if by is not None:
                return by
        return None


def _add(sources: dict[tuple[str, ...], _Sources], rule: Inhibition, alert: Alert) -> None:
    """Add a source. Of several at one place the least fingerprint counts, whatever their order."""
    place, name = rule.place_of_source(alert.labels), alert.fingerprint
    source = sources.get(place, _Sources(name, None))
    one_sided = source.one_sided
    if not all_match(rule.target, alert.labels):
        one_sided = name if one_sided is None else min(one_sided, name)
    sources[place] = _Sources(min(source.any, name), one_sided)
