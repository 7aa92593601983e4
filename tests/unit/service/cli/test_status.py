"""`tidemark status`: it never says that all is well of what it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner

from rules.errors import CollectError
from rules.facts.episodes import Episode
from rules.judgement import Judgement
from rules.open_findings import OpenFinding
from service.cli.server.server_options import DEFAULT
from service.cli.status import Loss, Overview, read_overview, render
from service.rounds.latest import RoundOutcome
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from tests.factories import at, gap, snapshot
from tests.schemas import validate
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.api.sequences.sequences import (
    LOSS,
    REORDERING,
    SUSPECTED,
    after,
    client_for,
    episode_of,
    holding,
)
from tests.unit.service.cli.api_rows import FINGERPRINT, alert
from tests.unit.service.cli.app_api import AppApi, judgements
from tests.unit.service.cli.printing import Terminal, printed

LONG_NAME: Final = "orders of the ünited kingdom, with a name that is longer than any screen"


@dataclass
class Service(AppApi):
    """The application, with alerts that need no database; None: an older service without any."""

    server: str = DEFAULT
    alerts: list[dict[str, Any]] | None = field(default_factory=list)
    error: str | None = None

    def find(self, path: str, **query: str | int) -> Mapping[str, Any] | None:
        if path != "alerts":
            answer = self.client.get(f"/api/v1/{path}", params=query)
            if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                raise CollectError(str(answer.json()["detail"]))
            return super().find(path, **query)
        if self.error is not None:
            raise CollectError(self.error)
        if self.alerts is None:
            return None
        return {"as_of": "2025-06-02T12:00:00Z", "is_current": True, "items": self.alerts}


def service(
    *alerts: dict[str, Any], judged: tuple[Judgement, ...] | None = None, **overrides: Any
) -> Service:
    given = {"judgements": judged or judgements(), "view": view_of([snapshot()]), **overrides}
    return Service(client_of(**given), alerts=list(alerts))


def overview(*alerts: dict[str, Any], **overrides: Any) -> Overview:
    shown = read_overview(service(*alerts, **overrides))
    validate("status", shown.document)
    return shown


def screen(shown: Overview, width: int = 80) -> str:
    return printed(render(shown), width)


def test_a_quiet_and_complete_service_has_no_loss() -> None:
    quiet = overview()
    assert (quiet.loss, quiet.exit_code(of_findings=True)) == (Loss.NONE, ExitCode.OK)
    assert quiet.document["complete"] is True


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (overview(outcome=RoundOutcome.FAILED), "old data"),
        (
            overview(snapshot=snapshot(gaps=(gap(),)), outcome=RoundOutcome.GAPS),
            "has gaps: 1 timeout",
        ),
        (
            read_overview(Service(client_of(judgements=judgements()), alerts=None)),
            "no list of alerts",
        ),
        (
            read_overview(Service(client_of(judgements=judgements()), error="database is away")),
            "not known: database is away",
        ),
        (overview(at=at(-600)), "and one is due every 15 s"),
    ],
    ids=["failed", "gaps", "older", "database", "late"],
)
def test_what_is_not_seen_is_never_no_loss(seen: Overview, reason: str) -> None:
    assert seen.loss is Loss.UNKNOWN
    assert seen.exit_code(of_findings=False) == ExitCode.INCOMPLETE
    assert reason in screen(seen)
    assert "LOSS     NOT KNOWN" in screen(seen)
    assert seen.document["complete"] is False


@pytest.mark.parametrize("unread", [{"alerts": None}, {"error": "database is away"}])
def test_alerts_that_cannot_be_read_are_not_none(unread: dict[str, Any]) -> None:
    seen = read_overview(Service(client_of(judgements=judgements()), **unread))
    validate("status", seen.document)
    assert seen.document["firing"] is None
    assert "ALERTS   NOT KNOWN" in screen(seen)
    quiet = overview()
    assert quiet.document["firing"] == {}
    assert "ALERTS   none is known to fire" in screen(quiet)


def test_a_rule_that_cannot_judge_all_is_not_all_seen() -> None:
    seen = overview()
    assert "  complete but for brokers' logs\n" in screen(seen)
    blind = replace(seen, unknown_rules=[{"rule": "transaction_hanging", "unknown": 40}])
    assert "  not all is seen\n" in screen(blind)
    assert "transaction_hanging (40)" in screen(blind)
    assert (blind.document["complete"], blind.loss) == (False, Loss.NONE)
    assert blind.exit_code(of_findings=True) == ExitCode.INCOMPLETE


def test_the_worst_and_oldest_alert_is_first_and_says_what_to_type() -> None:
    seen = overview(
        alert(severity="info", rule="topic_deleted", fingerprint="1" * 16),
        alert(severity="warning", rule="lag_growing", fingerprint="2" * 16, fired_at=at(5)),
        alert(severity="warning", rule="lag_growing", fingerprint="3" * 16, fired_at=at(1)),
    )
    assert [row["fingerprint"][0] for row in seen.alerts] == ["3", "2", "1"]
    assert seen.exit_code(of_findings=False) == ExitCode.OK
    assert seen.exit_code(of_findings=True) == ExitCode.FIRING
    text = screen(seen)
    assert "firing: 2 warning, 1 info; 3 not acknowledged" in text
    assert f"\n  tidemark alerts show {'3' * 16}\n  tidemark runbook run {'3' * 16}\n" in text


@pytest.mark.parametrize(
    ("finding", "loss", "code"),
    [
        (open_loss(), Loss.LOST, ExitCode.LOST),
        (open_loss(rule="records_possibly_lost"), Loss.POSSIBLE, ExitCode.LOST),
        (open_loss(reason="restored"), Loss.NONE, ExitCode.OK),
        (open_loss(rule="unreplicated_records_lost"), Loss.NONE, ExitCode.OK),
    ],
    ids=["lost", "perhaps", "restored", "uncommitted"],
)
def test_loss_is_what_the_list_of_losses_says(
    finding: OpenFinding, loss: Loss, code: ExitCode
) -> None:
    seen = overview(open_findings=opened(finding))
    assert (seen.loss, seen.exit_code(of_findings=True)) == (loss, code)


CONFIRMED: Final = episode_of(*LOSS)
AWAITED: Final = episode_of(*SUSPECTED)


@pytest.mark.parametrize(
    ("episode", "loss", "words"),
    [
        (CONFIRMED, Loss.LOST, "YES: committed records are lost"),
        (replace(AWAITED, is_querying=False, is_waiting=False), Loss.POSSIBLE, "PERHAPS"),
        (AWAITED, Loss.POSSIBLE, "PERHAPS"),
        (episode_of(*REORDERING), Loss.NONE, "no\n"),
    ],
    ids=["confirmed", "suspected", "investigated", "healed"],
)
def test_a_loss_by_sequences_is_one_only_if_it_is_confirmed(
    episode: Episode, loss: Loss, words: str
) -> None:
    view = holding(after(*REORDERING), [episode])
    seen = read_overview(Service(client_for(view, judgements=judgements())))
    assert (seen.loss, seen.sequence_loss) == (loss, loss)
    assert f"LOSS     {words}" in screen(seen)
    is_loss = loss is not Loss.NONE
    assert ("\n  tidemark sequence ls\n" in screen(seen)) == is_loss
    assert seen.exit_code(of_findings=True) == (ExitCode.LOST if is_loss else ExitCode.OK)


def test_an_alert_on_records_that_are_back_is_no_loss() -> None:
    back = alert(rule="committed_records_lost", reason="restored")
    assert overview(back, open_findings=opened(open_loss(reason="restored"))).loss is Loss.NONE


def test_without_a_log_of_a_broker_it_says_by_what_there_is_no_loss() -> None:
    text = screen(overview())
    assert "LOSS     no, as far as offsets and leaders show\n" in text
    assert "the service reads no broker's log" in text


@pytest.mark.parametrize("width", [80, 40])
def test_a_narrow_screen_loses_neither_verdict_nor_alert(width: int) -> None:
    labels = {"topic": LONG_NAME, "partition": "3"}
    seen = overview(*(alert(labels=labels) for _ in range(12)), open_findings=opened(open_loss()))
    text = screen(seen, width)
    assert "YES: committed records are lost" in text
    assert text.count(FINGERPRINT) >= 10
    assert "critical" in text
    tables = text.partition("ALERTS")[2].partition("NOT SEEN")[0].splitlines()[1:]
    if width == 80:
        assert max(map(len, tables)) <= width
    assert "committed_records_lost" in text.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize(("form", "rows"), [("table", 10), ("wide", 12), ("tsv", 12)])
def test_only_a_terminal_gets_fewer_alerts_and_then_how_many_there_are(
    form: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = overview(*(alert() for _ in range(12)), open_findings=opened(open_loss()))

    @click.command()
    @output_option
    def sample(**options: Any) -> None:
        print_answer(seen.document, render(seen), options)

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    sample.main(["-o", form, "--no-color"], standalone_mode=False)
    out = terminal.getvalue()
    assert sum(line.startswith("critical") for line in out.splitlines()) == rows
    assert ("2 more (-o wide)" in out) is (form == "table")
    assert ("LOSS\tYES: committed records are lost\n" in out) is (form == "tsv")
    monkeypatch.undo()
    assert CliRunner().invoke(sample, ["-o", form]).stdout.count(FINGERPRINT) >= 12


def test_an_older_service_with_fewer_fields_is_not_complete() -> None:
    class Older(Service):
        def get(self, path: str, **query: str | int) -> Mapping[str, Any]:
            page = dict(super().get(path, **query))
            page.pop("now", None)
            page["rules"] = []
            page["round"] = {"outcome": "complete", "error": None}
            return page

    seen = read_overview(Older(client_of(judgements=judgements()), alerts=[alert()]))
    assert seen.exit_code(of_findings=False) == ExitCode.INCOMPLETE
    assert "rule committed_records_lost was not evaluated" in screen(seen)
