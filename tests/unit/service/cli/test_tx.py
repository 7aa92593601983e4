"""`tidemark tx` on prepared rounds: what is chosen, proven, told and answered to a script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import pytest
from rich.console import RenderableType

from collectors.producers import HELD_SECONDS
from collectors.wire.failure import Failure
from rules.errors import UnreachableError
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.snapshot import Snapshot
from rules.facts.transactions import NO_TIMEOUT, Sight, Transaction, TransactionState
from rules.question import ProducersQuestion
from service.cli.exit_codes import ExitCode
from service.cli.snapshot_table import console
from service.cli.tx import proof, showing, tables
from service.cli.tx.choosing import Choice, choose, document, exit_code
from service.cli.tx.command import LEAST_INTERVAL
from service.cli.tx.looking import (
    AT_MOST,
    AT_ONCE,
    Looked,
    Looker,
    look_at_once,
    look_for_hanging,
)
from service.cli.tx.words import duration, few, timeout
from service.rounds import Scope
from tests.factories import (
    at,
    commits,
    gap,
    group,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
    transactions,
)
from tests.unit.rules.catalogue.judging import view_of

QUIET: Final[dict[str, Any]] = {"partitions": partitions({"orders": 3, "__transaction_state": 1})}
HELD: Final[dict[str, Any]] = {
    **QUIET,
    "offsets": offsets(4, last_stable_offset=[90, 100, 100, 100]),
    "groups": (group("billing"), group("audit")),
    "commits": commits((0, 0, 90), (1, 0, 60)),
}
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=frozenset[TopicPartition]())
RUNS: Final[dict[str, Any]] = {
    **HELD,
    "transactions": transactions(transaction()),
    "producers": producers(open_producer(), rows=4),
}
HANGS: Final[dict[str, Any]] = {
    **RUNS,
    "transactions": transactions(EMPTY, looked_up=frozenset({7})),
}
UNSEEN: Final[dict[str, Any]] = {
    **RUNS,
    "transactions": transactions(is_complete=False),
    "gaps": (gap(what="transactions coordinated by broker 2", scope=GapScope.TRANSACTIONS),),
}


SILENT: Final[dict[str, Any]] = {**QUIET, "gaps": (gap(scope=GapScope.OFFSETS),)}


class Rounds:
    """A cluster that shows prepared looks, the last one for ever, and notes what it was asked."""

    def __init__(self, *looks: dict[str, Any], says: Transaction | Failure | None = None) -> None:
        self.looks = looks
        self.says = says
        self.asked: list[tuple[Any, ...]] = []

    def read(self, scope: Scope) -> Snapshot:
        number = len(self.asked)
        self.asked.append(scope.questions)
        look = self.looks[min(number, len(self.looks) - 1)]
        return snapshot(**{"taken_at": at(number * 2), **look})

    def describe(self, transactional_id: str) -> Transaction | Failure | None:
        assert transactional_id
        return self.says


def twice(**look: Any) -> Looked:
    rounds = [snapshot(**{**look, "taken_at": at(n * 15)}) for n in range(2)]
    return Looked(view=view_of(rounds))


def text(parts: Iterable[RenderableType]) -> str:
    screen = console()
    with screen.capture() as said:
        tables.print_all(screen, iter(parts))
    return said.get()


# ------------------------------------------------------------------ which rounds are made
def test_a_quiet_cluster_is_asked_once() -> None:
    source = Rounds(QUIET)
    look_at_once(Looker(source))
    assert source.asked == [()]


def test_whoever_holds_an_offset_is_asked_for_in_the_second_round() -> None:
    source = Rounds(HELD, RUNS)
    look_at_once(Looker(source))
    [first, [question]] = source.asked
    assert first == ()
    assert isinstance(question, ProducersQuestion)
    assert question.rows.tolist() == [0]


def test_what_nobody_lists_is_confirmed_by_a_third_round() -> None:
    source = Rounds(HELD, HANGS)
    looked = look_at_once(Looker(source))
    assert len(source.asked) == 3
    assert [str(one.class_) for one in choose(looked, Choice()).entries] == ["hanging"]


def test_a_list_is_made_even_if_nothing_is_ever_certain() -> None:
    never: dict[str, Any] = {**HANGS, "transactions": transactions()}  # its id is not looked up
    source = Rounds(never)
    look_at_once(Looker(source))
    assert len(source.asked) == AT_ONCE


@pytest.mark.parametrize(
    ("looks", "rounds"),
    [
        ([QUIET], 2),
        ([HELD, RUNS], 2),
        ([HELD, HANGS], 3),
        ([HELD, UNSEEN, UNSEEN, RUNS], 4),
        ([HELD, UNSEEN], AT_MOST),
        ([QUIET, SILENT, SILENT, QUIET], 4),
        ([QUIET, {**QUIET, "gaps": (gap(scope=GapScope.GROUPS),)}], 2),
    ],
)
def test_hanging_makes_the_rounds_that_it_needs(looks: list[dict[str, Any]], rounds: int) -> None:
    begun: list[tuple[int, int]] = []
    source = Rounds(*looks)
    look_for_hanging(Looker(source), begin=lambda number, total: begun.append((number, total)))
    assert [questions for questions in source.asked if questions] == []
    assert begun == [(number, max(number, 3)) for number in range(1, rounds + 1)]


NOT_ASKED: Final[dict[str, Any]] = {**HELD, "producers": producers(rows=4)}
UNSEEN_BEFORE: Final[dict[str, Any]] = {
    **QUIET,
    "offsets": offsets(4, last_stable_offset=[None] * 4),
}


@pytest.mark.parametrize(
    ("first", "rounds"),
    [
        (UNSEEN_BEFORE, 4),  # it may have been held all the time
        ({**QUIET, "partitions": partitions({"__transaction_state": 1}), "offsets": offsets(1)}, 4),
        (QUIET, 2),  # nothing was open then: it has just begun
        ({**HELD, "offsets": offsets(4, last_stable_offset=[85, 100, 100, 100])}, 2),  # it moves
    ],
)
def test_whoever_holds_what_was_not_seen_before_is_asked_for(
    first: dict[str, Any], rounds: int
) -> None:
    source = Rounds(first, NOT_ASKED, HANGS)
    looked = look_for_hanging(Looker(source), begin=lambda _number, _total: None)
    assert len(source.asked) == rounds
    if rounds > 2:
        [question] = source.asked[2]
        assert question.rows.tolist() == [0]
        assert proof.conclude(looked).exit_code is ExitCode.HANGING


def test_what_is_never_told_is_a_gap_and_not_nothing() -> None:
    looked = look_for_hanging(Looker(Rounds(HELD, NOT_ASKED)), begin=lambda _number, _total: None)
    found = proof.conclude(looked)
    assert found.exit_code is ExitCode.INCOMPLETE
    assert [gap.what for gap in found.gaps] == ["open transactions of 1 partition (orders-0)"]
    at_once = choose(look_at_once(Looker(Rounds(NOT_ASKED))), Choice())
    assert exit_code(looked.view, Choice(), at_once) is ExitCode.INCOMPLETE


def test_what_a_leader_refuses_to_tell_is_not_asked_for_again() -> None:
    refused = gap(scope=GapScope.PRODUCERS, cause=GapCause.NOT_AUTHORIZED)
    source = Rounds(HELD, {**NOT_ASKED, "gaps": (refused,)})
    looked = look_for_hanging(Looker(source), begin=lambda _number, _total: None)
    assert (len(source.asked), looked.overlooked) == (2, ())
    assert proof.conclude(looked).exit_code is ExitCode.INCOMPLETE


def test_two_rounds_are_far_enough_apart_to_see_what_is_held() -> None:
    assert LEAST_INTERVAL > HELD_SECONDS


def test_a_cluster_that_is_away_ends_it() -> None:
    class Away(Rounds):
        def read(self, scope: Scope) -> Snapshot:
            del scope
            raise UnreachableError("refused")

    with pytest.raises(UnreachableError):
        look_at_once(Looker(Away()))


def test_another_cluster_id_begins_anew() -> None:
    source = Rounds(HELD, {**HANGS, "cluster_id": "other"}, {**HANGS, "cluster_id": "other"})
    looker = Looker(source)
    assert [looker.look().before is None for _ in range(3)] == [True, True, False]


# ------------------------------------------------------------------ ls
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
        "hanging", "-", "7/3", "-", "last write 20 s ago / -", "orders-0*", "billing",
    ]  # fmt: skip


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


# ------------------------------------------------------------------ hanging
def test_what_hangs_is_told_with_proof_and_repair() -> None:
    looked = twice(**HANGS)
    found = proof.conclude(looked)
    said = text(proof.told(looked.view, found, is_secured=False))
    assert found.exit_code is ExitCode.HANGING
    for piece in (
        "HANGING  orders-0  payments",
        "broker 1 has it open from offset 90 on, from 2025-06-02 12:00:00 UTC",
        "broker 2 says Empty, and does not list this partition",
        "10 offsets (LSO 90, HWM 100)",
        "billing (waits), audit (30 offsets before it)",
        "abort --topic orders --partition 0 --start-offset 90\n",
        "1 transaction hangs (4 partitions seen).",
    ):
        assert piece in said


def test_a_producer_that_nobody_lists_hangs_because_no_id_is_hidden() -> None:
    known = transactions(looked_up=frozenset({7}), sight=Sight.ACLS)
    looked = twice(**{**HANGS, "transactions": known})
    said = text(proof.told(looked.view, proof.conclude(looked), is_secured=True))
    assert "none lists producer 7; the ACLs let us see every transactional id" in said
    assert "--start-offset 90 --command-config client.properties" in said


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (UNSEEN, "look again when that broker is back"),
        (
            {**HANGS, "transactions": transactions(sight=Sight.UNPROVEN)},
            "grant us DESCRIBE on every TransactionalId",
        ),
        (
            {**QUIET, "gaps": (gap(what="open transactions of orders-0", scope=GapScope.PRODUCERS),)},
            "open transactions of orders-0: 127.0.0.1:9091: no answer",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_never_said_to_be_well(look: dict[str, Any], told: str) -> None:
    looked = twice(**look)
    found = proof.conclude(looked)
    said = text(proof.told(looked.view, found, is_secured=False))
    assert found.exit_code is ExitCode.INCOMPLETE
    assert told in said
    assert "It cannot be told whether anything hangs" in said
    assert "abort --topic" not in said
    assert proof.document(looked.view, found)["complete"] is False


@pytest.mark.parametrize("look", [QUIET, RUNS])
def test_nothing_hangs_only_where_all_was_seen(look: dict[str, Any]) -> None:
    looked = twice(**look)
    found = proof.conclude(looked)
    assert found.exit_code is ExitCode.OK
    assert text(proof.told(looked.view, found, is_secured=False)).startswith(
        "Nothing hangs (4 partitions"
    )


def test_what_hangs_counts_more_than_what_was_not_seen() -> None:
    looked = twice(**HANGS, gaps=(gap(scope=GapScope.PRODUCERS),))
    found = proof.conclude(looked)
    assert found.exit_code is ExitCode.HANGING
    [row] = proof.document(looked.view, found)["hanging"]
    assert row["repair"].endswith("--start-offset 90")


# ------------------------------------------------------------------ show
def shown(source: Rounds, name: str = "payments") -> showing.Shown:
    return showing.look_up(source, name)


def test_an_open_transaction_is_shown_by_partition_with_what_happens_next() -> None:
    found = shown(Rounds(RUNS, says=transaction()))
    said = text(showing.told(found))
    assert showing.exit_code(found) is ExitCode.OK
    assert "broker 2 says Ongoing" in said
    assert re.search(r"orders-0 +1 +90 +90 +100 +10 +yes +billing \(waits\), audit", said)
    assert "its coordinator aborts it when its timeout is over" in said


@pytest.mark.parametrize("state", list(tables.ENDED))
def test_one_that_is_not_open_is_shown_too(state: TransactionState) -> None:
    ended = transaction(state=state, partitions=frozenset[TopicPartition]())
    found = shown(Rounds(QUIET, says=ended))
    said = text(showing.told(found))
    assert showing.exit_code(found) is ExitCode.OK
    assert said.startswith(f"{state}  payments")
    assert tables.ENDED[state] in said
    assert "running" not in said


def test_one_that_ended_while_we_looked_is_not_shown_as_open() -> None:
    ended = transaction(state=TransactionState.COMPLETE_COMMIT)
    assert shown(Rounds(RUNS, says=ended)).entries == ()


def test_one_that_began_while_we_looked_is_looked_at_again() -> None:
    found = shown(Rounds(QUIET, RUNS, says=transaction()))
    assert [entry.transactional_id for entry in found.entries] == ["payments"]


def test_an_id_that_nobody_knows_is_named_with_those_like_it() -> None:
    found = shown(Rounds(RUNS, says=None), "paymnts")
    assert showing.exit_code(found) is ExitCode.NOTHING_MATCHED
    [line] = showing.trouble(found)
    assert line == (
        "no coordinator knows transactional id 'paymnts'; open ones with a name like it: payments"
    )


def test_an_id_that_could_not_be_asked_for_is_not_said_to_be_absent() -> None:
    refused = Failure(GapCause.NOT_AUTHORIZED, "needs DESCRIBE on TransactionalId")
    found = shown(Rounds(QUIET, says=refused))
    assert showing.exit_code(found) is ExitCode.INCOMPLETE
    assert showing.document(found)["trouble"] == [
        "transactional id 'payments': needs DESCRIBE on TransactionalId"
    ]


def test_what_hangs_is_shown_under_its_idle_id() -> None:
    found = shown(Rounds(HELD, HANGS, says=EMPTY))
    said = text(showing.told(found))
    assert said.startswith("hanging  payments")
    assert "Nothing is open" not in said
    assert showing.document(found)["described"]["state"] == "Empty"


# ------------------------------------------------------------------ words
@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ms"), (-3, "0 ms"), (0.25, "250 ms"), (1, "1 s"), (59.9, "59 s"), (60, "1 min"),
        (61, "1 min 1 s"), (3600, "1 h"), (3601, "1 h"), (3_660, "1 h 1 min"), (90_000, "1 d 1 h"),
        (86_400, "1 d"), (86_460, "1 d"),
    ],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float, told: str) -> None:
    assert duration(timedelta(seconds=seconds)) == told


def test_absent_and_endless_are_words() -> None:
    assert (duration(None), timeout(None), timeout(NO_TIMEOUT)) == ("-", "-", "none")


def test_many_names_are_the_first_and_a_count() -> None:
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
