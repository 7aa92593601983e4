"""Cases of the alerts on Tidemark itself: silent up to their time, then fired, and silent while all is well."""

from __future__ import annotations

from typing import Final

from tests.unit.dashboards.prometheus.cases import (
    CLUSTER,
    OTHER_TARGET,
    TARGET,
    AlertCase,
    Series,
    SilentCase,
    named,
    series,
)


def up(values: str) -> dict[str, str]:
    return {named("up", TARGET): values}


def of_process(name: str, values: str, **labels: str) -> dict[str, str]:
    return {named(name, {**TARGET, **labels}): values}


def rounds(last_success: str, *, interval: int = 15, **labels: str) -> dict[str, str]:
    many = last_success.rpartition("x")[2]
    return series("tidemark_last_success_timestamp_seconds", last_success, **labels) | series(
        "tidemark_round_interval_seconds", f"{interval}x{many}", **labels
    )


# All is well, or over before it matters: twenty minutes from a start of Prometheus on.
HEALTHY: Final[Series] = (
    up("1x80")
    | rounds("0+15x80")
    | series("tidemark_round_duration_seconds", "1x20 40x30 1x30")
    | series("tidemark_series_dropped", "0x80", reason="limit")
    | series("tidemark_series_dropped", "40x80", reason="topic_pattern")
    | series("tidemark_clock_steps_total", "1x80")
    | series("tidemark_scrape_up", "1x20 0x39 1x21", endpoint="app:9404")
    | series("tidemark_broker_log_lost_bytes_total", "9x80", source="broker-1")
    | series("tidemark_broker_log_unparsed_lines_total", "9x80", source="broker-1")
    | series("tidemark_store_up", "1x20 0x19 1x41")
    | series("tidemark_store_lost_transitions_total", "7x80")
    | series("tidemark_store_rejected_rows_total", "7x80", kind="finding")
    | series("tidemark_history_up", "1x20 0x39 1x21")
    | series("tidemark_history_folder_up", "1x20 0x39 1x21")
    | series("tidemark_alerting_failures_total", "2x80")
    | series("tidemark_outbox_up", "1x20 0x7 1x53")
    | series("tidemark_notifications_oldest_waiting_seconds", "0+15x19 0x60", receiver="pager")
    | series("tidemark_notifications_total", "0+1x80", receiver="pager", outcome="delivered")
    | series("tidemark_notifications_total", "3x80", receiver="pager", outcome="dead")
    | series("tidemark_notification_failures_total", "0+1x80", receiver="pager", failure="timeout")
    | of_process("tidemark_task_restarts_total", "1x80", task="rounds")
    | of_process("tidemark_log_lines_lost_total", "3x80")
    | of_process("tidemark_job_runs_total", "2x80", job_name="retention", outcome="failed")
    | of_process("tidemark_job_runs_total", "2x80", job_name="retention", outcome="missed")
    | of_process("tidemark_job_runs_total", "0+1x80", job_name="retention", outcome="succeeded")
)

ROUNDS: Final = (
    AlertCase(
        alert="TidemarkDown",
        reason="it does not answer for two minutes",
        series=up("0x40"),
        silent=("1m45s",),
        fires=("2m",),
        labels=TARGET,
    ),
    AlertCase(
        alert="TidemarkAbsent",
        reason="its target is taken out of the configuration",
        series=up("1x3 stale _x60"),
        silent=("45s", "5m45s"),
        fires=("6m",),
        labels={"job": "tidemark"},
    ),
    AlertCase(
        alert="TidemarkNoRoundYet",
        reason="it answers and has never read the cluster",
        series=up("1x40"),
        silent=("4m45s",),
        fires=("5m",),
        labels=TARGET,
    ),
    AlertCase(
        alert="TidemarkNoRoundYet",
        reason="while it does not answer nobody can say so",
        series=up("0x40"),
        silent=("10m",),
    ),
    AlertCase(
        alert="TidemarkRoundsStopped",
        reason="the data are two minutes old at the least",
        series=rounds("60x40"),
        silent=("3m", "4m"),
        fires=("5m",),
        value="4m 0s",
    ),
    AlertCase(
        alert="TidemarkRoundsStopped",
        reason="rounds ten minutes apart are late after forty, whoever else observes the cluster",
        series=rounds("0x200", interval=600)
        | rounds("0+15x200", interval=15, instance="other:8780"),
        silent=("41m",),
        fires=("41m15s",),
        value="41m 15s",
    ),
    AlertCase(
        alert="TidemarkRoundsSlow",
        reason="rounds take longer than their interval for ten minutes",
        series=rounds("0+15x80") | series("tidemark_round_duration_seconds", "1x3 30x77"),
        silent=("10m45s",),
        fires=("11m",),
        value="30s",
    ),
    AlertCase(
        alert="TidemarkSeriesDropped",
        reason="partitions are above the limit for five minutes",
        series=series("tidemark_series_dropped", "0x3 24x77", reason="limit"),
        silent=("5m45s",),
        fires=("6m",),
        labels={**CLUSTER, "reason": "limit"},
        value="24",
    ),
    AlertCase(
        alert="TidemarkTaskRestarts",
        reason="a task died, also for the first time",
        series=of_process("tidemark_task_restarts_total", "0x3 1x300", task="retention"),
        silent=("45s", "17m"),
        fires=("1m",),
        labels={**TARGET, "task": "retention"},
    ),
    AlertCase(
        alert="TidemarkLogLinesLost",
        reason="lines of the log were lost within the last hour",
        series=of_process("tidemark_log_lines_lost_total", "4x3 5x300"),
        silent=("45s", "1h2m"),
        fires=("1m",),
        labels=TARGET,
    ),
    AlertCase(
        alert="TidemarkClockStepped",
        reason="the clock was set within the last hour",
        series=series("tidemark_clock_steps_total", "4x3 5x300"),
        silent=("45s", "1h2m"),
        fires=("1m",),
    ),
)

SOURCES: Final = (
    AlertCase(
        alert="TidemarkScrapeFailing",
        reason="an endpoint does not answer for ten minutes",
        series=series("tidemark_scrape_up", "1x3 0x77", endpoint="app:9404"),
        silent=("10m45s",),
        fires=("11m",),
        labels={**CLUSTER, "endpoint": "app:9404"},
    ),
    AlertCase(
        alert="TidemarkBrokerLogLost",
        reason="a file was removed unread within the last hour",
        series=series("tidemark_broker_log_lost_bytes_total", "0x3 9x300", source="broker-1"),
        silent=("45s", "1h2m"),
        fires=("1m",),
        labels={**CLUSTER, "source": "broker-1"},
    ),
    AlertCase(
        alert="TidemarkBrokerLogUnparsed",
        reason="a line could not be parsed within the last hour",
        series=series("tidemark_broker_log_unparsed_lines_total", "0x3 1x300", source="broker-1"),
        silent=("45s", "1h2m"),
        fires=("1m",),
        labels={**CLUSTER, "source": "broker-1"},
    ),
)

STORAGE: Final = (
    AlertCase(
        alert="TidemarkStoreDown",
        reason="the database is away for five minutes",
        series=series("tidemark_store_up", "1x3 0x40"),
        silent=("5m45s",),
        fires=("6m",),
    ),
    AlertCase(
        alert="TidemarkTransitionsLost",
        reason="transitions were given up within the last hour",
        series=series("tidemark_store_lost_transitions_total", "4x3 5x300"),
        silent=("45s", "1h2m"),
        fires=("1m",),
    ),
    AlertCase(
        alert="TidemarkRowsRejected",
        reason="rows were rejected within the last hour",
        series=series("tidemark_store_rejected_rows_total", "4x3 5x300", kind="finding"),
        silent=("45s", "1h2m"),
        fires=("1m",),
    ),
    AlertCase(
        alert="TidemarkHistoryStopped",
        reason="history is not written for ten minutes",
        series=series("tidemark_history_up", "0x80"),
        silent=("9m45s",),
        fires=("10m",),
    ),
    AlertCase(
        alert="TidemarkHistoryFolderDown",
        reason="hours wait for their folder for ten minutes",
        series=series("tidemark_history_folder_up", "0x80"),
        silent=("9m45s",),
        fires=("10m",),
    ),
    *(
        AlertCase(
            alert=alert,
            reason=f"a run {outcome} within the last hour",
            series=of_process(
                "tidemark_job_runs_total", "0x3 2x300", job_name="retention", outcome=outcome
            ),
            silent=("45s", "1h2m"),
            fires=("1m",),
            labels={**TARGET, "job_name": "retention"},
        )
        for alert, outcome in (
            ("TidemarkJobFailed", "failed"),
            ("TidemarkJobFailed", "timed_out"),
            ("TidemarkJobMissed", "missed"),
        )
    ),
)

RECEIVER: Final = {**CLUSTER, "receiver": "pager"}
NOTIFICATIONS: Final = (
    AlertCase(
        alert="TidemarkAlertingFailed",
        reason="alerts could not be evaluated within the last quarter of an hour",
        series=series("tidemark_alerting_failures_total", "0x3 1x300"),
        silent=("45s", "17m"),
        fires=("1m",),
    ),
    AlertCase(
        alert="TidemarkOutboxDown",
        reason="nothing can be fetched from the outbox for two minutes",
        series=series("tidemark_outbox_up", "1x3 0x20 1x20"),
        silent=("2m", "8m"),
        fires=("3m15s",),
    ),
    AlertCase(
        alert="TidemarkNotificationLate",
        reason="a receiver accepts nothing for five minutes",
        series=series(
            "tidemark_notifications_oldest_waiting_seconds", "0x3 15+15x40 0x300", receiver="pager"
        ),
        silent=("5m", "15m"),
        fires=("7m15s",),
        labels=RECEIVER,
        value="6m 30s",
    ),
    AlertCase(
        alert="TidemarkNotificationsGivenUp",
        reason="a notification died within the last hour",
        series=series(
            "tidemark_notifications_total", "0x3 1x300", receiver="pager", outcome="dead"
        ),
        silent=("45s", "1h2m"),
        fires=("1m",),
        labels=RECEIVER,
    ),
    AlertCase(
        alert="TidemarkNotificationsFailing",
        reason="a receiver's settings are wrong, where another one only is slow",
        series=series(
            "tidemark_notification_failures_total", "0x3 1x300", receiver="pager", failure="auth"
        )
        | series(
            "tidemark_notification_failures_total", "0x3 1x300", receiver="team", failure="timeout"
        ),
        silent=("45s", "17m"),
        fires=("1m",),
        labels=RECEIVER,
    ),
)

FIRING: Final = (*ROUNDS, *SOURCES, *STORAGE, *NOTIFICATIONS)
NAMES: Final = tuple(dict.fromkeys(case.alert for case in FIRING))
WATCHING_CASES: Final = (
    *FIRING,
    SilentCase(
        reason="all is well, or over before it matters",
        series=HEALTHY,
        alerts=NAMES,
        silent=("5m45s", "9m45s", "10m15s", "15m", "20m"),
    ),
    SilentCase(
        reason="what is absent is unknown, and only the absent target itself alerts",
        series=OTHER_TARGET,
        alerts=tuple(alert for alert in NAMES if alert != "TidemarkAbsent"),
        silent=("0s", "15m", "20m"),
    ),
)
