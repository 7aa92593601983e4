"""The line per second says what moves, and failures only when there are any."""

from __future__ import annotations

import subprocess
import sys

from service.sandbox.commands.workload import running_line
from service.sandbox.workloads.counts import Counts


def test_each_workload_shows_what_it_does() -> None:
    line = running_line(
        12.4,
        {
            "producer": Counts(sent=10, acknowledged=9, failed=1, restarts=1),
            "pipeline": Counts(
                sent=8, acknowledged=8, consumed=8, transactions_committed=2, transactions_aborted=1
            ),
            "slow-group": Counts(consumed=3),
            "java-producer": Counts(),
        },
    )
    assert line == (
        "   12 s  producer 9 acknowledged, 1 failed, 1 restarts"
        " | pipeline 8 read, 2 committed, 1 aborted"
        " | slow-group 3 read | java-producer -"
    )


def test_the_help_loads_no_kafka_client() -> None:
    code = (
        "import sys, service.sandbox.commands.workload, service.sandbox.commands.sandbox; "
        "sys.exit('confluent_kafka' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
