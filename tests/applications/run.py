"""A run: applications at work, watched all the time, killed and back, and checked at the end."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from service.runtime.clock import monotonic, pause, wait_until
from tests.applications.application import Application, Ground, Running
from tests.applications.judging import false_alarms
from tests.applications.kills import draw_kills
from tests.applications.table import Row, render_table
from tests.applications.watchers import BOTH, Watcher

FLOW_SECONDS: Final = 120.0  # until the first records come out, on a busy machine
REST_SECONDS: Final = 120.0  # until the last ones have: a session has to end first
STANDSTILL_SECONDS: Final = 100.0  # a killed instance's session, its transaction, and a rebalance

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How long, and how often an instance of each application is killed."""

    seconds: float
    kills: int


class Run:
    """Some applications on one cluster, or from one to another."""

    def __init__(
        self, applications: Sequence[Application], ground: Ground, undo: ExitStack
    ) -> None:
        self._ground = ground
        self._undo = undo
        self._applications = applications
        self._running: dict[str, Running] = {}
        self._watchers: list[Watcher] = []

    def go(self, plan: Plan) -> list[Row]:
        """Start all, let the time pass, and hold everything against what is true."""
        for application in self._applications:
            self._running[application.name] = application.start(self._ground, self._undo)
        self._await_flow()
        self._watchers = list(self._start_watchers())
        began = monotonic()
        self._let_pass(plan, began)
        fed = self._finish()
        for watcher in self._watchers:
            watcher.await_rounds(2)
        rows = self._rows(fed, monotonic() - began)
        logger.info("\n%s", render_table(rows))
        self._assert_true(fed, plan)
        return rows

    def _start_watchers(self) -> list[Watcher]:
        made: list[Watcher] = []
        for number, cluster in enumerate(self._ground.clusters):
            label = "" if len(self._ground.clusters) == 1 else ("target, ", "source, ")[number]
            for settings in BOTH:
                folder = self._ground.folder / f"w{len(made)}"
                made.append(Watcher(cluster, label, settings, folder))
                self._undo.callback(made[-1].end)
        for watcher in made:
            watcher.await_ready()
        return made

    def _await_flow(self) -> None:
        for name, running in self._running.items():
            assert wait_until(partial(has_outputs, running), timeout_seconds=FLOW_SECONDS), (
                f"nothing came out of {name}: {running.instances[0].last_words()}"
            )

    def _let_pass(self, plan: Plan, began: float) -> None:
        for second, what, act in self._drawn(plan):
            pause(max(0.0, second - (monotonic() - began)))
            logger.info("%4.0f s: %s", monotonic() - began, what)
            act()
        pause(max(0.0, plan.seconds - (monotonic() - began)))

    def _drawn(self, plan: Plan) -> list[tuple[float, str, partial[None]]]:
        seed = random.randrange(10**6)
        logger.info("kills drawn with %d", seed)
        chance, steps = random.Random(seed), []
        for name, running in self._running.items():
            for kill in draw_kills(
                chance, seconds=plan.seconds, count=plan.kills, instances=len(running.instances)
            ):
                instance = running.instances[kill.instance]
                label = f"instance {kill.instance} of {name}"
                steps.append((kill.killed, f"{label} is killed", partial(instance.kill)))
                steps.append((kill.back, f"{label} comes back", partial(instance.start)))
        return sorted(steps, key=lambda step: step[0])

    def _finish(self) -> dict[str, int]:
        """Stop the load and wait until all of it has come out."""
        fed = {name: running.feeder.stop() for name, running in self._running.items()}
        for application in self._applications:
            running = self._running[application.name]
            application.flush()
            wanted = fed[application.name]
            assert wait_until(
                partial(has_all, application, wanted, running), timeout_seconds=REST_SECONDS
            ), (
                f"{application.missing(wanted, running)} records never came out of "
                f"{application.name}: {running.instances[-1].last_words()}"
            )
        return fed

    def _rows(self, fed: Mapping[str, int], seconds: float) -> list[Row]:
        return [
            watcher.row(
                application=" and ".join(self._running),
                seconds=seconds,
                records=sum(fed.values()),
                kills=self._kills,
                pause=max(one.reader.longest_pause for one in self._running.values()),
            )
            for watcher in self._watchers
        ]

    @property
    def _kills(self) -> int:
        return sum(one.kills for running in self._running.values() for one in running.instances)

    def _assert_true(self, fed: Mapping[str, int], plan: Plan) -> None:
        for application in self._applications:
            running = self._running[application.name]
            application.check(fed[application.name], running)
            assert running.reader.longest_pause < STANDSTILL_SECONDS, application.name
        assert self._kills == plan.kills * len(self._applications)
        for watcher in self._watchers:
            watcher.assert_watched(plan.seconds)
            wrong = false_alarms(watcher.said(), kills=self._kills)
            assert wrong == [], f"{watcher.label}: {wrong}\n{watcher.evidence()}"
        assert sum(watcher.transactions() for watcher in self._watchers) > 0


def has_outputs(running: Running) -> bool:
    return bool(running.reader.outputs)


def has_all(application: Application, fed: int, running: Running) -> bool:
    return application.missing(fed, running) <= 0
