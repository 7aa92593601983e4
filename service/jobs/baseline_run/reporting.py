"""What a nightly run tells while it works, as events and as lines for a person.

Events `progress` and `night` come from Spark's job as they are (`spark.reporting`); the others are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from service.storage.baselines.publishing import Publishing

JsonObject: TypeAlias = Mapping[str, Any]
Reporter: TypeAlias = Callable[[JsonObject], None]

# What became of a run, for a person.
PUBLISHED: Final[Mapping[Publishing, str]] = {
    Publishing.PUBLISHED: "is in force: {series} series, loaded in {seconds:.1f} s",
    Publishing.UNCHANGED: "was published before; which night is in force stays as it is",
    Publishing.OLDER: "is not put in force: a later night was published before",
}


def line_of(told: JsonObject) -> str:
    """Return an event as a line."""
    match told["event"]:
        case "progress":
            return f"night of {told['day']}: {told['done']} of {told['of']} tasks are done"
        case "night":
            return _night(told)
        case "folded":
            return _folded(told)
        case "skipped":
            return f"{told['nights']} nights are too long ago and left out"
        case "published":
            became = PUBLISHED[Publishing(told["outcome"])].format(**told)
            return f"run {told['run']} of {told['day']} {became}"
        case _:
            return str(told["why"])  # why nothing was to be done, or runs were removed


def _folded(told: JsonObject) -> str:
    line = f"folded the hours of {told['days']} days"
    for file, why in told["damaged"].items():
        line += f"; {file} is damaged and set aside: {why}"
    return line


def _night(told: JsonObject) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in told["outcomes"].items())
    line = f"night of {told['day']}: {told['series']} series ({outcomes}), run {told['run']}"
    if not told["is_new"]:
        return f"{line}, made before"
    for bucket, why in told["damaged"].items():
        line += f"; bucket {bucket} had a day without data, its file is damaged: {why}"
    return f"{line}, in {told['seconds'].get('all', 0):.1f} s"
