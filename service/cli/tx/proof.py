"""The conclusion of `tidemark tx hanging`, with its proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collectors.naming import counted
from rules.facts.gap import Gap
from rules.facts.transactions import IdVisibility
from rules.loss.summary import offsets
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import HOLDING_SCOPES, ListedTransaction, Listing, Place, listing
from rules.transactions.next_steps import next_step
from service.cli.tx.choosing import cluster_row
from service.cli.tx.observing import ObservedRounds
from service.cli.tx.tables import STYLES, coordinator, groups, producer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Facts, Line, Part
from service.terminal.words import ABSENT, ago, timestamp
from service.views.cluster import SnapshotGap
from service.views.model import Row
from service.views.transactions import transaction_rows

SEES_ALL: Final = {
    IdVisibility.NO_AUTHORIZER: "the brokers have no authorizer, so no transactional id is hidden",
    IdVisibility.ACLS: "the ACLs let us see every transactional id",
    IdVisibility.DECLARED: "it is declared that we see every transactional id (--sees-all-transactional-ids)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The transactions that hang, those that may, and the gaps."""

    listing: Listing
    hanging: tuple[ListedTransaction, ...]
    doubtful: tuple[ListedTransaction, ...]
    gaps: tuple[Gap, ...]
    ordinary: int  # transactions that a coordinator will end

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code: a hanging transaction outranks a gap."""
        if self.hanging:
            return ExitCode.HANGING
        return ExitCode.INCOMPLETE if self.doubtful or self.gaps else ExitCode.OK


def conclude(observed: ObservedRounds) -> Conclusion:
    """Return the conclusion that the rounds prove."""
    transactions = listing(observed.view)
    entries = transactions.transactions
    hanging = tuple(entry for entry in entries if entry.class_ is TransactionClass.HANGING)
    doubtful = tuple(entry for entry in entries if entry.unknown_reason is not None)
    return Conclusion(
        listing=transactions,
        hanging=hanging,
        doubtful=doubtful,
        gaps=observed.gaps(HOLDING_SCOPES),
        ordinary=len(entries) - len(hanging) - len(doubtful),
    )


def document(conclusion: Conclusion) -> Row:
    """Return the JSON document of `tx hanging`: keys may be added, never renamed."""
    return {
        **cluster_row(conclusion.listing.view),
        "complete": not conclusion.doubtful and not conclusion.gaps,
        "transactional_id_visibility": str(conclusion.listing.visibility),
        "hanging": transaction_rows(conclusion.listing, conclusion.hanging),
        "unknown": transaction_rows(conclusion.listing, conclusion.doubtful),
        "gaps": SnapshotGap.rows_of(conclusion.gaps),
    }


def render(conclusion: Conclusion, *, is_secured: bool) -> Iterator[Part]:
    """Yield the conclusion for a person; `is_secured`: the repair needs credentials too."""
    for entry in conclusion.hanging:
        yield Line(f"HANGING  {_where(entry)}", STYLES[TransactionClass.HANGING])
        yield Facts(list(_proof(conclusion.listing, entry)))
        if entry.repair is not None:
            suffix = " --command-config client.properties" if is_secured else ""
            yield Facts([("repair", f"{entry.repair}{suffix}")])
    for entry in conclusion.doubtful:
        yield Line(f"UNKNOWN  {_where(entry)}", STYLES[TransactionClass.UNKNOWN])
        yield Facts(list(_explain_unknown(conclusion.listing, entry)))
    if conclusion.gaps:
        yield Line("NOT SEEN", "bold yellow")
        yield from (Line(f"  {gap.what}: {gap.why}") for gap in conclusion.gaps)
    yield Line(_summarise(conclusion), "" if conclusion.exit_code is ExitCode.OK else "bold")


def _summarise(conclusion: Conclusion) -> str:
    seen = f"{counted(len(conclusion.listing.view.snapshot.partitions), 'partition')} seen"
    if conclusion.ordinary:
        seen += f", {counted(conclusion.ordinary, 'open transaction')} that will end"
    if conclusion.hanging:
        doubtful = f", {len(conclusion.doubtful)} more may" if conclusion.doubtful else ""
        count = len(conclusion.hanging)
        verdict = "1 transaction hangs" if count == 1 else f"{count:,} transactions hang"
        return f"{verdict}{doubtful} ({seen})."
    if conclusion.doubtful or conclusion.gaps:
        return f"It is unknown whether a transaction hangs: see above what is missing ({seen})."
    return f"Nothing hangs ({seen})."


def _where(entry: ListedTransaction) -> str:
    names = ", ".join(str(place.name) for place in entry.places) or "partitions not known"
    return f"{names}  {entry.transactional_id or 'transactional id not known'}"


def _proof(transactions: Listing, entry: ListedTransaction) -> Iterator[tuple[str, str]]:
    [place] = entry.places
    now = transactions.view.now
    since = timestamp(entry.first_seen_at)
    yield "producer", producer(entry)
    opened = f"broker {place.leader} has it open from offset {place.start_offset} on"
    yield "leader", f"{opened}, from {since} until now ({timestamp(now)})"
    yield "coordinator", _coordinators(transactions, entry)
    last = None if place.producer is None else place.producer.last_record_at
    if last is not None:
        yield "last record", f"{timestamp(last)}, {ago(now - last)} by its own timestamp"
    yield (
        "held back",
        f"{_span(place)} (LSO {place.last_stable_offset}, HWM {place.high_watermark})",
    )
    yield "blocks", groups(transactions.blocked_by(place))
    yield "next", next_step(entry.class_, entry.unknown_reason)


def _span(place: Place) -> str:
    return f"{ABSENT} offsets" if place.open_span is None else offsets(place.open_span)


def _coordinators(transactions: Listing, entry: ListedTransaction) -> str:
    if entry.coordinator is not None:
        return coordinator(entry)
    why = SEES_ALL[transactions.visibility]
    return f"all answered, none lists producer {entry.producer_id}; {why}"


def _explain_unknown(transactions: Listing, entry: ListedTransaction) -> Iterator[tuple[str, str]]:
    yield "producer", producer(entry)
    for place in entry.places:
        yield "held back", f"{_span(place)} of {place.name}"
        yield "blocks", groups(transactions.blocked_by(place))
    yield "next", next_step(entry.class_, entry.unknown_reason)
