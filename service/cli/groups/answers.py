"""Groups as documents, from the HTTP API; `observing.py` makes the same of a cluster that is read at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from rules.errors import CollectError, NotThereError, TidemarkError
from rules.facts.gap import GapScope
from service.cli.server.report import Api, is_complete, read_gaps
from service.cli.server.server_options import client_of
from service.terminal.parts import Row
from service.terminal.typed_names import complete_name

HINT: Final = "`tidemark groups ls` lists all"
USUAL_METRIC: Final = "read_committed_lag_seconds"
LIMIT: Final = 1000  # gaps of which one may hide a group


def list_from_server(options: Mapping[str, Any], query: Mapping[str, str]) -> Row:
    """Return the groups that a running Tidemark saw."""
    with client_of(options) as api:
        return list_from(api, query)


def list_from(api: Api, query: Mapping[str, str]) -> Row:
    """Return the groups that match; the query is that of `/groups`."""
    pages = list(api.pages("groups", **query))
    rows = [row for page in pages for row in page["items"]]
    return {**_source(api, pages[-1]), "groups": rows}


def group_from_server(options: Mapping[str, Any], name: str) -> Row:
    """Return one group of a running Tidemark; at a terminal the beginning of its name suffices.

    Raises:
        NotThereError: its last observation saw every group, and not this one.
        RequestError: the names of several begin so.
        CollectError: it was not seen, and not every group was.
    """
    with client_of(options) as api:
        try:
            return group_from(api, name)
        except NotThereError:
            rows = (row for page in api.pages("groups") for row in page["items"])
            name = complete_name(name, (str(row["group"]) for row in rows), "group", hint=HINT)
            return group_from(api, name)


def group_from(api: Api, name: str) -> Row:
    """Return one group with all its commits, and what is usual of its lag where that is known.

    Raises:
        NotThereError: the last observation saw every group, and none of this name.
        CollectError: it was not seen, and not every group was.
    """
    path = f"groups/{quote(name, safe='')}"
    if api.find(path, limit=1) is None:
        raise _absence(api, name)
    pages = list(api.pages(path))
    commits = [row for page in pages for row in page["items"]]
    fields = (
        "group",
        "members",
        "rebalances",
        "unfinished_rebalance_since",
        "unowned",
        "unowned_count",
    )
    return {
        **_source(api, pages[-1]),
        **{field: pages[0].get(field) for field in fields},
        "partitions": commits,
        "usual": _usual(api, name),
    }


def unlisted(api: Api) -> list[str]:
    """Return why there may be groups that the last observation did not see; nothing if it saw all."""
    status = api.get("status")
    if not status["is_current"]:
        return ["the service shows old data"]
    gaps = read_gaps(api, status, most=LIMIT)
    return [f"{gap['what']}: {gap['why']}" for gap in gaps if gap.get("scope") == GapScope.GROUPS]


def _absence(api: Api, name: str) -> TidemarkError:
    """Return the error of a group that was not seen: it is absent only if every group was."""
    for why in unlisted(api):
        return CollectError(f"group {name!r} was not seen: {why}")
    return NotThereError(f"there is no group {name!r}; {HINT}")


def _source(api: Api, page: Row) -> dict[str, Any]:
    status = api.get("status")
    return {
        "server": api.server,
        "as_of": page["as_of"],
        "is_current": page["is_current"],
        "complete": page["is_current"] and is_complete(status),
        "gaps": read_gaps(api, status),
    }


def _usual(api: Api, name: str) -> list[Row] | None:
    """Return what is usual now per topic of the group; None where that is not known."""
    try:
        page = api.find("baselines/series", group=name, metric=USUAL_METRIC, limit=1000)
    except CollectError:
        return None  # the database does not answer: the lags do not need it
    if page is None or page.get("run") is None:
        return None
    series = (row for row in page["items"] if row.get("group") == name and row.get("usual"))
    return [
        {"topic": row["topic"], "partition": row["partition"], **dict(row["usual"])}
        for row in series
    ]
