"""A report has the facts of its time and their sources, and says what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from rules.errors import AuthenticationError, CollectError, ConflictError
from service.cli.incident.gathering import Transcripts, gather
from service.cli.incident.report import IncidentReport, Outcome
from service.cli.incident.window import AFTER, BEFORE, Window, window_of
from service.cli.incident.writing import html_of, markdown_of
from tests.factories import at, snapshot
from tests.schemas import validate
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.cli.app_api import AppApi, judgements

EVIL: Final = "<script>alert(1)</script>"
WINDOW: Final = Window(at(-60), at(600))
FROM_FAKES: Final = ("status", "findings", "losses")


def json_of(time: datetime) -> str:
    return time.isoformat()


class Api(AppApi):
    """The application on fakes, and canned answers for what a database and files have."""

    is_admin = True
    has_history = True
    canned: Mapping[str, Mapping[str, Any]] = {}

    def find(self, path: str, **query: str | int) -> Mapping[str, Any] | None:
        if path in self.canned:
            return self.canned[path]
        if path.partition("/")[0] in FROM_FAKES or path == "clusters":
            return super().find(path, **query)
        if path == "measured":
            return self._measured()
        if path == "audit" and not self.is_admin:
            raise AuthenticationError("denied")
        return {"as_of": None, "is_current": True, "next": None, "items": ITEMS.get(path, [])}

    def pages(self, path: str, **query: str | int) -> Iterator[Mapping[str, Any]]:
        found = self.find(path, **{"limit": 1000, **query} if path in FROM_FAKES else query)
        assert found is not None
        yield found

    def _measured(self) -> Mapping[str, Any]:
        if not self.has_history:
            raise ConflictError("history is turned off")
        values = [1.0, None, None, None, 4.0]
        rows = [
            {"at": json_of(at(15 * place)), "value": value} for place, value in enumerate(values)
        ]
        measured = {"unit": "offsets", "step_seconds": 15.0, "values": rows, "unreadable": []}
        return {"measured": measured}


ITEMS: Final[dict[str, list[dict[str, Any]]]] = {
    "audit": [
        {"at": json_of(at(90)), "who": EVIL, "what": "alert.close", "target": "x|y", "why": ""},
        {"at": json_of(at(900)), "who": "late", "what": "job.run", "target": "x", "why": ""},
    ],
    "deliveries": [
        {
            "id": 7,
            "receiver": "pager",
            "is_firing": True,
            "reason": "first notification",
            "state": "dead",
            "attempts": 3,
            "dead_reason": "rejected",
            "enqueued_at": json_of(at(20)),
            "done_at": json_of(at(80)),
        }
    ],
}


def api_of(**overrides: Any) -> Api:
    lost = open_loss("orders", **overrides)
    return Api(client_of(open_findings=opened(lost)))


@pytest.fixture
def api() -> Api:
    return api_of()


def test_a_proven_loss_has_its_ranges_its_proof_and_a_timeline_in_order(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert (report.outcome, report.lost_offsets) == (Outcome.LOST, 27)
    ranges = {(row.kind.value, row.begin, row.end) for row in report.lost_ranges}
    assert ("certain", 73, 100) in ranges
    assert report.proofs[0].evidence["epoch_end"] == 73
    assert {"billing", "audit"} <= set(report.groups)
    assert report.transactional_ids == ["payments-7"]
    told = [entry.what for entry in report.timeline]
    assert any("broker 1 (epoch 5) to 2 (epoch 7), election unclean" in line for line in told)
    assert any("dead after 3 attempts: rejected" in line for line in told)
    assert not any("late" in line for line in told)
    assert report.timeline == sorted(report.timeline, key=lambda entry: entry.at)
    assert all(entry.source for entry in report.timeline)


def test_what_history_or_a_token_lacks_is_said(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert any(
        line.startswith("history has no samples from") and "open_span of topic orders" in line
        for line in report.missing
    )
    api.is_admin, api.has_history = False, False
    report = gather(api, WINDOW, None)
    assert report.charts == []
    assert any(line.startswith("what was changed by hand: it needs") for line in report.missing)
    assert any("history is turned off" in line for line in report.missing)


def quiet(**canned: Mapping[str, Any]) -> Api:
    """Return a service that sees everything, and has lost nothing."""
    api = Api(client_of(judgements=judgements(), started_at=at(-30)))
    values = [{"at": json_of(at(15 * place - 60)), "value": 0.0} for place in range(5)]
    place = {"topic": "__consumer_offsets", "partition": 0}
    measured = {"unit": "offsets", "step_seconds": 15.0, "values": values, "unreadable": []}
    api.canned = {"partitions": {"items": [place]}, "measured": {"measured": measured}, **canned}
    return api


def with_gap(of: int) -> dict[str, Any]:
    """Return what history has of so many rounds after the first one, and nothing of the others."""
    measured: dict[str, Any] = dict(quiet().canned["measured"]["measured"])
    values = [
        row if place < of or place == 4 else {**row, "value": None}
        for place, row in enumerate(measured["values"])
    ]
    return {"measured": measured | {"values": values}}


def test_a_time_in_which_nothing_was_lost_claims_no_loss(api: Api) -> None:
    later = Window(at(3600), at(3600) + timedelta(minutes=5))
    assert gather(api, later, None).lost_ranges == []
    report = gather(quiet(), WINDOW, None)
    assert (report.outcome, report.missing) == (Outcome.NONE_FOUND, [])


AROUND: Final = {"read_at": None, "before": json_of(at(-60)), "after": json_of(at(0))}


@pytest.mark.parametrize(
    ("canned", "window", "missing"),
    [
        ({}, Window(at(5), at(600)), "rounds: none was made since 2025-06-02 12:00:00 UTC"),
        (
            {"measured": with_gap(1), "at": AROUND},
            WINDOW,
            "rounds: none was made from 2025-06-02 11:59:00 UTC to 2025-06-02 12:00:00 UTC",
        ),
        ({"measured": with_gap(2), "at": AROUND}, WINDOW, None),  # a late round
        (
            {"measured": with_gap(1), "at": {"read_at": json_of(at(-30))}},
            WINDOW,
            "have no offsets of __consumer_offsets-0",
        ),
        ({"partitions": {"items": []}}, WINDOW, "before 2025-06-02 11:59:30 UTC is not known"),
        ({"partitions": {"items": []}}, Window(at(-30), at(600)), None),
    ],
    ids=["no round yet", "down", "late", "unread", "started", "all since the start"],
)
def test_of_a_time_without_rounds_it_is_not_known_whether_records_were_lost(
    canned: Mapping[str, Any], window: Window, missing: str | None
) -> None:
    report = gather(quiet(**canned), window, None)
    assert report.outcome is (Outcome.NONE_FOUND if missing is None else Outcome.UNKNOWN)
    assert [line for line in report.missing if missing is None or missing not in line] == []
    assert bool(report.missing) == (missing is not None)


def test_a_service_without_a_round_since_knows_nothing_of_the_time() -> None:
    api = Api(client_of(judgements=judgements(), at=at(-600), snapshot=snapshot(taken_at=at(-600))))
    report = gather(api, WINDOW, None)
    assert report.outcome is Outcome.UNKNOWN
    assert "rounds: none was made since 2025-06-02 11:50:00 UTC" in report.missing


def test_a_loss_that_is_found_later_is_of_the_time_since_its_partition_was_last_seen() -> None:
    found_later = Api(client_of(open_findings=opened(open_loss("orders", since=9000))))
    report = gather(found_later, WINDOW, None)
    assert (report.outcome, report.lost_offsets) == (Outcome.LOST, 27)
    assert [proof.rule for proof in report.proofs] == ["committed_records_lost"]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("lost", Outcome.LOST),
        ("possibly_lost", Outcome.MAY_BE_LOST),
        ("refuted", Outcome.NONE_FOUND),
    ],
)
def test_a_loss_that_sequences_show_is_in_the_outcome(reason: str, outcome: Outcome) -> None:
    lost = open_loss("orders", rule="sequence_gap_loss", reason=reason, evidence={})
    api = quiet()
    api.client = client_of(judgements=judgements(), open_findings=opened(lost))
    assert gather(api, WINDOW, None).outcome is outcome


def alert_of(**labels: str) -> dict[str, Any]:
    """Return an alert as the API shows it."""
    times = {"active_at": json_of(at(0)), "resolved_at": None}
    base = {
        "fingerprint": "0123456789abcdef",
        "rule": "committed_records_lost",
        "severity": "critical",
    }
    return {**base, **times, "labels": labels, "evidence": {}, "acknowledged": None}


def test_the_time_of_an_alert_has_what_led_to_it_and_ends_soon_after_it() -> None:
    now = at(3600)
    alert = alert_of(topic="orders", partition="0")
    assert window_of(alert, now) == Window(at(0) - BEFORE, now), "it still fires"
    ended = alert | {"resolved_at": json_of(at(60))}
    assert window_of(ended, now) == Window(at(0) - BEFORE, at(60) + AFTER)
    assert window_of(ended, at(70)).end == at(70), "a report has no future"
    with pytest.raises(CollectError, match="no time"):
        window_of(alert | {"active_at": None}, now)


def test_an_alert_has_its_steps_and_who_acknowledged_it_in_the_timeline(api: Api) -> None:
    held = {"at": json_of(at(40)), "by": "eva", "comment": "a | b"}
    alert = alert_of(topic="orders", partition="0") | {"acknowledged": held}
    steps = [
        {"at": json_of(at(seconds)), "step": step, "reason": reason}
        for seconds, step, reason in (
            (0, "pending", "lost"),
            (30, "fired", "lost"),
            (900, "resolved", "late"),
        )
    ]
    api.canned = {
        "alerts": {"items": [alert, alert_of(topic="z") | {"fingerprint": "f" * 16}]},
        "alerts/0123456789abcdef": {"alert": alert, "steps": steps},
    }
    report = gather(api, WINDOW, alert)
    assert report.alert == "0123456789abcdef"
    lines = [(entry.at, entry.what) for entry in report.timeline if entry.source.endswith("abcdef")]
    name = "committed_records_lost, topic orders, partition 0"
    assert lines == [
        (at(0), f"alert pending: {name} (lost)"),
        (at(30), f"alert fired: {name} (lost)"),
        (at(40), f"acknowledged by eva: {name}: a | b"),
    ]


def test_only_what_shares_a_subject_with_the_alert_counts_as_affected(api: Api) -> None:
    related = gather(api, WINDOW, alert_of(topic="orders", partition="0"))
    assert {"billing", "audit"} <= set(related.groups)
    assert [proof.is_related for proof in related.proofs] == [True]
    other = gather(api, WINDOW, alert_of(topic="orders", partition="7"))
    assert (other.groups, other.transactional_ids, other.charts) == ([], [], [])
    assert "## Not related to the alert: Verdicts and their proof" in markdown_of(other)


@pytest.mark.parametrize(
    ("labels", "is_related"),
    [
        ({"topic": "orders", "partition": "0"}, True),
        ({"group": "billing"}, True),  # it had committed beyond what is left
        ({"broker": "1"}, True),  # the former leader
        ({}, True),  # an alert of the whole cluster
        ({"topic": "orders", "partition": "7"}, False),
        ({"group": "reports"}, False),
    ],
    ids=["partition", "group", "broker", "cluster", "partition-other", "group-other"],
)
def test_only_related_losses_make_the_headline(labels: dict[str, str], *, is_related: bool) -> None:
    api = quiet()
    api.client = client_of(judgements=judgements(), open_findings=opened(open_loss("orders")))
    alert = alert_of(**labels) | {"rule": "consumer_group_stalled"}
    report = gather(api, WINDOW, alert)
    assert {row.is_related for row in report.lost_ranges} == {is_related}
    markdown = markdown_of(report)
    if is_related:
        assert (report.outcome, report.other_outcome, report.lost_offsets) == (
            Outcome.LOST,
            None,
            27,
        )
        assert "## Not related to the alert: Lost offsets" not in markdown
    else:
        assert (report.outcome, report.other_outcome) == (Outcome.NONE_FOUND, Outcome.LOST)
        assert (report.lost_offsets, report.loss_summaries) == (0, [])
        assert (
            "**No rule found lost records. At that time other committed records are lost"
            in markdown
        )
        assert "## Not related to the alert: Lost offsets" in markdown


def test_what_a_commit_proves_gone_is_in_the_headline_where_no_range_is_known() -> None:
    evidence = {"at_least_offsets": 24, "leader": 2, "leader_epoch": 1}
    lost = open_loss(
        "orders", rule="records_possibly_lost", reason="read_beyond_epoch_end", evidence=evidence
    )
    report = gather(Api(client_of(open_findings=opened(lost))), WINDOW, None)
    assert (report.outcome, report.lost_offsets) == (Outcome.MAY_BE_LOST, None)
    assert [row.at_least_offsets for row in report.unknown_losses] == [24]
    assert "groups had committed 24 offsets that are not in the log" in markdown_of(report)
    assert any("who led before was not seen" in entry.what for entry in report.timeline)


def test_what_was_typed_is_in_the_timeline(api: Api, tmp_path: Path) -> None:
    stamp = f"{at(50):%Y-%m-%dT%H:%M:%SZ}"
    own, other, wrong = tmp_path / "own.txt", tmp_path / "other.txt", tmp_path / "wrong.txt"
    head = f"{stamp} runbook transaction_hanging, alert 0123456789abcdef, firing\n"
    own.write_text(
        f"{head}    server: {api.server}\n{stamp} section Mitigation\n"
        f"{stamp} confirm: run kafka-x --abort\n    yes\n{stamp} run kafka-x --abort\n"
        f"    {stamp} run is only output\n{stamp} exit code 0\n{stamp} run slow\n"
    )
    other.write_text(
        f"{head}    server: http://elsewhere\n{stamp} run not-ours\n{stamp} exit code 0\n"
    )
    wrong.write_text("notes\n")
    paths = (own, other, wrong, tmp_path / "absent.txt")
    report = gather(api, WINDOW, None, Transcripts(of_this_machine=paths))
    lines = [entry.what for entry in report.timeline if entry.source == "transcript own.txt"]
    assert "ran from the runbook: kafka-x --abort (exit code 0)" in lines
    assert "asked whether to run kafka-x --abort: yes" in lines
    assert "ran from the runbook: slow (its end is not noted)" in lines
    assert not any("only output" in line for line in lines)
    assert not any("not-ours" in entry.what for entry in report.timeline)
    assert [line for line in report.missing if "is no transcript" in line]
    assert [line for line in report.missing if "no such file" in line]
    given = gather(api, WINDOW, None, Transcripts(given=(other,)))
    assert any(
        "ran from the runbook: not-ours (exit code 0)" in entry.what for entry in given.timeline
    )


def test_pages_escape_every_name_and_need_nothing_else(api: Api) -> None:
    report = gather(api, WINDOW, None)
    html, markdown = html_of(report), markdown_of(report)
    assert EVIL not in html
    assert EVIL not in markdown
    assert "<script" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "").replace(api.server, "")
    assert "x\\|y" in markdown
    assert html.count("<svg ") == len(report.charts) > 0
    assert html == html_of(gather(api, WINDOW, None))


def test_a_page_folds_names_after_their_marks_and_scrolls_what_is_wider(api: Api) -> None:
    html = html_of(gather(api, WINDOW, None))
    assert "overflow-wrap:anywhere" not in html  # folds columns to a letter beside a long one
    assert "<td>committed_<wbr>records_<wbr>lost (critical)</td>" in html
    assert "<td><time>2025-06-02 12:00:00</time></td>" in html
    assert html.count("<div><table>") == html.count("<table>") > 0
    assert "<wbr>" not in html.partition("<h2>")[0]


def test_the_document_reads_back_and_is_of_its_schema(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert IncidentReport.model_validate(report.to_row()) == report
    validate("incident", report.to_row())


def test_clients_of_rejected_batches_are_named_with_what_may_be_missing() -> None:
    client = {
        "client_id": EVIL,
        "address": "app-1:8081",
        "topic": "orders",
        "errors": 0,
        "errors_since": None,
        "errors_until": None,
        "retries": 5,
        "retries_since": json_of(at(5)),
        "retries_until": json_of(at(20)),
        "of a later version": True,
    }
    event = {"id": "0123456789ab", "topic": "orders", "partition": 0, "ended_at": None}
    evidence = {"record_errors": [client], "client_metrics": "incomplete"}
    api = api_of()
    api.canned = {
        "sequences": {
            "as_of": None,
            "is_current": True,
            "next": None,
            "items": [
                {**event, "first_seen": json_of(at(11)), "evidence": evidence},
                {**event, "first_seen": json_of(at(700)), "evidence": evidence},
            ],
        }
    }
    report = gather(api, WINDOW, None)
    validate("incident", report.model_dump(mode="json"))
    assert [(row.sequence, row.retries) for row in report.clients] == [("0123456789ab", 5)]
    (entry,) = (entry for entry in report.timeline if entry.source == "sequences/0123456789ab")
    assert (entry.at, entry.what) == (
        at(20),
        f"record retries of {EVIL} at app-1:8081 for orders had risen by 5",
    )
    assert any(line.startswith("clients of sequences/0123456789ab") for line in report.missing)
    page = html_of(report)
    assert EVIL not in page
    assert "Clients whose records failed or were retried" in page
    assert "app-1:8081" in markdown_of(report)


def logged(name: str, **overrides: Any) -> dict[str, Any]:
    return {
        "id": name,
        "error": "PRODUCER_FENCED",
        "title": "fenced",
        "role": "cause",
        "application": "pay",
        "count": 3,
        "first_seen": json_of(at(30)),
        "last_seen": json_of(at(40)),
        **overrides,
    }


def test_what_applications_logged_is_in_the_timeline_if_it_names_a_subject_of_the_alert() -> None:
    api = api_of()
    place = {"topic": "orders", "partition": 0}
    items = [
        logged("of-the-partition", topic="orders", partitions=[place]),
        logged("of-another-partition", topic="orders", partitions=[{**place, "partition": 9}]),
        logged("of-another-topic", topic="refunds"),
        logged("dealt-with", topic="orders", partitions=[place], role="harmless"),
    ]
    page = {"as_of": None, "is_current": True, "next": None, "items": items}
    api.canned = {"application-errors": page}
    labels = {"topic": "orders", "partition": "0", "cluster": "default"}
    alert = {"fingerprint": "f", "rule": "committed_records_lost", "labels": labels}
    entries = [
        entry
        for entry in gather(api, WINDOW, alert).timeline
        if entry.source.startswith("application-errors/")
    ]
    assert [entry.source for entry in entries] == 2 * ["application-errors/of-the-partition"]
    first = "application logged PRODUCER_FENCED, topic orders, application pay: fenced"
    assert [entry.what for entry in entries] == [f"{first} (3 in all)", f"{first} (the last one)"]
    assert len(gather(api, WINDOW, None).timeline) > len(gather(api, WINDOW, alert).timeline)


def change(name: str, seconds: float, summary: str, **subject: Any) -> dict[str, Any]:
    times = {"seen_at": json_of(at(seconds)), "since": json_of(at(seconds - 15))}
    return {"id": name, "summary": summary, "subjects": [subject], **times}


def test_what_changed_is_in_the_timeline_before_what_was_found() -> None:
    """Of the alert's topic, which the server filters, and of no topic: that may be of any alert."""
    items = [
        change("added", 30, "topic orders: partitions added, from 3 to 6", topic="orders"),
        change("left", 0, "broker 2: not registered any more", broker=2),
    ]
    queried: list[Mapping[str, Any]] = []

    class Changes(Api):
        def pages(self, path: str, **query: str | int) -> Iterator[Mapping[str, Any]]:
            if path == "events":
                queried.append(query)
            yield from super().pages(path, **query)

    api = Changes(api_of().client)
    api.canned = {"events": {"as_of": None, "is_current": True, "next": None, "items": items}}
    labels = {"topic": "orders", "partition": "0", "cluster": "default"}
    alert = {"fingerprint": "f", "rule": "committed_records_lost", "labels": labels}
    timeline = gather(api, WINDOW, alert).timeline
    entries = [(entry.at, entry.what) for entry in timeline if entry.source.startswith("events/")]
    assert entries == [
        (at(0), "change seen: broker 2: not registered any more (after 2025-06-02 11:59:45 UTC)"),
        (
            at(30),
            "change seen: topic orders: partitions added, from 3 to 6 (after 2025-06-02 12:00:15 UTC)",
        ),
    ]
    assert [query.get("topic") for query in queried] == [None, "orders"]
    assert {query["since"] for query in queried} == {json_of(WINDOW.begin)}
    of_that_time = [entry.source.partition("/")[0] for entry in timeline if entry.at == at(0)]
    assert of_that_time[0] == "events"


def test_what_names_only_the_transactional_id_of_a_rejected_batch_is_of_its_alert() -> None:
    api = api_of()
    items = [
        logged("of-its-transaction", transactional_id="pay-1"),
        logged("of-another", transactional_id="pay-2"),
    ]
    api.canned = {
        "application-errors": {"as_of": None, "is_current": True, "next": None, "items": items}
    }
    labels = {"topic": "orders", "partition": "0", "cluster": "default"}
    evidence = {"transactional_id": "pay-1"}
    alert = {"fingerprint": "f", "rule": "sequence_gap_reordering", "labels": labels, "evidence": evidence}  # fmt: skip
    sources = {entry.source for entry in gather(api, WINDOW, alert).timeline}
    assert "application-errors/of-its-transaction" in sources
    assert "application-errors/of-another" not in sources
