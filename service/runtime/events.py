"""The names of everything that is logged: a closed set, so that a search finds all of a kind."""

from __future__ import annotations

from enum import StrEnum


class Event(StrEnum):
    """What happened."""

    STARTING = "service_starting"  # probes are answered from now on
    STARTED = "service_started"  # its stored state is read, or is waited for: rounds begin
    SETTINGS_ADVICE = "settings_advice"  # one per setting that observations wrong and can be used
    STOPPING = "service_stopping"
    STOPPED = "service_stopped"
    DRAIN_LIMIT = "drain_limit_passed"
    ROUND = "round"  # one per round, with its counts
    FINDING = "finding"  # opened, ended, or another verdict
    FINDINGS_LEFT_OUT = "findings_left_out"  # more transitions than lines
    CHANGE = "change"  # in the cluster; the same one of many subjects is one
    CLOCK_STEP = "clock_step"
    MEMORY_LOADED = "memory_loaded"
    MEMORY_AWAY = "memory_not_loaded"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_AVAILABLE = "store_available"
    ROW_REJECTED = "row_rejected"  # by the database, for good: it is left out
    ROWS_LEFT_OUT = "rejected_rows_not_logged"  # more of them than lines
    ALERTS_ERROR = "alerts_error"  # what of them could not be stored or read
    ALERTS_BACK = "alerts_error_over"
    DATABASE_RESTARTED = "database_restarted"
    RETENTION_SKIPPED = "retention_skipped"  # of old rows, for a clock that may be wrong
    JOB_ENDED = "job_ended"  # one per run
    JOB_MISSED = "job_missed"  # it was due and not run
    JOBS_AWAY = "jobs_not_kept"  # runs wait for the database
    ENDPOINT_AWAY = "endpoint_not_read"  # of metrics
    ENDPOINT_BACK = "endpoint_read_again"
    ENDPOINT_LIST = "endpoint_list_error"
    LOG_SOURCE_AWAY = "log_source_not_read"  # or not all of it
    LOG_SOURCE_BACK = "log_source_read_again"
    DELIVERED = "notification_delivered"
    DELIVERY_FAILED = "notification_not_delivered"  # it is tried again
    DELIVERY_DEAD = "notification_given_up"
    RECEIVER_GONE = "receiver_gone"  # it answered that it wants nothing any more
    RECEIVER_REMOVED = "receiver_removed"  # from the settings, while something waited for it
    FALLBACK = "fallback_notified"
    OUTBOX_UNAVAILABLE = "outbox_unavailable"
    OUTBOX_AVAILABLE = "outbox_available"
    TASK_DIED = "task_died"
    PART_FAILED = "part_failed"  # a rule, say: the others go on
    BASELINE_RUNS_OFF = "baseline_runs_not_made"  # what they need is not installed
    BASELINES_NOT_LOADED = "baselines_not_loaded"  # nothing new is judged by them until they are
    APPLICATION_ERRORS_AWAY = (
        "application_errors_not_read"  # those of an earlier process are not shown
    )
    BASELINE_BANDS_AWAY = "baseline_bands_not_read"  # those read last hold for half an hour
    HISTORY_AWAY = "history_not_kept"  # rounds or hours could not be written
    HISTORY_BACK = "history_kept_again"
    HISTORY_DAMAGED = "history_damaged"  # a file of it, which is set aside
    HISTORY_COLLISION = "history_series_left_out"  # another one has the same id
    REQUEST_FAILED = "request_failed"
    LIBRARY = "library_message"
