"""What an import did, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collectors.naming import counted
from service.history.folder import shown_url
from service.jobs.history_import.reporting import REASONS, shown
from service.jobs.history_import.running import Imported, ImportRequest


def document(imported: Imported, request: ImportRequest) -> dict[str, Any]:
    """Return it as JSON; times are ms since 1970-01-01 UTC."""
    merged = imported.merged
    return {
        "history": shown_url(request.history),
        "cluster": request.described.cluster,
        "dry_run": request.dry_run,
        "series": imported.series,
        "metrics": imported.metrics,
        "rejected": {
            reason: {"rows": rows, "why": REASONS[reason], "example": imported.examples.get(reason)}
            for reason, rows in imported.rejected.items()
        },
        "repeated": imported.repeated,
        "added": None if merged is None else merged.samples,
        "already_there": None if merged is None else merged.kept,
        "incidents": None if merged is None else merged.incidents,
        "days": [] if merged is None else [day.isoformat() for day in merged.days],
        "learn_from": None if imported.learn_from is None else imported.learn_from.isoformat(),
        "problems": imported.problems,
        "notes": imported.notes,
    }


def lines(imported: Imported, request: ImportRequest) -> Iterator[str]:
    """Yield it line by line; what was left out as a whole is on standard error already."""
    will = "would be imported" if request.dry_run else "imported"
    if not imported.metrics:
        yield f"nothing {will}: there is no sample that can be used"
    else:
        yield f"{will} as {imported.series:,} series of {request.described.cluster}:"
    for metric, found in imported.metrics.items():
        yield (
            f"  {metric:<30} {found['series']:>7} series {found['rows']:>12} samples, "
            f"{shown(found['first_ms'])} to {shown(found['last_ms'])}"
        )
    for reason, rows in imported.rejected.items():
        yield f"  {counted(rows, 'row')} rejected: {REASONS[reason]}, like: {imported.examples.get(reason)}"
    yield from _merged(imported)


def _merged(imported: Imported) -> Iterator[str]:
    merged = imported.merged
    if merged is None:
        return
    yield f"{counted(merged.samples, 'sample')} added to {counted(len(merged.days), 'day')} of history"
    if merged.kept:
        yield f"{counted(merged.kept, 'sample')} left out: there is one at that time already"
    if imported.repeated:
        yield f"{counted(imported.repeated, 'sample')} left out: the file has another one for that time"
    if merged.incidents:
        yield f"{counted(merged.incidents, 'labelled incident')} added, from which baselines do not learn"
    if merged.days:
        again = "" if imported.learn_from is None else f" --date {imported.learn_from}"
        yield f"Next: tidemark nightly run{again}"
