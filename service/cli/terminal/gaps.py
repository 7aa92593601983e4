"""The gaps of a service's last round: what was not observed, why, since when, and what that makes
unknown. An older Tidemark gives fewer fields.
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
    """A client of the HTTP API of a Tidemark."""

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return the document at a path, None if there is none."""


def gaps_of(api: Api, status: Row) -> list[Row]:
    """Return the gaps of the last round, `SHOWN` at most; `status` is the document of /status."""
    if not status["gaps_by_cause"]:
        return []
    page = api.find(f"clusters/{quote(str(status['cluster']), safe='')}", limit=SHOWN)
    return [] if page is None else list(page["items"])


def gap_lines(status: Row, gaps: list[Row]) -> Iterator[str]:
    """Yield the lines of each gap."""
    for gap in gaps:
        yield f"  {gap['what']}: {gap['why']}"
        since = _timestamp(gap.get("since"))
        parts = [
            None if since is None else f"since {timestamp(since)}",
            gap.get("explanation"),
            _unknown(gap.get("makes_unknown")),
        ]
        remark = "; ".join(part for part in parts if part)
        if remark:
            yield f"    {remark}"
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
