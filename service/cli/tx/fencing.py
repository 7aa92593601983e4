"""The fencing episodes of one transactional id: a running Tidemark remembers them, the cluster does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rules.errors import CollectError, RequestError
from rules.facts.fencing import FencingClass
from rules.sequence.words import format_count
from service.cli.server.server_options import client_of
from service.terminal.parts import Facts, Line, Part, Row
from service.terminal.words import text, time

PATH: Final = "transactions/fencing"
STYLES: Final = {
    FencingClass.ZOMBIE: "bold red",
    FencingClass.INSTANCES_FIGHTING: "bold red",
    FencingClass.COORDINATOR_TIMEOUT: "yellow",
    FencingClass.UNDETERMINED: "bold yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingAnswer:
    """What a running Tidemark answered; rows are None where none was queried, or none answered."""

    rows: Sequence[Row] | None = None
    error: str | None = None


def fetch_fencing(options: Mapping[str, Any], transactional_id: str) -> FencingAnswer:
    """Query the Tidemark that the options name, if they name one."""
    if options["server"] is None:
        return FencingAnswer()
    try:
        with client_of(options) as client:
            pages = client.pages(PATH, transactional_id=transactional_id)
            rows = [row for page in pages for row in page["items"]]
    except (CollectError, RequestError) as exc:
        return FencingAnswer(error=f"who fenced its producers is not known: {exc}")
    # An asterisk in the id matches any text there.
    own = [row for row in rows if row["transactional_id"] == transactional_id]
    return FencingAnswer(rows=own)


def render_fencing(rows: Sequence[Row]) -> Iterator[Part]:
    """Yield the episodes for a person, the newest first."""
    for row in rows:
        yield Line(f"fenced: {row['class']} ({row['reason']})", STYLES.get(row["class"], "bold"))
        yield Facts([
            ("what", row["explanation"]),
            ("seen", _seen(row)),
            ("newest epoch", _text(row["newest_epoch"])),
            ("newer instance", row["newer_instance"]),
            ("older instance", row["older_instance"]),
            ("aborted", _aborted(row)),
            ("rejected", _rejected(row)),
            ("not lost", row["not_lost"]),
            ("next", row["advice"]),
            ("would settle it", row["needed_evidence"]),
        ])  # fmt: skip


def _seen(row: Row) -> str:
    first, last = text(time(row["first_seen"])), text(time(row["last_seen"]))
    return first if first == last else f"{first} to {last}"


def _aborted(row: Row) -> str | None:
    if not row["cut_transactions"]:
        return None
    times = [each["aborted_at"] for each in row["cuts"]]
    times += [each["at"] for each in row.get("takeovers") or () if each.get("cut_transaction")]
    last = f", the last {time(max(times))}" if times else ""
    counted = format_count(row["cut_transactions"], "transaction")
    return f"{counted}{last}. {row['read_committed']}"


def _rejected(row: Row) -> str | None:
    if not row["rejected"]:
        return None
    kinds = dict.fromkeys(f"{each['request']} {each['error']}" for each in row["rejected"])
    return f"{format_count(row['rejected_requests'], 'request')} ({', '.join(kinds)})"


def _text(value: object) -> str | None:
    return None if value is None else str(value)
