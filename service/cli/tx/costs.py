"""Fetch and print `tidemark tx cost`: what transactions cost, by transactional id and by coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from service.cli.server import listing
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Line, Part, Row, Table, long, short
from service.terminal.words import ABSENT

FILTERS: Final = ("transactional_id", "coordinator")
STATUS: Final = ("window_ms", "is_whole", "log_is_read", "other_transactions", "coordinators")
NOT_READ: Final = "UNKNOWN: __transaction_state is not read (docs/permissions.md): what transactions cost is not known"
NONE: Final = "no transaction has ended within the last minutes"
NONE_SUCH: Final = "no transaction that matches the filters has ended within the last minutes"
MS_PER_MINUTE: Final = 60_000


def _number(field: str, form: str = ",.1f") -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(field)
        return ABSENT if value is None else f"{value:{form}}"

    return cell


def _milliseconds(field: str, form: str = ",") -> Callable[[Row], str]:

    def cell(row: Row) -> str:
        value = row.get(field)
        return ABSENT if value is None else f"{value:{form}} ms"

    return cell


def _records(row: Row) -> str:
    """Return the mean; where partitions are shared, it is that of all ids of them."""
    mean = row.get("records_per_transaction")
    if mean is None:
        return ABSENT
    return f"{mean:,.1f} shared" if row.get("is_shared") else f"{mean:,.1f}"


IDS: Final = listing.Resource(
    path="transactions/cost",
    name="transactional_ids",
    columns=(
        long("transactional id", "transactional_id"),
        short("transactions/s", _number("transactions_per_second")),
        short("records each", _records),
        short("bytes each", _number("bytes_per_transaction", ",d")),
        short("markers each", _number("markers_per_transaction")),
        short("share of markers", _number("marker_share", ".0%")),
        short("log records/s", _number("state_records_per_second")),
        short("marker mean", _milliseconds("marker_mean_ms", ",.1f")),
        short("marker p99 <=", _milliseconds("marker_p99_at_most_ms")),
        short("coordinator"),
    ),
)
COORDINATORS: Final = (
    short("coordinator"),
    short("ids", "transactional_ids"),
    short("transactions/s", _number("transactions_per_second")),
    short("marker median <=", _milliseconds("marker_half_at_most_ms")),
    short("marker p99 <=", _milliseconds("marker_p99_at_most_ms")),
)


def show(options: dict[str, Any]) -> int:
    """Print the costs, and return the exit code."""
    listed = listing.query_list(IDS, options, *FILTERS)
    status = {name: listed.page.get(name) for name in STATUS}
    is_filtered = any(options[name] is not None for name in FILTERS)
    parts = render(listed, NONE_SUCH if is_filtered else NONE)
    print_answer({**listed.document(IDS.name), **status}, parts, options)
    is_known = listed.page["log_is_read"] and listed.page["is_whole"]
    return listed.exit_code if is_known else ExitCode.INCOMPLETE


def render(listed: listing.Listed, nothing: str = NONE) -> Iterator[Part]:
    """Yield transactional ids, then coordinators, then what to know of them."""
    page = listed.page
    if not page["log_is_read"]:
        yield Line(NOT_READ)
        return
    yield Line(f"within the last {page['window_ms'] / MS_PER_MINUTE:.1f} min")
    yield IDS.table(listed.rows) if listed.rows else Line(nothing)
    yield from listing.more_rows(listed)
    yield Table(columns=COORDINATORS, rows=page["coordinators"])
    yield from map(Line, _remarks(page))


def _remarks(page: Row) -> Iterator[str]:
    for row in page["coordinators"]:
        if row.get("has_many_ids"):
            yield (
                f"broker {row['coordinator']} coordinates twice as many ids as the mean of brokers: elect the "
                "preferred leaders of __transaction_state, or reassign some of its partitions"
            )
    if page["other_transactions"]:
        yield f"{page['other_transactions']:,} transactions of further transactional ids"
    if not page["is_whole"]:
        yield "not all transactions that ended were read: these are at least so many"
