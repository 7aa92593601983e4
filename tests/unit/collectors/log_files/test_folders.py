"""Which logs are found below paths, and what is said of everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.log_files.folders import LogPaths, find_logs
from rules.facts.identity import TopicPartition
from rules.facts.log_files import ProblemKind
from rules.facts.log_folders import FolderState
from rules.facts.log_states import EpochStart
from tests.unit.collectors.log_files.files import (
    BASE,
    TOPIC_ID,
    checkpoint_text,
    index_bytes,
    snapshot_bytes,
    write_log,
)

ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log directory with two partitions and what is around them."""
    directory = tmp_path / "data"
    folder = write_log(directory / "orders-eu-3", b"", b"", bases=(0, 100))
    (folder / f"{BASE}.snapshot").write_bytes(snapshot_bytes())
    (folder / f"{BASE}.txnindex").write_bytes(index_bytes())
    (folder / "leader-epoch-checkpoint").write_text(checkpoint_text("4 0"))
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    write_log(directory / f"orders-eu-3.{ID}-delete", b"")
    for name, line in {
        "replication": "orders-eu 3 77",
        "log-start": "orders-eu 3 5",
        "recovery-point": "orders-eu 3 70",
        "cleaner": "other 0 1",
    }.items():
        (directory / f"{name}-offset-checkpoint").write_text(checkpoint_text(line))
    (directory / "meta.properties").write_text("version=1\n")
    (directory / "lost+found").mkdir()
    return directory


def kinds(found: LogPaths) -> list[ProblemKind]:
    problems = [*found.problems, *(problem for log in found.logs for problem in log.problems)]
    return [problem.kind for problem in problems]


def test_a_log_directory_has_its_partitions_and_their_offsets(directory: Path) -> None:
    found = find_logs([directory])
    assert kinds(found) == []
    live, deleted = found.logs
    assert (live.name, live.state) == (TopicPartition("orders-eu", 3), FolderState.LIVE)
    assert [segment.base_offset for segment in live.segments] == [0, 100]
    assert live.topic_id == TOPIC_ID
    assert live.epochs is not None
    assert live.epochs.epochs == (EpochStart(4, 0),)
    assert (live.high_watermark, live.log_start_offset, live.recovery_point) == (77, 5, 70)
    assert not live.is_cleaned
    assert (deleted.name, deleted.state) == (TopicPartition("orders-eu", 3), FolderState.DELETED)
    assert deleted.high_watermark is None, "the checkpoint is of the live partition"


def test_the_folder_of_a_partition_has_what_stands_beside_it(directory: Path) -> None:
    [log] = find_logs([directory / "orders-eu-3"]).logs
    assert (log.high_watermark, len(log.segments)) == (77, 2)


def test_a_file_is_a_log_of_one_segment(directory: Path) -> None:
    [log] = find_logs([directory / "orders-eu-3" / f"{100:020}.log"]).logs
    assert [segment.base_offset for segment in log.segments] == [100]
    assert log.snapshots == ()


def test_a_copy_under_other_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "saved.log").write_bytes(b"")
    folder = write_log(tmp_path / "copy of broker two", b"")
    found = find_logs([tmp_path / "saved.log", folder])
    assert [log.name for log in found.logs] == [None, None]
    assert kinds(found) == []
    assert {segment.base_offset for log in found.logs for segment in log.segments} == {None, 0}


def test_each_file_counts_once(directory: Path) -> None:
    folder = directory / "orders-eu-3"
    found = find_logs([directory, folder, folder / f"{BASE}.log"])
    assert [len(log.segments) for log in found.logs] == [2, 1]


def test_a_checkpoint_may_be_read_by_itself(directory: Path) -> None:
    found = find_logs([directory / "replication-offset-checkpoint"])
    [checkpoint] = found.checkpoints
    assert checkpoint.offsets == {TopicPartition("orders-eu", 3): 77}
    assert found.logs == ()


def test_a_directory_of_another_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print()\n")
    found = find_logs([tmp_path, tmp_path / "app.py"])
    assert kinds(found) == [ProblemKind.NOT_KAFKA, ProblemKind.NOT_KAFKA]
    assert found.logs == ()


def test_an_index_without_its_segment_is_named(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "orders-0", b"", bases=(7,))
    (folder / f"{7:020}.index").write_bytes(b"")
    (folder / f"{BASE}.timeindex").write_bytes(b"")
    found = find_logs([folder])
    assert kinds(found) == [ProblemKind.NO_LOG]
    assert found.logs[0].problems[0].path.endswith(f"{BASE}.timeindex")


def test_what_compaction_left_behind_shows_compaction(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "orders-0", b"")
    (folder / f"{BASE}.log.cleaned").write_bytes(b"")
    [log] = find_logs([folder]).logs
    assert log.is_cleaned
    assert len(log.segments) == 1
