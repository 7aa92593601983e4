"""Query a running Tidemark for sequence events, and judge its answers: it has to read the brokers' logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from rules.facts.sequence_verdicts import SequenceClass
from service.cli.server.report import Api, IdForm, Query, Report, build_report, fetch_named
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Row

EPISODE_ID: Final = IdForm(
    whole=re.compile(r"[0-9a-f]{12}"), beginning=re.compile(r"[0-9a-f]{4,11}")
)
IN_FULL: Final = 50  # events, each fetched by itself
JUDGING: Final = ("sequence_gap_loss",)  # records may be lost where it cannot judge
NO_SOURCE: Final = (
    "rejected batches are not known: the service reads no broker's log, and no lines are sent to it "
    "(docs/broker-log.md)"
)
ONLY_COUNTED: Final = (
    "rejected batches are counted, and not known: the service reads brokers' metrics and no broker's "
    "log (docs/without-logs.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceReport(Report):
    """Events of producers whose batches were rejected."""

    @property
    def suspicions(self) -> tuple[Row, ...]:
        """Return the rejections that only a counter shows."""
        return tuple(self.more.get("suspicions", ()))

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for a list."""
        losses = [row for row in self.rows if row.get("class") == SequenceClass.LOSS]
        if any(not row.get("is_investigating") for row in losses):
            return ExitCode.LOST
        return ExitCode.INCOMPLETE if self.errors or losses else ExitCode.OK


def list_sequences(api: Api, query: Query) -> SequenceReport:
    """Return the events that match; the query is that of `/sequences`."""
    pages = list(api.pages("sequences", **query))
    return _build_report(api, [row for page in pages for row in page["items"]], pages[-1])


def fetch_sequences(api: Api, name: str) -> SequenceReport | None:
    """Return an event by its id, or those of a partition: the open ones, or all if none is open.

    None: the name is neither an id nor a partition.
    """

    def fetch(episode_id: str) -> SequenceReport:
        detail = api.find(f"sequences/{episode_id}")
        page = detail or api.get("sequences", limit=1)  # an older Tidemark has none at all
        return _build_report(api, [] if detail is None else [_merge_details(detail)], page)

    report = fetch_named(
        name,
        EPISODE_ID,
        fetch,
        lambda query: list_sequences(api, query),
        ids_of=lambda report: (str(row["id"]) for row in report.rows),
    )
    return None if report is None else _with_application_errors(api, report)


def _with_application_errors(api: Api, report: SequenceReport) -> SequenceReport:
    """Return a report with what applications logged about each event, which lists of the API do not have."""

    def add(row: Row) -> Row:
        detail = api.find(f"sequences/{row['id']}") or {}
        return {**row, "application_errors": detail.get("application_errors")}

    chosen, others = report.rows[:IN_FULL], report.rows[IN_FULL:]
    rows = (row if "application_errors" in row else add(row) for row in chosen)
    return replace(report, rows=(*rows, *others))


def add_lines(api: Api, report: SequenceReport, accepts: Callable[[Row], bool]) -> SequenceReport:
    """Return the accepted events, each with its distinct rejections; at most `IN_FULL`."""
    chosen = [row for row in report.rows if accepts(row)][:IN_FULL]
    details = (api.find(f"sequences/{row['id']}") for row in chosen)
    rows = tuple(_merge_details(detail) for detail in details if detail is not None)
    return replace(report, rows=rows)


def _merge_details(detail: Row) -> Row:
    """Return an event with the fields that only its own document has."""
    more = {name: detail.get(name) for name in ("lines", "changes", "application_errors")}
    return {**detail["sequence"], **more}


def _build_report(api: Api, rows: Iterable[Row], page: Row) -> SequenceReport:
    report = build_report(
        SequenceReport, api, "sequences", rows, page, judging=JUDGING, errors_of=_errors_of
    )
    return replace(report, more={"suspicions": list(page.get("suspicions") or ())})


def _errors_of(page: Row, status: Row) -> Iterator[str]:
    del status
    if not page.get("log_is_read"):
        yield ONLY_COUNTED if page.get("counters_are_read") else NO_SOURCE
    for suspicion in page.get("suspicions") or ():
        if suspicion.get("needed_evidence") is not None and suspicion.get("state") == "open":
            yield str(suspicion.get("explanation"))
