"""Explained incidents and transactions in words: labels and values for a person at 3 a.m."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from collectors.naming import counted
from service.views.explained import Row

Pairs = list[tuple[str, str | None]]
Time = Callable[[Any], str | None]  # prints a time of a row, None if there is none

RECORDS: Final = {
    "neither": ("neither lost nor duplicated", "green"),
    "duplicated": ("MAY BE DUPLICATED", "bold yellow"),
    "lost": ("MAY BE LOST", "bold red"),
    "unknown": ("NOT KNOWN", "bold yellow"),
}
ABLE: Final = {
    "retriable": "goes on: the client, or the same call, tries again",
    "fails": "goes on: these records or this call failed for good",
    "abort": "abort the transaction, then go on",
    "fatal": "finished: close it and start a new one",
}
IN_ORDER: Final = {
    "cause": "",
    "consequence": "  (a consequence)",
    "harmless": "  (harmless by itself)",
}

ENDED_BY: Final = {
    "client": " by its client",
    "timeout": " by the coordinator, at its timeout",
    "next_instance": " by the coordinator, for a new instance",
    "not_shown": "",
}
SHOWN_TRANSACTIONS: Final = 10  # the last ones, in a text for people; JSON has all that were kept
SHOWN_STATES: Final = 6


def begin_sentence(title: str) -> str:
    """Return a title with a capital letter, but a setting as Kafka writes it."""
    return title if "." in title.split(maxsplit=1)[0] else f"{title[0].upper()}{title[1:]}"


def incident_words(row: Row, time: Time) -> Pairs:
    """Return what an incident is, what it means for records and for the producer, and what to do."""
    place = None if row["topic"] is None else row["topic"]
    if place is not None and row["partition"] is not None:
        place = f"{place}-{row['partition']}"
    missing = (
        None
        if row["is_cause_known"]
        else "only consequences are in the text: find what came before"
    )
    return [
        ("what", f"{begin_sentence(row['title'])}. {row['explanation']}"),
        ("cause", missing),
        ("records", f"{RECORDS[row['records']][0]}. {row['condition']}"),
        ("idempotent", ABLE.get(row["idempotent_producer"])),
        (
            "transaction",
            None if row["is_transactional"] is False else ABLE.get(row["transactional_producer"]),
        ),
        ("whose", _whose(row)),
        ("partition", place),
        ("do", row["action"]),
        ("check", row["check"]),
        *(
            ("framework", each)
            for each in {p["framework"] for p in row["problems"] if p["framework"]}
        ),
        *(("next", command) for command in row["next_commands"]),
        *(("in order", _problem(problem, time)) for problem in row["problems"]),
    ]


def _whose(row: Row) -> str | None:
    names = ("application", "client_id", "handle", "transactional_id", "group")
    named = [f"{name.replace('_', ' ')} {row[name]}" for name in names if row[name] is not None]
    return ", ".join(named) or None


def _problem(row: Row, time: Time) -> str:
    at = time(row["first_at"])
    when = "" if at is None else f"{at}  "
    return f"{when}{times(row)}{row['error']}, {row['outcome']}, line {row['line']}{IN_ORDER[row['role']]}"


def times(row: Row) -> str:
    """Return how often it was, nothing for once."""
    return "" if row["count"] == 1 else f"{row['count']} times "


def transactions_words(row: Row, time: Time) -> Pairs:
    """Return what the states of a transactional id mean, its transactions, and the last states."""
    transactions, states = row["timeline"], row["states"]
    left_out = len(transactions) - SHOWN_TRANSACTIONS
    return [
        ("what", row["title"]),
        ("records", f"{RECORDS[row['records']][0]}. {row['condition']}"),
        ("do", row["action"]),
        *(("remark", remark) for remark in row["remarks"]),
        *(("next", command) for command in row["next_commands"]),
        (
            "timeline",
            f"{counted(left_out, 'earlier transaction')} left out" if left_out > 0 else None,
        ),
        *(("timeline", _transaction(each, time)) for each in transactions[-SHOWN_TRANSACTIONS:]),
        *(("state", _state(state, time)) for state in states[-SHOWN_STATES:]),
    ]


def _transaction(row: Row, time: Time) -> str:
    begin = time(row["started_at"]) or "begin not shown"
    whose = f"producer {row['producer_id']} epoch {row['producer_epoch']}"
    return f"{begin}  {_end(row)}, {whose}{_partitions(row)}"


def _end(row: Row) -> str:
    if row["outcome"] is None:
        limit = row["timeout_ms"]
        return "open" if limit is None else f"open, timeout {_duration(limit)}"
    after = "" if row["open_ms"] is None else f" after {_duration(row['open_ms'])}"
    markers = row["completing_ms"]
    done = "" if markers is None else f", markers in {_duration(markers)}"
    by = ENDED_BY[row["ended_by"]] if row["outcome"] == "aborted" else ""
    return f"{row['outcome']}{by}{after}{done}"


def _duration(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"


def _state(state: Row, time: Time) -> str:
    return (
        f"{time(state['at']) or '-'}  {state['state'] or 'forgotten'}, producer {state['producer_id']} epoch "
        f"{state['producer_epoch']}{_partitions(state)}"
    )


def _partitions(state: Row) -> str:
    names = state["partitions"]
    more = f" and {counted(len(names) - 3, 'more partition')}" if len(names) > 3 else ""
    return f", {', '.join(names[:3])}{more}" if names else ""
