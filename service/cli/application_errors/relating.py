"""What applications logged about a producer that a command knows from the cluster, by a running Tidemark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rules.exceptions.problems import NamedProducer
from rules.exceptions.relating import KnownProducer, Match, ProblemNames, match
from rules.facts.application_log import Part
from rules.facts.identity import TopicPartition
from service.cli.application_errors.command import PATH
from service.cli.server.report import Api
from service.terminal.parts import Row
from service.terminal.words import timestamp_of

ORDER: Final = tuple(Match)
SHOWN: Final = (
    "error", "title", "records", "idempotent_producer", "transactional_producer", "application", "client_id", "count",
    "first_at", "last_at", "last_seen",
)  # fmt: skip


def fetch_related(api: Api, producers: Sequence[KnownProducer]) -> list[Row]:
    """Return the errors of producers, the surest first, then the latest.

    Raises:
        TidemarkError: they cannot be fetched; an older Tidemark has none.
    """
    rows = list(_related(api, producers))
    return sorted(rows, key=lambda row: ORDER.index(row["match"]))


def _related(api: Api, producers: Sequence[KnownProducer]) -> Iterator[Row]:
    for page in api.pages(PATH):
        for row in page["items"]:
            names = names_of(row)
            matches = [by for each in producers if names and (by := match(names, each))]
            if matches:
                by = min(matches, key=ORDER.index)
                fields = {name: row.get(name) for name in SHOWN}
                examples = row.get("examples") or [{}]
                yield {"id": row["id"], "match": by, **fields, "text": examples[-1].get("text", "")}


def names_of(row: Row) -> ProblemNames | None:
    """Return what an error says of its producer; None: it has no times, which no Tidemark sends."""
    begin, end = _time(row, "first_at", "first_seen"), _time(row, "last_at", "last_seen")
    if begin is None or end is None:
        return None
    part = str(row.get("part"))
    return ProblemNames(
        part=Part(part) if part in {*Part} else None,
        transactional_id=row.get("transactional_id"),
        producers=tuple(
            NamedProducer(
                producer_id=each["producer_id"], producer_epoch=each.get("producer_epoch")
            )
            for each in row.get("producers") or ()
        ),
        topic=row.get("topic"),
        places=frozenset(
            TopicPartition(each["topic"], each["partition"]) for each in row.get("partitions") or ()
        ),
        begin=begin,
        end=end,
    )


def _time(row: Row, *names: str) -> datetime | None:
    return timestamp_of(next((row[name] for name in names if row.get(name)), None))
