"""How long `tidemark explain` takes: the whole command on 10,000 lines of stack traces or of tools' outputs, and a large ordinary log."""

import sys
from pathlib import Path
from subprocess import DEVNULL, run

from collectors.application_log.reader import Reader
from service.runtime.clock import monotonic
from tests.tool_outputs import lines_of

FRAMES = 22
LINES = 10_000
RUNS = 3
ORDINARY = 50_000_000  # bytes
ORDINARY_LINE = b"2026-01-02 03:04:05,006 INFO [http-nio-8080-exec-3] a.b.OrderController - handled order 4711 in 12 ms with status OK"


def _trace(number: int) -> list[str]:
    expired = (
        f"org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for orders-{number % 12}:120000 ms "
        "has passed since batch creation"
    )
    return [
        f"2026-01-02 03:{number // 60 % 60:02d}:{number % 60:02d},006 ERROR [worker] a.B - [Producer clientId=p-{number % 5}] failed",
        f"java.util.concurrent.ExecutionException: {expired}",
        *(f"\tat a.b.Class{frame}.method(Class{frame}.java:{number})" for frame in range(FRAMES)),
        f"Caused by: {expired}",
    ]


def test_stack_traces(tmp_path: Path) -> None:
    lines = [line for number in range(LINES // (FRAMES + 3)) for line in _trace(number)]
    seconds = _seconds(tmp_path / "app.log", lines)
    print(f"\nexplain of {len(lines):,} lines of stack traces, whole command: {seconds:.2f} s")


def test_outputs_of_tools(tmp_path: Path) -> None:
    for name in ("dump-data", "dump-deep", "topics-broker-down", "groups-describe", "tx-list"):
        output = lines_of(f"4.1.1-{name}")
        lines = (output * (LINES // len(output) + 1))[:LINES]
        seconds = _seconds(tmp_path / "ticket.txt", lines)
        print(f"\nexplain of {len(lines):,} lines of {name}, whole command: {seconds:.2f} s")


def _seconds(file: Path, lines: list[str]) -> float:
    """Return how long the whole command takes, the shortest of a few runs."""
    file.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "service", "explain", str(file)]
    seconds = []
    for _ in range(RUNS):
        begin = monotonic()
        assert run(command, stdout=DEVNULL, check=False).returncode == 0
        seconds.append(monotonic() - begin)
    return min(seconds)


def test_an_ordinary_log() -> None:
    reader = Reader("app.log")
    count = ORDINARY // (len(ORDINARY_LINE) + 1)
    begin = monotonic()
    reader.feed_all([ORDINARY_LINE] * count)
    print(f"\n{count:,} ordinary lines, {ORDINARY // 10**6} MB: {monotonic() - begin:.1f} s")
