"""Events of a baseline run, and their lines for a person.

Events `progress` and `baseline_run` are passed on from the Spark job (`spark.reporting`); the others are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from service.storage.baselines.publishing import Publishing

JsonObject: TypeAlias = Mapping[str, Any]
Reporter: TypeAlias = Callable[[JsonObject], None]

# The outcome of publishing a run, for a person.
PUBLISHED: Final[Mapping[Publishing, str]] = {
    Publishing.PUBLISHED: "is in force: {series} series, loaded in {seconds:.1f} s",
    Publishing.UNCHANGED: "was published before; the run in force stays the same",
    Publishing.OLDER: "is not put in force: the run of a later day was published before",
}


def line_of(event: JsonObject) -> str:
    """Return an event as a line."""
    match event["event"]:
        case "progress":
            return (
                f"baseline run of {event['day']}: {event['done']} of {event['of']} tasks are done"
            )
        case "baseline_run":
            return _baseline_run_line(event)
        case "folded":
            return _folded_line(event)
        case "skipped":
            return f"{event['days']} days are too long ago and left out"
        case "published":
            became = PUBLISHED[Publishing(event["outcome"])].format(**event)
            return f"run {event['run']} of {event['day']} {became}"
        case _:
            return str(event["why"])  # why there is nothing to do, or runs were removed


def _folded_line(event: JsonObject) -> str:
    line = f"folded the hours of {event['days']} days"
    for file, why in event["damaged"].items():
        line += f"; {file} is damaged and set aside: {why}"
    for day, why in event["unfinished"].items():
        line += f"; the hours of {day} wait: {why}"
    return line


def _baseline_run_line(event: JsonObject) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in event["outcomes"].items())
    line = (
        f"baseline run of {event['day']}: {event['series']} series ({outcomes}), run {event['run']}"
    )
    if not event["is_new"]:
        return f"{line}, made before"
    for bucket, why in event["damaged"].items():
        line += f"; bucket {bucket} had a day without data, its file is damaged: {why}"
    return f"{line}, in {event['seconds'].get('all', 0):.1f} s"
