"""What was lost in the time of an incident, by the list of losses and by findings about sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from service.cli.incident.report import LostRange, Outcome, Proof, RangeKind, UnknownLoss
from service.cli.incident.window import Window, began_at
from service.cli.loss.queries import COMMITTED_LOST, HARMLESS, RESTORED, LossReport, list_losses
from service.cli.sequence.queries import JUDGING
from service.cli.server.listing import severity_rank
from service.cli.server.report import Api, blind_spots
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Row
from service.terminal.words import text, timestamp_of

KINDS: Final = ("certain", "exact", "possible", "uncommitted")
OF_SEQUENCES: Final = {  # what the reasons of a finding say; "refuted" says that nothing is lost
    "lost": Outcome.LOST,
    "possibly_lost": Outcome.MAY_BE_LOST,
}
WORST_FIRST: Final = tuple(Outcome)


def losses_of(api: Api, window: Window) -> LossReport:
    """Return the losses that happened in a time, or may have: between two observations of a partition."""
    since = {"since": window.begin.isoformat()}
    stored = list_losses(api, {"state": "all", **since})
    losses = _merged(
        list_losses(api, {"state": "open", **since}), stored
    )  # the newest is not stored yet
    return _only(losses, lambda loss: _is_of(loss, window))


def _merged(current: LossReport, stored: LossReport) -> LossReport:
    """Return the incidents of both reports, each loss once: as it is in memory, if it is there."""
    ids = {loss["id"] for loss in current.losses}
    rest = [
        {**row, "partitions": [loss for loss in row["partitions"] if loss["id"] not in ids]}
        for row in stored.rows
    ]
    errors = tuple(dict.fromkeys((*current.errors, *stored.errors)))
    return replace(current, rows=(*current.rows, *rest), errors=errors)


def _is_of(loss: Row, window: Window) -> bool:
    return window.overlaps(began_at(loss), timestamp_of(loss["last_happened_at"]))


def leader_change(place: str, event: Row) -> str:
    """Return from which broker to which the leader of a partition changed."""
    after = f"{text(event.get('leader'))} (epoch {text(event.get('leader_epoch'))})"
    if event.get("leader_before") is None:
        return f"leader of {place} changed to broker {after}; who led before was not seen"
    before = f"{event['leader_before']} (epoch {text(event.get('leader_epoch_before'))})"
    at = timestamp_of(event.get("last_observation"))
    seen = "" if at is None else f"; last seen under the former one at {at:%H:%M:%S.%f}"[:-3]
    election = str(event.get("election") or "not_known").replace("_", " ")
    return f"leader of {place} changed: broker {before} to {after}, election {election}{seen}"


def sequence_blind_spots(status: Row) -> Iterator[str]:
    """Yield where the rule on losses by sequences cannot judge; without a broker's log it says nothing."""
    lines = blind_spots(status, (), JUDGING)
    return (f"now: {line}" for line in lines if line.startswith("rule "))


def lost_fields(
    losses: LossReport | None,
    proofs: Sequence[Proof],
    is_related: Callable[[Row], bool],
    *,
    is_blind: bool,
) -> dict[str, Any]:
    """Return what a report says of lost records, of those that are related to its alert and of others.

    `losses` is None if they could not be read; `is_blind`: not everything was seen that would show them.
    """
    related = None if losses is None else _only(losses, is_related)
    others = None if losses is None else _only(losses, lambda loss: not is_related(loss))
    outcome = _outcome(related, [one for one in proofs if one.is_related], is_blind=is_blind)
    other = _outcome(others, [one for one in proofs if not one.is_related], is_blind=is_blind)
    every = () if losses is None else losses.losses
    return {
        "outcome": outcome,
        "other_outcome": other if other in OF_SEQUENCES.values() else None,
        "lost_offsets": None if related is None else _certain(related.losses, outcome),
        "loss_summaries": [] if related is None else _summaries(related.rows),
        "lost_ranges": [row for loss in every for row in _ranges(loss, is_related(loss))],
        "unknown_losses": [row for loss in every for row in _unknown(loss, is_related(loss))],
    }


def _only(losses: LossReport, fits: Callable[[Row], bool]) -> LossReport:
    """Return the losses that fit, in their incidents."""
    rows = [{**row, "partitions": list(filter(fits, row["partitions"]))} for row in losses.rows]
    return replace(losses, rows=tuple(row for row in rows if row["partitions"]))


def _outcome(losses: LossReport | None, proofs: Iterable[Proof], *, is_blind: bool) -> Outcome:
    by_sequences = [
        OF_SEQUENCES[proof.reason]
        for proof in proofs
        if proof.rule in JUDGING and proof.reason in OF_SEQUENCES
    ]
    return min((_by_losses(losses, is_blind=is_blind), *by_sequences), key=WORST_FIRST.index)


def _by_losses(losses: LossReport | None, *, is_blind: bool) -> Outcome:
    if losses is None:
        return Outcome.UNKNOWN
    rows = losses.losses
    if any(row.get("class") == COMMITTED_LOST and row.get("reason") != RESTORED for row in rows):
        return Outcome.LOST
    if losses.exit_code == ExitCode.LOST:
        return Outcome.MAY_BE_LOST
    is_known = losses.exit_code == ExitCode.OK and not is_blind
    return Outcome.NONE_FOUND if is_known else Outcome.UNKNOWN


def _certain(losses: Sequence[Row], outcome: Outcome) -> int | None:
    """Return how many committed offsets are gone for certain; None: not a number that is known."""
    lost = (row for row in losses if row.get("reason") != RESTORED)
    count = sum(row.get("certain_offsets") or 0 for row in lost)
    return count if count or outcome is Outcome.NONE_FOUND else None


def _summaries(incidents: Iterable[Row]) -> list[str]:
    """Return the sentence of each incident, the worst first; an older Tidemark has none."""
    rows = sorted(incidents, key=lambda row: severity_rank(row.get("severity")))
    return [row["summary"] for row in rows if row.get("summary")]


def _ranges(loss: Row, is_related: bool) -> Iterator[LostRange]:  # noqa: FBT001
    """Yield the ranges of offsets that are gone, or may be."""
    for kind in KINDS:
        begin, end = loss.get(f"{kind}_from"), loss.get(f"{kind}_to")
        if begin is not None and end is not None and loss.get("reason") != RESTORED:
            yield LostRange(
                loss=loss["id"],
                topic=loss.get("topic"),
                partition=loss.get("partition"),
                kind=RangeKind(kind),
                begin=begin,
                end=end,
                offsets=end - begin,
                is_related=is_related,
            )


def _unknown(loss: Row, is_related: bool) -> Iterator[UnknownLoss]:  # noqa: FBT001
    """Yield a loss of which the end is not known, or no range at all."""
    has_extent = loss.get("unknown_since") is None and loss.get("at_least_offsets") is None
    if not has_extent and loss.get("class") not in HARMLESS and loss.get("reason") != RESTORED:
        yield UnknownLoss(
            loss=loss["id"],
            topic=loss.get("topic"),
            partition=loss.get("partition"),
            reason=loss["reason"],
            unknown_since=loss.get("unknown_since"),
            at_least_offsets=loss.get("at_least_offsets"),
            is_related=is_related,
        )
