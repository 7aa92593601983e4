"""What a person reads of events: never a number that nobody knows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from service.cli.sequence import clients, tables
from service.cli.sequence.queries import SequenceReport
from service.terminal.parts import SHOWN
from service.views.sequences import LeaderChange, RejectedBatch, sequence_event
from tests.factories import at
from tests.unit.service.api.sequences.sequences import LOSS, REORDERING, SUSPECTED, episode_of
from tests.unit.service.cli.printing import printed


def row(observations: Any = LOSS, **overrides: Any) -> dict[str, Any]:
    return sequence_event(episode_of(*observations)).to_row() | overrides


def known(*rows: dict[str, Any], errors: tuple[str, ...] = ()) -> SequenceReport:
    return SequenceReport(
        server="http://a", cluster="default", as_of=None, name="sequences", rows=rows, errors=errors
    )


def test_a_proven_loss_is_one_line() -> None:
    line = printed([tables.table([row(id="0123456789ab")])]).splitlines()[1]
    assert re.split(r"  +", line.strip()) == [
        "loss (confirmed)", "orders-0", "7/0", "3", "27", "24", "[100, 124) 24", "-",
        "06-02 12:00:11", "0123456789ab",
    ]  # fmt: skip


def test_what_became_of_the_transaction_is_in_the_list_and_in_the_details() -> None:
    failed = row(REORDERING, transaction="timed_out", transactional_id="payments")
    assert "  timed_out  " in printed([tables.table([failed])]).splitlines()[1]
    details = printed(tables.render_details(failed))
    assert re.search(r"transaction +timed out, transactional id payments\n", details)
    assert "transaction " not in printed(tables.render_details(row(REORDERING)))


def test_what_is_only_suspected_has_an_upper_bound_and_no_range() -> None:
    line = printed([tables.table([row(SUSPECTED)])]).splitlines()[1]
    assert "loss (suspected)" in line
    assert "  at most 24 records  " in line


def test_what_is_harmless_has_lost_nothing() -> None:
    line = printed([tables.table([row(REORDERING)])]).splitlines()[1]
    assert re.split(r"  +", line.strip())[:7] == [
        "reordering (confirmed)", "orders-0", "7/0", "3", "6", "3", "-",
    ]  # fmt: skip


def test_the_list_counts_the_worst_first_and_says_whether_that_is_all() -> None:
    assert "no event is known  complete" in printed(tables.render_list(known()))
    told = printed(tables.render_list(known(row(REORDERING), row(), row(), errors=("deaf",))))
    assert "as of -  2 loss (confirmed), 1 reordering (confirmed)  not complete" in told
    assert "tidemark sequence show ID" in told


def test_one_in_full_says_what_speaks_for_it_and_what_to_do() -> None:
    episode = episode_of(*LOSS)
    more = {
        "lines": RejectedBatch.rows_of(episode.rejections),
        "changes": LeaderChange.rows_of(episode.changes),
    }
    told = printed(tables.render_details(row() | more))
    assert told.splitlines()[0] == "loss (confirmed)  orders-0  producer 7/0"
    facts = re.findall(r"(?m)^  (\w[^\n]*?)  +(.+)$", told)
    labels = [label for label, _ in facts]
    assert labels.index("sequence") < labels.index("explanation") < labels.index("check")
    by_label = dict(facts)
    assert by_label["sequence"] == "expected 3, got 27: 24 records are missing before it"
    assert by_label["lost"] == "[100, 124) 24 offsets"
    assert by_label["next"] == "tidemark loss show orders-0"
    assert by_label["batch"] == "sequence 27 after 2 at offset 100, 2 times"
    assert by_label["change"] == "broker 1 to 2 in leader epoch 6: lost, without [100, 124)"
    assert by_label["state"] == "open"
    assert ("for", "24 records are missing, and up to 4 may be in flight before it") in facts
    assert "would decide" not in labels
    assert "None" not in told


def test_one_is_no_plural() -> None:
    one = row() | {"lost_from": 100, "lost_to": 101, "lost_offsets": 1}
    assert tables.lost(one) == "[100, 101) 1 offset"
    assert tables.lost({"class": "loss", "at_most_records": 1}) == "at most 1 record"
    told = printed(
        tables.render_details(row() | {"lines": [{"incoming_sequence": 4, "rejections": 1}]})
    )
    assert "sequence 4 after -, 1 time\n" in told


def test_one_that_is_not_settled_says_what_would_decide() -> None:
    told = printed(tables.render_details(row(SUSPECTED)))
    assert "\n  would decide " in told
    assert "open, and the next rounds search for evidence" in told


def test_a_verdict_says_whose_it_is_where_numbers_say_less() -> None:
    numbers = {"class": "loss", "phase": "suspected", "reason": "large_gap"}
    told = printed(tables.render_details(row(verdict_by="service", by_numbers=numbers)))
    assert "the service; by the numbers: loss (suspected)" in told
    told = printed(tables.render_details(row(verdict_by="numbers", by_numbers=numbers)))
    assert re.search(r"\n  by +the numbers alone\n", told)


def test_a_row_of_another_version_is_shown_as_far_as_it_goes() -> None:
    bare = {"class": "settled", "topic": "orders", "partition": 0, "first_seen": "soon"}
    bare["lines"] = [{}]
    told = printed([*tables.render_list(known(bare, bare)), *tables.render_details(bare)])
    assert "\nsettled  orders-" in told
    assert told.count("None") == 0


def test_more_events_than_a_person_reads_are_counted() -> None:
    rows = [row()] * (SHOWN + 1)
    assert "1 more (-o wide)" in printed([tables.table(rows)])
    assert f"{SHOWN + 1 - tables.IN_FULL} more (-o wide)" in printed(
        tables.render_all_details(rows)
    )


def test_a_name_cannot_write_to_the_screen() -> None:
    name = "a\n  1. Start broker 1\x1b[2J"
    odd = row(topic=name, next_command=name, lines=[{"proof": name}])
    for told in (printed([tables.table([odd])]), printed(tables.render_details(odd))):
        assert "\x1b" not in told
        assert "\n  1. Start broker 1" not in told


CLIENT = {
    "client_id": "payments",
    "address": "app-1:8081",
    "topic": "orders",
    "errors": 0,
    "errors_since": None,
    "errors_until": None,
    "retries": 5,
    "retries_since": "2025-06-02T12:00:05.000+00:00",
    "retries_until": "2025-06-02T12:00:20.000+00:00",
}
TIMES = "2025-06-02 12:00:05 UTC to 2025-06-02 12:00:20 UTC"
OTHER_TIMES = "2025-06-02 12:00:00 UTC to 2025-06-02 12:00:15 UTC"
ERRORS_BY_SUM = CLIENT | {
    "topic": None,
    "errors": 1,
    "errors_since": at(0).isoformat(),
    "errors_until": at(15).isoformat(),
    "retries": None,
}
BY_SUM = (
    "payments at app-1:8081 (of all its topics together): 1 failed record, "
    f"{OTHER_TIMES}; retried records, of unknown number, {TIMES}"
)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        pytest.param({}, [], id="of an older Tidemark"),
        pytest.param(
            {"client_metrics": "not_read"},
            [("clients", "not known: no metrics of clients are read")],
            id="not read",
        ),
        pytest.param(
            {"client_metrics": "complete", "record_errors": [CLIENT], "record_error_clients": 3},
            [
                ("client", f"payments at app-1:8081: 5 retried records, {TIMES}"),
                ("clients", "2 more had records fail, or sent them again"),
            ],
            id="retries alone",
        ),
        pytest.param(
            {
                "client_metrics": "complete",
                "record_errors": [ERRORS_BY_SUM],
                "record_error_clients": 1,
            },
            [("client", BY_SUM)],
            id="errors, and retries by a rate",
        ),
        pytest.param(
            {"client_metrics": "incomplete", "record_errors": [], "record_error_clients": 0},
            [("clients", clients.NOT_WHOLE)],
            id="silence is not none",
        ),
        pytest.param(
            {"client_metrics": "complete", "record_errors": [], "record_error_clients": 0},
            [("clients", "none of those that report it had records fail, or sent them again")],
            id="none",
        ),
    ],
)
def test_clients_that_rose_are_named_and_silence_is_not_none(
    evidence: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert list(clients.client_facts({"evidence": evidence})) == expected
