"""Query a running Tidemark for losses, and judge its answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from service.cli.server.report import Api, IdForm, Query, Report, build_report, fetch_named
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Row

LOSS_ID: Final = IdForm(
    whole=re.compile(r"[a-z][a-z0-9_]{0,99}-[0-9a-f]{16}"),
    beginning=re.compile(r"[a-z][a-z0-9_]{0,99}-[0-9a-f]{0,15}"),  # the rule at least
)
COMMITTED_LOST: Final = "committed_lost"
WORST_FIRST: Final = (
    COMMITTED_LOST,
    "possibly_lost",
    "committed_beyond_log_end",
    "unclean_election",
    "not_determinable",
    "unreplicated_lost",
)
# Never committed: no producer that waits for all in-sync replicas lost anything.
HARMLESS: Final = frozenset({"unreplicated_lost"})
UNKNOWN: Final = frozenset({"not_determinable"})  # whether anything is lost cannot be determined
RESTORED: Final = "restored"  # reason of a loss that has ended: a replica with the records leads
PROVEN: Final = "proven"  # reason of a finding that follows from committed_lost of its partition
# Records may be lost where these rules cannot judge.
JUDGING: Final = ("committed_records_lost", "records_possibly_lost", "committed_beyond_log_end")
ELECTION: Final = "unclean_election"
IN_FULL: Final = 20  # losses of one partition
OPEN: Final = "open"
LOSSES: Final = "losses"  # the name of a report of single losses


@dataclass(frozen=True, slots=True, kw_only=True)
class LossReport(Report):
    """Incidents with one loss for each of their partitions, or single losses."""

    @property
    def losses(self) -> tuple[Row, ...]:
        """Return the losses, of all incidents in a list."""
        if self.name == LOSSES:
            return self.rows
        return tuple(loss for incident in self.rows for loss in incident["partitions"])

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for a list."""
        if any(_is_bad(loss) for loss in self.losses):
            return ExitCode.LOST
        is_unknown = any(loss.get("class") in UNKNOWN for loss in self.losses)
        return ExitCode.INCOMPLETE if self.errors or is_unknown else ExitCode.OK


def list_losses(api: Api, query: Query) -> LossReport:
    """Return the incidents that match; the query is that of `/losses`."""
    pages = list(api.pages("losses", **query))
    incidents = [_incident(item) for page in pages for item in page["items"]]
    is_stored = query.get("state", OPEN) != OPEN
    return _build_report(api, "incidents", incidents, pages[-1], is_stored=is_stored)


def fetch_losses(api: Api, name: str) -> LossReport | None:
    """Return a loss by its id, or all losses of a partition, with the times at which they happened.

    For a partition these are the open losses, or the ended ones if none is open. None: the name is
    neither an id nor a partition.
    """
    report = fetch_named(
        name,
        LOSS_ID,
        lambda loss_id: _fetch_loss(api, loss_id),
        lambda query: list_losses(api, query),
        ids_of=lambda report: (str(loss["id"]) for loss in report.losses),
    )
    if report is None or report.name == LOSSES:
        return report
    worst = sorted(report.losses, key=_badness)
    detailed = (_detailed(api, loss) for loss in worst[:IN_FULL])
    return replace(report, name=LOSSES, rows=(*detailed, *worst[IN_FULL:]))


def _incident(item: Row) -> Row:
    """Return an item of a list as an incident; an older Tidemark lists single losses."""
    if "partitions" in item:
        return item
    summary = f"{item.get('class')} of {item.get('topic')}-{item.get('partition')}"
    fields = {name: item.get(name) for name in ("id", "severity", "since", "state")}
    return {**fields, "summary": summary, "partition_count": 1, "partitions": [item]}


def _detailed(api: Api, loss: Row) -> Row:
    detail = {"loss": loss, **(api.find(f"losses/{loss['id']}") or {})}
    return {**_merge_details(detail), "also": loss.get("also") or []}


def _fetch_loss(api: Api, loss_id: str) -> LossReport:
    detail = api.find(f"losses/{loss_id}")
    page = detail or api.get("losses", limit=1)  # an older Tidemark has no losses at all
    losses = [] if detail is None else [_merge_details(detail)]
    return _build_report(api, LOSSES, losses, page, is_stored=False)


def _merge_details(detail: Row) -> Row:
    """Return a loss with the fields that only its own document has."""
    return {**detail["loss"], "events": detail.get("events"), "error": detail.get("error")}


def _build_report(
    api: Api, name: str, rows: Iterable[Row], page: Row, *, is_stored: bool
) -> LossReport:
    def errors_of(page: Row, status: Row) -> Iterator[str]:
        return stored_error(page, status) if is_stored else iter(())

    return build_report(LossReport, api, name, rows, page, judging=JUDGING, errors_of=errors_of)


def stored_error(page: Row, status: Row) -> Iterator[str]:
    """Yield the reasons why the history may lack a loss."""
    storage = status["storage"]
    if not page["is_current"] and status["is_current"]:
        why = storage["error"] or f"storage is {storage['state']}"
        yield f"the history ends at {page['as_of'] or 'the start'}: {why}"
    if page.get("is_cut"):
        yield "more losses match than are shown, and the older ones are left out: use a filter"
    if storage["lost_transitions"]:
        yield f"{storage['lost_transitions']} changes were lost while the database was unavailable"


def _is_bad(loss: Row) -> bool:
    """Whether committed records are lost, or may be; a finding `proven` by another loss counts too.

    If the records of a loss are back, neither the election that lost them counts any more, nor a
    finding that it proved.
    """
    is_back = loss.get("reason") == RESTORED
    others = [
        other for other in loss.get("also") or () if not is_back or not _is_of_restored(other)
    ]
    is_known = loss.get("class") not in HARMLESS | UNKNOWN and not is_back
    return is_known or any(map(_is_bad, others))


def _is_of_restored(also: Row) -> bool:
    """Whether another finding says no more than the loss itself, whose records are back."""
    return also.get("class") == ELECTION or also.get("reason") == PROVEN


def _badness(loss: Row) -> tuple[int, str]:
    class_ = loss.get("class")
    place = WORST_FIRST.index(class_) if class_ in WORST_FIRST else -1
    return place, str(loss.get("group") or "")
