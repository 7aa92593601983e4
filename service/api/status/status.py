"""Route of the status: the last round, storage, rules, gaps and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from rules.facts.scrapes import EndpointState
from rules.verdict import Verdict
from service.api.core import models
from service.api.core.ports import Sources
from service.api.core.queries import NoQuery
from service.api.core.stamps import stamp
from service.metrics.log_stats import LogStats
from service.rounds.latest import ServiceState


def status_router(sources: Sources) -> APIRouter:
    """Return the route of the status."""
    router = APIRouter(tags=["service"])

    @router.get("/status")
    async def get_status(_query: Annotated[NoQuery, Query()]) -> models.Status:
        """Return the state of the service; it answers before the first round too."""
        return status_of(sources.state, sources.utc_now())

    return router


def status_of(service_state: ServiceState, now: datetime) -> models.Status:
    """Return the status at a time."""
    seen = service_state.snapshot
    return models.Status(
        **stamp(service_state),
        version=service_state.version,
        cluster=service_state.cluster,
        cluster_id=None if seen is None else seen.cluster_id or None,
        started_at=service_state.started_at,
        now=now,
        round=_round(service_state, now),
        storage=models.StorageStatus(**asdict(service_state.persistence)),
        rules=_rules(service_state),
        gaps_by_cause=None if seen is None else dict(sorted(seen.gaps_by_cause().items())),
        broker_logs=[
            _log_source(name, stats) for name, stats in sorted(service_state.logs.items())
        ],
        broker_logs_behind=None if seen is None else seen.broker_log.is_behind,
        scrapes=[_endpoint(endpoint) for endpoint in service_state.endpoints],
        restarts=dict(service_state.restarts),
    )


def _round(service_state: ServiceState, now: datetime) -> models.RoundStatus:
    return models.RoundStatus(
        number=service_state.rounds,
        at=service_state.at,
        outcome=service_state.outcome,
        error=service_state.error,
        took_seconds=service_state.took_seconds,
        interval_seconds=service_state.interval_seconds,
        age_seconds=None if service_state.at is None else (now - service_state.at).total_seconds(),
    )


def _log_source(name: str, stats: LogStats) -> models.LogSourceStatus:
    return models.LogSourceStatus(
        source=name,
        lines=stats.lines,
        unparsed=stats.unparsed,
        unreadable=list(stats.unreadable),
        lost_bytes=stats.lost_bytes,
        last_line_at=stats.last_line_at,
        error=stats.error,
    )


def _endpoint(state: EndpointState) -> models.EndpointStatus:
    return models.EndpointStatus(
        endpoint=state.name,
        kind=state.kind,
        is_up=state.is_up,
        is_fresh=state.is_fresh,
        answered_at=state.answered_at,
        took_seconds=state.took_seconds,
        samples=state.samples,
        errors=[failure.why for failure in state.failures],
    )


def _rules(service_state: ServiceState) -> list[models.RuleStatus]:
    """Return every rule of the catalogue with the counts of its verdicts, if it was evaluated."""
    said = {judgement.rule.rule_id: judgement for judgement in service_state.judgements}
    still_open = Counter(rule_id for rule_id, _ in service_state.open_findings)
    statuses: list[models.RuleStatus] = []
    for meta in (*(rule.meta for rule in RULES), SELF_MONITORING):
        judgement = said.get(meta.rule_id)
        counts = {
            verdict.name.lower(): None if judgement is None else judgement.count(verdict)
            for verdict in Verdict
        }
        statuses.append(
            models.RuleStatus(
                rule=meta.rule_id,
                severity=meta.severity,
                ok=counts["ok"],
                unknown=counts["unknown"],
                breach=counts["breach"],
                open_findings=still_open[meta.rule_id],
            )
        )
    return statuses
