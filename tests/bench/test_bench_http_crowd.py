"""Probes, scrapes and rounds of a service that is under attack and busy; stats are printed.

500 slow connections and clients that guess secrets, all without a token; with one, 64 heavy lists at once, and
log lines as many as are let in. The bar: every probe and scrape is answered, 99 % within a second, and
rounds are on time. The clients run on the same machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.crowd import INGEST, Address, Timed, guess, hinder, load, probe, request
from tests.bench.own_process import ROOT

LIMIT_SECONDS: Final = 600
SECONDS: Final = 20.0
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
LOG_LINES: Final = b"[2026-11-21 11:56:40,159] INFO nothing of note (kafka.server)\n" * 64_000


async def crowded(
    address: Address, secret: str, *, strangers: bool, work: bool
) -> dict[str, Timed]:
    """Return the answers of a time in which strangers hinder, clients work, or both."""
    timed: dict[str, Timed] = {}
    lists = [request("GET", target, secret) for target in LISTS]
    lines = [request("POST", INGEST, secret, LOG_LINES)]
    crowd = [hinder(address, SLOW), guess(address, GUESSERS)] if strangers else []
    if work:
        crowd += [
            load(address, lists, LISTS_AT_ONCE, timed),
            load(address, lines, INGESTERS, timed),
        ]
    others = [asyncio.create_task(one) for one in crowd]
    await probe(address, secret, timed, SECONDS)
    for task in others:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*others)
    await asyncio.sleep(0.1)  # until all connections are closed
    return timed


@pytest.mark.timeout(LIMIT_SECONDS)
def test_probes_and_scrapes_of_a_crowded_service(folder: Path) -> None:
    program = [sys.executable, "-m", "tests.bench.crowded_service", str(folder / "data")]
    with subprocess.Popen(
        program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ready: dict[str, Any] = json.loads(process.stdout.readline())
        address = (str(ready["address"][0]), int(ready["address"][1]))
        print(f"\n{ready['findings']:,} findings")
        for name, strangers, work in (
            ("alone", False, False),
            (f"{SLOW} slow connections, {GUESSERS} that guess", True, False),
            (f"{LISTS_AT_ONCE} lists at once, ingest at its limit", False, True),
            ("all of it", True, True),
        ):
            print(f"  {name}")
            answers = crowded(address, ready["secret"], strangers=strangers, work=work)
            for target, timed in asyncio.run(answers).items():
                print(f"    {target:<44} {timed}")
        process.stdin.close()
        rounds: dict[str, float] = json.loads(process.stdout.readline())
    print(
        f"  {rounds['rounds']:.0f} rounds, begun at most {rounds['latest']:.2f} s late, "
        f"in at most {rounds['longest']:.2f} s"
    )
