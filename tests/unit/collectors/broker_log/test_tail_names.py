"""Which files a rotation left of a log, by their names."""

from __future__ import annotations

import pytest

from collectors.broker_log.rotated_names import is_rotated, logs_of, natural, plain_name

LOG = "/logs/server.log"


@pytest.mark.parametrize(
    "name",
    [
        "server.log.1",
        "server.log.12",
        "server.log.2026-11-21-10",
        "server.log.2026-11-21_10",
        "server.log-20261121",
        "server.log-20261121.1",
        "server.log.20261121-101500",
        "server.log.1.gz",
        "server.log.2026-11-21-10.zst",
        "server-1.log",
        "server-2026-11-21-1.log",
        "server-2026-11-21-1.log.gz",
        "server.2026-11-21.log",
    ],
)
def test_numbers_and_dates_are_rotations(name: str) -> None:
    assert is_rotated(f"/logs/{name}", LOG)


@pytest.mark.parametrize(
    "path",
    [
        LOG,
        "/logs/server.log.keep",
        "/logs/server.log.1.keep",
        "/logs/server.log.bak.1",
        "/logs/server.log.",
        "/logs/server-gc.log",
        "/logs/server.log.gz",
        "/logs/myserver.log.1",
        "/logs/server.logs.1",
        "/other/server.log.1",
        "/logs/.1",
    ],
)
def test_anything_else_is_none(path: str) -> None:
    assert not is_rotated(path, LOG)


def test_a_log_without_an_ending_is_rotated_too() -> None:
    assert is_rotated("/logs/kafka.1", "/logs/kafka")
    assert is_rotated("/logs/kafka-2026-11-21", "/logs/kafka")


def test_of_what_a_pattern_matches_only_logs_are_read_as_such() -> None:
    found = [LOG, f"{LOG}.1", f"{LOG}.2.gz", "/logs/controller.log", f"{LOG}.keep"]
    assert logs_of(found) == ["/logs/controller.log", LOG, f"{LOG}.keep"]


def test_what_was_rotated_of_nothing_is_a_log() -> None:
    assert logs_of([f"{LOG}.2026-11-21-10"]) == [f"{LOG}.2026-11-21-10"]


def test_a_compressed_file_had_a_name_before() -> None:
    assert plain_name(f"{LOG}.1.gz") == f"{LOG}.1"
    assert plain_name(LOG) == LOG


def test_names_are_ordered_as_people_count() -> None:
    assert sorted([f"{LOG}.10", f"{LOG}.9"], key=natural) == [f"{LOG}.9", f"{LOG}.10"]
