"""The program of `test_bench_http_crowd`: the service of `whole_service` with rounds at an interval, and ten
thousand open findings.

It writes one line of JSON when it is ready, and one about its rounds when its input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

from rules.facts.snapshot import Snapshot
from service.observe.cluster_reader import Scope
from service.runtime.clock import monotonic, set_within, utc_now
from service.runtime.threads import in_thread
from service.settings import HttpSettings
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope as Right
from tests.bench.large import ROWS, stuck
from tests.bench.whole_service import Parts, Source, build

INTERVAL_SECONDS: Final = 5.0
FIRST_ROUNDS: Final = 6  # until all findings are open


class StuckSource(Source):
    """Makes snapshots in which every high watermark stands."""

    def read(self, scope: Scope) -> Snapshot:  # noqa: ARG002 - the port's argument
        self._number += 1
        return stuck(self._number, since=0, rows=ROWS)


async def make_rounds(parts: Parts, stop: asyncio.Event) -> dict[str, float]:
    """Make a round per interval; return how late they began and how long they took, in seconds."""
    late, took = [0.0], [0.0]
    due = monotonic()
    while not await set_within(stop, due - monotonic()):
        began = monotonic()
        late.append(began - due)
        await in_thread(parts.pipeline.make_round, name="round")
        took.append(monotonic() - began)
        due = max(due + INTERVAL_SECONDS, monotonic())
    return {"rounds": len(took) - 1, "latest": max(late), "longest": max(took)}


async def serve(parts: Parts) -> dict[str, float]:
    """Serve, with rounds, until the input is closed."""
    stop = asyncio.Event()
    serving = asyncio.create_task(parts.http.run())
    rounds = asyncio.create_task(make_rounds(parts, stop))
    await in_thread(sys.stdin.read)
    stop.set()
    stats = await rounds
    parts.http.stop()
    await serving
    return stats


def main() -> None:
    """Serve until the input is closed."""
    parts = build(
        Path(sys.argv[1]), source=StuckSource(), settings=HttpSettings(require_token=True)
    )
    with closing(parts.store):
        parts.pipeline.load(is_start=True)
        for _ in range(FIRST_ROUNDS):
            parts.pipeline.make_round()
        secret = tokens.create(parts.store.engine, "bench", [Right.READ, Right.INGEST], utc_now())
        ready = {
            "address": parts.address,
            "secret": secret,
            "findings": parts.pipeline.open_findings,
        }
        print(json.dumps(ready), flush=True)
        print(json.dumps(asyncio.run(serve(parts))), flush=True)


if __name__ == "__main__":
    main()
