"""What `tidemark tx ls` shows, and what a script learns from its end."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from rules.facts.gap import GapScope
from rules.facts.transactions import IdVisibility
from service.cli.tx import tables
from service.cli.tx.choosing import Choice, choose, document, exit_code, render
from service.cli.tx.observing import ObservedRounds
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import SHOWN
from tests.factories import (
    at,
    gap,
    open_producer,
    producers,
    snapshot,
    transaction,
    transactions,
)
from tests.schemas import validate
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.cli.tx.given import (
    HANGS,
    QUIET,
    RUNS,
    UNSEEN,
    text,
    twice,
)


@pytest.mark.parametrize(
    ("choice", "shown", "code"),
    [
        (Choice(), 1, ExitCode.OK),
        (Choice(classes=frozenset({"open", "overdue"})), 1, ExitCode.OK),
        (Choice(classes=frozenset({"hanging"})), 0, ExitCode.OK),
        (Choice(topic=re.compile("ord.*")), 1, ExitCode.OK),
        (Choice(topic=re.compile("ord")), 0, ExitCode.NOTHING_MATCHED),
        (Choice(topic=re.compile("__.*")), 0, ExitCode.OK),
        (Choice(group=re.compile("billing")), 1, ExitCode.OK),
        (Choice(group=re.compile("nobody")), 0, ExitCode.NOTHING_MATCHED),
    ],
)
def test_filters_choose_and_say_when_they_name_nothing(
    choice: Choice, shown: int, code: ExitCode
) -> None:
    observed = twice(**RUNS)
    found = choose(observed, choice)
    assert (len(found.entries), exit_code(observed.view, choice, found)) == (shown, code)


@pytest.mark.parametrize(
    ("choice", "scope"),
    [
        (Choice(topic=re.compile("nothing")), GapScope.PLACEMENT),
        (Choice(group=re.compile("nobody")), GapScope.GROUPS),
    ],
)
def test_what_was_not_seen_may_match(choice: Choice, scope: GapScope) -> None:
    observed = twice(**RUNS, gaps=(gap(scope=scope),))
    assert exit_code(observed.view, choice, choose(observed, choice)) is ExitCode.INCOMPLETE


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        (UNSEEN, ["coordinated by broker 2: 127.0.0.1"]),
        ({**UNSEEN, "gaps": ()}, ["not every coordinator is known to have answered"]),
        ({**RUNS, "transactions": transactions(visibility=IdVisibility.UNPROVEN)}, ["--sees-all"]),
    ],
)
def test_a_list_that_may_lack_something_is_incomplete_and_says_why(
    observation: dict[str, Any], told: list[str]
) -> None:
    observed = twice(**observation)
    found = choose(observed, Choice())
    assert exit_code(observed.view, Choice(), found) is ExitCode.INCOMPLETE
    assert all(
        any(piece in line for line in list(tables.not_seen(found.listing))) for piece in told
    )


def test_the_table_has_one_line_per_transaction() -> None:
    observed = twice(**RUNS)
    found = choose(observed, Choice())
    lines = text([
        tables.head(found.listing, found.entries),
        tables.transactions_table(found.listing, found.entries),
    ]).splitlines()  # fmt: skip
    assert lines[0].endswith("12:00:15 UTC  1 open  complete")
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        "open", "payments", "7/3", "2", "20 s / 1 min", "orders-0*", "billing",
    ]  # fmt: skip


def test_a_transaction_without_a_coordinator_shows_its_last_write_and_no_age() -> None:
    observed = twice(**{**HANGS, "transactions": transactions(resolved=frozenset({7}))})
    found = choose(observed, Choice())
    line = text([tables.transactions_table(found.listing, found.entries)]).splitlines()[1]
    assert re.split(r"\s{2,}", line.strip()) == [
        "hanging", "-", "7/3", "-", "written 20 s ago", "orders-0*", "billing",
    ]  # fmt: skip


LONG: Final = "payments-orders-service-eu-west-1-7f9c4d-0_12"


def undescribed(name: str = LONG) -> dict[str, Any]:
    """Return an observation with one transaction that was not described: its cells are the widest."""
    listed = transaction(
        name,
        producer_id=1234567,
        producer_epoch=None,
        partitions=None,
        timeout=None,
        started_at=None,
    )
    seen = producers(open_producer(producer_id=1234567, last_record_at=at(-185)), rows=4)
    return {**RUNS, "transactions": transactions(listed), "producers": seen}


@pytest.mark.parametrize("width", [20, 40, 60, 80, 99, 110])
def test_a_narrow_screen_has_blocks_with_every_column_and_whole_names(width: int) -> None:
    found = choose(twice(**undescribed()), Choice())
    table = tables.transactions_table(found.listing, found.entries)
    told = text([table], width=width).splitlines()
    assert told[0] == "unknown (not_described)"
    assert [line.split("  ")[1] for line in told[1:]] == [
        column.heading for column in table.columns
    ][1:]
    assert any(line.endswith(f" {LONG}") for line in told)


@pytest.mark.parametrize("width", [120, 160, 240])
def test_a_wide_screen_has_a_table_with_every_column(width: int) -> None:
    found = choose(twice(**undescribed()), Choice())
    table = tables.transactions_table(found.listing, found.entries)
    told = text([table], width=width)
    assert re.split(r"\s{2,}", told.splitlines()[0].strip()) == [
        column.heading for column in table.columns
    ]
    assert "1234567 " in told


@pytest.mark.parametrize("width", [60, 240])
def test_names_of_others_cannot_steer_the_terminal(width: int) -> None:
    found = choose(twice(**undescribed("evil\n\x1b[31mX\rY\0\u202e\x7f")), Choice())
    said = text(
        [*render(found), *tables.render_details(found.listing, found.entries[0])], width=width
    )
    shown = r"evil\n\u001b[31mX\rY\u0000\u202e\u007f"
    assert said.count(shown) == 2
    assert said.replace("\n", "").isprintable()


def test_what_is_confirming_says_which_command_decides() -> None:
    observation = {**HANGS, "taken_at": at(0)}
    found = choose(ObservedRounds(view=view_of([snapshot(**observation)])), Choice())
    [line] = found.unknown_reasons
    assert line.startswith("confirming: ")
    assert "`tidemark tx hanging`" in line
    assert line in text(render(found))


def test_a_table_ends_somewhere_and_says_how_many_more_there_are() -> None:
    names = [f"id-{number}" for number in range(SHOWN + 5)]
    many = transactions(*(transaction(name, producer_id=n) for n, name in enumerate(names)))
    found = choose(twice(**{**QUIET, "transactions": many}), Choice())
    assert "5 more (-o wide)" in text([
        tables.transactions_table(found.listing, found.entries)
    ])  # fmt: skip


def test_the_document_names_the_cluster_and_what_was_not_seen() -> None:
    observed = twice(**UNSEEN)
    shown = json.loads(json.dumps(document(observed.view, choose(observed, Choice()))))
    validate("tx ls", shown)
    assert (shown["cluster"], shown["taken_at"]) == ("default", "2025-06-02T12:00:15Z")
    assert (shown["complete"], shown["all_coordinators_answered"], shown["gap_count"]) == (
        False,
        False,
        1,
    )
    [row] = shown["transactions"]
    assert (row["class"], row["unknown_reason"]) == ("unknown", "coordinator_not_seen")
