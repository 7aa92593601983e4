"""Rows as the API writes them, made of its own models, so that a changed form is noticed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rules.verdict import Kind, Severity
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.silences import SilenceState
from service.api.alerts import models as alert_models
from service.api.deliveries import models as delivery_models
from service.api.jobs import routes as job_models
from service.api.silences import models as silence_models
from tests.factories import at

SILENCE_ID = "6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11"
FINGERPRINT = "0123456789abcdef"
LABELS = {
    "alertname": "committed_records_lost",
    "severity": "critical",
    "cluster": "default",
    "topic": "orders",
    "partition": "3",
}


def alert(**overrides: Any) -> dict[str, Any]:
    """Return an event that fires since noon."""
    given: dict[str, Any] = {
        "fingerprint": FINGERPRINT,
        "cluster_id": "x",
        "finding_id": "committed_records_lost-0123456789abcdef",
        "rule": "committed_records_lost",
        "summary": "Committed records are gone after a leader change.",
        "kind": Kind.EVENT,
        "severity": Severity.CRITICAL,
        "state": AlertState.FIRING,
        "reason": "below_high_watermark",
        "labels": LABELS,
        "evidence": {"certain_from": 73, "certain_to": 100, "advice": None},
        "active_at": at(0),
        "fired_at": at(0),
        "resolved_at": None,
        "end_reason": None,
        "updated_at": at(5),
        "receivers": ["pager"],
        "silenced_by": [],
        "inhibited_by": None,
        "acknowledged": None,
        "feedback": None,
    }
    return alert_models.Alert(**{**given, **overrides}).model_dump(mode="json")


def detail(**overrides: Any) -> dict[str, Any]:
    """Return the page of one alert; what is no part of the page is given to the alert."""
    parts = {"steps", "notified", "closing", "runbook_url"}
    given: dict[str, Any] = {"steps": [], "notified": [], "closing": None, "runbook_url": None}
    given |= {name: value for name, value in overrides.items() if name in parts}
    told = {name: value for name, value in overrides.items() if name not in parts}
    stamp: dict[str, Any] = {"as_of": at(10), "is_current": True, "age_seconds": 3.2}
    page = alert_models.AlertDetail(alert=alert_models.Alert(**alert(**told)), **stamp, **given)
    return page.model_dump(mode="json")


def delivery(**overrides: Any) -> dict[str, Any]:
    """Return a delivery that was taken at once."""
    given: dict[str, Any] = {
        "id": 7,
        "webhook_id": "0190a3c2-0000-7000-8000-000000000001",
        "receiver": "pager",
        "group_key": '{}:{alertname="committed_records_lost"}',
        "reason": "first notification",
        "is_firing": True,
        "alerts": 1,
        "state": delivery_models.DeliveryState.DELIVERED,
        "created_at": at(1),
        "enqueued_at": at(1),
        "next_attempt_at": None,
        "attempts": 1,
        "done_at": at(2),
        "superseded_by": None,
        "replay_of": None,
        "fallback_of": None,
        "dead_reason": None,
    }
    return delivery_models.Delivery(**{**given, **overrides}).model_dump(mode="json")


def attempt(**overrides: Any) -> dict[str, Any]:
    """Return an attempt that a receiver rejected."""
    given: dict[str, Any] = {
        "at": at(1),
        "took_ms": 12,
        "outcome": "retry",
        "status": 500,
        "failure": "server_error",
        "detail": "https://pager.example answered 500",
        "reply": None,
    }
    return delivery_models.Attempt(**{**given, **overrides}).model_dump(mode="json")


def receiver(**overrides: Any) -> dict[str, Any]:
    """Return a receiver that takes nothing."""
    given: dict[str, Any] = {
        "name": "pager",
        "kind": "webhook",
        "endpoint": "https://pager.example:443/…",
        "state": delivery_models.ReceiverState.FAILING,
        "waiting": 2,
        "dead": 1,
        "oldest_waiting_at": at(1),
        "last_success_at": None,
        "last_failure": delivery_models.ReceiverFailure(
            at=at(9), status=500, failure="server_error", detail="it answered 500"
        ),
        "is_default": True,
        "is_fallback": False,
    }
    return delivery_models.Receiver(**{**given, **overrides}).model_dump(mode="json")


def silence(*, ends: datetime | None = None, **overrides: Any) -> dict[str, Any]:
    """Return a silence of two hours."""
    given: dict[str, Any] = {
        "id": UUID(SILENCE_ID),
        "state": SilenceState.ACTIVE,
        "matchers": '{topic="orders"}',
        "starts_at": at(0),
        "ends_at": ends or at(0) + timedelta(hours=2),
        "created_by": "ann",
        "comment": "broker 2 is being replaced",
        "version": 1,
        "created_at": at(0),
        "updated_at": at(0),
    }
    return silence_models.Silence(**{**given, **overrides}).model_dump(mode="json")


def run(**overrides: Any) -> dict[str, Any]:
    """Return a run of a job that went well."""
    given: dict[str, Any] = {
        "id": 1,
        "due_at": at(0),
        "started_at": at(1),
        "ended_at": at(4),
        "outcome": "succeeded",
        "detail": "",
        "stats": {"removed": 12},
    }
    return job_models.JobRun(**{**given, **overrides}).model_dump(mode="json")


def job(*, waits_for: str | None = None, **overrides: Any) -> dict[str, Any]:
    """Return a job with its last run."""
    last = job_models.JobRun(**run(**overrides))
    given = job_models.Job(
        name="retention",
        trigger="every hour",
        next_due_at=at(3600),
        is_running=False,
        waits_for=waits_for,
        last_run=last,
    )
    return given.model_dump(mode="json")
