"""Whatever bytes come, they are read or rejected: no end of the process, no gigabytes, no minutes.

Each reader is given 1,000 damaged answers; `FUZZ_ANSWERS` says another number, and `FUZZ_SEED` other ones.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.child import PLACE, cases
from tests.fuzz.readers import readers

COUNT = int(os.environ.get("FUZZ_ANSWERS", "1000"))
SEED = os.environ.get("FUZZ_SEED", "tidemark")
SHOWN = 200  # bytes


def test_damaged_answers_are_read_or_rejected(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(PLACE.size))
    command = [sys.executable, "-m", "tests.fuzz.child", str(COUNT), SEED, str(progress)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not ended.returncode, f"{last_case(progress)}: {ended.stderr[:SHOWN]}"


def last_case(progress: Path) -> str:
    """Return which bytes were given to which reader last."""
    number, place = PLACE.unpack(progress.read_bytes())
    reader = list(readers())[number]
    body = next(itertools.islice(cases(reader, COUNT, SEED), place, None))
    return f"{reader.name}, bytes {place} of seed {SEED!r} ({len(body)}): {body[:SHOWN].hex(' ')}"
