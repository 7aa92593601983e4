"""Alerts on Tidemark itself: what it cannot report while it is down or cannot send.

They are for everybody, whoever alerts on Kafka. The scrape job has the name `tidemark`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from dashboards.prometheus.expressions import aggregate, select
from dashboards.prometheus.rule import AlertingRule, RuleFile, RuleGroup
from rules import names
from rules.names import Metric
from rules.verdict import Severity

_UP: Final = 'up{job="tidemark"}'
_THE_TARGET: Final = "Tidemark at {{ $labels.instance }}"
_THE_CLUSTER: Final = "cluster {{ $labels.cluster }}"


def _rises(metric: Metric, *matchers: str, within: str, dropped: str = "") -> str:
    """Return the expression of a counter that has risen; `dropped` is the label to sum over."""
    rise = f"increase({select(metric, *matchers)}[{within}])"
    return f"{aggregate('sum', dropped, rise) if dropped else rise} > 0"


ROUNDS: Final = (
    AlertingRule(
        alert="TidemarkDown",
        expr=f"{_UP} == 0",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=2),
        summary=f"{_THE_TARGET} does not answer",
        description="No cluster is observed, and nobody is notified of anything. Read its log. A wrong token has the "
        "same effect: Prometheus' page of targets then shows 401.",
    ),
    AlertingRule(
        alert="TidemarkAbsent",
        expr=f"absent({_UP})",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=5),
        summary="Prometheus has no target of the job tidemark",
        description="Tidemark was removed from the scrape configuration or from service discovery, or its job has "
        "another name: none of its alerts can fire.",
    ),
    AlertingRule(
        alert="TidemarkNoRoundYet",
        expr=f"{_UP} == 1 unless on (instance) {names.LAST_SUCCESS.name}",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=5),
        summary=f"{_THE_TARGET} has not completed a round since it started",
        description="It answers and has read nothing from Kafka: the brokers cannot be reached with its settings. Its "
        "log has the cause.",
    ),
    # Both sides come from one target, so that all labels match also while two services observe one cluster.
    AlertingRule(
        alert="TidemarkRoundsStopped",
        expr=f"time() - {names.LAST_SUCCESS.name} > clamp_min(4 * {names.ROUND_INTERVAL.name}, 120)",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=1),
        summary=f"The latest round of {_THE_CLUSTER} is {{{{ $value | humanizeDuration }}}} old",
        description="All metrics of the cluster are as old as that. tidemark_gaps has the causes, and so has the log.",
    ),
    AlertingRule(
        alert="TidemarkRoundsSlow",
        expr=f"{names.ROUND_DURATION.name} > {names.ROUND_INTERVAL.name}",
        severity=Severity.WARNING,
        for_=timedelta(minutes=10),
        summary=f"A round of {_THE_CLUSTER} takes {{{{ $value | humanizeDuration }}}}, longer than its interval",
        description="Verdicts and alerts are late by as much. tidemark_round_phase_duration_seconds has the phase that "
        "is slow; a longer service.interval_seconds ends the alert.",
    ),
    AlertingRule(
        alert="TidemarkSeriesDropped",
        expr=select(names.SERIES_DROPPED, 'reason="limit"') + " > 0",
        severity=Severity.WARNING,
        for_=timedelta(minutes=5),
        summary=f"{{{{ $value }}}} series of {_THE_CLUSTER} are above the limit and missing",
        description="Alerts and dashboards of Prometheus do not cover their partitions and groups; Tidemark's own rules "
        "do. Raise metrics.max_series, or leave topics out by pattern.",
    ),
    AlertingRule(
        alert="TidemarkTaskRestarts",
        expr=_rises(names.TASK_RESTARTS, within="15m"),
        severity=Severity.WARNING,
        summary=f"Task {{{{ $labels.task }}}} of {_THE_TARGET} died and was started again",
        description="A defect of Tidemark: its log has the traceback under task_died.",
    ),
    AlertingRule(
        alert="TidemarkLogLinesLost",
        expr=_rises(names.LOG_LINES_LOST, within="1h"),
        severity=Severity.WARNING,
        summary=f"{_THE_TARGET} cannot write its log",
        description="Its disk is full, or the process that reads its stdout has ended. Findings are stored all the same.",
    ),
    AlertingRule(
        alert="TidemarkClockStepped",
        expr=_rises(names.CLOCK_STEPS, within="1h"),
        severity=Severity.INFO,
        summary=f"The clock of the machine that observes {_THE_CLUSTER} was set",
        description="No verdict is changed by it, but times in findings and logs before and after do not fit together. "
        "Check its time service.",
    ),
)

SOURCES: Final = (
    AlertingRule(
        alert="TidemarkScrapeFailing",
        expr=f"{names.SCRAPE_UP.name} == 0",
        severity=Severity.WARNING,
        for_=timedelta(minutes=10),
        summary=f"Tidemark cannot read the metrics of {{{{ $labels.endpoint }}}} in {_THE_CLUSTER}",
        description="Failed records of its clients, and errors of its broker, are not seen. /api/v1/status has the "
        "error under scrapes; take an endpoint out of the settings if it no longer exists.",
    ),
    AlertingRule(
        alert="TidemarkBrokerLogLost",
        expr=_rises(names.BROKER_LOG_LOST, within="1h"),
        severity=Severity.WARNING,
        summary=f"Lines of the broker log {{{{ $labels.source }}}} of {_THE_CLUSTER} were removed before they were read",
        description="Rejected sequences and exact ranges of lost records may be missing. Keep rotated log files longer, "
        "or give Tidemark the rotated files too.",
    ),
    AlertingRule(
        alert="TidemarkBrokerLogUnparsed",
        expr=_rises(names.BROKER_LOG_UNPARSED, within="1h"),
        severity=Severity.WARNING,
        summary=f"Lines of the broker log {{{{ $labels.source }}}} of {_THE_CLUSTER} could not be parsed",
        description="They are about sequences or lost records, in a form that this release does not parse: their "
        "evidence is missing from findings.",
    ),
)

STORAGE: Final = (
    AlertingRule(
        alert="TidemarkStoreDown",
        expr=f"{names.STORE_UP.name} == 0",
        severity=Severity.WARNING,
        for_=timedelta(minutes=5),
        summary=f"Findings of {_THE_CLUSTER} are not stored",
        description="Rounds go on and wait in memory (tidemark_store_waiting_rounds), where a restart loses them. The "
        "log has the cause under store_unavailable; needs_a_person there says whether it ends by itself.",
    ),
    AlertingRule(
        alert="TidemarkTransitionsLost",
        expr=_rises(names.STORE_LOST, within="1h"),
        severity=Severity.WARNING,
        summary=f"The history of findings of {_THE_CLUSTER} has a hole",
        description="More rounds waited for the database than database.waiting_rounds allows, and the oldest were given "
        "up. Open findings are right; what changed meanwhile is in the log only.",
    ),
    AlertingRule(
        alert="TidemarkRowsRejected",
        expr=_rises(names.STORE_REJECTED, within="1h", dropped="kind"),
        severity=Severity.WARNING,
        summary=f"The database rejects rows of {_THE_CLUSTER} for good",
        description="They are left out: after a restart such a finding or alert is found anew, and a notification among "
        "them was not sent. /api/v1/status has the last one under storage, and the log each under row_rejected.",
    ),
    AlertingRule(
        alert="TidemarkHistoryStopped",
        expr=f"{names.HISTORY_UP.name} == 0",
        severity=Severity.WARNING,
        for_=timedelta(minutes=10),
        summary=f"{_THE_TARGET} does not write the history of {{{{ $labels.cluster }}}}",
        description="Its local disk is full or cannot be written. Rounds and alerts go on; what is not written is missing "
        "from the next nightly baselines. The log has the cause under history_not_kept.",
    ),
    AlertingRule(
        alert="TidemarkHistoryFolderDown",
        expr=f"{names.HISTORY_FOLDER_UP.name} == 0",
        severity=Severity.WARNING,
        for_=timedelta(minutes=10),
        summary=f"The history folder of {{{{ $labels.cluster }}}} does not take the hours of {_THE_TARGET}",
        description="Hours wait on the local disk, and the next nightly baselines will lack them. The log has the cause "
        "under history_not_kept.",
    ),
    AlertingRule(
        alert="TidemarkJobFailed",
        expr=_rises(names.JOB_RUNS, 'outcome=~"failed|timed_out"', within="1h", dropped="outcome"),
        severity=Severity.WARNING,
        summary=f"Job {{{{ $labels.job_name }}}} of {_THE_TARGET} failed",
        description="It is run again when it is due next. The cause is in the log under job_ended, and with all its runs "
        "in /api/v1/jobs/{{ $labels.job_name }}.",
    ),
    AlertingRule(
        alert="TidemarkJobMissed",
        expr=_rises(names.JOB_RUNS, 'outcome="missed"', within="1h", dropped="outcome"),
        severity=Severity.WARNING,
        summary=f"Job {{{{ $labels.job_name }}}} of {_THE_TARGET} was not run when it was due",
        description="Tidemark or its database was down, or the run before took too long. What has to be made up for was "
        "run since; /api/v1/jobs/{{ $labels.job_name }} has the cause.",
    ),
)

_NEEDS_A_PERSON: Final = 'failure=~"auth|not_found|address_denied|tls|redirect"'

NOTIFICATIONS: Final = (
    AlertingRule(
        alert="TidemarkAlertingFailed",
        expr=_rises(names.ALERTING_FAILURES, within="15m"),
        severity=Severity.CRITICAL,
        summary=f"Alerts of {_THE_CLUSTER} could not be evaluated",
        description="A defect of Tidemark; findings go on. Its log has the traceback under part_failed.",
    ),
    AlertingRule(
        alert="TidemarkOutboxDown",
        expr=f"{names.OUTBOX_UP.name} == 0",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=2),
        summary=f"Nobody is notified of alerts of {_THE_CLUSTER}",
        description="The database does not return the notifications that have to be sent. The log has the cause under "
        "outbox_unavailable; nothing is lost.",
    ),
    AlertingRule(
        alert="TidemarkNotificationLate",
        expr=f"{names.NOTIFICATIONS_OLDEST.name} > 300",
        severity=Severity.CRITICAL,
        for_=timedelta(minutes=1),
        summary="Receiver {{ $labels.receiver }} has not been notified for {{ $value | humanizeDuration }}",
        description="It does not accept notifications. See /api/v1/receivers, and the log under "
        "notification_not_delivered; what waits is sent as soon as it does, for a day.",
    ),
    AlertingRule(
        alert="TidemarkNotificationsGivenUp",
        expr=_rises(names.NOTIFICATIONS, 'outcome="dead"', within="1h", dropped="outcome"),
        severity=Severity.WARNING,
        summary="Some notifications for receiver {{ $labels.receiver }} were given up",
        description="It rejected them, or was away for a day. See /api/v1/deliveries?state=dead of "
        "{{ $labels.instance }}; `tidemark deliveries replay` sends them again.",
    ),
    AlertingRule(
        alert="TidemarkNotificationsFailing",
        expr=_rises(names.NOTIFICATION_FAILURES, _NEEDS_A_PERSON, within="15m", dropped="failure"),
        severity=Severity.WARNING,
        summary="Receiver {{ $labels.receiver }} cannot be notified with its settings",
        description="Its URL, certificate, credentials or alerting.private_ranges are wrong; the log says which under "
        "notification_not_delivered. It is tried again every ten minutes or so.",
    ),
)

WATCHING: Final = RuleFile(
    name="tidemark_watching.yml",
    about="Alerts on Tidemark itself, for everybody: what it cannot report while it is down or cannot send. "
    "Generated by `tidemark dashboards rules` from dashboards/prometheus/watching.py; "
    "docs/prometheus-rules.md says how to use it.",
    groups=(
        RuleGroup(name="tidemark_watching_rounds", rules=ROUNDS),
        RuleGroup(name="tidemark_watching_sources", rules=SOURCES),
        RuleGroup(name="tidemark_watching_storage", rules=STORAGE),
        RuleGroup(name="tidemark_watching_notifications", rules=NOTIFICATIONS),
    ),
)
