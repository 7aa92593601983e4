"""The page of all meanings, docs/exceptions.md: `make golden` writes it, and a test compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rules.exceptions.connecting import CONNECTING
from rules.exceptions.consuming import CONSUMING
from rules.exceptions.frameworks import FRAMEWORKS
from rules.exceptions.judging import TIMEOUTS
from rules.exceptions.meaning import Ability, Meaning, Table
from rules.exceptions.producing import PRODUCING
from rules.exceptions.replicas import REPLICAS
from rules.exceptions.sequences import SEQUENCES
from rules.exceptions.transaction_calls import CALLS
from rules.exceptions.transactions import TRANSACTIONS

HEAD: Final = """# Errors of Kafka's clients, and what they mean

Written by `make golden` from `rules/exceptions/`; [explain.md](explain.md) says how a text is read. *Plain* is what an idempotent producer without
transactions can do where the error reached the application, *transactional* what one with a transactional id can; where librdkafka differs, it is behind the
slash. What a client says of itself in a line counts more than this table.
"""
SECTIONS: Final[tuple[tuple[str, Table], ...]] = (
    ("Transactions and fencing", TRANSACTIONS),
    ("Calls without an answer", CALLS),
    ("Sequence numbers", SEQUENCES),
    ("Sending records", PRODUCING),
    ("Time limits", {"TIMEOUT": TIMEOUTS}),
    ("Reading, groups and commits", CONSUMING),
    ("Leaders, coordinators, connections, permissions", CONNECTING),
    ("Replicas", REPLICAS),
    ("Kafka Streams, Kafka Connect, Spring, Flink", FRAMEWORKS),
)


def exceptions_page() -> str:
    """Return the page."""
    return "\n".join(
        [HEAD, *(line for title, table in SECTIONS for line in _section(title, table))]
    )


def _section(title: str, table: Table) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| meaning | errors | records | plain | transactional |"
    yield "|---|---|---|---|---|"
    for meaning, errors in _meanings(table).items():
        plain, transactional = (_ability(meaning, place) for place in (0, 1))
        names = ", ".join(f"`{error}`" for error in errors)
        records = f"{meaning.records}: {meaning.condition}"
        title_of = f"`{meaning.id}`: {meaning.title}"
        yield f"| {title_of} | {names} | {records} | {plain} | {transactional} |"
    yield ""


def _meanings(table: Table) -> Mapping[Meaning, list[str]]:
    errors_of: dict[Meaning, list[str]] = {}
    for error, cases in table.items():
        for case in cases:
            names = errors_of.setdefault(case.meaning, [])
            names += [] if error in names else [error]
    return errors_of


def _ability(meaning: Meaning, place: int) -> str:
    java = _word(meaning.java[place])
    other = java if meaning.librdkafka is None else _word(meaning.librdkafka[place])
    return java if java == other else f"{java} / {other}"


def _word(ability: Ability | None) -> str:
    return "-" if ability is None else str(ability)
