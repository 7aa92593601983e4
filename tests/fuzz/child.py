"""Reads damaged bytes in a process that may have no more than 1 GiB of addresses.

`python -m tests.fuzz.child COUNT SEED PROGRESS` gives each reader so many, and ends at the first one that is not
read or rejected as it should be. In the file PROGRESS is always which one was read last: an allocation
that fails in native code ends the process without a word.
"""

from __future__ import annotations

import mmap
import random
import resource
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.fuzz.mutations import LONG, UNENDING, mutated
from tests.fuzz.readers import Reader, readers

ADDRESSES: Final = 1 << 30  # bytes
MOST_SECONDS: Final = 1.0  # of the processor, for one answer
PLACE: Final = struct.Struct("<II")  # number of the reader, number of the bytes


def cases(reader: Reader, count: int, seed: str) -> Iterator[bytes]:
    """Yield what a reader is given; the same for the same seed."""
    draw = random.Random(f"{seed} {reader.name}")
    bodies = reader.bodies(draw)
    yield from LONG
    for body in bodies:
        yield body[: draw.randrange(len(body) + 1)] + draw.choice(UNENDING)
    for _ in range(count):
        yield mutated(draw, bodies)


def problem_of(reader: Reader, body: bytes) -> str | None:
    """Return what is wrong with how bytes were read, None if nothing is."""
    begin = time.process_time()
    try:
        reader.read(body)
    except reader.rejection:
        pass
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is reported
        return repr(exc)
    took = time.process_time() - begin
    return f"took {took:.1f} s" if took > MOST_SECONDS else None


def main(count: int, seed: str, progress: mmap.mmap) -> str | None:
    """Give every reader its cases; return what is wrong with one of them."""
    for number, reader in enumerate(readers()):
        for place, body in enumerate(cases(reader, count, seed)):
            PLACE.pack_into(progress, 0, number, place)
            problem = problem_of(reader, body)
            if problem is not None:
                return problem
    return None


if __name__ == "__main__":
    with Path(sys.argv[3]).open("r+b") as file, mmap.mmap(file.fileno(), PLACE.size) as shared:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        sys.exit(main(int(sys.argv[1]), sys.argv[2], shared))
