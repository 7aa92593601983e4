"""A producer fails to send records.

Detects:
    Producers that report more than six failed records per minute (`record-error-total`,
    `record-error-rate`), per client id and topic, or over all topics where the client does not
    report the metric per topic.

Why it matters:
    A failed record is not in Kafka. What happens to it depends on the application: many log the
    error and continue, and then the record is lost as if a broker had lost it.

Inputs:
    Producer metrics, from the clients' own endpoints or from a Prometheus server (settings
    `scrapes`). Without any, there is nothing to judge. The clients of an endpoint that does not
    answer are UNKNOWN. So is a client of several processes of which one does not export this
    metric, unless the others already exceed the threshold. Java clients have these metrics.
    librdkafka has no equivalent: the application would have to count its delivery reports.

Thresholds:
    More than six records per minute for two minutes: a single failed batch, or a restart, is over
    by then. The threshold is not configurable, because in an exactly-once pipeline no rate of
    failed records is normal.

False positives:
    An application that provokes errors on purpose, such as sending records that are too large.
    Conversely, a low rate proves nothing: real loss may leave this metric at 0. An idempotent Java
    producer whose acknowledged records were lost by a broker continues under a new epoch and
    increases only `record-retry-total`, as it also does after a harmless reordering. Rules
    committed_records_lost and records_possibly_lost detect loss from the partition itself.

Runbook:
    The producer's log has the cause: `TimeoutException` (a broker is down or the ISR too small:
    rules partition_offline, partition_under_min_isr), `RecordTooLargeException`,
    `TopicAuthorizationException`, or an error of its epoch or sequence. Find out what the
    application did with those records, and send them again. `endpoints` lists the processes that
    reported the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.column import Bools, Column
from rules.facts.scrapes import ClientReading, Counted, Rise, Scrapes
from rules.judgement import Case, Judgement, Labels, NamedSubjects, Reason, decide, decide_cluster
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

MINUTE: Final = timedelta(minutes=1)
ALLOWED: Final = 6  # records per minute
MAX_ENDPOINTS: Final = 20  # that the evidence lists

RULE: Final = RuleMeta(
    rule_id="record_error_rate_high",
    subject=SubjectKind.CLIENT,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=2),
    summary="A producer fails to send records.",
)


class Why(Reason):
    """Reasons of this rule."""

    NO_ERRORS = "no_errors"
    FEW_ERRORS = "few_errors"
    RECORDS_FAIL = "records_fail"
    ENDPOINT_SILENT = "endpoint_silent"  # its last answer is too old, or it never answered
    FIRST_OBSERVATION = "first_observation"  # a counter needs two readings
    ERRORS_NOT_REPORTED = "errors_not_reported"  # one of its processes lacks this metric


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """One client in one process."""

    reading: ClientReading  # of several endpoints, the one with the most errors
    errors: int | None  # per minute
    retries: int | None
    is_silent: bool

    @property
    def is_first_observation(self) -> bool:
        """Whether the client reports errors, but has not been read for long enough."""
        return self.errors is None and self.reading.errors is not None

    def to_evidence(self) -> dict[str, Scalar]:
        """Return it as evidence."""
        return {
            "endpoint": self.reading.endpoint,
            "address": self.reading.address,
            "record_errors_per_minute": self.errors,
            "record_retries_per_minute": self.retries,
            "as_of": self.reading.seen_at.isoformat(timespec="milliseconds"),
        }


def judge(view: View) -> Judgement:
    """Judge every client whose metrics are read, per topic where it reports them per topic."""
    scrapes, cluster = view.snapshot.scrapes, view.snapshot.cluster
    if scrapes.is_read and _is_dark(scrapes):
        return decide_cluster(RULE, cluster, Why.ENDPOINT_SILENT)
    subjects = _by_subject(scrapes)
    processes = list(subjects.values())
    errors = Column.of(_add(process.errors for process in each) for each in processes)
    retries = Column.of(_add(process.retries for process in each) for each in processes)

    def any_of(has: Callable[[_Process], bool]) -> Bools:
        return np.array([any(map(has, each)) for each in processes], np.bool_)

    def details(position: int) -> dict[str, EvidenceValue]:
        return {
            "endpoints": [process.to_evidence() for process in processes[position][:MAX_ENDPOINTS]]
        }

    return decide(
        RULE,
        NamedSubjects(SubjectKind.CLIENT, tuple(_labels(cluster, *key) for key in subjects)),
        [
            Case(errors.values > ALLOWED, Verdict.BREACH, Why.RECORDS_FAIL),
            Case(any_of(lambda process: process.is_silent), Verdict.UNKNOWN, Why.ENDPOINT_SILENT),
            Case(
                any_of(lambda process: process.is_first_observation),
                Verdict.UNKNOWN,
                Why.FIRST_OBSERVATION,
            ),
            Case(
                any_of(lambda process: process.errors is None),
                Verdict.UNKNOWN,
                Why.ERRORS_NOT_REPORTED,
            ),
            Case(errors.values > 0, Verdict.OK, Why.FEW_ERRORS),
        ],
        (Verdict.OK, Why.NO_ERRORS),
        {"record_errors_per_minute": errors, "record_retries_per_minute": retries},
        details=details,
    )


def _is_dark(scrapes: Scrapes) -> bool:
    """Whether no endpoint has answered, although there are endpoints or their list is incomplete."""
    has_answered = any(endpoint.answered_at is not None for endpoint in scrapes.endpoints)
    return not has_answered and not (scrapes.is_complete and not scrapes.endpoints)


def _labels(cluster: str, client_id: str, topic: str | None) -> Labels:
    labels = {"cluster": cluster, "client": client_id}
    return labels if topic is None else {**labels, "topic": topic}


def _by_subject(scrapes: Scrapes) -> dict[tuple[str, str | None], list[_Process]]:
    """Return the processes of every client and topic, one per address, in the order of names."""
    here = [client for client in scrapes.clients if not client.is_gone]
    has_topics = {
        (reading.address, reading.client_id) for reading in here if reading.topic is not None
    }
    fresh = scrapes.fresh
    by_subject: dict[tuple[str, str], dict[str, _Process]] = {}
    for reading in here:
        if reading.topic is None and (reading.address, reading.client_id) in has_topics:
            continue
        processes = by_subject.setdefault((reading.client_id, reading.topic or ""), {})
        process = _process(reading, is_silent=reading.endpoint not in fresh)
        processes[reading.address] = _choose_reading(processes.get(reading.address), process)
    return {
        (client_id, topic or None): list(processes.values())
        for (client_id, topic), processes in sorted(by_subject.items())
    }


def _process(reading: ClientReading, *, is_silent: bool) -> _Process:
    def per_minute(counted: Counted | None) -> int | None:
        return None if is_silent else _count_per_minute(reading, counted)

    return _Process(
        reading=reading,
        errors=per_minute(reading.errors),
        retries=per_minute(reading.retries),
        is_silent=is_silent,
    )


def _choose_reading(current: _Process | None, other: _Process) -> _Process:
    """Return the better reading of one process from two endpoints."""
    if current is None:
        return other
    return max(
        (current, other),
        key=lambda each: (not each.is_silent, each.errors is not None, each.errors or 0),
    )


def _count_per_minute(reading: ClientReading, counted: Counted | None) -> int | None:
    """Return the number of records in the last minute before the client was read."""
    if counted is None:
        return None
    if counted.total is None or counted.increase is None:
        return None if counted.rate is None else round(counted.rate * MINUTE.total_seconds())
    return round(sum(_within_the_minute(rise, reading) for rise in counted.rises))


def _within_the_minute(rise: Rise, reading: ClientReading) -> float:
    """Return the part of a rise in the last minute, as if it had been even."""
    began = max(rise.since, reading.seen_at - MINUTE)
    share = (rise.until - began) / max(rise.until - rise.since, timedelta(microseconds=1))
    return (rise.count or 0) * max(share, 0.0)


def _add(values: Iterable[int | None]) -> int | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None
