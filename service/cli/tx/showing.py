"""What `tidemark tx show` finds out about one transactional id."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from rich.console import RenderableType

from collectors.wire.failure import Failure
from rules.facts.gap import Gap
from rules.facts.transactions import Transaction
from rules.transactions.listing import (
    BLOCKING_SCOPES,
    HOLDING_SCOPES,
    ListedTransaction,
    Listing,
    listing,
)
from rules.view import View
from service.cli.terminal.exit_codes import ExitCode
from service.cli.tx.choosing import cluster_row
from service.cli.tx.observing import ClusterObserver, ObservedRounds, observe_at_once
from service.cli.tx.tables import described, in_full
from service.observe.watch import SnapshotSource
from service.views.snapshot_rows import Row, gap_row
from service.views.transaction_rows import described_row, transaction_row

OBSERVATIONS: Final = (
    2  # a transaction may begin or end between the rounds and the question for its id
)


class Source(SnapshotSource, Protocol):
    """Whatever makes rounds over a cluster and can be asked for one transactional id."""

    def describe(self, transactional_id: str) -> Transaction | Failure | None:
        """Return what its coordinator says, None if no such id exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One transactional id: what its coordinator says, and what partitions show of it."""

    transactional_id: str
    observed: ObservedRounds
    listing: Listing
    says: Transaction | Failure | None  # None: no coordinator knows it
    entries: tuple[ListedTransaction, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return what was not seen and may belong to it."""
        return self.observed.gaps(HOLDING_SCOPES | BLOCKING_SCOPES)

    @property
    def view(self) -> View:
        """Return the last round."""
        return self.observed.view


def fetch(reader: Source, transactional_id: str) -> Shown:
    """Ask for the id, and observe the cluster until both agree whether it is open."""
    observer = ClusterObserver(reader)
    for _ in range(OBSERVATIONS - 1):
        found = _observe(reader, observer, transactional_id)
        is_open = isinstance(found.says, Transaction) and found.says.is_open
        if is_open == any(entry.is_listed for entry in found.entries):
            return found
    return _observe(reader, observer, transactional_id)


def _observe(reader: Source, observer: ClusterObserver, transactional_id: str) -> Shown:
    observed = observe_at_once(observer)
    seen = listing(observed.view)
    says = reader.describe(transactional_id)
    has_ended = isinstance(says, Transaction) and not says.is_open
    entries = (
        entry
        for entry in seen.transactions
        if entry.transactional_id == transactional_id and not (has_ended and entry.is_listed)
    )
    return Shown(
        transactional_id=transactional_id,
        observed=observed,
        listing=seen,
        says=says,
        entries=tuple(entries),
    )


def told(found: Shown) -> Iterator[RenderableType]:
    """Give all about the id for a person."""
    for entry in found.entries:
        yield from in_full(found.listing, entry)
    if isinstance(found.says, Transaction) and not found.entries:
        yield from described(found.says, found.view.now)


def error(found: Shown) -> Iterator[str]:
    """Give what keeps us from telling."""
    name = found.transactional_id
    if isinstance(found.says, Failure):
        yield f"transactional id {name!r}: {found.says.why}"
    elif found.says is None and not found.entries:
        known = [entry.transactional_id or "" for entry in found.listing.transactions]
        near = difflib.get_close_matches(name, known, n=3)
        meant = f"; open ones with a name like it: {', '.join(near)}" if near else ""
        yield f"no coordinator knows transactional id {name!r}{meant}"


def exit_code(found: Shown) -> ExitCode:
    """Return what a script learns from the end of `tx show`."""
    if isinstance(found.says, Failure):
        return ExitCode.INCOMPLETE
    if found.says is None and not found.entries:
        return ExitCode.NOTHING_MATCHED
    is_sure = not found.gaps and all(entry.unknown_reason is None for entry in found.entries)
    return ExitCode.OK if is_sure else ExitCode.INCOMPLETE


def document(found: Shown) -> Row:
    """Return the JSON document of `tx show`: keys may be added, never renamed."""
    says, view = found.says, found.view
    return {
        **cluster_row(view),
        "transactional_id": found.transactional_id,
        "described": described_row(says) if isinstance(says, Transaction) else None,
        "error": list(error(found)),
        "transactions": [transaction_row(found.listing, entry) for entry in found.entries],
        "gaps": [gap_row(gap) for gap in found.gaps],
    }
