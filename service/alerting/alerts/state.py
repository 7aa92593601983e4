"""The state of alerting for one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.grouping import Group
from service.alerting.alerts.identity import AlertKey
from service.alerting.alerts.routes import GroupId


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingState:
    """Alerts, groups, and when a round was last observed."""

    alerts: Mapping[AlertKey, Alert] = field(default_factory=dict)
    groups: Mapping[GroupId, Group] = field(default_factory=dict)
    observed_at: datetime | None = None  # aware, UTC; None: never

    def shifted(self, step: timedelta) -> AlertingState:
        """Return it with all timestamps moved by a step of the clock."""
        return AlertingState(
            alerts={key: alert.shifted(step) for key, alert in self.alerts.items()},
            groups={key: group.shifted(step) for key, group in self.groups.items()},
            observed_at=None if self.observed_at is None else self.observed_at + step,
        )
