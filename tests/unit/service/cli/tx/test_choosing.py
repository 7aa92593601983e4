"""What `tidemark tx ls` shows, and what a script learns from its end."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rules.facts.gap import GapScope
from rules.facts.transactions import Sight
from service.cli.exit_codes import ExitCode
from service.cli.snapshot_table import WIDE
from service.cli.tx import tables
from service.cli.tx.choosing import Choice, choose, document, exit_code
from tests.factories import (
    gap,
    transaction,
    transactions,
)
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
    looked = twice(**RUNS)
    found = choose(looked, choice)
    assert (len(found.entries), exit_code(looked.view, choice, found)) == (shown, code)


@pytest.mark.parametrize(
    ("choice", "scope"),
    [
        (Choice(topic=re.compile("nothing")), GapScope.PLACEMENT),
        (Choice(group=re.compile("nobody")), GapScope.GROUPS),
    ],
)
def test_what_was_not_seen_may_match(choice: Choice, scope: GapScope) -> None:
    looked = twice(**RUNS, gaps=(gap(scope=scope),))
    assert exit_code(looked.view, choice, choose(looked, choice)) is ExitCode.INCOMPLETE


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (UNSEEN, ["coordinated by broker 2: 127.0.0.1"]),
        ({**UNSEEN, "gaps": ()}, ["whether every coordinator was asked"]),
        ({**RUNS, "transactions": transactions(sight=Sight.UNPROVEN)}, ["--sees-all"]),
    ],
)
def test_a_list_that_may_lack_something_is_incomplete_and_says_why(
    look: dict[str, Any], told: list[str]
) -> None:
    looked = twice(**look)
    found = choose(looked, Choice())
    assert exit_code(looked.view, Choice(), found) is ExitCode.INCOMPLETE
    assert all(any(piece in line for line in found.missing) for piece in told)


def test_the_table_has_one_line_per_transaction() -> None:
    looked = twice(**RUNS)
    found = choose(looked, Choice())
    lines = text([
        tables.head(looked.view, found.entries, found.listing),
        tables.transactions_table(looked.view, found.entries),
    ]).splitlines()  # fmt: skip
    assert lines[0].endswith("12:00:15 UTC  1 open  complete")
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        "open", "payments", "7/3", "2", "20 s / 1 min", "orders-0*", "billing",
    ]  # fmt: skip


def test_a_transaction_without_a_coordinator_shows_its_last_write_and_no_age() -> None:
    looked = twice(**{**HANGS, "transactions": transactions(looked_up=frozenset({7}))})
    [entry] = choose(looked, Choice()).entries
    line = text([tables.transactions_table(looked.view, [entry])]).splitlines()[1]
    assert re.split(r"\s{2,}", line.strip()) == [
        "hanging", "-", "7/3", "-", "written 20 s ago", "orders-0*", "billing",
    ]  # fmt: skip


def test_on_a_narrow_screen_names_fold_and_numbers_do_not() -> None:
    looked = twice(**RUNS)
    table = tables.transactions_table(looked.view, choose(looked, Choice()).entries, width=WIDE - 1)
    assert [str(column.header) for column in table.columns if not column.no_wrap] == [
        "transactional id", "partitions", "holds up",
    ]  # fmt: skip
    assert "coordinator" not in text([table])


def test_a_table_ends_somewhere_and_says_how_many_more_there_are() -> None:
    names = [f"id-{number}" for number in range(tables.SHOWN + 5)]
    many = transactions(*(transaction(name, producer_id=n) for n, name in enumerate(names)))
    looked = twice(**{**QUIET, "transactions": many})
    assert "5 more (-o json)" in text([
        tables.transactions_table(looked.view, choose(looked, Choice()).entries)
    ])  # fmt: skip


def test_the_document_names_the_cluster_and_what_was_not_seen() -> None:
    looked = twice(**UNSEEN)
    told = json.loads(json.dumps(document(looked.view, choose(looked, Choice()))))
    assert (told["cluster"], told["taken_at"]) == ("default", "2025-06-02T12:00:15Z")
    assert (told["complete"], told["coordinators_heard"], told["gap_count"]) == (False, False, 1)
    [row] = told["transactions"]
    assert (row["class"], row["doubt"]) == ("unknown", "coordinator_not_seen")
