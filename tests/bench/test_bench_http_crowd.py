"""Probes, scrapes and rounds of a service that is under attack and busy; stats are printed.

500 slow connections and clients that guess secrets, all without a token; with one, 64 heavy lists at once, and
log lines as many as are let in, each submission a new one as large as may be. The bar: every probe and
scrape is answered, 99 % within a second, and rounds are on time. The crowd runs on the same machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.crowd import Address, Timed, probe
from tests.bench.crowd_process import GUESSERS, LISTS_AT_ONCE, SLOW
from tests.bench.own_process import ROOT

LIMIT_SECONDS: Final = 600
SECONDS: Final = 20.0
CROWDS: Final = (
    ("alone", ()),
    (f"{SLOW} slow connections, {GUESSERS} that guess", ("strangers",)),
    (f"{LISTS_AT_ONCE} lists at once, ingest at its limit", ("work",)),
    ("all of it", ("strangers", "work")),
)


@contextmanager
def program(name: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program of the benches; closing its input ends it."""
    command = [sys.executable, "-m", name, *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def end_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Close the input of a program, and return what it writes then."""
    found: dict[str, Any] = json.loads(process.communicate()[0])
    return found


def crowded(address: Address, secret: str, kinds: Sequence[str]) -> dict[str, Timed]:
    """Return the answers of a time beside a crowd: to probes, scrapes, and those of the crowd that work."""
    timed: dict[str, Timed] = {}
    with program("tests.bench.crowd_process", address[0], str(address[1]), secret, *kinds) as crowd:
        assert crowd.stdout is not None
        assert crowd.stdout.readline()  # it has begun
        asyncio.run(probe(address, secret, timed, SECONDS))
        others = end_of(crowd)
    return timed | {target: Timed(**answers) for target, answers in others.items()}


@pytest.mark.timeout(LIMIT_SECONDS)
def test_probes_and_scrapes_of_a_crowded_service(folder: Path) -> None:
    with program("tests.bench.crowded_service", str(folder / "data")) as service:
        assert service.stdout is not None
        ready: dict[str, Any] = json.loads(service.stdout.readline())
        address = (str(ready["address"][0]), int(ready["address"][1]))
        print(f"\n{ready['findings']:,} findings")
        for name, kinds in CROWDS:
            print(f"  {name}")
            for target, timed in crowded(address, ready["secret"], kinds).items():
                print(f"    {target:<44} {timed}")
        rounds = end_of(service)
    print(
        f"  {rounds['rounds']:.0f} rounds, begun at most {rounds['latest']:.2f} s late, "
        f"in at most {rounds['longest']:.2f} s"
    )
