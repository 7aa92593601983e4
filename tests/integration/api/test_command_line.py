"""The command line against the API on a real database, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rules.facts.change_events import ChangedSubject, ChangeEventKind
from rules.facts.last_observation import microseconds
from rules.verdict import Severity
from service.alerting.alerts.alert import AlertEnd
from service.api.core.admin_services import JobView
from service.runtime import clock
from service.scheduling.job import RunOutcome
from service.storage.jobs.jobs import StoredRun
from service.storage.rounds import change_events
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from service.terminal.exit_codes import ExitCode
from tests.factories import change_event
from tests.integration.api.given import EVENT, Api
from tests.integration.api.shell import Shell
from tests.integration.serving import serving
from tests.schemas import validate

pytestmark = pytest.mark.integration

RUN = StoredRun(
    id=1,
    job_name="retention",
    due_at=clock.utc_now(),
    started_at=clock.utc_now(),
    ended_at=None,
    outcome=RunOutcome.RUNNING,
    detail="",
    stats={},
)


class OneJob:
    """A scheduler of one job, which notes that it was asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def every(self) -> list[JobView]:
        return [
            JobView(
                name="retention",
                trigger="every hour",
                next_due_at=None,
                is_running=False,
                last_run=RUN,
                waits_for="the first minute",
            )
        ]

    def runs(self, _name: str, before: int | None, _limit: int) -> list[StoredRun]:
        return [RUN] if before is None else []

    def run_now(self, name: str) -> None:
        self.queries.append(name)


@pytest.fixture
def shell(engine: Engine, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    api = Api.fresh(engine, jobs=OneJob(), now=clock.utc_now())
    with serving(api.app) as running:
        yield Shell(api, "http://{}:{}".format(*running.address), capsys)


def test_an_alert_is_found_taken_on_and_given_back(shell: Shell) -> None:
    alert = shell.api.alert("orders")
    shell.api.store(alert)
    name = alert.fingerprint
    assert f"topic orders, partition 0, cluster {shell.api.cluster}" in shell("alerts ls")
    assert [row["fingerprint"] for row in shell.json("alerts ls")["alerts"]] == [name]
    told = shell("alerts show", name)
    assert "rule page       https://wiki.example/rules/partition_offline.md" in told
    assert f"tidemark alerts ack {name} --server {shell.server}" in told
    assert "acknowledged by loopback" in shell("alerts ack", name, "--comment", "on it")
    assert "on it" in shell("alerts show", name)
    shell("alerts unack", name)
    assert f"tidemark: {name}: nobody has" in shell(
        "alerts unack", name, code=ExitCode.NOTHING_MATCHED
    )
    assert "no alert" in shell("alerts show 0123456789abcdef", code=ExitCode.NOTHING_MATCHED)
    told = shell("alerts close", name, "--why", "x", code=ExitCode.CONFLICT)
    assert told.startswith("tidemark: ")
    assert told.count("\n") == 1


def test_what_changed_is_listed_and_shown_beside_an_alert_of_its_time(shell: Shell) -> None:
    alert = shell.api.alert("orders")
    shell.api.store(alert)
    seen_us = microseconds(shell.api.now)
    times: dict[str, Any] = {"seen_us": seen_us, "since_us": seen_us - 15_000_000}
    left = {
        "kind": ChangeEventKind.BROKER_LEFT,
        "subjects": (ChangedSubject(broker=3, before="kafka-3:9092"),),
        "topics": (),
    }
    long_ago = {name: at_us - 2 * 3_600_000_000 for name, at_us in times.items()}
    events = [
        change_event("orders", id="aaaa00000001", **times),
        change_event("billing", id="bbbb00000002", **times),
        change_event("", id="cccc00000003", **times, **left),
        change_event("orders", id="dddd00000004", **long_ago),
    ]
    with shell.api.engine.begin() as connection:
        change_events.save(connection, shell.api.row, events)
    listed = shell.json("events ls")["events"]
    assert [row["id"][:4] for row in listed] == ["cccc", "bbbb", "aaaa", "dddd"]
    assert "topic billing: partitions added" in shell("events ls", "--since", "-1h")
    assert "Keys move:" in shell("events show", "bbbb")
    assert "no change matches" in shell("events ls", "--kind", "topic_deleted")
    document = shell.json("alerts show", alert.fingerprint)
    validate("alerts show", document)
    assert [row["id"][:4] for row in document["changes"]] == ["cccc", "aaaa"]
    assert "CHANGES from an hour before" in shell("alerts show", alert.fingerprint)


def test_what_an_alert_was_is_said_and_withdrawn(shell: Shell) -> None:
    alert = shell.api.alert("orders")
    shell.api.store(alert)
    name = alert.fingerprint
    said = shell("alerts ack", name, "--false-alarm", "--comment", "a load test")
    assert said == f"{name} is a false alarm, by loopback\n{name} is acknowledged by loopback\n"
    assert "feedback        a false alarm, by loopback" in shell("alerts show", name)
    said = shell("alerts ack", name, "--confirmed")
    assert said == f"{name} is an incident, by loopback\n"
    assert shell.json("alerts show", name)["alert"]["acknowledged"]["comment"] == "a load test"
    both = shell("alerts ack", name, "--confirmed", "--false-alarm", code=ExitCode.USAGE)
    assert "exclude each other" in both
    shell.api.store(alert.resolved(AlertEnd.OK, alert.starts_at))
    assert shell("alerts ack", name, "--confirmed") == f"{name} is an incident, by loopback\n"
    shell("alerts unack", name, "--feedback")
    assert shell.json("alerts show", name)["alert"]["feedback"] is None


def test_an_event_is_closed_with_a_reason(shell: Shell) -> None:
    event = shell.api.alert("orders", rule=EVENT)
    shell.api.store(event)
    shell("alerts close", event.fingerprint, "--why", "written again")
    assert "written again; the next round does it" in shell("alerts show", event.fingerprint)


def test_a_filter_of_what_there_is_not_is_no_comfort(shell: Shell) -> None:
    shell.api.store()
    assert "no alert  current" in shell("alerts ls --rule partition_offline --receiver pager")
    shell("alerts ls --rule partition_ofline", code=ExitCode.USAGE)
    told = shell("alerts ls --receiver pgaer", code=ExitCode.NOTHING_MATCHED)
    hint = "`tidemark receivers ls` lists all; did you mean pager?"
    assert told == f"tidemark: there is no receiver 'pgaer'; {hint}\n"
    shell("deliveries ls --receiver pgaer", code=ExitCode.NOTHING_MATCHED)


def test_before_a_round_was_stored_the_list_is_not_of_now(shell: Shell) -> None:
    assert "NOT CURRENT" in shell("alerts ls", code=ExitCode.INCOMPLETE)


def test_a_silence_is_made_changed_and_ended(shell: Shell) -> None:
    shell.api.store(shell.api.alert("orders"), shell.api.alert("parcels"))
    cluster = f"cluster={shell.api.cluster}"
    given = ("topic=orders", cluster, "--for", "2h", "--comment", "broker 2")
    made = shell.json("silences add", *given)["silence"]
    assert [row["silenced_by"] for row in shell.json("alerts ls")["alerts"]].count(
        [made["id"]]
    ) == 1
    assert made["id"] in shell("silences ls")
    changed = shell.json("silences edit", made["id"], "--comment", "broker 3")["silence"]
    assert (changed["version"], changed["comment"]) == (2, "broker 3")
    assert (changed["matchers"], changed["ends_at"]) == (made["matchers"], made["ends_at"])
    shell("silences expire", made["id"])
    assert "EXPIRED" in shell("silences show", made["id"])
    shell("silences expire", made["id"], code=ExitCode.CONFLICT)
    nobody = "00000000-0000-0000-0000-000000000000"
    shell("silences expire", nobody, code=ExitCode.NOTHING_MATCHED)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (('topic=~".*"', "--for", "1h"), "all"),
        (("topic", "--for", "1h"), "matchers: "),
        (("a=b", "--until", "2020-01-31T03:00:00Z"), "ends"),
        (("a=b", "--from", "2099-01-02T00:00:00Z", "--until", "2099-01-01T00:00:00Z"), "ends"),
    ],
)
def test_a_silence_that_is_rejected_is_one_clear_line(
    shell: Shell, given: tuple[str, ...], told: str
) -> None:
    line = shell("silences add", *given, "--comment", "x", code=ExitCode.USAGE)
    assert line.startswith("tidemark: ")
    assert line.count("\n") == 1
    assert told in line


def test_a_silence_of_everything_has_to_be_meant(shell: Shell) -> None:
    given = ('topic=~".*"', "--for", "1h", "--comment", "x", "--all")
    made = shell.json("silences add", *given)["silence"]
    shell("silences expire", made["id"])


def test_a_receiver_is_tested_and_what_was_sent_is_listed(shell: Shell) -> None:
    assert "pager (default)" in shell("receivers ls")
    made = shell.json("receivers test", "pager", "--wait", "0")["delivery"]
    number = str(made["id"])
    assert f"\n{number} " in shell("deliveries ls --receiver pager --state waiting")
    assert "BODY" in shell("deliveries show", number)
    assert "later: tidemark deliveries show" in shell(
        "receivers test chat --wait 0.1", code=ExitCode.INCOMPLETE
    )
    shell("deliveries replay", number, code=ExitCode.CONFLICT)
    shell("deliveries show 999999999", code=ExitCode.NOTHING_MATCHED)
    shell("receivers test nobody/at/all", code=ExitCode.NOTHING_MATCHED)


def test_jobs_are_listed_and_run(shell: Shell) -> None:
    assert "retention" in shell("jobs ls")
    assert shell.json("jobs show retention")["runs"][0]["outcome"] == "running"
    assert "it runs now" not in shell("jobs show retention")
    assert "requested to run; it waits for the first minute\n" in shell("jobs run retention")
    assert isinstance(shell.api.jobs, OneJob)
    assert shell.api.jobs.queries == ["retention"]
    shell("jobs show nothing", code=ExitCode.NOTHING_MATCHED)


def test_everything_that_was_changed_is_in_the_audit_with_who_and_why(
    shell: Shell, tmp_path: Path
) -> None:
    alert = shell.api.alert("audited", severity=Severity.CRITICAL)
    shell.api.store(alert)
    name = f"on-call-{shell.api.cluster}"
    scopes = (Scope.ACK, Scope.ADMIN)
    file = tmp_path / "token"
    file.write_text(tokens.create(shell.api.engine, name, scopes, shell.api.now))
    shell("alerts ack", alert.fingerprint, "--comment", "mine", "--token-file", str(file))
    (row,) = shell.json("audit --who", name)["audit"]
    assert (row["what"], row["target"]) == ("alert.acknowledge", alert.fingerprint)
    assert row["why"] == "mine"
    assert name in shell("audit --target", alert.fingerprint)
    told = shell(
        "silences add a=b --for 1h --comment x --token-file",
        str(file),
        code=ExitCode.AUTHENTICATION,
    )
    assert "scope silence" in told
