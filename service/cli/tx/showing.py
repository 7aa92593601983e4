"""The facts about one transactional id, for `tidemark tx show`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from collectors.wire.failure import Failure
from rules.errors import TidemarkError
from rules.exceptions.known_producers import producer_of_id, producer_of_transaction
from rules.facts.gap import Gap
from rules.facts.transactions import Transaction
from rules.transactions.listing import (
    BLOCKING_SCOPES,
    HOLDING_SCOPES,
    ListedTransaction,
    Listing,
    listing,
)
from service.cli.application_errors.command import related_lines
from service.cli.application_errors.relating import fetch_related
from service.cli.server.report import Api
from service.cli.tx.choosing import cluster_row
from service.cli.tx.fencing import FencingAnswer, render_fencing
from service.cli.tx.observing import ClusterObserver, ObservedRounds, observe_at_once
from service.cli.tx.tables import render_description, render_details
from service.observe.watch import SnapshotSource
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import is_interactive
from service.terminal.parts import Facts, Line, Part, not_seen
from service.terminal.typed_names import complete_name, similar_names
from service.views.cluster import SnapshotGap
from service.views.model import Row
from service.views.transactions import DescribedTransaction, transaction_rows

# A transaction may begin or end between the rounds and the description of its id.
OBSERVATIONS: Final = 2
NOT_QUERIED: Final = FencingAnswer()


class Source(SnapshotSource, Protocol):
    """A source of snapshots that can also describe one transactional id."""

    def describe(self, transactional_id: str) -> Transaction | Failure | None:
        """Return the state at its coordinator, None if there is no such id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One transactional id: its state at the coordinator, and its transactions on partitions."""

    transactional_id: str
    observed: ObservedRounds
    listing: Listing
    described: Transaction | Failure | None  # None: no coordinator knows it
    entries: tuple[ListedTransaction, ...]
    fencing: FencingAnswer = NOT_QUERIED
    application_errors: tuple[Row, ...] | None = None  # None: no running Tidemark was queried
    service_error: str | None = None  # why they are not known

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps that may hide a part of it."""
        return self.observed.gaps(HOLDING_SCOPES | BLOCKING_SCOPES)


def fetch(reader: Source, transactional_id: str) -> Shown:
    """Return what is known of an id, or, at a terminal, of the only one of an open transaction that begins so.

    Raises:
        RequestError: several of those that are listed begin so.
    """
    shown = _fetch(reader, transactional_id)
    if shown.described is not None or shown.entries:
        return shown
    ids = [each for each in _listed_ids(shown) if each.startswith(transactional_id)]
    if not ids or not is_interactive():
        return shown
    return _fetch(reader, complete_name(transactional_id, ids, "transactional id"))


def _listed_ids(shown: Shown) -> list[str]:
    return sorted(shown.observed.view.snapshot.transactions.known)


def _fetch(reader: Source, transactional_id: str) -> Shown:
    """Describe the id, and observe the cluster until both agree whether it is open."""
    observer = ClusterObserver(reader)
    for _ in range(OBSERVATIONS - 1):
        shown = _observe(reader, observer, transactional_id)
        is_open = isinstance(shown.described, Transaction) and shown.described.is_open
        if is_open == any(entry.is_listed for entry in shown.entries):
            return shown
    return _observe(reader, observer, transactional_id)


def _observe(reader: Source, observer: ClusterObserver, transactional_id: str) -> Shown:
    observed = observe_at_once(observer)
    seen = listing(observed.view)
    described = reader.describe(transactional_id)
    has_ended = isinstance(described, Transaction) and not described.is_open
    entries = (
        entry
        for entry in seen.transactions
        if entry.transactional_id == transactional_id and not (has_ended and entry.is_listed)
    )
    return Shown(
        transactional_id=transactional_id,
        observed=observed,
        listing=seen,
        described=described,
        entries=tuple(entries),
    )


def with_application_errors(
    shown: Shown, connect: Callable[[], AbstractContextManager[Api]]
) -> Shown:
    """Return it with what applications logged about its producer, or with why that is not known."""
    described = (
        [producer_of_id(shown.described)] if isinstance(shown.described, Transaction) else []
    )
    producers = [*described, *map(producer_of_transaction, shown.entries)]
    try:
        with connect() as api:
            rows = fetch_related(api, producers)
    except TidemarkError as exc:
        return replace(shown, service_error=f"what applications logged is not known: {exc}")
    return replace(shown, application_errors=tuple(map(dict, rows)))


def render(shown: Shown) -> Iterator[Part]:
    """Yield all details of the id for a person."""
    for entry in shown.entries:
        yield from render_details(shown.listing, entry)
    if isinstance(shown.described, Transaction) and not shown.entries:
        yield from render_description(shown.described, shown.listing.view.now)
    yield from render_fencing(shown.fencing.rows or ())
    if shown.application_errors:
        yield Line("logged by applications", "bold")
        yield Facts(related_lines(list(shown.application_errors)))
    yield from not_seen(f"{gap.what}: {gap.why}" for gap in shown.gaps)


def error(shown: Shown) -> Iterator[str]:
    """Yield the errors because of which the id cannot be shown."""
    name = shown.transactional_id
    if isinstance(shown.described, Failure):
        yield f"transactional id {name!r}: {shown.described.why}"
    elif shown.described is None and not shown.entries:
        near = similar_names(name, _listed_ids(shown))
        meant = f"; open transactions have similar ids: {', '.join(near)}" if near else ""
        yield f"no coordinator knows transactional id {name!r}{meant}"
    if shown.fencing.error is not None:
        yield shown.fencing.error
    if shown.service_error is not None:
        yield shown.service_error


def exit_code(shown: Shown) -> ExitCode:
    """Return the exit code of `tx show`."""
    if isinstance(shown.described, Failure):
        return ExitCode.INCOMPLETE
    if shown.described is None and not shown.entries:
        return ExitCode.NOTHING_MATCHED
    if shown.fencing.error is not None or shown.service_error is not None:
        return ExitCode.INCOMPLETE
    is_sure = not shown.gaps and all(entry.unknown_reason is None for entry in shown.entries)
    return ExitCode.OK if is_sure else ExitCode.INCOMPLETE


def document(shown: Shown) -> Row:
    """Return the JSON document of `tx show`: keys may be added, never renamed."""
    described, view = shown.described, shown.listing.view
    return {
        **cluster_row(view),
        "transactional_id": shown.transactional_id,
        "described": _describe(described).to_row() if isinstance(described, Transaction) else None,
        "error": list(error(shown)),
        "transactions": transaction_rows(shown.listing, shown.entries),
        "fencing": None if shown.fencing.rows is None else list(shown.fencing.rows),
        "application_errors": None
        if shown.application_errors is None
        else list(shown.application_errors),
        "gaps": SnapshotGap.rows_of(shown.gaps),
    }


def _describe(entry: Transaction) -> DescribedTransaction:
    return DescribedTransaction.of(entry, partitions=sorted(entry.partitions or ()))
