"""Builds alerting: what rounds step, and what tells between them."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from rules.catalogue.all_rules import EVERY
from service.alerting.notifications.notification_context import NotificationContext
from service.rounds.alerting_step import Alerting
from service.rounds.pipeline import Pipeline
from service.rounds.round_loop import ReportingLoop
from service.runtime.supervisor import Supervisor, Task
from service.settings import AlertingSettings


def make_alerting(settings: AlertingSettings, supervisor: Supervisor) -> Alerting:
    """Build it; without receivers alerts live, and nobody is told.

    Raises:
        SettingsError: a setting names a rule that there is not.
    """
    rules = {rule.meta.rule_id: rule.meta for rule in EVERY}
    return Alerting(
        settings.config(rules),
        NotificationContext(
            receivers=settings.receivers_by_name(),
            rules=rules,
            external_url=settings.external_url,
            runbook_url=settings.runbook_url,
        ),
        new_id=lambda: str(uuid4()),
        attempt=supervisor.attempt,
    )


def telling(pipeline: Pipeline, stop: asyncio.Event) -> Task:
    """Return the task that tells what is due between the rounds."""
    return Task(name="alert_groups", run=ReportingLoop(pipeline, stop=stop).run)
