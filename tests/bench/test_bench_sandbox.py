"""How long the sandbox takes, up and down, with a warm cache; and that nothing is left of it.

Stats are printed, not asserted: they belong to the machine. TIDEMARK_BENCH_ROUNDS sets how
many rounds are made.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest

from service.runtime.clock import monotonic
from service.sandbox.cluster import processes
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker

ROUNDS = int(os.environ.get("TIDEMARK_BENCH_ROUNDS", "20"))
MIB = 2**20


@pytest.mark.timeout(60 * ROUNDS)
def test_rounds_of_up_and_down_leave_nothing(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "sandbox")
    sandbox.up()  # fills the cache on a new machine
    sandbox.down()
    ups: list[float] = []
    downs: list[float] = []
    sizes: list[float] = []
    for _ in range(ROUNDS):
        begin = monotonic()
        sandbox.up()
        ups.append(monotonic() - begin)
        sizes.append(sum(status.resident_bytes or 0 for status in sandbox.status()) / MIB)
        begin = monotonic()
        sandbox.down()
        downs.append(monotonic() - begin)
        assert processes.find_marked(marker(sandbox.directory)) == []
        assert list(tmp_path.iterdir()) == []
    print(f"\n{ROUNDS} rounds of up and down    min / median / max")
    for name, stats, unit in (("up", ups, "s"), ("down", downs, "s"), ("rss", sizes, "MiB")):
        low, middle, high = min(stats), median(stats), max(stats)
        print(f"  {name:<6} {low:8.2f} / {middle:.2f} / {high:.2f} {unit}")
