"""A round as tables: what is absent is "-", what is wrong is seen, names stay names."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rules.facts.column import Column, Ragged
from rules.facts.snapshot import Snapshot
from service.cli.collect.snapshot_table import snapshot_tables
from service.terminal.parts import SHOWN
from service.terminal.plain import PIPED_WIDTH
from service.terminal.screen import console
from tests.factories import (
    commits,
    gap,
    group,
    offsets,
    partitions,
    quorum,
    snapshot,
    unseen_offsets,
)


def lines(seen: Snapshot, *, all_rows: bool = False) -> list[str]:
    """Return what a pipe gets, line by line, without the spaces at its ends."""
    out: Console = console()
    out.file = io.StringIO()
    out.width = PIPED_WIDTH
    out.print(snapshot_tables(seen, all_rows=all_rows))
    return [line.strip() for line in out.file.getvalue().splitlines()]


def cells(seen: Snapshot, begin: str, *, all_rows: bool = False) -> list[str]:
    (line,) = [line for line in lines(seen, all_rows=all_rows) if line.startswith(begin)]
    return line.split()


def one(**columns: list[int | None]) -> Snapshot:
    return snapshot(partitions=partitions({"orders": 1}), offsets=offsets(1, **columns))


def test_a_partition_unchanged_in_one_line_with_its_spans() -> None:
    seen = one(last_stable_offset=[90], high_watermark=[95], log_end_offset=[99])
    assert cells(seen, "orders-0") == [
        "orders-0", "1", "5", "1,2,3", "/", "1,2,3", "0", "90", "95", "99", "5", "4",
    ]  # fmt: skip


def test_what_was_not_seen_is_a_dash_never_a_zero() -> None:
    placed = partitions(
        {"orders": 1},
        leader=Column.absent(1),
        isr=Ragged.of([None]),
        replicas=Ragged.of([None]),
    )
    blind = snapshot(partitions=placed, offsets=unseen_offsets(1), quorum=quorum(None))
    assert cells(blind, "orders-0") == ["orders-0", "-", "-", "-", "/", "-", *["-"] * 6]
    assert "controller - " in lines(blind)[0]


def test_a_span_of_nothing_is_zero_not_a_dash() -> None:
    assert cells(one(), "orders-0")[-2:] == ["0", "0"]


def test_the_head_says_how_the_round_went() -> None:
    head = lines(snapshot())[0]
    assert head == (
        "cluster default (AAAAAAAAQACAAAAAAAAAAQ)  3 brokers, controller 1  12:00:00 UTC  "
        "round 12 ms, 5 requests, no gaps"
    )


def test_a_gap_is_named_with_its_reason() -> None:
    told = "\n".join(lines(snapshot(gaps=(gap(),))))
    assert "1 gap" in told
    assert "offsets of 3 partitions (orders-0, orders-1, orders-2)" in told
    assert "127.0.0.1:9091: no answer within 5.0 s" in told


def test_quiet_internal_partitions_are_counted_instead_of_listed() -> None:
    placed = partitions({"__consumer_offsets": 3, "orders": 1})
    held = offsets(4, last_stable_offset=[100, 90, None, 100])
    seen = snapshot(partitions=placed, offsets=held)
    listed = [line.split()[0] for line in lines(seen) if line.startswith(("__consumer", "orders"))]
    assert listed == ["__consumer_offsets-1", "__consumer_offsets-2", "orders-0"]
    assert "1 internal partitions in order (--all lists them)" in "\n".join(lines(seen))
    assert cells(seen, "__consumer_offsets-0", all_rows=True)[-2:] == ["0", "0"]


def test_more_rows_than_a_person_reads_are_cut_and_counted() -> None:
    many = SHOWN + 7
    seen = snapshot(partitions=partitions({"orders": many}))
    assert sum(line.startswith("orders-") for line in lines(seen)) == SHOWN
    assert "7 more rows (--all, or -o json)" in "\n".join(lines(seen))
    assert sum(line.startswith("orders-") for line in lines(seen, all_rows=True)) == many


def test_a_group_shows_both_lags_of_each_commit() -> None:
    seen = snapshot(
        groups=(group("billing"),),
        offsets=offsets(last_stable_offset=[90, 100, None], high_watermark=[95, 100, None]),
        commits=commits((0, 0, 80), (0, 1, 100), (0, 2, 7), nothing_to_read=[0, 1, None]),
    )
    table = lines(seen)
    begin = next(place for place, line in enumerate(table) if line.startswith("billing"))
    assert [line.split() for line in table[begin : begin + 3]] == [
        ["billing", "consumer", "Stable", "1", "orders-0", "80", "10", "15", "no"],
        ["orders-1", "100", "0", "0", "yes"],
        ["orders-2", "7", "-", "-", "-"],
    ]


def test_a_group_without_commits_says_so() -> None:
    seen = snapshot(groups=(group("new", state=None, member_count=None),))
    assert cells(seen, "new") == [
        *("new", "consumer", "-", "-"),
        *("no", "commit", "on", "the", "topics", "shown"),
    ]


@pytest.mark.parametrize("width", [60, 80, 99])
def test_a_narrow_screen_shortens_names_and_never_a_number(width: int) -> None:
    ends = offsets(
        last_stable_offset=[1234567890] * 3,
        high_watermark=[1234567891] * 3,
        log_end_offset=[1234567899] * 3,
    )
    shown = io.StringIO()
    seen = snapshot(offsets=ends)
    Console(file=shown, width=width).print(snapshot_tables(seen, width=width))
    assert all(number in shown.getvalue() for number in ("1234567890", "1234567891", "1234567899"))


def test_gaps_stand_before_the_tables_that_a_short_screen_cuts() -> None:
    told = "\n".join(lines(snapshot(gaps=(gap(),))))
    assert told.index("NOT SEEN") < told.index("PARTITIONS")


@pytest.mark.parametrize("name", ["[bold]", "[/x]", ":warning:", "a[red]b", "[::1]"])
def test_a_name_is_shown_as_it_is_whatever_it_observations_like(name: str) -> None:
    seen = snapshot(groups=(group(name),), gaps=(gap(what=f"group {name}"),))
    told = "\n".join(lines(seen))
    assert f"{name} " in told
    assert f"group {name}" in told


@pytest.mark.parametrize("width", [60, 99, PIPED_WIDTH])
def test_names_of_others_cannot_steer_the_terminal(width: int) -> None:
    foreign = "evil\n\x1b[2J\r\0\u202e"
    seen = snapshot(
        groups=(group(foreign),),
        commits=commits((0, 0, 80)),
        gaps=(gap(what=f"group {foreign}", why=f"{foreign} says so"),),
    )
    out = io.StringIO()
    Console(file=out, width=width).print(snapshot_tables(seen, width=width))
    assert out.getvalue().replace("\n", "").isprintable()
    assert r"evil\n\u001b[2J" in "".join(out.getvalue().split())
