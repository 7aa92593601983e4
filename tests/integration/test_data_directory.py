"""One service per folder: who holds it is named, and the hold goes with the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from rules.errors import StoreError
from service.runtime.data_directory import LOCK_NAME, DataDirectory

pytestmark = pytest.mark.integration

HOLDER: Final = """
import sys
from pathlib import Path
from service.runtime.data_directory import DataDirectory

with DataDirectory(Path(sys.argv[1])):
    print("holds it", flush=True)
    sys.stdin.read()
"""
Hold = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Let another process hold the folder until its stdin ends."""
    started: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds it\n"
        return holder

    yield begin
    for holder in started:
        holder.kill()
        holder.communicate()


def rejection(path: Path) -> StoreError:
    with pytest.raises(StoreError) as raised, DataDirectory(path):
        pass
    assert not raised.value.retryable
    assert len(str(raised.value).splitlines()) == 1
    return raised.value


def test_a_second_service_is_rejected_and_told_who_holds_the_folder(
    tmp_path: Path, hold: Hold
) -> None:
    holder = hold()
    assert str(rejection(tmp_path)) == (
        f"data directory {tmp_path} is in use by another Tidemark service "
        f"(process {holder.pid}): stop it, or give this one a --data-dir of its own"
    )
    assert str(rejection(tmp_path)).count(str(holder.pid)) == 1, "a rejected one does not sign"


def test_the_hold_goes_with_a_process_that_is_killed(tmp_path: Path, hold: Hold) -> None:
    holder = hold()
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    with DataDirectory(tmp_path):
        assert (tmp_path / LOCK_NAME).read_text() == str(os.getpid())


def test_a_child_that_outlives_its_parent_does_not_keep_the_hold(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        )
    try:
        with DataDirectory(tmp_path):
            pass
    finally:
        child.communicate()


def test_the_folder_is_made_and_can_be_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there yet"
    for _ in range(2):
        with DataDirectory(path) as taken:
            assert taken.path == path
            assert (path / LOCK_NAME).is_file()


@pytest.mark.parametrize("written", [b"", b"\xff\xfe nonsense", b"-7"])
def test_a_lock_file_that_somebody_wrote_into_names_nobody_wrong(
    tmp_path: Path, hold: Hold, written: bytes
) -> None:
    hold()
    (tmp_path / LOCK_NAME).write_bytes(written)
    told = str(rejection(tmp_path))
    assert "is in use by another Tidemark service" in told
    assert "nonsense" not in told


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    assert str(rejection(file)) == f"data directory {file}: file exists"
    assert str(rejection(file / "below")) == f"data directory {file / 'below'}: not a directory"
    assert file.read_text() == "in the way"


def test_a_folder_in_place_of_the_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).mkdir()
    assert str(rejection(tmp_path)) == f"data directory {tmp_path}: is a directory"


def test_a_place_where_nobody_may_write_is_told() -> None:
    path = Path("/proc/tidemark")  # read-only for root too
    assert str(rejection(path)).startswith(f"data directory {path}: ")


def test_a_disk_without_room_for_the_owner_is_told_and_nothing_is_held(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).symlink_to("/dev/full")
    assert str(rejection(tmp_path)) in {
        f"data directory {tmp_path}: no space left on device",
        f"data directory {tmp_path}: invalid argument",  # a device cannot be cut to no length
    }
    (tmp_path / LOCK_NAME).unlink()
    with DataDirectory(tmp_path):
        pass
