"""Whatever bytes come, they are read or rejected: no end of the process, no gigabytes, no minutes.

Each reader is given 1,000 damaged answers; `FUZZ_ANSWERS` says another number, `FUZZ_SEED` other ones,
`FUZZ_PROCESSES` how many processes share the readers, and `FUZZ_PART=1/8` that only a part of them is tried.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.child import LAYOUT, Progress, cases
from tests.fuzz.readers import readers

COUNT = int(os.environ.get("FUZZ_ANSWERS", "1000"))
SEED = os.environ.get("FUZZ_SEED", "tidemark")
PROCESSES = int(os.environ.get("FUZZ_PROCESSES", "1"))
PART, PARTS = map(int, os.environ.get("FUZZ_PART", "1/1").split("/"))
SHOWN = 200  # bytes


@dataclass(frozen=True, slots=True)
class Share:
    """The readers of one process."""

    process: subprocess.Popen[bytes]
    memory: Path  # of its progress
    errors: Path

    @property
    def progress(self) -> Progress:
        return Progress(*LAYOUT.unpack(self.memory.read_bytes()))

    def error(self) -> str | None:
        """Wait for its end; return what is wrong, with the bytes that were read last."""
        if not self.process.wait():
            return None
        printed = self.errors.read_text("utf-8")[:SHOWN]
        return f"{last_case(self.progress)}: {printed or self.process.returncode}"


def test_damaged_answers_are_read_or_rejected(tmp_path: Path) -> None:
    print(f"\n{COUNT:,} answers each, seed {SEED!r}, part {PART} of {PARTS}")
    shares = [start(tmp_path, number) for number in range(PROCESSES)]
    try:
        errors = [error for error in [share.error() for share in shares] if error is not None]
    finally:
        for share in shares:
            share.process.kill()
    assert not errors, "\n".join(errors)
    print(summary([share.progress for share in shares]))


def start(folder: Path, number: int) -> Share:
    """Start the process of a share."""
    memory, errors = folder / f"progress-{number}", folder / f"errors-{number}"
    memory.write_bytes(bytes(LAYOUT.size))
    share = f"{PART - 1 + PARTS * number}/{PARTS * PROCESSES}"
    command = [sys.executable, "-m", "tests.fuzz.child", str(COUNT), SEED, share, str(memory)]
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    return Share(process, memory, errors)


def last_case(progress: Progress) -> str:
    """Return which bytes were given to which reader last."""
    reader = list(readers())[progress.reader]
    body = next(itertools.islice(cases(reader, COUNT, SEED), progress.place, None))
    return f"{reader.name}, bytes {progress.place} of seed {SEED!r} ({len(body)}): {body[:SHOWN].hex(' ')}"


def summary(ends: list[Progress]) -> str:
    """Return the slowest answer and the most memory of all processes."""
    slowest = max(ends, key=lambda end: end.slowest_seconds)
    name = list(readers())[slowest.slowest_reader].name
    return (
        f"slowest: {name}, {1000 * slowest.slowest_seconds:.1f} ms of the processor; "
        f"peak of a process: {max(end.peak_kib for end in ends) >> 10} MiB"
    )
