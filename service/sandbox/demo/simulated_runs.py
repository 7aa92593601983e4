"""The simulated weeks of the demo, and the baseline runs that learn from them, in a process of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from rules.baseline.civil import SLOTS_PER_DAY, civil_day
from rules.baseline.packed import bucket_of
from service.history.days import DayReader, days_of
from service.history.folder import open_folder
from service.runtime import clock
from service.runtime.children import module_command
from service.sandbox.cluster import processes
from service.sandbox.cluster.state import ProcessId
from service.sandbox.simulator.simulation import Simulation, SimulationRequest
from service.sandbox.simulator.writing import Written, write_history

ZONES: Final = ("Europe/Berlin",)
WEEKS: Final = 3
SERIES: Final = 40
SEED: Final = 3
BACKTEST_RULE: Final = "record_error_rate_unusual"
BACKTEST_DAYS: Final = 8
SLOT_MINUTES: Final = 24 * 60 // SLOTS_PER_DAY


@dataclass(slots=True)
class SimulatedRuns:
    """Simulated weeks below a folder, and their baseline runs."""

    folder: Path
    simulation: Simulation | None = None  # set when its weeks are written
    written: Written | None = None
    process: ProcessId | None = None  # of baseline runs, then of the backtest

    @property
    def history(self) -> Path:
        """Return the folder of simulated history."""
        return self.folder / "weeks"

    def simulate(self, cluster: str, weeks: int = WEEKS) -> None:
        """Write the weeks up to yesterday, as those of a cluster."""
        yesterday = clock.utc_now().astimezone(ZoneInfo(ZONES[0])).date() - timedelta(days=1)
        request = SimulationRequest(
            seed=SEED, cluster=cluster, series=SERIES, weeks=weeks, end=yesterday, zones=ZONES
        )
        simulation = Simulation(request)
        self.written = write_history(simulation, str(self.history), replace=True, progress=_ignore)
        self.simulation = simulation

    def start(self, serve_config: Path, without: Sequence[str]) -> None:
        """Start `tidemark nightly run` with the settings of a service, to publish where that reads."""
        command = ("nightly", "run", "--config", str(serve_config))
        self._spawn(command, without, output=self._log)

    def start_backtest(self, serve_config: Path, without: Sequence[str]) -> None:
        """Start `tidemark backtest` over the last days, with the settings of a service."""
        command = ("backtest", *self.backtest_options, "--config", str(serve_config))
        self._spawn(command, without, output=self._answer)

    @property
    def backtest_options(self) -> tuple[str, ...]:
        """Return what is replayed: the days since the simulated application began to lose records."""
        if self.simulation is None:
            return ()
        first = self.simulation.request.days[-BACKTEST_DAYS]
        return ("--rule", BACKTEST_RULE, "--from", first.isoformat())

    @property
    def backtest(self) -> dict[str, Any] | None:
        """Return the backtest's answer; None: not yet."""
        with contextlib.suppress(OSError, ValueError):
            *_, last = self._answer.read_text(encoding="utf-8").splitlines()
            answer = json.loads(last)
            return answer if isinstance(answer, dict) else None
        return None

    def _spawn(self, command: Sequence[str], without: Sequence[str], *, output: Path) -> None:
        run = module_command("service", *command, "--history", str(self.history), "-o", "json")
        self.process = processes.spawn(["/usr/bin/env", *without, *run], output=output)

    def list_events(self, event: str) -> list[dict[str, Any]]:
        """Return the events of a kind that the baseline runs have printed so far."""
        events = []
        with contextlib.suppress(OSError):
            for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError):  # half written, or Java's
                    entry = json.loads(line)
                    if isinstance(entry, dict) and entry.get("event") == event:
                        events.append(entry)
        return events

    def samples_at(self, series_id: int, at: datetime, *, every_day: bool) -> NDArray[np.float32]:
        """Return what a series was in the half hour of a time, on all days or on that weekday."""
        folder = open_folder(str(self.history))
        zone = folder.described.time_zone
        local = at.astimezone(ZoneInfo(zone))
        slot = (60 * local.hour + local.minute) // SLOT_MINUTES
        bucket = int(bucket_of(np.array([series_id]), folder.buckets)[0])
        parts = [np.zeros(0, np.float32)]
        alike = [day for day in days_of(folder) if every_day or day.weekday() == local.weekday()]
        for day in alike:
            for block in DayReader(folder, day).blocks(bucket):
                rows = block.values[block.series_id == series_id]
                parts += [row[civil_day(day, zone).slots(block.step_ms) == slot] for row in rows]
        samples = np.concatenate(parts)
        measured: NDArray[np.float32] = samples[~np.isnan(samples)]
        return measured

    @property
    def _log(self) -> Path:
        return self.folder / "nightly.log"

    @property
    def _answer(self) -> Path:
        return self.folder / "backtest.log"


def _ignore(day: date, samples: int) -> None:
    del day, samples
