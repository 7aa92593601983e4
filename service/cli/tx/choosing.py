"""Choose the transactions that `tidemark tx ls` shows, and its exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import click

from rules.facts.gap import GapScope
from rules.facts.transaction_unknown import UnknownReason
from rules.transactions.listing import (
    BLOCKING_SCOPES,
    HOLDING_SCOPES,
    ListedTransaction,
    Listing,
    listing,
)
from rules.transactions.next_steps import OF_DOUBT
from rules.view import View
from service.cli.tx.observing import ObservedRounds
from service.cli.tx.tables import head, not_seen, transactions_table
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Line, Part
from service.terminal.parts import not_seen as not_seen_lines
from service.terminal.words import json_time
from service.views.cluster import SnapshotGap
from service.views.model import Row
from service.views.transactions import GAPS_SHOWN, Completeness, transaction_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The filters; a pattern has to match a whole name, None matches everything."""

    classes: frozenset[str] = frozenset()  # none: all
    topic: re.Pattern[str] | None = None
    group: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The transactions that match the filters."""

    listing: Listing
    entries: tuple[ListedTransaction, ...]

    @property
    def unknown_reasons(self) -> list[str]:
        """Return the advice for each unknown reason that is shown."""
        reasons = {entry.unknown_reason for entry in self.entries}
        return [
            f"{unknown_reason}: {OF_DOUBT[unknown_reason]}"
            for unknown_reason in UnknownReason
            if unknown_reason in reasons
        ]


def choose(observed: ObservedRounds, choice: Choice) -> Chosen:
    """Return the transactions that match."""
    gaps = observed.gaps(HOLDING_SCOPES | BLOCKING_SCOPES)
    open_transactions = replace(listing(observed.view), gaps=gaps)
    group = choice.group
    entries: Iterable[ListedTransaction] = open_transactions.transactions
    if group is not None:
        entries = open_transactions.holding_up(lambda name: group.fullmatch(name) is not None)
    chosen = tuple(entry for entry in entries if _matches(entry, choice))
    return Chosen(listing=open_transactions, entries=chosen)


def render(chosen: Chosen) -> Iterator[Part]:
    """Yield the list for a person."""
    yield head(chosen.listing, chosen.entries)
    if chosen.entries:
        yield transactions_table(chosen.listing, chosen.entries)
    for entry in chosen.entries:
        if entry.repair is not None:
            yield Line(f"repair: {entry.repair}")
    yield from map(Line, chosen.unknown_reasons)
    yield from not_seen_lines(not_seen(chosen.listing))


def document(view: View, chosen: Chosen) -> Row:
    """Return the JSON document of `tx ls`: keys may be added, never renamed."""
    gaps = chosen.listing.gaps
    return {
        **cluster_row(view),
        **Completeness.of(chosen.listing, gap_count=len(gaps)).to_row(),
        "gaps": SnapshotGap.rows_of(gaps[:GAPS_SHOWN]),
        "transactions": transaction_rows(chosen.listing, chosen.entries),
    }


def cluster_row(view: View) -> Row:
    """Return the fields of a document that name its cluster and time."""
    return {
        "cluster": view.snapshot.cluster,
        "cluster_id": view.snapshot.cluster_id,
        "taken_at": json_time(view.now),
    }


def exit_code(view: View, choice: Choice, chosen: Chosen) -> ExitCode:
    """Print to stderr that a filter matches nothing, and return the exit code."""
    snapshot = view.snapshot
    scopes = {gap.scope for gap in snapshot.gaps}
    for kind, pattern, names, scope in (
        ("topic", choice.topic, snapshot.partitions.index.topics, GapScope.PLACEMENT),
        ("group", choice.group, [group.group_id for group in snapshot.groups], GapScope.GROUPS),
    ):
        if pattern is None or _any_matches(pattern, names):
            continue
        if scope in scopes:
            click.echo(f"tidemark: no {kind} that matches {pattern.pattern!r} was seen", err=True)
            return ExitCode.INCOMPLETE
        click.echo(f"tidemark: no {kind} matches {pattern.pattern!r}", err=True)
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if chosen.listing.is_complete else ExitCode.INCOMPLETE


def _any_matches(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    return any(pattern.fullmatch(name) for name in names)


def _matches(entry: ListedTransaction, choice: Choice) -> bool:
    if choice.classes and str(entry.class_) not in choice.classes:
        return False
    topics = (place.name.topic for place in entry.places)
    return choice.topic is None or _any_matches(choice.topic, topics)
