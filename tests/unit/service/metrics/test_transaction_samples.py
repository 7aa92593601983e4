"""How transactions are written: a histogram as the formats want it, and nothing that is not known."""

from __future__ import annotations

from dataclasses import replace

from rules.facts.column import Column
from rules.facts.transaction_log import TransactionLog
from rules.transactions.classes import TransactionClass
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.exposition import Exposition
from service.metrics.open_transactions import OpenTransactions
from tests.factories import at, ended, offsets, snapshot
from tests.unit.service.metrics.reading import (
    OPENMETRICS,
    TEXT,
    TOTALS,
    labelled,
    rendered,
)

HELD = snapshot(offsets=offsets(3, last_stable_offset=[90, 100, 95]))


def test_a_histogram_is_written_as_the_formats_want_it() -> None:
    totals = replace(
        TOTALS,
        ended=EndedTransactions().after(
            TransactionLog(
                is_read=True,
                ended=tuple(ended(started_at=at(-took)) for took in (0.5, 0.5, 60, 5000)),
            )
        ),
    )
    exposition = Exposition()
    exposition.update(snapshot(), totals)
    head = b'\ntidemark_kafka_transaction_duration_seconds_bucket{cluster="default",outcome='
    for accept in (TEXT, OPENMETRICS):
        body, _ = exposition.body(accept, gzip=False)
        lines = [
            line.removeprefix(head[1:]).removeprefix(b'"committed",le=')
            for line in body.splitlines()
            if line.startswith(head[1:] + b'"committed"')
        ]
        assert b"# TYPE tidemark_kafka_transaction_duration_seconds histogram\n" in body
        assert lines[5:9] == [b'"0.25"} 0', b'"0.5"} 2', b'"1.0"} 2', b'"2.5"} 2']
        assert lines[11:14] == [b'"30.0"} 2', b'"60.0"} 3', b'"75.0"} 3']
        assert lines[-2:] == [b'"900.0"} 3', b'"+Inf"} 4']
        name = b"\ntidemark_kafka_transaction_duration_seconds_"
        assert name + b'sum{cluster="default",outcome="committed"} 5061.0\n' in body
        assert name + b'count{cluster="default",outcome="committed"} 4\n' in body


def test_what_ended_is_absent_while_the_log_may_not_be_read() -> None:
    told = [name for name in rendered(snapshot()) if "_transaction_" in name]
    assert told == []


def test_nothing_that_ended_is_a_zero_because_that_is_known() -> None:
    totals = replace(TOTALS, ended=EndedTransactions().after(TransactionLog(is_read=True)))
    found = rendered(snapshot(), totals=totals)
    fencings = labelled(found, "tidemark_kafka_transaction_fencings_total", "cause")
    counts = labelled(found, "tidemark_kafka_transaction_duration_seconds_count", "outcome")
    assert fencings == {("second_instance",): 0.0, ("timeout",): 0.0}
    assert counts == {("committed",): 0.0, ("aborted",): 0.0}
    assert labelled(found, "tidemark_kafka_transaction_commits_total") == {(): 0.0}
    assert labelled(found, "tidemark_kafka_transaction_aborts_total") == {(): 0.0}


def test_what_is_open_is_absent_where_nobody_judged_it() -> None:
    found = rendered(HELD)
    assert not [name for name in found if "open_transactions" in name or name.endswith("_age")]


def test_a_class_without_a_transaction_is_a_zero_and_has_no_age() -> None:
    open_ = OpenTransactions(
        held_ms=Column.absent(3),
        counts={TransactionClass.OPEN: 1, TransactionClass.HANGING: 0},
        age_seconds={TransactionClass.OPEN: 2.5},
    )
    found = rendered(HELD, found=open_)
    assert labelled(found, "tidemark_kafka_open_transactions", "class") == {
        ("open",): 1.0,
        ("hanging",): 0.0,
    }
    ages = labelled(found, "tidemark_kafka_open_transactions_oldest_age_seconds", "class")
    assert ages == {("open",): 2.5}


def test_how_long_a_partition_is_held_is_told_in_seconds_where_it_is() -> None:
    open_ = OpenTransactions(held_ms=Column.of([61_500, None, 0]))
    ages = labelled(
        rendered(HELD, found=open_),
        "tidemark_kafka_partition_last_stable_offset_age_seconds",
        "partition",
    )
    assert ages == {("0",): 61.5, ("2",): 0.0}
