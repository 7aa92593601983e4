"""What a person reads of errors that applications logged, asked of the application itself."""

from __future__ import annotations

import re
from typing import Final

from rules.exceptions.known_producers import producer_of_transaction
from rules.transactions.listing import listing
from service.cli.application_errors import command
from service.cli.application_errors.relating import fetch_related
from service.cli.sequence import queries, tables
from tests.application_lines import broker_side, problem, retried
from tests.factories import at
from tests.schemas import validate
from tests.unit.service.api.application_errors.test_application_errors import PROBLEMS, client_of
from tests.unit.service.api.sequences.sequences import REORDERING, after
from tests.unit.service.api.transactions.test_transactions import seen
from tests.unit.service.cli.app_api import AppApi, judgements
from tests.unit.service.cli.printing import printed

NEAR: Final = at(10).strftime("%Y-%m-%d %H:%M:%S,000")


def cells(text: str, row: int = 1) -> list[str]:
    return re.split(r"  +", text.splitlines()[row].strip())


def test_an_error_is_one_line_with_whose_it_is_and_what_it_means() -> None:
    page = AppApi(client_of(*PROBLEMS)).get("application-errors")
    text = printed([command.RESOURCE.table(page["items"])])
    assert cells(text)[:8] == [
        "2025-06-02 12:00:00",
        "1",
        "PRODUCER_FENCED",
        "payments",
        "pay/☃",
        "-",
        "fatal",
        "neither",
    ]
    document = {"server": "http://x", "as_of": None, "is_current": True}
    validate("application-errors ls", {**document, "application_errors": page["items"]})


def test_in_full_it_has_what_to_do_its_examples_and_how_sure_everything_else_is() -> None:
    view = seen()
    api = AppApi(client_of(*PROBLEMS, snapshot=view.snapshot, view=view, at=view.now))
    document = api.get(f"application-errors/{PROBLEMS[0].id}")
    validate("application-errors show", document)
    text = printed(command.render_details(document))
    assert text.startswith("PRODUCER_FENCED  pay/☃  ")
    assert re.search(r"records +neither: ", text)
    assert re.search(r"do +\S", text)
    assert "Transiting to fatal error state" in text
    assert re.search(r"OPEN TRANSACTIONS\n.*\n.*pay/☃ +9 +same transactional id", text)
    may_be = printed(command.render_details(api.get(f"application-errors/{PROBLEMS[1].id}")))
    assert "may be of it: topic and time alone" in may_be


def test_an_event_of_sequences_shows_them_too() -> None:
    view = after(*REORDERING)
    (episode,) = view.memory.sequences.episodes
    assert episode.name is not None
    api = AppApi(
        client_of(
            problem(retried(episode.name.topic, episode.name.partition, at=NEAR)),
            problem(broker_side(episode.producer_id or 0, at=NEAR)),
            snapshot=view.snapshot,
            view=view,
            at=view.now,
            judgements=judgements(view),
        )
    )
    report = queries.fetch_sequences(api, episode.id)
    assert report is not None
    validate("sequence show", report.document)
    text = printed(tables.render_all_details(report.rows))
    lines = [
        line for line in text.splitlines() if "may be of it" in line or "same producer" in line
    ]
    assert len(lines) == 2
    assert "same producer id" in lines[0], "the surest first"
    assert re.search(
        r"OUT_OF_ORDER_SEQUENCE_NUMBER \(may be of it: topic and time alone\)", lines[1]
    )


def test_a_command_that_reads_the_cluster_finds_the_same_as_the_service() -> None:
    view = seen()
    api = AppApi(client_of(*PROBLEMS, snapshot=view.snapshot, view=view, at=view.now))
    by_service = {
        row["transactional_id"]: row["application_errors"]
        for row in api.get("transactions")["items"]
    }
    for entry in listing(view).transactions:
        rows = fetch_related(api, [producer_of_transaction(entry)])
        assert rows == by_service[entry.transactional_id]
