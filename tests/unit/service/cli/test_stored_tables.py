"""What a person reads of silences, receivers, deliveries, changes and jobs."""

from __future__ import annotations

import re

from service.cli import audit, deliveries, jobs, receivers, silences
from tests.factories import at
from tests.unit.service.cli.api_rows import (
    SILENCE_ID,
    attempt,
    delivery,
    job,
    receiver,
    run,
    silence,
)
from tests.unit.service.cli.printing import printed


def cells(told: str, row: int = 1) -> list[str]:
    return re.split(r"  +", told.splitlines()[row].strip())


def test_a_silence_is_one_line_with_its_times_in_utc() -> None:
    told = printed([silences.SILENCES.table([silence()])])
    assert "until (UTC)" in told
    assert cells(told) == [
        "active",
        '{topic="orders"}',
        "2025-06-02 12:00:00",
        "2025-06-02 14:00:00",
        "ann",
        "broker 2 is being replaced",
        SILENCE_ID,
    ]
    assert re.search(
        r"until +2025-06-02 14:00:00 UTC\n",
        printed(silences.render_details({"silence": silence()})),
    )


def test_a_receiver_that_takes_nothing_says_why_and_since_when() -> None:
    told = printed([receivers.RECEIVERS.table([receiver()])])
    assert cells(told) == [
        "pager (default)",
        "webhook",
        "failing",
        "2 since 2025-06-02 12:00:01",
        "1",
        "-",
        "2025-06-02 12:00:09",
        "it answered 500",
        "https://pager.example:443/…",
    ]


def test_a_delivery_is_one_line() -> None:
    row = delivery(state="waiting", done_at=None, next_attempt_at=at(60), is_firing=False)
    assert cells(printed([deliveries.DELIVERIES.table([row])])) == [
        "7",
        "waiting",
        "pager",
        "resolved, 1 alert",
        "first notification",
        "1",
        "2025-06-02 12:00:01",
        "2025-06-02 12:01:00",
        '{}:{alertname="committed_records_lost"}',
    ]


def test_a_delivery_in_full_has_its_attempts_and_its_body() -> None:
    row = delivery(state="dead", dead_reason="it is gone", replay_of=3)
    document = {
        "delivery": row,
        "attempts": [
            attempt(),
            attempt(took_ms=None, outcome="dead"),
            attempt(status=410, failure="gone", reply="no\x1b[2J more"),
        ],
        "body": {"alerts": [{"labels": {"topic": "a\x1bb"}}]},
    }
    told = printed(deliveries.render_details(document))
    assert told.startswith("DEAD  delivery 7 to pager\n")
    assert re.search(r"given up +it is gone\n", told)
    assert re.search(r"replay of +delivery 3, by hand\n", told)
    assert re.search(r"12:00:01 +12 ms +retry +410 +gone", told)
    assert re.search(r"12:00:01 +- +dead", told), "nothing could be sent"
    assert re.search(r"last answer +no\\u001b\[2J more\n", told)
    assert '"topic": "a\\u001bb"' in told
    assert "no longer stored" in printed(deliveries.render_details({**document, "body": None}))


def test_a_job_tells_its_last_run_and_all_of_them() -> None:
    told = printed([jobs.JOBS.table([job(outcome="failed", detail="database away")])])
    assert cells(told) == [
        "retention",
        "every hour",
        "2025-06-02 13:00:00",
        "2025-06-02 12:00:00",
        "failed",
        "3 s",
        "database away",
    ]
    full = printed(jobs.render_details(job(), [run()]))
    assert re.search(r"succeeded +3 s +- +removed 12", full)
    waiting = printed(jobs.render_details(job(waits_for="the database"), []))
    assert re.search(r"waits for +the database\n", waiting)
    assert "It has not run yet." in printed(jobs.render_details(job(), []))


def test_a_change_tells_who_and_why() -> None:
    row = {
        "id": 1,
        "at": "2025-06-02T12:00:00Z",
        "who": "ann",
        "what": "silence.create",
        "target": SILENCE_ID,
        "why": "load\ntest",
        "details": {"matchers": "{}"},
        "cluster": "staging",
    }
    told = cells(printed([audit.AUDIT.table([row])]))
    assert told == [
        "2025-06-02 12:00:00",
        "staging",
        "ann",
        "silence.create",
        SILENCE_ID,
        "load\\ntest",
        '{"matchers": "{}"}',
    ]
