"""The lists of the live screen: their columns, the most important first, and what names a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from service.cli.groups.tables import total_lag
from service.cli.loss import tables as losses
from service.cli.status import STYLES, firing_for, what
from service.cli.watch.fetching import Board, ListName, Rows, Subject
from service.terminal.parts import Column, Row, long, short
from service.terminal.words import ABSENT, duration, names_text, text, timestamp_of

TRANSACTION_STYLES: Final = {
    "hanging": "bold red",
    "unknown": "bold yellow",
    "marker_not_replicated": "bold yellow",
    "overdue": "yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a list is shown. Columns that do not fit are cut off at the right: the details have all."""

    title: str  # short: five of them share a line
    empty: str  # said of an empty list that lacks nothing
    columns: Callable[[datetime | None], Sequence[Column[Row]]]  # of the time of the service
    key: Callable[[Row], str]
    style: Callable[[Row], str | None] = lambda _: None


def key_of_transaction(row: Row) -> str:
    """Return what names an open transaction: its id, and the producer that has it open."""
    places = [
        f"{place.get('topic')}-{place.get('partition')}" for place in row.get("partitions") or ()
    ]
    producer = f"{text(row.get('producer_id'))}/{text(row.get('producer_epoch'))}"
    return " ".join([text(row.get("transactional_id")), producer, *places[:1]])


def running(row: Row) -> str:
    """Return for how long a transaction is open."""
    milliseconds = row.get("running_ms")
    return ABSENT if milliseconds is None else duration(timedelta(milliseconds=milliseconds))


def blocked_groups(row: Row) -> str:
    """Return the groups that a transaction blocks; "?" if that is not known of a partition."""
    blocked = [place.get("blocked_groups") for place in row.get("partitions") or ()]
    names = dict.fromkeys(str(group.get("group")) for groups in blocked for group in groups or ())
    if names:
        return names_text(list(names))
    return "?" if None in blocked or not blocked else ABSENT


def _alert_columns(now: datetime | None) -> Sequence[Column[Row]]:
    return (
        short("severity"),
        short("for", lambda alert: firing_for(alert, now)),
        short("ack", lambda alert: "yes" if alert.get("acknowledged") else "no"),
        long("what", what),
    )


def _group_columns(_now: datetime | None) -> Sequence[Column[Row]]:
    return (
        short("lag", lambda row: total_lag(row, "lag")),
        short("seconds", lambda row: total_lag(row, "lag_seconds")),
        short("state"),
        long("group"),
    )


def _loss_columns(_now: datetime | None) -> Sequence[Column[Row]]:
    return losses.COLUMNS


def _transaction_columns(_now: datetime | None) -> Sequence[Column[Row]]:
    return (
        short("class"),
        short("open for", running),
        long("transactional id", "transactional_id"),
        long("blocks", blocked_groups),
        long("partitions", _places),
    )


def _places(row: Row) -> str:
    places = row.get("partitions") or ()
    return (
        names_text([f"{place.get('topic')}-{place.get('partition')}" for place in places]) or ABSENT
    )


def _line_columns(_now: datetime | None) -> Sequence[Column[Row]]:
    return (long("what is not seen", "line"),)


SHAPES: Final[Mapping[ListName, Shape]] = {
    ListName.ALERTS: Shape(
        title="alerts",
        empty="No alert is known to fire.",
        columns=_alert_columns,
        key=lambda row: text(row.get("fingerprint")),
        style=lambda row: STYLES.get(str(row.get("severity"))),
    ),
    ListName.GROUPS: Shape(
        title="groups",
        empty="The cluster has no group.",
        columns=_group_columns,
        key=lambda row: text(row.get("group")),
        style=lambda row: "yellow" if row.get("unknown_lags") else None,
    ),
    ListName.LOSSES: Shape(
        title="losses",
        empty="No loss is known.",
        columns=_loss_columns,
        key=lambda row: text(row.get("id")),
        style=lambda row: losses.STYLES.get(str(row.get("class"))),
    ),
    ListName.TRANSACTIONS: Shape(
        title="tx",
        empty="No transaction is open.",
        columns=_transaction_columns,
        key=key_of_transaction,
        style=lambda row: TRANSACTION_STYLES.get(str(row.get("class"))),
    ),
    ListName.NOT_SEEN: Shape(
        title="not seen",
        empty="Everything is seen.",
        columns=_line_columns,
        key=lambda row: text(row.get("line")),
    ),
}
NAMES: Final = tuple(SHAPES)


def rows_of(board: Board, name: ListName, words: str) -> Rows:
    """Return the rows of a list in which all of these words occur, in any case."""
    whole = board.lists[name]
    terms = words.casefold().split()
    if not terms:
        return whole
    columns = SHAPES[name].columns(timestamp_of(board.overview.status.get("now")))
    rows = [row for row in whole.rows if _has(row, columns, terms)]
    return Rows(rows=rows, unknown=whole.unknown)


def subjects_of(name: ListName, rows: Rows) -> Sequence[Subject]:
    """Return the rows of a list as the subjects of details."""
    key = SHAPES[name].key
    return [Subject(name=name, key=key(row), row=row) for row in rows.rows]


def _has(row: Row, columns: Sequence[Column[Any]], terms: Sequence[str]) -> bool:
    cells = " ".join(column.cell(row) for column in columns).casefold()
    return all(word in cells for word in terms)
