"""Reads damaged bytes in a process that may have no more than 1 GiB of addresses.

`python -m tests.fuzz.child COUNT SEED SHARE PROGRESS` gives each reader of its share (0/2, 1/2) so many, prints a
line for each, and ends at the first bytes that are not read or rejected as they should be. In the file PROGRESS is
always which bytes were read last: an allocation that fails in native code ends the process without a word.
"""

from __future__ import annotations

import mmap
import random
import resource
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz.mutations import LONG, UNENDING, mutated
from tests.fuzz.readers import Reader, readers

ADDRESSES: Final = 1 << 30  # bytes
MOST_SECONDS: Final = 1.0  # of the processor, for one answer
ENDLESS_SECONDS: Final = 10.0  # after which the kernel ends the process


class Progress(NamedTuple):
    """How far a share is; written to memory that outlives its process."""

    reader: int = 0  # whose bytes were read last
    place: int = 0  # of these bytes
    slowest_reader: int = 0
    slowest_seconds: float = 0.0  # of the processor
    peak_kib: int = 0


LAYOUT: Final = struct.Struct("<IIIdI")  # of a progress


def cases(reader: Reader, count: int, seed: str) -> Iterator[bytes]:
    """Yield what a reader is given; the same for the same seed."""
    draw = random.Random(f"{seed} {reader.name}")
    bodies = reader.bodies(draw)
    yield from LONG
    for body in bodies:
        yield body[: draw.randrange(len(body) + 1)] + draw.choice(UNENDING)
    for _ in range(count):
        yield mutated(draw, bodies)


def problem_of(reader: Reader, body: bytes) -> tuple[str | None, float]:
    """Return what is wrong with how bytes were read, if anything is, and the seconds that it took."""
    signal.setitimer(signal.ITIMER_PROF, ENDLESS_SECONDS)
    begin = time.process_time()
    try:
        reader.read(body)
    except reader.rejection:
        pass
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is reported
        return repr(exc), 0.0
    took = time.process_time() - begin
    return f"took {took:.1f} s" if took > MOST_SECONDS else None, took


def main(count: int, seed: str, share: str, shared: mmap.mmap) -> str | None:
    """Give every reader of a share its cases; return what is wrong with one of them."""
    first, shares = map(int, share.split("/"))
    progress = Progress()
    for number, reader in list(enumerate(readers()))[first::shares]:
        slowest, begin = 0.0, time.monotonic()
        for place, body in enumerate(cases(reader, count, seed)):
            progress = progress._replace(reader=number, place=place)
            LAYOUT.pack_into(shared, 0, *progress)
            problem, took = problem_of(reader, body)
            if problem is not None:
                return problem
            slowest = max(slowest, took)
        progress = _finished(reader, slowest, time.monotonic() - begin, progress)
        LAYOUT.pack_into(shared, 0, *progress)
    return None


def _finished(reader: Reader, slowest: float, seconds: float, progress: Progress) -> Progress:
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"  {reader.name}: {progress.place + 1:,} answers in {seconds:.1f} s, slowest "
        f"{1000 * slowest:.1f} ms, peak {peak_kib >> 10} MiB",
        flush=True,
    )
    if slowest > progress.slowest_seconds:
        progress = progress._replace(slowest_reader=progress.reader, slowest_seconds=slowest)
    return progress._replace(peak_kib=peak_kib)


if __name__ == "__main__":
    with Path(sys.argv[4]).open("r+b") as file, mmap.mmap(file.fileno(), LAYOUT.size) as memory:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], memory))
