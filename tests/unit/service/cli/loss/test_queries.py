"""What `tidemark loss` concludes, asked of the application itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId
from rules.verdict import Verdict
from service.api.losses.models import LossClass
from service.cli.loss import queries
from service.cli.loss.command import CLASSES
from service.cli.loss.queries import LossReport
from service.cli.server.report import find_missing
from service.rounds.latest import RoundOutcome
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Row
from tests.factories import gap, snapshot
from tests.schemas import validate
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import BEYOND, PROVEN, open_loss
from tests.unit.service.cli.app_api import AppApi, judgements

POSSIBLY, BEYOND_END = "records_possibly_lost", "committed_beyond_log_end"
UNREPLICATED, UNCLEAN = "unreplicated_records_lost", "unclean_leader_election"


def api(*losses: Any, **overrides: Any) -> AppApi:
    given = {"judgements": judgements(), **overrides}
    return AppApi(client_of(open_findings=opened(*losses), **given))


def ask(*losses: Any, **overrides: Any) -> LossReport:
    report = queries.list_losses(api(*losses, **overrides), {})
    validate("loss ls", report.document)
    return report


def test_no_loss_is_told_only_by_a_service_that_sees() -> None:
    known = ask()
    assert (known.exit_code, known.errors, known.losses) == (ExitCode.OK, (), ())
    assert known.document == {
        "server": "http://localhost:8780",
        "cluster": "default",
        "as_of": "2025-06-02T12:00:00Z",
        "complete": True,
        "errors": [],
        "gaps": [],
        "incidents": [],
    }


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"outcome": RoundOutcome.GAPS}, "the last round has gaps: gaps"),
        (
            {"outcome": RoundOutcome.FAILED, "error": "no broker answers"},
            "the service shows old data: no broker answers",
        ),
        ({"is_stale": True, "error": "no round has ended"}, "old data: no round has ended"),
        ({"outcome": RoundOutcome.DIED}, "the service shows old data: its last round failed"),
        (
            {"persistence": PersistenceStatus()},
            "service started is not loaded: loading is in progress",
        ),
        (
            {"persistence": PersistenceStatus(error="no database")},
            "what was known before the service started is not loaded: no database",
        ),
        ({"judgements": ()}, "rule committed_records_lost was not evaluated"),
    ],
)
def test_a_service_that_does_not_see_cannot_tell(overrides: dict[str, Any], told: str) -> None:
    known = ask(**overrides)
    assert known.exit_code is ExitCode.INCOMPLETE
    assert told in "\n".join(known.errors)


def test_partitions_that_cannot_be_judged_may_have_lost_records() -> None:
    judged = judgements()
    [lost] = [entry for entry in judged if entry.rule.rule_id == "committed_records_lost"]
    unseen = replace(lost, verdicts=np.full_like(lost.verdicts, Verdict.UNKNOWN))
    known = ask(judgements=tuple(unseen if entry is lost else entry for entry in judged))
    (told,) = known.errors
    assert (
        told == f"rule committed_records_lost cannot judge {len(unseen.verdicts)} of its subjects"
    )
    assert known.exit_code is ExitCode.INCOMPLETE


def test_the_beginning_of_the_id_of_a_loss_suffices() -> None:
    service = api(open_loss())
    (loss,) = queries.list_losses(service, {}).losses
    for name in (loss["id"], loss["id"][:-3], loss["id"][:-16]):
        report = queries.fetch_losses(service, name)
        assert report is not None
        assert [row["id"] for row in report.rows] == [loss["id"]], name
        validate("loss show", report.document)
    assert queries.fetch_losses(service, "no place and no id") is None


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("committed_records_lost", ExitCode.LOST),
        (POSSIBLY, ExitCode.LOST),
        (BEYOND_END, ExitCode.LOST),
        (UNCLEAN, ExitCode.LOST),
        (UNREPLICATED, ExitCode.OK),
    ],
)
def test_committed_records_that_are_or_may_be_lost_have_a_code(rule: str, code: ExitCode) -> None:
    assert ask(open_loss(rule=rule)).exit_code is code


def test_a_loss_whose_records_are_there_again_is_none() -> None:
    assert ask(open_loss(reason="restored")).exit_code is ExitCode.OK
    assert ask(open_loss(reason="restored"), open_loss(rule=POSSIBLY)).exit_code is ExitCode.LOST
    assert ask(open_loss(rule=BEYOND_END, reason="proven")).exit_code is ExitCode.LOST


@pytest.mark.parametrize(
    ("rule", "reason", "code"),
    [
        pytest.param(UNCLEAN, "lost", ExitCode.OK, id="how-it-was-lost"),
        pytest.param(POSSIBLY, "proven", ExitCode.OK, id="what-it-had-proven"),
        pytest.param(POSSIBLY, "unseen", ExitCode.LOST, id="what-nobody-saw"),
        pytest.param(BEYOND_END, "beyond", ExitCode.LOST, id="what-was-read-beyond"),
    ],
)
def test_what_was_found_of_a_loss_that_is_none_any_more_is_none(
    rule: str, reason: str, code: ExitCode
) -> None:
    incident: dict[str, Any] = {"evidence": PROVEN | {"incident": "broker-1-20250602T120000Z"}}
    both = open_loss(reason="restored", **incident), open_loss(rule=rule, reason=reason, **incident)
    assert ask(*both).exit_code is code


def test_a_loss_is_told_also_by_a_service_that_does_not_see() -> None:
    known = ask(open_loss(), outcome=RoundOutcome.GAPS)
    assert (known.exit_code, bool(known.errors)) == (ExitCode.LOST, True)


def test_a_history_that_is_behind_says_so() -> None:
    waiting = PersistenceStatus(
        state=PersistenceState.WAITING, error="away", waiting_rounds=2, lost_transitions=3
    )
    made = api(persistence=waiting)
    assert queries.list_losses(made, {}).errors == ()
    behind, lost = queries.list_losses(made, {"state": "all"}).errors
    assert behind == "the history ends at the start: away"
    assert lost == "3 changes were lost while the database was unavailable"


class OlderApi:
    """A Tidemark that lists losses, and knows no incidents."""

    def __init__(self) -> None:
        self._newer = api(open_loss())
        self.server = self._newer.server

    def get(self, path: str, **query: str | int) -> Row:
        """Return what a newer one says of all else."""
        return self._newer.get(path, **query)

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return what a newer one says of a loss."""
        return self._newer.find(path, **query)

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Give lists of losses."""
        for page in self._newer.pages(path, **query):
            losses = [line for incident in page["items"] for line in incident["partitions"]]
            yield {**page, "items": losses}


def test_an_older_tidemark_that_knows_no_incidents_is_understood() -> None:
    known = queries.list_losses(OlderApi(), {})
    assert ([one["topic"] for one in known.losses], known.exit_code) == (["orders"], ExitCode.LOST)
    [incident] = known.rows
    assert incident["summary"] == "committed_lost of orders-0"
    shown = queries.fetch_losses(OlderApi(), "orders-0")
    assert shown is not None
    assert [one["certain_from"] for one in shown.losses] == [73]


def test_a_history_that_is_too_long_to_be_shown_says_so() -> None:
    status = api().get("status")
    page = {"is_current": True, "as_of": None, "is_cut": True}
    assert "older ones are left out" in "".join(queries.stored_error(page, status))
    assert list(queries.stored_error(page | {"is_cut": False}, status)) == []


def test_a_filter_that_names_nothing_is_found_out() -> None:
    made = api(snapshot=snapshot())
    there = made.get("partitions")["items"][0]["topic"]
    assert find_missing(made, topic=there, group=None) is None
    assert find_missing(made, topic="order", group=None) == "no topic matches 'order'"
    assert find_missing(made, topic=None, group="nobody") == "no group matches 'nobody'"


def test_a_loss_is_found_by_its_id_and_by_its_partition() -> None:
    made = api(open_loss(), open_loss("orders-0"))
    (item, _) = (line for one in made.get("losses")["items"] for line in one["partitions"])
    for name in (item["id"], f"{item['topic']}-0"):
        found = queries.fetch_losses(made, name)
        assert found is not None
        (loss,) = found.losses
        assert (loss["id"], loss["events"]) == (item["id"], None)
        assert loss["error"] == "it is not stored yet"


def test_of_a_partition_the_worst_comes_first() -> None:
    made = api(
        open_loss(rule=UNCLEAN),
        *(open_loss(rule=BEYOND_END, group=f"g{n:02}", evidence=BEYOND) for n in range(25)),
        open_loss(since=-9),
        open_loss("others"),
    )
    found = queries.fetch_losses(made, "orders-0")
    assert found is not None
    [loss] = found.losses
    assert (loss["class"], "events" in loss) == ("committed_lost", True)
    also = [(one["class"], one["group"]) for one in loss["also"]]
    beyond = [("committed_beyond_log_end", f"g{n:02}") for n in range(25)]
    assert sorted(also) == [*beyond, ("unclean_election", None)]


def test_each_loss_of_a_partition_is_shown_the_worst_first() -> None:
    """Losses of two incidents are two, however many rules tell of them."""

    def of(number: int, rule: str = "committed_records_lost", **more: Any) -> Any:
        evidence = PROVEN | {"incident": f"broker-{number}-20250602T120000Z"}
        return open_loss(rule=rule, leader_epoch=str(number), evidence=evidence, **more)

    many = (of(number, POSSIBLY, reason="unseen", since=number) for number in range(1, 25))
    found = queries.fetch_losses(api(*many, of(0), of(0, UNCLEAN)), "orders-0")
    assert found is not None
    assert [loss["class"] for loss in found.losses] == ["committed_lost", *["possibly_lost"] * 24]
    assert sum("events" in loss for loss in found.losses) == queries.IN_FULL


def test_what_cannot_be_determined_any_more_is_no_loss_and_not_nothing() -> None:
    gone = open_loss(rule=POSSIBLY, reason="not_determinable")
    assert ask(gone).exit_code is ExitCode.INCOMPLETE
    assert ask(gone, open_loss("others")).exit_code is ExitCode.LOST


def test_each_gap_says_what_it_hides_and_since_when() -> None:
    gone = gap(what="offsets of orders-3", why="it is gone", cause=GapCause.GONE, broker_id=None)
    others = tuple(gap(broker_id=BrokerId(number)) for number in range(11))
    made = api(
        snapshot=snapshot(gaps=(gone, *others)),
        outcome=RoundOutcome.GAPS,
    )
    known = queries.list_losses(made, {})
    assert known.errors[:3] == (
        "the last round has gaps: 1 gone, 11 timeout",
        "  offsets of orders-3: it is gone",
        (
            "    since 2025-06-02 12:00:00 UTC; deleted or recreated during the round; it ends by itself "
            "with the next one; not known meanwhile: whether these partitions lost records, and what "
            "holds back their readers"
        ),
    )
    assert "  and 2 more: GET /api/v1/clusters/default" in known.errors
    assert [one["cause"] for one in known.document["gaps"]] == ["gone", *["timeout"] * 9]


@pytest.mark.parametrize("name", ["orders-1", "committed_records_lost-0123456789abcdef"])
def test_what_is_not_known_is_told_with_what_was_not_seen(name: str) -> None:
    found = queries.fetch_losses(api(open_loss(), outcome=RoundOutcome.GAPS), name)
    assert found is not None
    assert (found.losses, found.errors) == ((), ("the last round has gaps: gaps",))


@pytest.mark.parametrize("name", ["orders", "orders-", "a*-0", "or ders-0", "-1", "../status-0"])
def test_what_is_neither_id_nor_partition_is_not_asked_for(name: str) -> None:
    assert queries.fetch_losses(api(), name) is None


def test_the_command_line_knows_every_class() -> None:
    assert set(CLASSES) == {str(one) for one in LossClass} == set(queries.WORST_FIRST)
