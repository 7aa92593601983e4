"""What a whole service with alerts costs in incidents at 10,000 partitions x 1,001 groups; stats are printed.

Each state has a process of its own, with PostgreSQL and without brokers. Bars: a round within 1.5 times of the
healthy one, 60 ms of storing (median), and 300 MiB of the service and its PostgreSQL together, which stay so
(INCIDENT_ROUNDS=1000).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.bench.incidents import STATES
from tests.bench.own_process import print_told

LIMIT_SECONDS: Final = 900


@pytest.mark.timeout(LIMIT_SECONDS + 30)
@pytest.mark.parametrize("state", STATES)
def test_rounds_in_an_incident(folder: Path, state: str) -> None:
    rounds = os.environ.get("INCIDENT_ROUNDS", "80")
    words = ("tests.bench.incident_service", str(folder / "data"), state, rounds)
    print_told(*words, seconds=LIMIT_SECONDS)
