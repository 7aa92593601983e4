"""Which transactions `tidemark tx ls` shows, and what a script learns from its end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import click

from rules.facts.gap import GapScope
from rules.facts.snapshot import Snapshot
from rules.transactions.listing import (
    BLOCKING_SCOPES,
    HOLDING_SCOPES,
    ListedTransaction,
    Listing,
    blocked_by,
    listing,
)
from rules.view import View
from service.cli.exit_codes import ExitCode
from service.cli.tx.looking import Looked
from service.cli.tx.tables import not_seen
from service.snapshot_rows import Row
from service.transaction_rows import completeness_row, transaction_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was asked for; a pattern has to match a whole name, None takes everything."""

    classes: frozenset[str] = frozenset()  # none: all
    topic: re.Pattern[str] | None = None
    group: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is shown of the list."""

    listing: Listing
    entries: tuple[ListedTransaction, ...]

    @property
    def missing(self) -> list[str]:
        """Return what the list lacks, for a person."""
        return list(not_seen(self.listing))


def choose(looked: Looked, choice: Choice) -> Chosen:
    """Return the transactions that are known to match."""
    seen = looked.view.snapshot
    gaps = looked.gaps(HOLDING_SCOPES | BLOCKING_SCOPES)
    found = replace(listing(looked.view), gaps=gaps)
    entries = (one for one in found.transactions if _is_asked(seen, one, choice))
    return Chosen(listing=found, entries=tuple(entries))


def document(view: View, found: Chosen) -> Row:
    """Return the JSON document of `tx ls`: keys may be added, never renamed."""
    return {
        **cluster_row(view),
        **completeness_row(found.listing),
        "transactions": [transaction_row(view, entry) for entry in found.entries],
    }


def cluster_row(view: View) -> Row:
    """Return of which cluster a document is, and of when."""
    return {
        "cluster": view.snapshot.cluster,
        "cluster_id": view.snapshot.cluster_id,
        "taken_at": view.now.isoformat().replace("+00:00", "Z"),
    }


def exit_code(view: View, choice: Choice, found: Chosen) -> ExitCode:
    """Say on stderr that a filter names nothing there is, and choose the exit code."""
    snapshot = view.snapshot
    scopes = {gap.scope for gap in snapshot.gaps}
    for kind, pattern, names, scope in (
        ("topic", choice.topic, snapshot.partitions.index.topics, GapScope.PLACEMENT),
        ("group", choice.group, [one.group_id for one in snapshot.groups], GapScope.GROUPS),
    ):
        if pattern is None or _any_matches(pattern, names):
            continue
        if scope in scopes:
            click.echo(f"tidemark: no {kind} that matches {pattern.pattern!r} was seen", err=True)
            return ExitCode.INCOMPLETE
        click.echo(f"tidemark: no {kind} matches {pattern.pattern!r}", err=True)
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if found.listing.is_complete else ExitCode.INCOMPLETE


def _any_matches(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    return any(pattern.fullmatch(name) for name in names)


def _is_asked(seen: Snapshot, entry: ListedTransaction, choice: Choice) -> bool:
    if choice.classes and str(entry.class_) not in choice.classes:
        return False
    topics = (place.name.topic for place in entry.places)
    if choice.topic is not None and not _any_matches(choice.topic, topics):
        return False
    if choice.group is None:
        return True
    held_up = (one.group_id for place in entry.places for one in blocked_by(seen, place) or ())
    return _any_matches(choice.group, held_up)
