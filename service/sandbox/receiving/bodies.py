"""What a notification says, in whichever channel's format, in one line for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from service.alerting.alerts.annotations import INCIDENT_SUMMARY
from service.alerting.alerts.identity import ALERTNAME
from service.alerting.notifications.wording import pairs

RESOLVED: Final = "resolved"


class Kind(StrEnum):
    """The format of a body."""

    WEBHOOK = "webhook"  # Alertmanager's, version 4
    ALERTMANAGER = "alertmanager"  # alerts that are pushed to one
    PAGERDUTY = "pagerduty"
    SLACK = "slack"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedBody:
    """What a body says."""

    kind: Kind
    title: str = ""  # "[FIRING:3] rule cluster=a"
    reason: str | None = None  # why it was sent now; only webhooks say
    group_key: str | None = None
    alerts: Sequence[Mapping[str, Any]] = field(default=())


def document_of(body: bytes) -> Any:
    """Return a body as JSON, None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def parse_body(document: Any) -> ParsedBody:
    """Parse a body that was JSON; one in no known format has the kind OTHER."""
    match document:
        case {"alerts": [*alerts], "groupLabels": {**labels}} if _are_alerts(alerts):
            return ParsedBody(
                kind=Kind.WEBHOOK,
                title=_title(alerts, labels, document.get("commonAnnotations")),
                reason=_text(document.get("notification_reason")),
                group_key=_text(document.get("groupKey")),
                alerts=alerts,
            )
        case [*alerts] if alerts and _are_alerts(alerts):
            names = sorted({str(alert["labels"].get(ALERTNAME)) for alert in alerts})
            return ParsedBody(
                kind=Kind.ALERTMANAGER, title=f"push of {', '.join(names)}", alerts=alerts
            )
        case {"event_action": str(action), "dedup_key": str(key)}:
            return ParsedBody(kind=Kind.PAGERDUTY, title=_event(action, document), group_key=key)
        case {"text": str(text)}:
            return ParsedBody(kind=Kind.SLACK, title=text)
        case _:
            return ParsedBody(kind=Kind.OTHER, title="no notification")


def _are_alerts(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, dict) and isinstance(row.get("labels"), dict) for row in rows)


def _title(
    alerts: Sequence[Mapping[str, Any]], labels: Mapping[Any, Any], annotations: object
) -> str:
    firing = [alert for alert in alerts if alert.get("status") != RESOLVED]
    state = f"FIRING:{len(firing)}" if firing else f"RESOLVED:{len(alerts)}"
    incident = annotations.get(INCIDENT_SUMMARY) if isinstance(annotations, dict) else None
    if incident is not None:
        return f"[{state}] {incident}"
    names = {str(alert["labels"].get(ALERTNAME)) for alert in alerts}
    name = names.pop() if len(names) == 1 else "several alerts"
    where = pairs({str(k): str(v) for k, v in labels.items() if k != ALERTNAME})
    return " ".join(part for part in (f"[{state}]", name, where) if part)


def _event(action: str, document: Mapping[str, Any]) -> str:
    payload = document.get("payload")
    summary = payload.get("summary") if isinstance(payload, dict) else None
    return " ".join(part for part in (action, _text(summary)) if part)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
