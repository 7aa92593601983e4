"""A writer that is killed at any time loses no round that it had told of."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import NOON
from tests.integration.history.persistence import INTERVAL, Kept
from tests.integration.history.test_history_kept import NOON_MS, SPAN, TODAY

pytestmark = pytest.mark.integration

KILLS = 3


def write_until_killed(path: Path, first: int, rounds: int) -> int:
    """Return the last round that the writer told of."""
    program = [sys.executable, "-m", "tests.integration.history.writer", str(path), str(first)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = first - 1
        for line in process.stdout:
            told = int(line)
            if told >= first + rounds:
                process.kill()  # and read on: what was told before it died counts
    return told


def test_no_round_that_was_told_is_lost(tmp_path: Path) -> None:
    draw, first, told = random.Random(NOON.year), 0, set[int]()
    for _ in range(KILLS):
        last = write_until_killed(tmp_path, first, draw.randint(1, 400))
        told.update(range(first, last + 1))
        first = last + 2
    kept = Kept(tmp_path)
    kept.shipper.ship()
    kept.fold()
    found = kept.days()[TODAY][SPAN]
    by_number = {round((at_ms - NOON_MS) / 1000 / INTERVAL): end for at_ms, end in found.items()}
    assert by_number.keys() >= told
    assert len(by_number.keys() - told) <= KILLS
    assert all(end == number for number, end in by_number.items())
