"""Route of the status: the last round, storage, rules, gaps and restarts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from rules.facts.gap import GapCause
from rules.facts.scrapes import EndpointKind, EndpointState
from rules.verdict import Severity, Verdict
from service.api.core.models import Stamped
from service.api.core.ports import Sources
from service.api.core.queries import NoParameters
from service.api.core.stamps import stamp
from service.metrics.log_stats import LogStats
from service.rounds.latest import RoundOutcome, ServiceState
from service.rounds.persistence import PersistenceState
from service.storage.database.rejections import RowKind
from service.views.model import Model


class RoundStatus(Model):
    """The last round."""

    number: int
    at: datetime | None
    outcome: RoundOutcome | None
    error: str | None
    took_seconds: float | None
    interval_seconds: float
    age_seconds: Annotated[float | None, Field(description="Since the last round began")]


class RejectedRowStatus(Model):
    """A row that was left out because the database rejects it for good."""

    kind: RowKind
    name: str
    why: str


class StorageStatus(Model):
    """Whether the results of rounds are stored."""

    state: PersistenceState
    error: str | None
    is_final: Annotated[bool, Field(description="No retry will help: an operator has to act")]
    waiting_rounds: int
    lost_rounds: int
    lost_transitions: int
    rejected_rows: Annotated[
        dict[str, int],
        Field(description="Rows of rounds that the database rejects for good, by kind: left out"),
    ]
    rejected_row: RejectedRowStatus | None
    """The last of them"""
    stored_at: datetime | None
    took_seconds: float | None
    alerts_error: str | None = None
    """Why the last round was stored without its alerts"""


class LogSourceStatus(Model):
    """State of one source of broker log lines; counts are since the start of the process."""

    source: str
    lines: int
    unparsed: int
    """Lines about sequences or lost records that could not be parsed"""
    unreadable: Annotated[list[str], Field(description="The latest of these lines, truncated")]
    lost_bytes: Annotated[int, Field(description="Bytes that were removed before they were read")]
    last_line_at: datetime | None
    """By the broker's clock; null before the first line"""
    error: str | None
    """Why nothing, or not all, could be read in the last round"""


class EndpointStatus(Model):
    """State of scraping the metrics of brokers or clients at one endpoint."""

    endpoint: str
    kind: EndpointKind
    is_up: Annotated[bool, Field(description="The latest scrape was answered")]
    is_fresh: Annotated[bool, Field(description="Its last answer is recent enough to be used")]
    answered_at: Annotated[datetime | None, Field(description="null before its first answer")]
    took_seconds: Annotated[float | None, Field(description="Duration of the latest scrape")]
    samples: Annotated[int, Field(description="Samples kept of its last answer")]
    errors: list[str]
    """Why samples are missing since the latest scrape"""


class RuleStatus(Model):
    """What one rule found in the last round; null before its first evaluation."""

    rule: str
    severity: Severity
    ok: int | None
    unknown: int | None
    breach: int | None
    open_findings: int | None
    """null until the findings of earlier processes are loaded: how many are open is not known"""


class Status(Stamped):
    """State of the service."""

    version: str
    cluster: str
    cluster_id: str | None
    started_at: datetime
    now: datetime
    round: RoundStatus
    storage: StorageStatus
    rules: list[RuleStatus]
    gaps_by_cause: dict[GapCause, int] | None
    broker_logs: list[LogSourceStatus]
    """Configured files, and the sources that submit lines"""
    broker_logs_behind: bool | None
    """More lines waited than the last round could read; null before it"""
    scrapes: list[EndpointStatus]
    """Endpoints of metrics of brokers and clients"""
    nightly_error: str | None
    """Why no scheduled baseline runs are made; null where they are, or are turned off"""
    restarts: Annotated[dict[str, int], Field(description="Restarts by task")]


def status_router(sources: Sources) -> APIRouter:
    """Return the route of the status."""
    router = APIRouter(tags=["service"])

    @router.get("/status", response_model=Status)
    async def get_status(_query: NoParameters) -> Response:
        """Return the state of the service; it answers before the first round too."""
        state, now = sources.state, sources.utc_now()
        return await sources.answers.render(lambda: status_of(state, now))

    return router


def status_of(service_state: ServiceState, now: datetime) -> Status:
    """Return the status at a time."""
    seen = service_state.snapshot
    return Status(
        **stamp(service_state),
        version=service_state.version,
        cluster=service_state.cluster,
        cluster_id=None if seen is None else seen.cluster_id or None,
        started_at=service_state.started_at,
        now=now,
        round=_round(service_state, now),
        storage=StorageStatus.model_validate(service_state.persistence),
        rules=_rules(service_state),
        gaps_by_cause=None if seen is None else dict(sorted(seen.gaps_by_cause().items())),
        broker_logs=[
            _log_source(name, stats) for name, stats in sorted(service_state.logs.items())
        ],
        broker_logs_behind=None if seen is None else seen.broker_log.is_behind,
        scrapes=[_endpoint(endpoint) for endpoint in service_state.endpoints],
        nightly_error=service_state.nightly_error,
        restarts=dict(service_state.restarts),
    )


def _round(service_state: ServiceState, now: datetime) -> RoundStatus:
    return RoundStatus(
        number=service_state.rounds,
        at=service_state.at,
        outcome=service_state.outcome,
        error=service_state.error,
        took_seconds=service_state.took_seconds,
        interval_seconds=service_state.interval_seconds,
        age_seconds=None if service_state.at is None else (now - service_state.at).total_seconds(),
    )


def _log_source(name: str, stats: LogStats) -> LogSourceStatus:
    return LogSourceStatus(
        source=name,
        lines=stats.lines,
        unparsed=stats.unparsed,
        unreadable=list(stats.unreadable),
        lost_bytes=stats.lost_bytes,
        last_line_at=stats.last_line_at,
        error=stats.error,
    )


def _endpoint(state: EndpointState) -> EndpointStatus:
    return EndpointStatus(
        endpoint=state.name,
        kind=state.kind,
        is_up=state.is_up,
        is_fresh=state.is_fresh,
        answered_at=state.answered_at,
        took_seconds=state.took_seconds,
        samples=state.samples,
        errors=[failure.why for failure in state.failures],
    )


def _rules(service_state: ServiceState) -> list[RuleStatus]:
    """Return every rule of the catalogue with the counts of its verdicts, if it was evaluated."""
    judgements = {judgement.rule.rule_id: judgement for judgement in service_state.judgements}
    still_open = Counter(rule_id for rule_id, _ in service_state.open_findings)
    is_loaded = service_state.persistence.is_loaded

    def count(rule_id: str, verdict: Verdict) -> int | None:
        judgement = judgements.get(rule_id)
        return None if judgement is None else judgement.count(verdict)

    return [
        RuleStatus(
            rule=meta.rule_id,
            severity=meta.severity,
            ok=count(meta.rule_id, Verdict.OK),
            unknown=count(meta.rule_id, Verdict.UNKNOWN),
            breach=count(meta.rule_id, Verdict.BREACH),
            open_findings=still_open[meta.rule_id] if is_loaded else None,
        )
        for meta in (*(rule.meta for rule in RULES), SELF_MONITORING)
    ]
