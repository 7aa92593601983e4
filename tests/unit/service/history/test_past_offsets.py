"""What is read of past rounds is what they had, and what is damaged or missing is never a value."""

from __future__ import annotations

import errno
import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.history.offset_writer import (
    FULL_EVERY,
    OffsetWriter,
    offset_files,
    remove_old_offsets,
)
from service.history.past_offsets import PastOffsets
from service.runtime.events import Event
from tests.factories import at, commits, group, offsets, partitions, snapshot
from tests.unit.service.runtime.recorded_log import RecordedLog

INTERVAL = timedelta(seconds=15)
FAR = 2**53 + 1  # no float has it


def a_round(seconds: float, end: int = FAR, **overrides: Any) -> Any:
    """Return a round of topic orders with three partitions, of which the last one is not known."""
    base: dict[str, Any] = {
        "taken_at": at(seconds),
        "groups": (group("billing"), group("audit")),
        "commits": commits((0, 0, end - 7), (1, 1, end + 5)),
        "offsets": offsets(
            log_start_offset=[3, 4, None],
            last_stable_offset=[end - 2, end - 2, None],
            high_watermark=[end - 1, end - 1, None],
            log_end_offset=[end, end, None],
        ),
    }
    return snapshot(**base | overrides)


def write(folder: Path, *rounds: Any) -> PastOffsets:
    writer = OffsetWriter(folder, RecordedLog().log)
    for each in rounds:
        writer.append(each)
    writer.close()
    return PastOffsets(folder, INTERVAL)


def test_offsets_are_exact_after_many_changes_and_a_restart(tmp_path: Path) -> None:
    count = 2 * FULL_EVERY + 5
    write(tmp_path, *(a_round(15 * n, FAR + 1000 * n) for n in range(count)))
    past = write(tmp_path, *(a_round(15 * n, FAR + 1000 * n) for n in range(count, count + 3)))
    for number in (0, 1, FULL_EVERY, count - 1, count, count + 2):
        found = past.at(at(15 * number + 4))
        assert found.at == at(15 * number)
        assert found.offsets is not None
        end = FAR + 1000 * number
        assert found.offsets.log_end_offset.to_list() == [end, end, None]
        assert found.offsets.high_watermark.to_list() == [end - 1, end - 1, None]
        assert found.offsets.last_stable_offset.to_list() == [end - 2, end - 2, None]
        assert found.offsets.log_start_offset.to_list() == [3, 4, None]
        assert found.offsets.committed_offset.tolist() == [end - 7, end + 5]
        assert found.offsets.names.groups == ("billing", "audit")
        assert not found.unreadable


def test_partitions_and_commits_may_change_between_rounds(tmp_path: Path) -> None:
    other: dict[str, Any] = {
        "partitions": partitions({"a": 1, "z": 2}),
        "commits": commits((0, 2, 8)),
    }
    past = write(tmp_path, a_round(0), a_round(15, **other), a_round(30))
    found = past.at(at(15)).offsets
    assert found is not None
    assert found.names.index.topics == ("a", "z")
    assert np.array_equal(found.names.row, [2])
    assert found.committed_offset.tolist() == [8]
    assert past.at(at(30)).offsets is not None


def test_a_time_without_a_round_within_an_interval_is_not_known(tmp_path: Path) -> None:
    past = write(tmp_path, a_round(0), a_round(2 * 3600))
    between = past.at(at(600))
    assert (between.offsets, between.before, between.after) == (None, at(0), at(7200))
    assert past.at(at(15)).at == at(0)
    assert past.at(at(15.5)).offsets is None
    first = past.at(at(-15))
    assert (first.at, first.before, first.after) == (at(0), None, at(0))
    assert PastOffsets(tmp_path / "none", INTERVAL).at(at(0)).before is None


@pytest.mark.parametrize("place", [0.3, 0.6])
def test_no_value_is_made_of_a_damaged_record(tmp_path: Path, place: float) -> None:
    rounds = [a_round(15 * n, FAR + 1000 * n) for n in range(3 * FULL_EVERY)]
    past = write(tmp_path, *rounds)
    ((_, path),) = offset_files(tmp_path)
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0xFF
    path.write_bytes(content)
    unknown = 0
    for number in range(len(rounds)):
        found = past.at(at(15 * number))
        assert found.unreadable
        if found.offsets is None or found.at != at(15 * number):
            unknown += 1
            continue
        assert found.offsets.log_end_offset[0] == FAR + 1000 * number
    assert 0 < unknown <= FULL_EVERY + 1


def test_a_torn_end_leaves_the_rounds_before_it(tmp_path: Path) -> None:
    past = write(tmp_path, a_round(0), a_round(15))
    ((_, path),) = offset_files(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    found = past.at(at(1))
    assert (found.at, found.after, found.unreadable) == (at(0), None, {})
    assert write(tmp_path, a_round(30)).at(at(30)).at == at(30)


def test_a_full_disk_is_logged_once_and_costs_only_the_rounds_of_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, write_all = RecordedLog(), os.pwrite
    writer = OffsetWriter(tmp_path, log.log)

    def write_half(file: int, data: memoryview, place: int) -> int:
        write_all(file, data[: len(data) // 2], place)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer.append(a_round(0))
    monkeypatch.setattr(os, "pwrite", write_half)
    writer.append(a_round(60))
    writer.append(a_round(120))
    monkeypatch.undo()
    writer.append(a_round(180))
    writer.close()
    past = PastOffsets(tmp_path, INTERVAL)
    assert [past.at(at(60 * n)).at for n in range(4)] == [at(0), None, None, at(180)]
    assert past.at(at(60)).unreadable, "what was cut may have been that round"
    assert [event for event in log.names if event == Event.HISTORY_AWAY] == [Event.HISTORY_AWAY]


def test_old_files_are_removed_by_their_day(tmp_path: Path) -> None:
    write(tmp_path, a_round(-86_400), a_round(0))
    (tmp_path / "notes.txt").touch()
    today: date = at(0).date()
    assert remove_old_offsets(tmp_path, today) == 1
    assert [hour.date() for hour, _ in offset_files(tmp_path)] == [today]
    assert (tmp_path / "notes.txt").exists()
