"""Events of an import, and their lines for a person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from rules.baseline.naming import Unnamed
from rules.facts.times import EPOCH
from service.jobs.baseline_run.reporting import JsonObject
from spark.history_import.reasons import Reason

REASONS: Final[Mapping[str, str]] = {
    Unnamed.SYNTAX: "the series is not written like read_committed_lag/orders/3/billing",
    Unnamed.METRIC: "history has no such metric",
    Unnamed.LABELS: "the series has other labels than its metric, or one that cannot be",
    Reason.TIME: "the time cannot be read",
    Reason.ZONE: "the time has no zone: --time-zone says which",
    Reason.OLD: "older than history is kept (history.retention_days)",
    Reason.FUTURE: "in the future",
    Reason.NO_VALUE: "there is no value",
    Reason.VALUE: "the value is no number",
    Reason.NEGATIVE: "the value is negative, which no metric is",
}


def line_of(event: JsonObject) -> str:
    """Return an event as a line."""
    match event["event"]:
        case "fetching":
            return f"{event['done']:.0%} of {event['query']}"
        case "progress":
            doing = {"read": "reading", "pack": "packing"}[event["stage"]]
            return f"{doing}: {event['done']} of {event['of']} tasks are done"
        case "survey":
            rejected = sum(event["rejected"].values())
            return f"{event['series']} series; {rejected} rows cannot be used"
        case "packed":
            return f"{event['samples']} samples are packed"
        case "merging":
            return f"merged {event['day']}: {event['done']} of {event['of']} days"
        case _:
            return str(event["why"])


def shown(at_ms: int) -> str:
    """Return a time for a person: UTC, to the minute."""
    return f"{EPOCH + timedelta(milliseconds=at_ms):%Y-%m-%dT%H:%MZ}"
