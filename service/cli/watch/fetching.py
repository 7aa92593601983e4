"""What one refresh of the live screen reads of a service: the overview, the lists, and the details that are open.

What cannot be read is UNKNOWN in its own place, with the reason: an empty list never stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from rules.errors import TidemarkError
from service.cli.groups.answers import group_from, list_from, unlisted
from service.cli.loss.queries import LossReport, fetch_losses, list_losses
from service.cli.server.remembering import RememberingApi
from service.cli.server.report import Api
from service.cli.status import Overview, read_overview, unseen
from service.terminal.parts import Row

NO_TRANSACTIONS: Final = "this Tidemark has no list of open transactions"
MORE_ALERTS: Final = "more alerts fire than are read: tidemark alerts ls --state firing --limit 0"


class ListName(StrEnum):
    """A list of the screen."""

    ALERTS = "alerts"
    GROUPS = "groups"
    LOSSES = "losses"
    TRANSACTIONS = "transactions"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a list, and why there may be more of them."""

    rows: Sequence[Row] = ()
    unknown: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What details are about: a row of a list."""

    name: ListName
    key: str  # of the row
    row: Row = field(compare=False)  # as it was when it was chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Details of a subject, in the form of its list, or the error because of which there are none."""

    subject: Subject
    document: Row | LossReport | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What a service said of everything at one time."""

    fetched_at: datetime  # UTC, by the clock of this machine, before the first query
    overview: Overview
    lists: Mapping[ListName, Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The outcome of one refresh; None: it was not requested."""

    board: Board | None = None
    details: Details | None = None


def fetch_board(service: Api, now: datetime) -> Board:
    """Query all that the screen shows.

    Raises:
        CollectError: the status cannot be read, at first or after a list that is not known: a service that ends
            in between gives no board. Of a list that cannot be read otherwise the board has the error.
    """
    api = RememberingApi(service)
    overview = read_overview(api)
    lists = {
        ListName.ALERTS: _alerts(overview),
        ListName.GROUPS: _attempt(lambda: _groups(api)),
        ListName.LOSSES: _attempt(lambda: _losses(api)),
        ListName.TRANSACTIONS: _attempt(lambda: _transactions(api)),
        ListName.NOT_SEEN: Rows(rows=[{"line": line} for line in unseen(overview)]),
    }
    if any(rows.unknown for rows in lists.values()):
        service.get("status")
    return Board(fetched_at=now, overview=overview, lists=lists)


def fetch_details(api: Api, subject: Subject) -> Details:
    """Query the details of a row, with what is wrong if there are none."""
    try:
        document = _document(api, subject)
    except TidemarkError as exc:
        return Details(subject=subject, error=str(exc))
    if document is None:
        return Details(subject=subject, error=f"the service no longer knows {subject.key}")
    return Details(subject=subject, document=document)


def needs_query(subject: Subject) -> bool:
    """Whether the list has less of a row than its details show."""
    return subject.name in (ListName.ALERTS, ListName.GROUPS, ListName.LOSSES)


def _document(api: Api, subject: Subject) -> Row | LossReport | None:
    match subject.name:
        case ListName.ALERTS:
            return api.find(f"alerts/{subject.key}")
        case ListName.GROUPS:
            return group_from(api, subject.key)
        case ListName.LOSSES:
            return fetch_losses(api, subject.key)
        case _:
            return subject.row


def _attempt(fetch: Callable[[], Rows]) -> Rows:
    try:
        return fetch()
    except TidemarkError as exc:
        return Rows(unknown=[str(exc)])


def _alerts(overview: Overview) -> Rows:
    errors = [error for error in overview.errors if not error.startswith(" ")]
    more = [MORE_ALERTS] if overview.has_more else []
    return Rows(rows=overview.alerts, unknown=[*errors, *more])


def _groups(api: Api) -> Rows:
    document = list_from(api, {})
    rows = sorted(document["groups"], key=_largest_lag_first)
    return Rows(rows=rows, unknown=unlisted(api))


def _largest_lag_first(group: Row) -> tuple[int, int, str]:
    """Order groups by lag; one whose lag is not known comes before those that are known to have none."""
    lag = group.get("read_committed_lag")
    if lag is None or (not lag and group.get("unknown_lags")):
        has_commits = bool(group.get("commit_count"))
        return (1 if has_commits else 3), 0, str(group.get("group"))
    return (0 if lag else 2), -int(lag), str(group.get("group"))


def _losses(api: Api) -> Rows:
    report = list_losses(api, {})
    return Rows(
        rows=report.losses, unknown=[error for error in report.errors if not error.startswith(" ")]
    )


def _transactions(api: Api) -> Rows:
    pages = _pages(api)
    rows = [row for page in pages for row in page["items"]]
    last = pages[-1]
    incomplete = [] if last.get("complete") else ["there may be more transactions than these"]
    gaps = [f"{gap['what']}: {gap['why']}" for gap in last.get("gaps") or ()]
    return Rows(rows=rows, unknown=[*_old(last), *incomplete, *gaps])


def _pages(api: Api) -> list[Mapping[str, Any]]:
    if api.find("transactions", limit=1) is None:
        raise TidemarkError(NO_TRANSACTIONS)
    return list(api.pages("transactions"))


def _old(page: Row) -> list[str]:
    return [] if page.get("is_current") else ["the service shows old data"]
