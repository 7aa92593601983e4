"""Records of a producer fail, and its application is told so.

Detects:
    Producers that say of themselves that more than six records per minute failed for good
    (`record-error-total`, `record-error-rate`), per client id and topic, or of all topics together
    where a client does not tell them apart.

Why it matters:
    Such a record is not in Kafka. What happens to it is up to the application: many log it and go on,
    and then it is lost as if a broker had lost it.

Inputs:
    Metrics of producers, from their own pages or a Prometheus server (settings `scrapes`). Without any
    there is nothing to judge. Where an endpoint gives nothing, its clients are UNKNOWN. So is a client
    of several processes of which one does not tell this metric, unless the others tell enough.
    Java clients have these metrics, librdkafka has none like them: its delivery reports would have to
    be counted by the application.

Thresholds:
    More than six records in a minute, for two minutes: one batch that fails, or a restart, is over by
    then. It is no setting, because in a pipeline that promises exactly-once no rate of it is usual.

False positives:
    An application that fails records on purpose, such as one that sends what is too large.
    A low rate proves nothing: real loss may leave this metric at 0. An idempotent Java producer whose
    acknowledged records were lost by a broker sends on under a new epoch, and moves only
    `record-retry-total`, which moves when a reordering heals too. Rules committed_records_lost and
    records_possibly_lost tell loss, by the partition's own history.

Runbook:
    The producer's log says why: `TimeoutException` (a broker or its ISR is away: partition_offline,
    partition_under_min_isr), `RecordTooLargeException`, `TopicAuthorizationException`, or an error of
    its epoch or sequence. Find out what the application did with those records, and send them again.
    `endpoints` in the evidence says which processes told it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.column import Column
from rules.facts.scrapes import ClientReading, Counted, Rise, Scrapes
from rules.judgement import Case, Judgement, Labels, NamedSubjects, Reason, decide
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
    summary="Records of a producer fail, and its application is told so.",
)


class Why(Reason):
    """Reasons of this rule."""

    NO_ERRORS = "no_errors"
    FEW_ERRORS = "few_errors"
    RECORDS_FAIL = "records_fail"
    ENDPOINT_SILENT = "endpoint_silent"  # what it said is too old, or it never said anything
    FIRST_OBSERVATION = "first_observation"  # a counter alone says nothing before it was seen twice
    ERRORS_NOT_REPORTED = (
        "errors_not_reported"  # one of its processes tells other metrics, and not this one
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """What is known of one client in one process."""

    reading: ClientReading  # of several endpoints the one that tells most
    errors: int | None  # per minute
    retries: int | None
    is_silent: bool

    @property
    def is_first_observation(self) -> bool:
        """Whether errors are told, and not yet for long enough."""
        return self.errors is None and self.reading.errors is not None

    def reported(self) -> dict[str, Scalar]:
        """Return it as evidence."""
        return {
            "endpoint": self.reading.endpoint,
            "address": self.reading.address,
            "record_errors_per_minute": self.errors,
            "record_retries_per_minute": self.retries,
            "as_of": self.reading.seen_at.isoformat(timespec="milliseconds"),
        }


def judge(view: View) -> Judgement:
    """Judge every client of which metrics are read, per topic where it tells them apart."""
    scrapes, cluster = view.snapshot.scrapes, view.snapshot.cluster
    if scrapes.is_read and _is_dark(scrapes):
        whole = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": cluster},))
        return decide(RULE, whole, [], (Verdict.UNKNOWN, Why.ENDPOINT_SILENT))
    found = _by_subject(scrapes)
    processes = list(found.values())
    errors = Column.of(_sum(one.errors for one in each) for each in processes)
    retries = Column.of(_sum(one.retries for one in each) for each in processes)
    silent = np.array([any(one.is_silent for one in each) for each in processes], np.bool_)
    first = np.array(
        [any(one.is_first_observation for one in each) for each in processes], np.bool_
    )
    unreported = np.array([any(one.errors is None for one in each) for each in processes], np.bool_)

    def details(position: int) -> dict[str, EvidenceValue]:
        return {
            "endpoints": [process.reported() for process in processes[position][:MAX_ENDPOINTS]]
        }

    return decide(
        RULE,
        NamedSubjects(SubjectKind.CLIENT, tuple(_labels(cluster, *key) for key in found)),
        [
            Case(errors.values > ALLOWED, Verdict.BREACH, Why.RECORDS_FAIL),
            Case(silent, Verdict.UNKNOWN, Why.ENDPOINT_SILENT),
            Case(first, Verdict.UNKNOWN, Why.FIRST_OBSERVATION),
            Case(unreported, Verdict.UNKNOWN, Why.ERRORS_NOT_REPORTED),
            Case(errors.values > 0, Verdict.OK, Why.FEW_ERRORS),
        ],
        (Verdict.OK, Why.NO_ERRORS),
        {"record_errors_per_minute": errors, "record_retries_per_minute": retries},
        details=details,
    )


def _is_dark(scrapes: Scrapes) -> bool:
    """Whether nobody has told of any client, and not for want of clients."""
    has_answered = any(endpoint.answered_at is not None for endpoint in scrapes.endpoints)
    return not has_answered and not (scrapes.is_complete and not scrapes.endpoints)


def _labels(cluster: str, client_id: str, topic: str | None) -> Labels:
    labels = {"cluster": cluster, "client": client_id}
    return labels if topic is None else {**labels, "topic": topic}


def _by_subject(scrapes: Scrapes) -> dict[tuple[str, str | None], list[_Process]]:
    """Return the processes of every client and topic, one per address, in the order of names."""
    here = [client for client in scrapes.clients if not client.is_gone]
    tells_topics = {(one.address, one.client_id) for one in here if one.topic is not None}
    fresh = scrapes.fresh
    found: dict[tuple[str, str], dict[str, _Process]] = {}
    for one in here:
        if one.topic is None and (one.address, one.client_id) in tells_topics:
            continue
        processes = found.setdefault((one.client_id, one.topic or ""), {})
        mine = _process(one, is_silent=one.endpoint not in fresh)
        processes[one.address] = _telling_more(processes.get(one.address), mine)
    return {
        (client_id, topic or None): list(processes.values())
        for (client_id, topic), processes in sorted(found.items())
    }


def _process(reading: ClientReading, *, is_silent: bool) -> _Process:
    def per_minute(counted: Counted | None) -> int | None:
        return None if is_silent else _per_minute(reading, counted)

    return _Process(
        reading=reading,
        errors=per_minute(reading.errors),
        retries=per_minute(reading.retries),
        is_silent=is_silent,
    )


def _telling_more(one: _Process | None, other: _Process) -> _Process:
    """Return the better of two endpoints that tell of one process."""
    if one is None:
        return other
    return max(
        (one, other),
        key=lambda each: (not each.is_silent, each.errors is not None, each.errors or 0),
    )


def _per_minute(reading: ClientReading, counted: Counted | None) -> int | None:
    """Return how many records it was in the last minute that the client told of."""
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


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
