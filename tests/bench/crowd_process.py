"""The program of `test_bench_http_crowd` that is the crowd: strangers that hinder, clients that work.

It has a process of its own, with a low priority, because a crowd elsewhere would not use this machine's
cores. It writes a line when it begins, goes on until its input is closed, and then writes the answers as one
line of JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from service.runtime.threads import in_thread
from tests.bench.crowd import Address, Timed, guess, hinder, load, request
from tests.bench.submissions import Submissions

LESS_URGENT: Final = 10
SLOW: Final = 500
LISTS_AT_ONCE: Final = 64
GUESSERS: Final = 8
INGESTERS: Final = 12  # some more than places
LISTS: Final = (
    "/api/v1/findings?limit=1000",
    "/api/v1/findings?limit=1000&topic=*99",
    "/api/v1/groups?limit=1000",
    "/api/v1/groups/group-1000?limit=1000",
    "/api/v1/partitions?limit=1000",
    "/api/v1/losses?limit=1000",
    "/api/v1/transactions?limit=1000",
    "/api/v1/findings?limit=1000&state=all",
    "/api/v1/status",
)


async def crowd(address: Address, secret: str, *, strangers: bool, work: bool) -> dict[str, Timed]:
    """Hinder, work, or both, until the input is closed; return the answers to those that work."""
    timed: dict[str, Timed] = {}
    kinds = [hinder(address, SLOW), guess(address, GUESSERS)] if strangers else []
    if work:
        lists = itertools.cycle([request("GET", target, secret) for target in LISTS])
        kinds += [
            load(address, lists, LISTS_AT_ONCE, timed),
            load(address, Submissions(secret), INGESTERS, timed),
        ]
    print("ready", flush=True)
    clients = [asyncio.create_task(kind) for kind in kinds]
    await in_thread(sys.stdin.read)
    for task in clients:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*clients)
    return timed


def main() -> None:
    """Be the crowd that the arguments describe: host, port, secret, and the kinds of clients."""
    os.nice(LESS_URGENT)
    host, port, secret, *kinds = sys.argv[1:]
    timed = asyncio.run(
        crowd((host, int(port)), secret, strangers="strangers" in kinds, work="work" in kinds)
    )
    print(json.dumps({target: asdict(answers) for target, answers in timed.items()}))


if __name__ == "__main__":
    main()
