"""How long the headers of a segment of 1 GiB take, in how much memory, beside Kafka's own DumpLogSegments."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from service.runtime.clock import monotonic
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from tests.kafka_release import VERSION
from tests.unit.collectors.wire.records import Batch

SEGMENT_BYTES: Final = 1024**3
RECORD_BYTES: Final = 100
PRODUCERS: Final = 8
HEADER_BYTES: Final = 61
MEASURED: Final = """
import sys
from service.cli.main import run
from tests.bench.memory import weights
code = run(sys.argv[1:])
print(f"most memory {weights()[1]:.0f} MiB", file=sys.stderr)
raise SystemExit(code)
"""


def write_segment(path: Path, size: int) -> None:
    """Write batches of a size, by producers in turn, with their checksums."""
    records, payload = max(1, (size - HEADER_BYTES) // RECORD_BYTES), bytes(size - HEADER_BYTES)
    with path.open("wb") as file:
        for number in range(SEGMENT_BYTES // size):
            batch = Batch(
                base_offset=number * records,
                last_delta=records - 1,
                producer_id=number % PRODUCERS,
                producer_epoch=0,
                base_sequence=number // PRODUCERS * records,
                payload=payload,
                is_checked=True,
            )
            file.write(batch.encode())


@pytest.mark.parametrize("size", [16 * 1024, 1024], ids=["16-kib-batches", "1-kib-batches"])
def test_bench_headers_of_a_segment(tmp_path: Path, size: int) -> None:
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    write_segment(path, size)
    own = ("-c", MEASURED, "log", "inspect", str(path), "-o", "json")
    print(f"\n1 GiB in batches of {size:,} bytes, warm")
    timed("a folder without a log", (*own[:4], str(nothing)))
    timed("tidemark log inspect", own)
    timed("tidemark log inspect --verify", (*own, "--verify"))
    sandbox = Sandbox(tmp_path / "kafka", options=SandboxOptions(kafka_version=VERSION))
    sandbox.up()
    try:
        tool = (
            "-m",
            "service",
            "sandbox",
            "tool",
            "--dir",
            str(sandbox.directory),
            "kafka-dump-log.sh",
        )
        timed("kafka-dump-log.sh", (*tool, "--files", str(path)))
    finally:
        sandbox.down()
        path.unlink()


def timed(label: str, arguments: Sequence[str]) -> None:
    """Run Python with these arguments, its output thrown away; print how long it and its processor took."""
    begin, before = monotonic(), _processor_seconds()
    done = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    last = done.stderr.strip().rpartition("\n")[2]
    seconds, processor = monotonic() - begin, _processor_seconds() - before
    print(
        f"  {label:<30} {seconds:6.2f} s, processor {processor:6.2f} s, exit {done.returncode}  {last}"
    )


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
