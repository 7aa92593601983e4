"""A backtest of 300 series over eight weeks of polls every 30 s, as `tidemark backtest` makes it, with Spark's start.

The bar is three minutes on two cores. BACKTEST_SERIES=3000 sets the size.
"""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Final

import pytest

from service.cli.main import run
from service.runtime.clock import monotonic
from service.sandbox.simulator.simulation import Simulation, SimulationRequest
from service.sandbox.simulator.writing import write_history
from service.terminal.exit_codes import ExitCode

SERIES: Final = int(os.environ.get("BACKTEST_SERIES", "300"))
WEEKS: Final = 8
LEARNT_WEEKS: Final = 2
END: Final = date(2026, 11, 15)


def test_weeks_are_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = SimulationRequest(seed=1, series=SERIES, weeks=WEEKS, end=END)
    history = str(tmp_path / "history")
    written = write_history(Simulation(request), history, replace=False, progress=lambda *_: None)
    first = request.days[7 * LEARNT_WEEKS]
    place = ["--history", history, "--data-dir", str(tmp_path), "--master", "local[2]"]
    begun = monotonic()
    assert run(["backtest", *place, "--from", first.isoformat(), "-o", "json"]) == ExitCode.OK
    seconds = monotonic() - begun
    total = json.loads(capsys.readouterr().out)["results"][0]["total"]
    with capsys.disabled():
        print(
            f"\nbacktest of {SERIES} series, {WEEKS} weeks, {written.samples:,} samples: {seconds:.0f} s, "
            f"{SERIES * 7 * WEEKS / seconds:.0f} series-days a second; {total['openings']} openings in "
            f"{total['series_days'] / 7:.0f} series-weeks"
        )
    assert total["series_days"] > 0
