"""What is remembered of ends comes back from its file, and a damaged file is no reason to stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from rules.time_lag import EndHistory, time_lags
from service.history.kept_ends import FILE, KeptEnds
from service.runtime.events import Event
from tests.ends import observed
from tests.factories import commits, group, offsets, partitions, snapshot
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration

LATEST = snapshot(
    partitions=partitions({"audit": 1, "orders": 1}),
    offsets=offsets(2, high_watermark=[5000, None], last_stable_offset=[4000, None]),
    groups=(group(),),
    commits=commits((0, 0, 3900)),
)


def history() -> EndHistory:
    """Return what is remembered after forty observes two partitions; one was never seen."""
    found = None
    for second in range(40):
        seen = offsets(
            2, high_watermark=[125 * second, None], last_stable_offset=[100 * second, None]
        )
        placed = LATEST.partitions
        found = observed(found, second, snapshot(partitions=placed, offsets=seen))
    return observed(found, 40, LATEST)


def kept(folder: Path, current: EndHistory | None = None) -> tuple[KeptEnds, RecordedLog]:
    told = RecordedLog()
    made = KeptEnds(folder / FILE, stop=asyncio.Event(), log=told.log)
    made.current = lambda: current
    return made, told


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    saved = history()
    kept(tmp_path, saved)[0].save()
    again = kept(tmp_path)[0].load()
    assert again is not None
    assert len(saved.blocks) > 1
    assert again.size_bytes == saved.size_bytes
    for old, new in (
        (time_lags(saved, LATEST), time_lags(again, LATEST)),
        (
            time_lags(observed(saved, 60, LATEST), LATEST),
            time_lags(observed(again, 60, LATEST), LATEST),
        ),
    ):
        assert np.array_equal(old.read_committed.seconds, new.read_committed.seconds)
        assert np.array_equal(old.read_uncommitted.seconds, new.read_uncommitted.seconds)
    assert new.read_committed.seconds[0] == pytest.approx(20.98, abs=0.1)


def test_nothing_is_there_before_the_first_time(tmp_path: Path) -> None:
    made, told = kept(tmp_path)
    assert (made.load(), told.names) == (None, [])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_torn_file_is_set_aside_and_told(tmp_path: Path, share: float) -> None:
    kept(tmp_path, history())[0].save()
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: int(len(whole) * share)])
    made, told = kept(tmp_path)
    assert made.load() is None
    assert told.names == [Event.HISTORY_DAMAGED]
    assert not (tmp_path / FILE).exists()


def test_a_file_that_cannot_be_read_now_is_not_written_over(tmp_path: Path) -> None:
    kept(tmp_path, history())[0].save()
    whole = (tmp_path / FILE).rename(tmp_path / "whole")
    (tmp_path / FILE).symlink_to(tmp_path / "disk" / "whole")
    (tmp_path / "disk").symlink_to(tmp_path / "disk")  # each way to it is an error of the system
    made, told = kept(tmp_path, history())
    assert made.load() is None
    made.save()
    assert told.names == [Event.HISTORY_AWAY]
    (tmp_path / "disk").unlink()
    (tmp_path / "disk").mkdir()
    whole.rename(tmp_path / "disk" / "whole")
    assert kept(tmp_path)[0].load() is not None


def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    kept(tmp_path, history())[0].save()
    content = bytearray((tmp_path / FILE).read_bytes())
    content[len(content) // 3] ^= 1
    (tmp_path / FILE).write_bytes(content)
    made, told = kept(tmp_path)
    assert made.load() is None
    assert told.names == [Event.HISTORY_DAMAGED]


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    made, told = kept(tmp_path / "absent", history())
    made.save()
    made.save()
    assert told.names == [Event.HISTORY_AWAY]
