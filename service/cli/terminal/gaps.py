"""What the last round of a service did not see, each gap by itself: what, why, since when, and what it
makes unknown. An older Tidemark tells less of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import quote

from service.cli.terminal.words import timestamp

Row = Mapping[str, Any]

SHOWN: Final = 10  # the others are counted


class Api(Protocol):
    """Whoever asks a Tidemark."""

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return what is at a path, None if there is nothing."""


def gaps_of(api: Api, status: Row) -> list[Row]:
    """Return the gaps of the last round, `SHOWN` at most; `status` is what the service told."""
    if not status["gaps_by_cause"]:
        return []
    found = api.find(f"clusters/{quote(str(status['cluster']), safe='')}", limit=SHOWN)
    return [] if found is None else list(found["items"])


def gap_lines(status: Row, gaps: list[Row]) -> Iterator[str]:
    """Give each gap on lines of its own."""
    for gap in gaps:
        yield f"  {gap['what']}: {gap['why']}"
        since = _timestamp(gap.get("since"))
        told = [
            None if since is None else f"since {timestamp(since)}",
            gap.get("explanation"),
            _unknown(gap.get("makes_unknown")),
        ]
        said = "; ".join(part for part in told if part)
        if said:
            yield f"    {said}"
    more = sum((status["gaps_by_cause"] or {}).values()) - len(gaps)
    if gaps and more > 0:
        yield f"  and {more} more: GET /api/v1/clusters/{status['cluster']}"


def _unknown(what: str | None) -> str | None:
    return None if what is None else f"not known meanwhile: {what}"


def _timestamp(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
