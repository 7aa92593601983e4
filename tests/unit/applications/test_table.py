"""The row of a run."""

from __future__ import annotations

from tests.applications.table import Row, render_table


def test_a_run_is_a_row_of_markdown() -> None:
    row = Row(
        application="Kafka Streams",
        seconds=905,
        records=135000,
        transactions=9001,
        kills=8,
        longest_pause=12.34,
        watched="with logs, 5 s",
        rounds=181,
        complete=181,
        findings="none",
    )
    head, rule, line = render_table([row]).splitlines()
    assert head.startswith("| application | minutes |")
    assert head.count("|") == rule.count("|") == line.count("|")
    assert line == (
        "| Kafka Streams | 15.1 | 135,000 | 9,001 | 8 | 12.3 s | with logs, 5 s | 181 | 181 | none |"
    )
