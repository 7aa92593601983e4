"""Builds alerting: the step of the rounds, and the task that flushes groups between them."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from rules.catalogue.all_rules import EVERY
from service.alerting.notifications.channels import NotificationContext
from service.rounds.alerting_step import Alerting
from service.rounds.pipeline import Pipeline
from service.rounds.round_loop import ReportingLoop
from service.runtime.supervisor import Supervisor, Task
from service.settings import AlertingSettings


def make_alerting(settings: AlertingSettings, supervisor: Supervisor) -> Alerting:
    """Build it; without receivers alerts are evaluated, and nobody is notified.

    Raises:
        SettingsError: a setting names an unknown rule.
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


def reporting_task(pipeline: Pipeline, stop: asyncio.Event) -> Task:
    """Return the task that flushes alert groups between the rounds."""
    return Task(name="alert_groups", run=ReportingLoop(pipeline, stop=stop).run)
