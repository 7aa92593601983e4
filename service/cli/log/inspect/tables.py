"""What files hold, for a person at 3 a.m.: first the offsets, then what is not as it should be, then the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from service.cli.log.inspect.coordinator_tables import coordinator_parts
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import ABSENT, text, time, utc
from service.views.log_files.words import MEBIBYTE, log_facts, log_name, log_title, noteworthy

STYLES: Final[Mapping[str, str]] = {"BREACH": "bold red", "UNKNOWN": "yellow"}
SHOWN_LINES: Final = 100  # of what is not as it should be in one log


def render(answer: Row) -> Iterator[Part]:
    """Yield one log in full, or several with a line each and what is not as it should be."""
    logs = answer["logs"]
    for checkpoint in answer["checkpoints"]:
        yield Line(checkpoint["path"], "bold")
        yield Table(columns=CHECKPOINT_COLUMNS, rows=checkpoint["offsets"])
    if len(logs) == 1:
        yield from _whole(logs[0])
    elif logs:
        yield Table(columns=LOG_COLUMNS, rows=logs, style=_style_of_log)
        for log in logs:
            lines = list(_noteworthy(log))
            yield from [Line(log_title(log), "bold"), *lines] if lines else lines
        yield Line("Everything about one of them: tidemark log inspect FOLDER")


def _whole(log: Row) -> Iterator[Part]:
    yield Line(log_title(log), "bold")
    yield Facts(log_facts(log, time))
    yield from _noteworthy(log)
    for heading, columns, rows in (
        ("OPEN TRANSACTIONS", OPEN_COLUMNS, log["open_transactions"]),
        ("ABORTED TRANSACTIONS", ABORTED_COLUMNS, log["aborted"]),
        ("PRODUCERS", PRODUCER_COLUMNS, log["producers"]),
        ("LEADER EPOCHS", EPOCH_COLUMNS, log["leader_epochs"]),
        ("SEGMENTS", SEGMENT_COLUMNS, log["segments"]),
    ):
        if rows:
            yield Line(heading, "bold")
            yield Table(columns=columns, rows=rows)
    yield from coordinator_parts(log)


def _noteworthy(log: Row) -> Iterator[Line]:
    lines = noteworthy(log)
    for verdict, words in islice(lines, SHOWN_LINES):
        yield Line([(f"  {verdict:<8} ", STYLES.get(verdict, "yellow")), words])
    left = sum(1 for _ in lines)
    if left:
        yield Line(f"  {left:,} more: -o json")


def _style_of_log(log: Row) -> str | None:
    verdicts = [verdict for verdict, _ in noteworthy(log)]
    return STYLES["BREACH"] if "BREACH" in verdicts else (STYLES["UNKNOWN"] if verdicts else None)


def _size(log: Row) -> str:
    return f"{sum(each['size'] for each in log['segments']) / MEBIBYTE:,.1f}"


def _count(log: Row) -> str:
    return str(sum(1 for _ in noteworthy(log)) or ABSENT)


LOG_COLUMNS: Final = (
    long("topic-partition", log_name),
    short("first", "first_offset"),
    short("end", "log_end_offset"),
    short("high watermark", "high_watermark"),
    short("MiB", _size),
    short("open", lambda log: str(len(log["open_transactions"]) or ABSENT)),
    short("producers", lambda log: str(len(log["producers"]))),
    short("not right", _count),
)
CHECKPOINT_COLUMNS: Final = (
    long("topic-partition", lambda row: f"{row['topic']}-{row['partition']}"),
    short("offset"),
)
OPEN_COLUMNS: Final = (
    short("producer", "producer_id"),
    short("epoch", "producer_epoch"),
    short("from offset", "first_offset"),
    short("to", "last_offset"),
    time_column("last batch", "last_timestamp"),
)
ABORTED_COLUMNS: Final = (
    short("producer", "producer_id"),
    short("epoch", "producer_epoch"),
    short("from offset", "first_offset"),
    short("marker", "marker_offset"),
    short("coordinator epoch", "coordinator_epoch"),
)
PRODUCER_COLUMNS: Final = (
    short("producer", "producer_id"),
    short("epoch", "producer_epoch"),
    short("last sequence", "last_sequence"),
    short("first offset", "first_offset"),
    short("last offset", "last_offset"),
    short("records"),
    time_column("last", "last_timestamp"),
    short("kind", lambda row: "transactional" if row["is_transactional"] else "idempotent"),
)
EPOCH_COLUMNS: Final = (
    short("epoch", "leader_epoch"),
    short("first offset", "first_offset"),
    short("last offset", "last_offset"),
    short("batches"),
    short("in checkpoint from", "checkpoint_start_offset"),
)
SEGMENT_COLUMNS: Final = (
    short("offsets", lambda row: f"{text(row['first_offset'])}-{text(row['last_offset'])}"),
    short("batches"),
    short("records"),
    short("times (UTC)", lambda row: f"{utc(row['min_timestamp'])} to {utc(row['max_timestamp'])}"),
    long("file", lambda row: str(row["path"]).rpartition("/")[2]),
)
